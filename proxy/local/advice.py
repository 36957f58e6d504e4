"""SHOW PROXY ADVICE: the kinds of statements that run on all shards, are gathered or refused, and what would
route them.

Nothing is kept for it while statements run: it looks at the plans that there are, of all worker processes,
and has each planned once more with values of its own making. No literal of a client's is in what it looks
at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from proxy.advising.rows import ADVICE, PLAN, SHARDS
from proxy.engine.task import TaskWork
from proxy.errors import ProxyError
from proxy.peers import of_all
from proxy.stats import Use
from proxy.wire.resultset import integer_column, text_column
from rewriter.advice.samples import filled
from rewriter.env import Env, env_of
from rewriter.fingerprint import digest_of
from rewriter.plan import Plan, Reject
from rewriter.plans import Gather, ReadThenWrite, Values
from rewriter.plans.builtins import ShowProxyAdvice

from .rows import like_pattern, like_text
from .show import answer_rows

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.engine.services import Services

MOST: Final = 100
"""So many kinds of statements are looked at, those that took most time."""

LONGEST: Final = 1 << 14
"""Bytes of a fingerprint that is looked at."""

Row = list[Any]
"""Fingerprint and key of the environment (as latin-1), count (0: not known), errors, seconds."""


def dear(services: Services, like: str | None = None) -> list[Row]:
    """Of this worker process, the kinds of statements that do not go to one shard, those that took most time
    first: of those whose digest is `like` the pattern.
    """
    uses = services.stats.uses
    matches = None if like is None else like_pattern(like)
    found: list[Row] = []
    for plan, fingerprint, key in services.serving.snapshot.rewriter.fingerprints():
        if not _is_dear(plan) or len(fingerprint) > LONGEST:
            continue
        use, env = uses.get(plan), env_of(key)
        if use is None:
            if not env.parameters or env.each_shard:
                continue
            use = Use()  # prepared statements are not counted
        if matches is not None and not matches(digest_of(fingerprint)):
            continue
        key = replace(env, exact="", each_shard=False).key
        texts = fingerprint.decode("latin-1"), key.decode("latin-1")
        found.append([*texts, use.count, use.errors, use.seconds])
    return sorted(found, key=lambda row: -float(row[4]))[:MOST]


def _is_dear(plan: Plan) -> bool:
    return plan.scatter or isinstance(plan, Reject | Gather | ReadThenWrite)


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
    parts = await of_all(services.peers, "advice", dear(services, like), like=like)
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
