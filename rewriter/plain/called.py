"""The places of the functions that a statement calls, besides the servers' own.

A stored function is in the database before its name, or in the session's current one, as a table is. A
sharded database has none. While the session is in one, or in no database, its statement runs in `NOWHERE`:
else a name alone would mean a function of whichever session had the connection before. Loadable functions,
which are in no database, are found there, too.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rewriter.route.context import Statement
from rewriter.route.scope import INFORMATION_SCHEMA, SYSTEM_DATABASES, Names
from rewriter.sql.statements.calls import NATIVE_SCHEMAS
from rewriter.sql.statements.functions import foreign_calls

NOWHERE: Final = INFORMATION_SCHEMA
"""A database that every server has and every account may use, and that has no stored functions. Where code
runs in it, USE within the code is seen."""


class Called(NamedTuple):
    """Functions that a statement calls.

    Attributes:
        keyspaces: The unsharded keyspaces of their databases; "" for the default host.
        locations: The physical databases that they are in, as keyspace and shard.
        bare: The names without a database, as written.
        current: The session's current database, if names without a database mean functions in it.
    """

    keyspaces: tuple[str, ...] = ()
    locations: tuple[tuple[str, int | None], ...] = ()
    bare: tuple[str, ...] = ()
    current: str | None = None

    @property
    def unplaced(self) -> tuple[str, ...]:
        """The names without a database that no database of the session's can have."""
        return self.bare if self.current is None else ()


_NOTHING: Final = Called()


def called(statement: Statement) -> Called:
    """The functions that the statement itself calls. Bodies of routines are not looked into."""
    source, names, form = statement.source, statement.names, statement.form
    if form.defines and form.objects.is_routine:
        return _NOTHING
    bare: dict[str, None] = {}
    databases: dict[str, None] = {}
    for at in foreign_calls(source, flavour=names.env.flavour):
        first = at
        while source.is_op(first - 1, ".") and source.is_name(first - 2):
            first -= 2
        if first < at:
            databases[source.at(first).name] = None
        else:
            bare[source.at(at).name] = None
    if not bare and not databases:
        return _NOTHING
    current = names.env.database if bare and _is_on_servers(names, names.env.database) else None
    keyspaces: dict[str, None] = {}
    locations: dict[tuple[str, int | None], None] = {}
    for database in (*databases, *(() if current is None else (current,))):
        place = _place(names, database)
        if isinstance(place, tuple):
            locations[place] = None
        elif place is not None:
            keyspaces[place] = None
    return Called(tuple(keyspaces), tuple(locations), tuple(bare), current)


def _is_on_servers(names: Names, database: str | None) -> bool:
    """Whether servers have a database by this name, as far as the schema says."""
    if database is None:
        return False
    logical = names.schema.databases.get(database)
    return logical is None or logical.keyspace is not None


def _place(names: Names, database: str) -> str | tuple[str, int | None] | None:
    """The unsharded keyspace, or the keyspace and shard, that a database is in; None if every host has it, or
    none.
    """
    logical = names.schema.databases.get(database)
    if logical is not None:
        return logical.keyspace
    physical = names.physical(database)
    if physical is not None:
        return physical[0].name, physical[1]
    own = database.lower() in SYSTEM_DATABASES or database.lower() in NATIVE_SCHEMAS
    return None if own or names.topology.default is None else ""
