"""What is done about some commands when they are over: the slow-query log, and a session's counters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import structlog

from proxy.session.counters import counter_of
from rewriter.fingerprint import digest

if TYPE_CHECKING:
    from .at_work import AtWork

log = structlog.get_logger("session")


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
    log.warning(
        "slow statement",
        client=session.id,
        user=session.user.name,
        database=session.database,
        plan=client.kind,
        outcome=outcome,
        seconds=round(seconds, 6),
        digest=digest(client.sql, session.env.findall),
    )
