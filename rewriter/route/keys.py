"""How a table's columns route: from the schema and the topology to keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from config.schema import KeyType, Kind, Table
from config.topology import Topology
from rewriter.env import Env
from rewriter.text.literals import ENCODINGS

from .routing import Key

_UNKNOWN: Final = "unknown"
"""What a text outside ASCII is when it is stored, only a server could tell."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Finds the key by which a column of a table routes."""

    topology: Topology
    env: Env

    def key(self, table: Table, column: str) -> Key | None:
        """The key of `column` (upper case), or None when it does not route."""
        keyspace = self.topology.keyspaces.get(table.keyspace)
        if keyspace is None:
            return None
        if table.shard_key is not None and column == table.shard_key.upper() and column != "ID":
            return Key("modulo", keyspace.layout, bounds=_bounds(table, table.shard_key))
        if table.strict is not None and column == table.strict.upper():
            return Key("id", keyspace.layout) if keyspace.layout is not None else None
        if not table.routing or column != table.routing.upper():
            return None
        if table.kind is Kind.OBJECT:
            return Key("object", keyspace.layout, table.type or 0)
        if table.kind is Kind.HASHED:
            return self._hashed(table)
        return Key("id", keyspace.layout) if keyspace.layout is not None else None

    def _hashed(self, table: Table) -> Key:
        backslashes, converted = not self.env.no_backslash_escapes, self.env.connection
        if table.key_type is KeyType.BINARY:
            text = _UNKNOWN if converted else "binary"
            return Key("hash", text=text, backslashes=backslashes, longest=table.key_length or 0)
        if table.key_type is KeyType.TEXT:
            loses = converted not in ("", "utf8mb4")  # characters that the column would have
            encoding = _UNKNOWN if loses else ENCODINGS.get(self.env.charset, _UNKNOWN)
            return Key("hash", text=encoding, backslashes=backslashes, longest=table.key_length or 0)
        return Key("hash", bounds=_bounds(table, table.routing))


def _bounds(table: Table, column: str) -> tuple[int, int] | None:
    found = table.column(column)
    return None if found is None else found.type.bounds
