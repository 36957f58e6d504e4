"""What single shards lack: a table, a column or a database that others have, or should have.

A client hears of it in logical terms ("Table 'demo.pins' doesn't exist"), which leaves open where. The log,
the status page and SHOW WARNINGS say it: shard, physical database and host. Each is told once in a while.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from config.topology import Topology
from proxy.wire.constants import UNKNOWN_COLUMN

log = structlog.get_logger("proxy")

#: Unknown database, column and table; DROP TABLE of an unknown one; no such index; a table InnoDB lacks.
LACKING: Final = frozenset({1049, UNKNOWN_COLUMN, 1146, 1051, 1091, 1932})

#: The account must not do that: what a role may do and the account may not.
DENIED: Final = frozenset({1044, 1142, 1143, 1227, 1370})
NOTED: Final = LACKING | DENIED

_KEPT: Final = 20
_QUIET: Final = 60.0
"""Seconds in which the log does not repeat itself."""
_DENIALS: Final = 200
"""So many different ones are remembered, so that none is told too often."""


@dataclass(slots=True)
class Problem:
    """`last`: seconds since 1970; `where`: shard, database and host; `logged`: when the log has told it."""

    code: int
    where: str
    text: str
    count: int
    last: float
    logged: float


class ShardProblems:
    """The latest of them, and how many there were by error code."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.counts: Counter[int] = Counter()
        self._clock = clock
        self._kept: dict[tuple[int, str, str], Problem] = {}
        self._denied: dict[tuple[str, str, str], float] = {}

    @property
    def recent(self) -> list[Problem]:
        """The latest first."""
        return list(reversed(self._kept.values()))

    def denied(self, host: str, account: str, user: str, code: int, text: str) -> None:
        """A server has refused the account what the user's role allows."""
        now = self._clock()
        if now - self._denied.get((host, account, text), -_QUIET) < _QUIET:
            return
        if len(self._denied) >= _DENIALS:
            self._denied.clear()
        self._denied[host, account, text] = now
        log.warning("denied by a server", host=host, account=account, user=user, code=code, reason=text)

    def note(self, code: int, where: str, text: str) -> None:
        now = self._clock()
        self.counts[code] += 1
        found = self._kept.pop((code, where, text), None) or Problem(code, where, text, 0, now, -_QUIET)
        found.count += 1
        found.last = now
        if now - found.logged >= _QUIET:
            found.logged = now
            log.warning("missing on a shard", code=code, where=where, reason=text)
        self._kept[code, where, text] = found
        if len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]


def place(topology: Topology, database: str, host: str = "") -> str:
    """`shard 3 (db00003) on 127.0.0.1:3306`; without the shard where the database is none's."""
    found = topology.physical(database)
    if found is None:
        return host
    keyspace, shard = found
    host = host or keyspace.host_of(shard) or "no host"
    return f"{f'shard {shard}' if shard is not None else 'database'} ({database}) on {host}"
