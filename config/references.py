"""Reference tables, which have the same rows on every host: their names there, and what asks for rows."""

from __future__ import annotations

from typing import Final

from config.schema import Kind, Schema, quote
from config.topology import Topology

Name = tuple[str, str]
"""Database and table, as on the hosts."""

MISSING: Final = -1
"""In place of a number of rows: there is no such table."""


def reference_tables(schema: Schema, topology: Topology) -> list[Name]:
    """All that the topology has a place for."""
    return [
        (topology.keyspaces[table.keyspace].database, table.name)
        for database in schema.databases.values()
        for table in database.tables.values()
        if table.kind is Kind.REFERENCE and table.keyspace in topology.keyspaces
    ]


def count_sql(name: Name) -> str:
    """How many rows it has."""
    return f"SELECT COUNT(*) FROM {quote(name[0])}.{quote(name[1])}"


def any_sql(name: Name) -> str:
    """1 when it has a row."""
    return f"SELECT EXISTS (SELECT 1 FROM {quote(name[0])}.{quote(name[1])})"
