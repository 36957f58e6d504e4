"""From a binary log's events to its committed transactions.

What is prepared (XA PREPARE) is in the log before it is decided, in a transaction of its own: its rows are
told of when the decision comes, in another one, maybe of another host. Everything that would make the reader
miss a change stops it: rows that were logged as statements, compressed, or in part.

The events are those of mysql-replication, told apart by the numbers that the protocol gives them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from config.topology import Host
from fleet.binlog.gtids import Gtids
from fleet.binlog.logical import Logical, Place, row_of, value_of
from fleet.core.errors import Failed

Change = dict[str, Any]
"""One object of the output."""

_QUERY: Final = 2
_COMMIT: Final = 16
_PREPARE: Final = 38
_SET_GTID: Final = 33
_STATE_GTID: Final = 162
_INSERTS: Final = frozenset({23, 30})
_UPDATES: Final = frozenset({24, 31})
_DELETES: Final = frozenset({25, 32})
#: Rotation, format, table maps, heartbeats, annotations, lists of GTIDs: nothing that changes rows.
_IDLE: Final = frozenset({3, 4, 15, 19, 27, 28, 29, 35, 36, 37, 41, 160, 161, 163, 164})
_WHY: Final = {
    40: "binlog_transaction_compression is ON there",
    39: "binlog_row_value_options has PARTIAL_JSON there",
    34: "it was written without GTIDs (gtid_mode)",
    42: "its GTID has a tag, which this command does not know",
    26: "the server says that it could not log all (an incident)",
} | dict.fromkeys(range(165, 172), "log_bin_compress is ON there")
_ALONE: Final = 1
"""A flag of a GTID: the transaction is the one statement that follows."""
_PREPARES: Final = 0x40
"""Another: it ends with XA PREPARE."""

_COMMENT = re.compile(r"\A(?:\s|/\*.*?\*/|--\s[^\n]*\n|#[^\n]*\n)+", re.S)
_NAME = r"(?:(?:`((?:[^`]|``)+)`|([\w$]+))\s*\.\s*)?(?:`((?:[^`]|``)+)`|([\w$]+))"
_TRUNCATE = re.compile(rf"TRUNCATE\s+(?:TABLE\s+)?{_NAME}", re.I)
_ROWS = re.compile(r"(?:INSERT|REPLACE|UPDATE|DELETE|LOAD|WITH|SELECT|DO|CALL)\b", re.I)
"""What changes rows, or may by a function."""
_SEVERAL = re.compile(r"(?:UPDATE|DELETE)\b", re.I)
_ONE = re.compile(r"\s*(?:\Z|PARTITION|(?:(?:AS\s+)?[\w$`]+\s+)?(?:SET|WHERE|ORDER|LIMIT|RETURNING)\b)", re.I)
"""What follows the name of a table that is the only one of its UPDATE or DELETE."""
_TARGET = re.compile(
    r"(?:(?:INSERT|REPLACE|UPDATE|DELETE)\s+|(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE|QUICK|INTO|FROM)\s+)+"
    + _NAME,
    re.I,
)
_DECISION = re.compile(r"XA\s+(COMMIT|ROLLBACK)\s+X'([0-9a-f]*)',\s*X'([0-9a-f]*)',\s*(\d+)", re.I)


@dataclass(frozen=True)
class Rows:
    """Changes of a transaction that is committed. `gtid`: they are its last, it has been read to its end; ""
    while there are more.
    """

    changes: list[Change]
    gtid: str = ""


@dataclass(frozen=True)
class Read:
    """A transaction has been read to its end, and has no changes to be told of."""

    gtid: str


@dataclass(frozen=True)
class Prepared:
    """The changes of a transaction that is not decided yet."""

    xid: str
    changes: list[Change]


@dataclass(frozen=True)
class Decided:
    """What became of it."""

    xid: str
    committed: bool
    gtid: str
    time: str


Item = Rows | Read | Prepared | Decided


@dataclass
class _Open:
    """The transaction that is being read. `alone`: None until its first statement says so."""

    gtid: str
    time: str
    alone: bool | None = None
    prepares: bool = False
    number: int = 0
    waiting: list[Change] = field(default_factory=list)
    """Those that are to be told of: in case they are the last, or until all are there."""


class Transactions:
    """Of one host's log. `names` may be replaced at any time; `seen`: what need not be told of again."""

    def __init__(self, host: Host, names: Logical, seen: Gtids) -> None:
        self.names = names
        self._host, self._seen = host, seen
        self._open: _Open | None = None
        self._skips = False
        self._places: tuple[Logical, dict[tuple[str, str], Place | None]] = names, {}

    def take(self, event: Any) -> Iterator[Item]:
        """What one event makes known. Failed when a change would be missed."""
        kind = event.event_type
        if kind in (_SET_GTID, _STATE_GTID):
            self._begin(event)
        elif kind in _IDLE or self._skips:
            pass
        elif kind in _WHY:
            raise self._lost(_WHY[kind])
        elif self._open is None:
            raise self._lost("it was written without GTIDs")
        elif kind == _QUERY:
            yield from self._query(self._open, event)
        elif kind == _COMMIT:
            yield from self._end(self._open)
        elif kind == _PREPARE:
            yield from self._prepared(self._open, event)
        elif kind in _INSERTS | _UPDATES | _DELETES:
            yield from self._rows(self._open, event)
        else:
            raise self._lost(f"an event of the unknown kind {kind}")

    def unread(self, error: Exception) -> Failed:
        """What is said of an event that nobody can make anything of."""
        return self._lost(f"{type(error).__name__}: {error}")

    def _lost(self, why: str) -> Failed:
        at, skip = "the binary log", self._host
        if self._open is not None:
            at, skip = f"transaction {self._open.gtid}", self._open.gtid
        return Failed(
            f"{self._host}: {at} cannot be read: {why}. Mend that, and bring along what it has changed in "
            f"another way; then go on behind it: --skip {skip}"
        )

    # --- the frame of a transaction -----------------------------------------------------------

    def _begin(self, event: Any) -> None:
        gtid = str(event.gtid)
        self._skips = self._seen.has(gtid)
        self._open = _Open(gtid, _time_of(event))
        if event.event_type == _STATE_GTID:
            self._open.alone = bool(event.flags & _ALONE)
            self._open.prepares = bool(event.flags & _PREPARES)

    def _query(self, now: _Open, event: Any) -> Iterator[Item]:
        text = _COMMENT.sub("", event.query)
        words = text[:60].upper().split()
        first = words[0] if words else ""
        if now.alone is None:
            now.prepares = words[:2] == ["XA", "START"]
            now.alone = not (first == "BEGIN" or now.prepares or text.upper().endswith("START TRANSACTION"))
            if not now.alone:
                return
        if now.alone:
            yield from self._statement(now, event, text)
            yield from self._end(now)
        elif first == "COMMIT":
            yield from self._end(now)
        elif words == ["ROLLBACK"]:
            now.waiting.clear()
            yield from self._end(now)
        else:
            self._check(now, event, text)

    def _statement(self, now: _Open, event: Any, text: str) -> Iterator[Item]:
        decision = _DECISION.match(text)
        if decision is not None:
            xid = ",".join(one.lower() for one in decision.groups()[1:])
            yield Decided(xid, decision[1].upper() == "COMMIT", now.gtid, now.time)
            return
        truncated = _TRUNCATE.match(text)
        if truncated is not None:
            place = self._place(*_named(truncated, event))
            if place is not None:
                self._add(now, place, "truncate", {})
            return
        self._check(now, event, text)

    def _check(self, now: _Open, event: Any, text: str) -> None:
        """Rows that a statement changes, of which the log has nothing but its text."""
        if not _ROWS.match(text):
            return
        target = _TARGET.match(text)
        database, name = _named(target, event) if target is not None else (_default(event), "")
        sure = target is not None and not (_SEVERAL.match(text) and not _ONE.match(text, target.end()))
        if not sure or self.names.place(self._host, database, name) is not None:
            raise self._lost("its rows were logged as a statement: binlog_format is not ROW in some session")

    def _end(self, now: _Open) -> Iterator[Item]:
        if now.waiting:
            now.waiting[-1]["last"] = True
            yield Rows(now.waiting, now.gtid)
        else:
            yield Read(now.gtid)
        self._open = None

    def _prepared(self, now: _Open, event: Any) -> Iterator[Item]:
        if event.one_phase:
            yield from self._end(now)
            return
        xid = f"{event.xid_gtrid.hex()},{event.xid_bqual.hex()},{event.xid_format_id}"
        self._open = None
        yield Prepared(xid, now.waiting)
        yield Read(now.gtid)

    # --- its rows -----------------------------------------------------------------------------

    def _rows(self, now: _Open, event: Any) -> Iterator[Item]:
        place = self._place(event.schema, event.table)
        if place is None:
            return
        if any(not one.name for one in event.columns):
            raise self._lost("it does not name its columns: binlog_row_metadata was not FULL")
        facts = {one.name: (one.type, getattr(one, "set_values", ())) for one in event.columns}
        base = place.base
        told: list[Change] = []
        now.waiting, before = told, now.waiting
        if now.prepares:
            told += before
        elif before:
            yield Rows(before)
        kind = event.event_type
        for row in event.rows:
            if kind in _UPDATES:
                images = {"before": ("before_values", "before_none_sources")}
                images["after"] = ("after_values", "after_none_sources")
                op = "update"
            else:
                op, image = ("insert", "after") if kind in _INSERTS else ("delete", "before")
                images = {image: ("values", "none_sources")}
            shown = {}
            for image, (values, sources) in images.items():
                shown[image] = row_of(base, self._values(row[values], row[sources], facts))
            self._add(now, place, op, shown)

    def _values(
        self, values: Mapping[str, Any], sources: Mapping[str, str], facts: Mapping[str, tuple[int, Any]]
    ) -> dict[str, Any]:
        if "cols bitmap" in sources.values():
            raise self._lost("it has not all columns: binlog_row_image was not FULL")
        return {
            name: "" if sources.get(name) == "empty set" else value_of(*facts[name], value)
            for name, value in values.items()
        }

    def _place(self, database: str, name: str) -> Place | None:
        names, known = self._places
        if names is not self.names:
            names, known = self._places = self.names, {}
        try:
            return known[database, name]
        except KeyError:
            found = known[database, name] = names.place(self._host, database, name)
            return found

    def _add(self, now: _Open, place: Place, op: str, images: Mapping[str, Mapping[str, Any]]) -> None:
        now.number += 1
        change: Change = {"database": place.database, "table": place.name, "op": op}
        row = images.get("after") or images.get("before") or {}
        if place.table is not None and place.table.routing == "id":
            change["id"] = row.get("id")
        change |= images
        change |= {"keyspace": place.keyspace.name, "shard": place.shard, "host": self._host}
        change |= {"gtid": now.gtid, "row": now.number, "last": False, "time": now.time}
        now.waiting.append(change)


def _time_of(event: Any) -> str:
    at = dt.datetime.fromtimestamp(event.timestamp, dt.UTC)
    return at.isoformat().replace("+00:00", "Z")


def _default(event: Any) -> str:
    schema = event.schema
    return schema.decode() if isinstance(schema, bytes) else str(schema)


def _named(found: re.Match[str], event: Any) -> tuple[str, str]:
    """Database and table of what `_NAME` has matched."""
    database, plain, table, bare = found.groups()
    return (database or plain or _default(event)).replace("``", "`"), (table or bare).replace("``", "`")
