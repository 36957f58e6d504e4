"""What is done about some commands when they are over: the slow-query log, and a session's counters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import structlog

from proxy.session.counters import counter_of
from proxy.stats import Visit
from rewriter.fingerprint import digest

if TYPE_CHECKING:
    from .at_work import AtWork

log = structlog.get_logger("session")

_SHARDS: Final = 20
"""So many shards are named in the slow-query log."""


def count_statements(client: AtWork) -> Counter[bytes]:
    """The session's statements, which are counted from the first call on."""
    if client.session.counts is None:
        client.session.counts = Counter()
        client.observe_after = -1.0
    return client.session.counts


def observe(client: AtWork, outcome: str, seconds: float) -> None:
    """A command has taken longer than `client.observe_after`."""
    counts = client.session.counts
    if counts is not None and client.plan is not None:
        counts[counter_of(client.plan.nature.words)] += 1
    if seconds > client.services.slow_after:
        _log_slow(client, outcome, seconds)


def _log_slow(client: AtWork, outcome: str, seconds: float) -> None:
    """The slow-query log: the statement's fingerprint, never its literals."""
    session = client.session
    hosts, shards = places(client)
    backend = max(client.last - client.first, 0.0) if hosts else 0.0
    log.warning(
        "slow statement",
        client=session.id,
        address=session.address,
        user=session.user.name,
        database=session.database,
        plan=client.kind,
        outcome=outcome,
        seconds=round(seconds, 6),
        queue_seconds=round(client.queued, 6),
        backend_seconds=round(backend, 6),
        own_seconds=round(max(seconds - backend - client.queued, 0.0), 6),
        hosts=hosts,
        shards=shards[:_SHARDS],
        shard_count=len(shards),
        digest=digest(client.sql, session.env.findall),
    )


def places(client: AtWork) -> tuple[list[str], list[str]]:
    """The hosts that the command has been on, and the shards: `main/3429`."""
    if client.host is None:
        return [], []
    visits = client.visits or [Visit(client.host, () if client.shard is None else (client.shard,))]
    hosts = dict.fromkeys(visit.host for visit in visits)
    shards = dict.fromkeys(f"{one.keyspace}/{one.shard}" for visit in visits for one in visit.shards)
    return list(hosts), list(shards)
