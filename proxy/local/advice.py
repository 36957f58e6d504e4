"""SHOW PROXY ADVICE: the kinds of statements that run on all shards, are gathered or refused, and what would
route them.

Nothing is kept for it while statements run: it looks at the plans that there are, of all worker processes,
and has each planned once more with values of its own making. No literal of a client's is in what it looks
at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from proxy.advising.rows import ADVICE, PLAN, SHARDS
from proxy.engine.task import TaskWork
from proxy.errors import ProxyError
from proxy.peers import of_all
from proxy.stats import LONGEST_SHAPE, Use
from proxy.wire.resultset import integer_column, text_column
from rewriter.advice.samples import dear, filled
from rewriter.env import Env, env_of
from rewriter.fingerprint import digest_of
from rewriter.plans import Values
from rewriter.plans.builtins import ShowProxyAdvice

from .rows import like_pattern, like_text
from .show import answer_rows

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.engine.services import Services

MOST: Final = 100
"""So many kinds of statements are looked at, those that took most time."""

Row = list[Any]
"""Fingerprint and key of the environment (as latin-1), count (0: not known), errors, seconds."""


def dear_ones(services: Services, like: str | None = None) -> list[Row]:
    """Of this worker process, the kinds of statements that do not go to one shard, those that took most time
    first: of those whose digest is `like` the pattern. Those that were run before the last change of topology
    or schema are among them: how they would be planned now is what is told.
    """
    matches = None if like is None else like_pattern(like)
    found: list[Row] = []
    for fingerprint, key, use in _shapes(services):
        if matches is None or matches(digest_of(fingerprint)):
            key = replace(env_of(key), exact="", each_shard=False).key
            texts = fingerprint.decode("latin-1"), key.decode("latin-1")
            found.append([*texts, use.count, use.errors, use.seconds])
    return sorted(found, key=lambda row: -float(row[4]))[:MOST]


def _shapes(services: Services) -> Iterator[tuple[bytes, bytes, Use]]:
    """Fingerprints, keys of their environments, and what was counted."""
    stats = services.stats
    for plan, fingerprint, key in services.serving.snapshot.rewriter.fingerprints():
        if dear(plan) and len(fingerprint) <= LONGEST_SHAPE:
            use, env = stats.uses.get(plan), env_of(key)
            if use is not None:
                yield fingerprint, key, use
            elif env.parameters and not env.each_shard:
                yield fingerprint, key, Use()  # prepared, and not executed yet
    for digest, shape in stats.shapes.items():
        yield *shape, stats.digests[digest]


def _added(rows: list[Row]) -> list[Row]:
    """One row for each kind, those that took most time first."""
    found: dict[tuple[str, str], Row] = {}
    for text, key, count, errors, seconds in rows:
        one = found.setdefault((text, key), [text, key, 0, 0, 0.0])
        one[2:] = [one[2] + count, one[3] + errors, one[4] + seconds]
    return sorted(found.values(), key=lambda row: -float(row[4]))[:MOST]


def proxy_advice(client: Exchange, plan: ShowProxyAdvice, values: Values) -> None:
    """One row for each kind of statement."""
    TaskWork(client).start(_proxy_advice(client, plan, values))


async def _proxy_advice(client: Exchange, plan: ShowProxyAdvice, values: Values) -> None:
    services = client.services
    like = None if plan.like is None else like_text(plan.like, values)
    parts = await of_all(services.peers, "advice", dear_ones(services, like), like=like)
    rows = [row for part in parts for row in part]
    shown: list[list[object]] = []
    for text, key, count, errors, seconds in _added(rows):
        fingerprint, env = text.encode("latin-1"), env_of(key.encode("latin-1"))
        found = await _advice(client, filled(fingerprint), env)
        if found is None:
            continue
        told, shards, advice = found
        figures: list[object] = [None] * 4
        if count:
            figures = [count, errors, *(f"{1000 * one:.3f}" for one in (seconds, seconds / count))]
        shown.append([digest_of(fingerprint), env.database, told, shards, *figures, advice])
    columns = [
        text_column("Digest"),
        text_column("Db"),
        text_column("Plan"),
        text_column("Shards"),
        integer_column("Count"),
        integer_column("Errors"),
        text_column("Total_ms"),
        text_column("Mean_ms"),
        text_column("Advice"),
    ]
    answer_rows(client, columns, shown)


async def _advice(client: Exchange, sql: bytes, env: Env) -> tuple[str, str | None, str] | None:
    """The plan, the shards and the remedies of one statement; None where there is nothing to say."""
    services = client.services
    rewriter = client.snapshot.rewriter
    try:
        rows = await services.planners.advise(client.session.user.name, sql, env, rewriter)
    except ProxyError as error:
        return "", None, str(error)
    if not rows:
        return None
    of = dict(reversed(rows))
    return of[PLAN], of[SHARDS] or None, " / ".join(text for name, text in rows if name == ADVICE)
