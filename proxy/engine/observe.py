"""What is done about some commands when they are over: the slow-query log, and a session's counters."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from proxy.session.counters import counter_of
from proxy.stats import Visit
from proxy.wire.charsets import NOT_ASCII
from proxy.wire.constants import command_name
from rewriter.env import Env
from rewriter.fingerprint import digest, first_word
from rewriter.text.masks import can_mask, mask

if TYPE_CHECKING:
    from proxy.session.state import Session
    from rewriter.plan import Plan

    from .at_work import AtWork

log = structlog.get_logger("session")

_SHARDS: Final = 20
"""So many shards are named in the slow-query log."""

LONG: Final = 1 << 15
"""Of a longer statement only so many bytes are told of: more would keep everybody waiting."""

_AMBIGUOUS: Final = frozenset(b'"\\')


class Told(Protocol):
    """Whose statement is told of without its literals. `reading`: a text and what it was read with, of which
    the statement may be none.
    """

    plan: Plan | None
    reading: tuple[bytes, Env] | None
    session: Session
    sql: bytes


def as_read(client: Told, most: int = LONG) -> tuple[bytes, Env] | None:
    """The statement (of a long one the beginning) as the rewriter reads it, and with which settings: which
    bytes are literals depends on them. None when they are not known: it has changed them itself.
    """
    sql, reading = client.sql[:most], client.reading
    if reading is not None and reading[0] is client.sql:
        env = reading[1]
    elif _is_set(client.plan) and not (sql.isascii() and _AMBIGUOUS.isdisjoint(sql)):
        return None
    else:
        env = client.session.env
    if env.charset not in NOT_ASCII or sql.isascii():
        return sql, env
    if not can_mask(env.charset):
        return None
    return mask(sql, env.charset, env.no_backslash_escapes, ansi_quotes=env.ansi_quotes), env


def _is_set(plan: Plan | None) -> bool:
    return plan is not None and plan.assigns is not None


def shown(client: Told, most: int = LONG) -> str:
    """The digest of the client's statement, at work or the last one."""
    read = as_read(client, most)
    if read is None:
        return first_word(client.sql)
    sql, env = read
    return digest(sql, env.findall, most=None if len(client.sql) <= most else len(sql) - 1)


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
        counts[counter_of(client.plan.facts.form)] += 1
    if seconds > client.services.slow_after:
        _log_slow(client, outcome, seconds)


def _log_slow(client: AtWork, outcome: str, seconds: float) -> None:
    """The slow-query log: the statement's fingerprint, never its literals."""
    session = client.session
    hosts, shards = places(client)
    backend = max(client.last - client.first, 0.0) if client.host is not None else 0.0
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
        digest=_told(client),
    )


def _told(client: AtWork) -> str:
    """The digest; of a command without a text its name."""
    if client.kind == "command" and not client.sql:
        return command_name(client.code)
    return shown(client)


def places(client: AtWork) -> tuple[list[str], list[str]]:
    """The hosts that the command has been on, and the shards: `main/3429`; and the one that it was to go to
    and never came.
    """
    visits: list[Visit] = []
    if client.host is not None:
        visits += client.visits or [Visit(client.host, () if client.shard is None else (client.shard,))]
    if client.missed is not None:
        visits.append(client.missed)
    hosts = dict.fromkeys(visit.host for visit in visits)
    shards = dict.fromkeys(f"{one.keyspace}/{one.shard}" for visit in visits for one in visit.shards)
    return list(hosts), list(shards)
