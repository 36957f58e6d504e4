"""What hosts and shards had to do: how many statements, how long, with what errors, how many rows.

Plain integers that the data path adds to, as in `stats`. A statement is counted once, when the last byte of
its reply has come (`backends.connection`): for its host, and for its shard if it was for one. One that was
for several shards at once adds an equal part of its time and rows to each of them. Times here are the
servers': from the bytes that went out to the last that came back; what was waited for a connection is apart.

`recent` is what was counted in the last 10 to 20 seconds, since sums from the start of the proxy tell nothing
about which shard is slow now.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Final, NamedTuple

from config.topology import Keyspace, Topology

UNIT: Final = 15_625
"""1 / 64 µs. A time in seconds, times this, has the number of its bucket as its length in bits."""
BUCKETS: Final = 20
"""Buckets of times: below 64 µs, 128 µs … and the last one without a bound, from 16.8 s on."""
BOUNDS: Final = tuple(2**number / UNIT for number in range(BUCKETS - 1))
"""Their upper bounds, in seconds."""

WINDOW: Final = 10.0
"""Seconds between two marks of a load."""
_TICKS: Final = 40
"""So many ticks are in a window: each looks after a part of the loads."""
_MOST_CODES: Final = 100
"""Error codes that are told apart: routines make up their own."""
OTHER_CODE: Final = "other"
_NONE: Final = (0,) * BUCKETS

_OWN_CLASSES: Final = frozenset({"02", "21", "22", "23", "25", "40", "42", "44", "45"})
"""SQLSTATE classes of what is wrong with a statement or its rows, or goes on between transactions: a host
that says so is well."""
_OWN_CODES: Final = frozenset(
    # of class HY000, which says nothing: no such variable, mixed collations, values that do not fit, NOWAIT …
    {1093, 1111, 1193, 1210, 1221, 1238, 1265, 1267, 1270, 1271, 1364, 1366, 1390, 1411, 1525, 3572, 3819}
)
_LACKING: Final = frozenset(
    {1044, 1049, 1054, 1142, 1143, 1146, 1176, 1203, 1226, 1227, 1286, 1305, 1370, 1461, 1932}
)
"""Of class 42 all the same: a host that lacks a database, a table, a column, an index, a routine, a right, or
room for a connection or a prepared statement.
"""


def bucket_of(seconds: float) -> int:
    """The number of the bucket that a time falls into."""
    units, number = int(seconds * UNIT), 0
    while units and number < BUCKETS - 1:  # the length in bits, which as a loop is a few instructions of C
        units >>= 1
        number += 1
    return number


def quantile(buckets: Sequence[int], share: float, longest: float, bounds: Sequence[float] = BOUNDS) -> float:
    """The time in seconds within which `share` (0 to 1) of what is counted in `buckets` was done, as well as
    they tell: linear within a bucket, and never more than `longest`, what was really seen. 0 without any.
    `bounds`: the buckets' upper ones; the last bucket has none.
    """
    wanted, below = share * sum(buckets), 0
    for number, count in enumerate(buckets):
        if count and below + count >= wanted:
            lower = bounds[number - 1] if number else 0.0
            upper = bounds[number] if number < len(bounds) else max(longest, lower)
            return min(lower + (upper - lower) * (wanted - below) / count, longest)
        below += count
    return 0.0


def is_own(code: int, sqlstate: str) -> bool:
    """Whether a server's error is the statement's own, which says nothing of the server."""
    return (sqlstate[:2] in _OWN_CLASSES and code not in _LACKING) or code in _OWN_CODES


class Counts(NamedTuple):
    """Sums at a moment, or between two. `at`: monotonic seconds; between two, how many."""

    at: float
    statements: int
    errors: int
    seconds: float
    rows: int
    waits: int
    waited: float
    buckets: tuple[int, ...]

    def since(self, before: Counts) -> Counts:
        """What came between `before` and this."""
        return Counts(
            self.at - before.at,
            self.statements - before.statements,
            self.errors - before.errors,
            self.seconds - before.seconds,
            self.rows - before.rows,
            self.waits - before.waits,
            self.waited - before.waited,
            tuple(now - then for now, then in zip(self.buckets, before.buckets, strict=True)),
        )


class Load:
    """What one host, or one shard (`keyspace` and `shard`), had to do. `seconds` in all; `buckets`:
    statements by their time; `waits` for a connection took `waited` seconds in all. `errors`: not those that
    are the statements' own.
    """

    __slots__ = (
        "_before",
        "_mark",
        "buckets",
        "errors",
        "keyspace",
        "longest",
        "rows",
        "seconds",
        "shard",
        "waited",
        "waits",
    )

    def __init__(self, keyspace: str = "", shard: int = 0) -> None:
        self.keyspace = keyspace
        self.shard = shard
        self.errors = 0
        self.seconds = 0.0
        self.rows = 0
        self.longest = 0.0
        self.waits = 0
        self.waited = 0.0
        self.buckets = [0] * BUCKETS
        self._before = self._mark = Counts(monotonic() - WINDOW, 0, 0, 0.0, 0, 0, 0.0, _NONE)

    @property
    def count(self) -> int:
        """Statements that were answered."""
        return sum(self.buckets)

    def add(self, seconds: float, rows: int, bucket: int) -> None:
        """A statement was answered. `rows` that it has given or changed."""
        self.seconds += seconds
        self.rows += rows
        self.buckets[bucket] += 1
        if seconds > self.longest:
            self.longest = seconds

    def wait(self, seconds: float) -> None:
        """A statement has waited so long for a connection."""
        self.waits += 1
        self.waited += seconds

    def now(self, at: float) -> Counts:
        """All that was counted, at this moment (monotonic)."""
        return Counts(
            at, self.count, self.errors, self.seconds, self.rows, self.waits, self.waited, tuple(self.buckets)
        )

    def mark(self, now: float) -> None:
        """A window is over."""
        self._before = self._mark
        self._mark = self._mark._replace(at=now) if self._same(self._mark) else self.now(now)

    def recent(self, now: float) -> Counts:
        """What was counted in the last seconds."""
        return self.now(now).since(self._before)

    @property
    def quiet(self) -> bool:
        """Whether nothing was counted in the last seconds."""
        return self._same(self._before)

    def _same(self, then: Counts) -> bool:
        """Whether nothing was counted since then: not every error is one of the statements."""
        return self.count == then.statements and self.waits == then.waits and self.errors == then.errors


def share(loads: Sequence[Load], seconds: float, rows: int) -> None:
    """A statement on several shards was answered: nobody knows how long each of them took, so an equal part
    is told of each. As `Load.add`, without a call for each.
    """
    seconds /= len(loads)
    each, rest = divmod(rows, len(loads))
    bucket = bucket_of(seconds)
    for load in loads:
        load.seconds += seconds
        load.rows += each
        load.buckets[bucket] += 1
        if seconds > load.longest:
            load.longest = seconds
    for load in loads[:rest]:
        load.rows += 1


def missed(loads: Sequence[Load]) -> None:
    """A statement was for these, and could not be sent: it is an error of theirs, and none of their
    statements, since nothing was done there.
    """
    for load in loads:
        load.errors += 1


class Loads:
    """The loads of one worker process: of hosts by name, of shards by their physical database."""

    __slots__ = ("_due", "_next_window", "_slice", "codes", "hosts", "shards")

    def __init__(self) -> None:
        self.hosts: dict[str, Load] = {}
        self.shards: dict[bytes, Load] = {}
        self.codes: dict[str, int] = {}  # errors that clients got, by their code
        self._due: list[Load] = []  # those that are to be marked in this window
        self._slice = 0
        self._next_window = 0.0

    def host(self, name: str) -> Load:
        """Of a host; it stays when the topology names the host no more, since counters must not fall."""
        found = self.hosts.get(name)
        if found is None:
            found = self.hosts[name] = Load()
        return found

    def shard(self, database: bytes, topology: Topology) -> Load | None:
        """Of the shard whose database this is; None when the topology has none."""
        found = self.shards.get(database)
        if found is None:
            place = topology.physical(database)
            if place is None or place[1] is None:
                return None
            found = self.shards[database] = Load(place[0].name, place[1])
        return found

    def of(self, keyspace: Keyspace, shards: Sequence[int]) -> list[Load]:
        """Of several shards."""
        known = self.shards
        try:
            return [known[database] for database in keyspace.databases_of(shards)]
        except KeyError:
            return self._of_new(keyspace, shards)

    def _of_new(self, keyspace: Keyspace, shards: Sequence[int]) -> list[Load]:
        """The same, when some of them had nothing to do before."""
        found = []
        for shard in shards:
            database = keyspace.database_of(shard)
            load = self.shards.get(database)
            if load is None:
                load = self.shards[database] = Load(keyspace.name, shard)
            found.append(load)
        return found

    def keep_only(self, topology: Topology, before: Topology) -> None:
        """Another topology is in use: forget databases that it does not know as the same shards. What a shard
        had to do stays with it when it moves.
        """
        if topology.same_shards(before):
            return
        for database, load in list(self.shards.items()):
            place = topology.physical(database)
            if place is None or (place[0].name, place[1]) != (load.keyspace, load.shard):
                del self.shards[database]

    def failed(self, code: int) -> None:
        """A client got an error."""
        name = str(code)
        if name not in self.codes and len(self.codes) >= _MOST_CODES:
            name = OTHER_CODE
        self.codes[name] = self.codes.get(name, 0) + 1

    def tick(self, now: float) -> None:
        """Every quarter of a second. All loads are marked within a window, a part of them at a time."""
        if not self._due and now >= self._next_window:
            self._next_window = now + WINDOW
            self._due = [*self.hosts.values(), *self.shards.values()]
            self._slice = len(self._due) // _TICKS + 1
        for load in self._due[-self._slice :]:
            load.mark(now)
        del self._due[-self._slice :]
