"""FLUSH CACHE FOR, and SHOW PROXY CACHES."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from proxy.caching.server import COUNTS
from proxy.caching.stores import StoreError
from proxy.engine.task import TaskWork
from proxy.errors import ProxyError
from proxy.session.outcome import Outcome
from proxy.wire.resultset import integer_column, text_column
from rewriter.plans import BindError, Values
from rewriter.plans.builtins import Listing
from rewriter.plans.cached import FlushCache
from rewriter.touched import Touched

from .show import answer_rows, liked

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def flush_cache(client: Exchange, plan: FlushCache, values: Values) -> None:
    """What is in the cache of a table, or of some of its groups, is given to nobody any more."""
    try:
        touched = plan.touched(values)
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None
    TaskWork(client).start(_flush(client, touched))


async def _flush(client: Exchange, touched: Touched) -> None:
    server = client.services.caches.of(touched.table.cache)
    try:
        await server.flush(server.keys_of(touched))
    except StoreError as error:
        reason = str(error).rstrip(".")
        raise ProxyError("cache_unreachable", address=server.cache.address, reason=reason) from None
    client.session.apply(Outcome(0))
    client.reply_ok()


def proxy_caches(client: Exchange, plan: Listing, values: Values) -> None:
    """One row for each cache, as this worker sees it."""
    now = monotonic()
    rows: list[list[object]] = [
        [
            server.title,
            "yes" if server.trusted(now) else "no",
            *(server.counts[name] for name in COUNTS),
            server.members,
            server.trouble or None,
        ]
        for server in client.services.caches
    ]
    columns = [
        text_column("Cache"),
        text_column("Used"),
        *(integer_column(name.capitalize()) for name in COUNTS),
        integer_column("Members"),
        text_column("Error"),
    ]
    answer_rows(client, columns, liked(plan, values, rows))
