"""A row of a shard as clients know it: the database, table and ID that they use, and the values as they would
be shown, in what JSON has.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from config.schema import Kind, Schema, Table
from config.topology import Host, Keyspace, Topology
from fleet.binlog.library import Null

BIT, JSON, SET, YEAR = 16, 245, 248, 13
TIMESTAMPS = frozenset({7, 17})
"""Types of columns, by the protocol's numbers, whose values are shown in another way than they come."""
_LOCAL_ID: Final = "local_id"
_NO_YEAR, _NO_TIME = 1900, dt.datetime(1970, 1, 1)
"""What zero is read as: no YEAR or TIMESTAMP has this value."""
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """One table of one shard; `table` None: of a database that passes through, or that the schema leaves to
    `others`.
    """

    database: str
    name: str
    keyspace: Keyspace
    shard: int | None
    table: Table | None

    @property
    def base(self) -> int | None:
        """What makes an object's ID of its `local_id`."""
        if self.table is None or self.table.kind is not Kind.OBJECT:
            return None
        assert self.keyspace.layout is not None
        assert self.shard is not None
        return self.keyspace.layout.base(self.shard, self.table.type or 0)


class Logical:
    """The names of one topology and one schema. `databases`, `tables`: only these, by their
    logical names; empty: all.
    """

    def __init__(
        self, topology: Topology, schema: Schema, databases: Iterable[str] = (), tables: Iterable[str] = ()
    ) -> None:
        self._topology = topology
        self._databases, self._tables = frozenset(databases), frozenset(tables)
        self._known: dict[tuple[str, str], Table] = {}
        self._whole: dict[str, str] = {}
        for database in schema.databases.values():
            for table in database.tables.values():
                self._known[table.keyspace, table.name] = table
            keyspace = database.keyspace or database.others
            if keyspace is not None:
                self._whole[keyspace] = database.name

    def place(self, host: Host, database: str, name: str) -> Place | None:
        """Of a physical table on a host; None where it is nothing of a client's, or was not asked for. The
        rows of a reference table are told of once, from where its keyspace is.
        """
        found = self._topology.physical(database)
        if found is None:
            return None
        keyspace, shard = found
        table = self._known.get((keyspace.name, name))
        logical = table.database if table is not None else self._whole.get(keyspace.name)
        if logical is None or (self._databases and logical not in self._databases):
            return None
        if self._tables and name not in self._tables and f"{logical}.{name}" not in self._tables:
            return None
        if table is not None and table.kind is Kind.REFERENCE and host != keyspace.master:
            return None
        return Place(logical, name, keyspace, shard, table)


def row_of(base: int | None, values: Values) -> dict[str, Any]:
    """A row with `id` in the place of an object's `local_id`."""
    if base is None:
        return dict(values)
    return {
        ("id" if name.lower() == _LOCAL_ID else name): (
            base + value if name.lower() == _LOCAL_ID and value is not None else value
        )
        for name, value in values.items()
    }


def value_of(type_: int, members: Iterable[str], value: Any) -> Any:
    """A value of a binary log in what JSON has. `members`: of a SET, in their order."""
    if value is None:
        return None
    if type_ == JSON:
        if isinstance(value, Null):
            return "null"
        return json.dumps(_decoded(value), ensure_ascii=False, default=_text)
    if type_ == BIT:
        return int(value, 2)
    if type_ == SET:
        return ",".join(one for one in members if one in value)
    if type_ == YEAR and value == _NO_YEAR:
        return 0
    if type_ in TIMESTAMPS and value == _NO_TIME:
        return None
    if isinstance(value, int | float | str):
        return value
    return _text(value)


def _text(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.isoformat(" ")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return _time(value)
    if isinstance(value, bytes | bytearray):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(f"a value of an unknown kind: {type(value).__name__}")


def _time(value: dt.timedelta) -> str:
    """As TIME is written: hours may be many, and negative."""
    sign, value = ("-", -value) if value < dt.timedelta() else ("", value)
    seconds = value.days * 86400 + value.seconds
    fraction = f".{value.microseconds:06d}" if value.microseconds else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


def _decoded(value: Any) -> Any:
    """A JSON value, whose texts come as bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Mapping):
        return {_decoded(key): _decoded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if isinstance(value, Decimal):
        return float(value)
    return value
