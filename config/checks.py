"""What must hold between documents: a schema and a topology, and two versions of a topology.

Pure functions from models to problems. They run when the configuration is checked, and again whenever
a running proxy is offered a new topology.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from config.document import Path, Problem, dotted
from config.ranges import shown
from config.schema import Database, Kind, Schema, Table
from config.topology import Keyspace, Topology

DROP_KEYSPACES = (
    "publish this with `shardgate topology put --drop-shards`, which lists it in `dropped_keyspaces`"
)
DROP_SHARDS = "publish this with `shardgate topology put --drop-shards`, which lists them in `dropped_shards`"
"""How shards are given up."""

Place = Callable[[Path], str]
"""Gives the place of a path in the schema document, for messages."""


def fit_problems(
    schema: Schema,
    topology: Topology,
    place: Place = dotted,
    source: str = "",
    wrong: Container[str] = (),
) -> list[Problem]:
    """Why `schema` cannot be served by `topology`; empty when it can.

    `wrong` are keyspaces with problems of their own, of which nothing more is said. `place` and `source` name
    the schema document in the problems. A logical database may bear the name of an unsharded keyspace's
    physical one, and then hides it; the name of a shard's it may not.
    """
    problems: list[Problem] = []
    for name, database in schema.databases.items():
        path: Path = ("databases", name)
        if database.others is not None:
            where = place((*path, "others", "keyspace"))
            messages = _others(database, database.others, schema, topology)
            problems += [Problem(where, one, source) for one in messages]
        if database.keyspace is not None:
            keyspace = topology.keyspaces.get(database.keyspace)
            messages = _pass_through(name, database.keyspace, keyspace, topology)
            problems += [Problem(place((*path, "keyspace")), one, source) for one in messages]
            continue
        physical = topology.physical(name)
        if physical and physical[0].sharded:
            problems.append(Problem(place(path), _taken(name, physical[0]), source))
        for table in database.tables.values():
            inner = (*path, "tables", table.name)
            keyspace = topology.keyspaces.get(table.keyspace)
            if table.keyspace in wrong or not table.keyspace:
                continue
            for field, message in _table(table, keyspace, topology):
                problems.append(Problem(place((*inner, field)), message, source))
    return problems


def access_problems(
    schema: Schema, topology: Topology, databases: Iterable[str], source: str = ""
) -> list[Problem]:
    """The `databases` that users are let into ("*" is none) and `schema` has not. Where there is a default
    host, that one may have further ones.
    """
    if topology.default is not None:
        return []
    missing = sorted({name for name in databases if name != "*" and name not in schema.databases})
    return [
        Problem("databases", f"the settings let users into {name!r}, which is not here", source)
        for name in missing
    ]


def closed_problems(
    schema: Schema, topology: Topology, place: Place = dotted, source: str = ""
) -> list[Problem]:
    """The object tables of keyspaces without a shard that is open for new objects."""
    problems = []
    for name, database in schema.databases.items():
        for table in database.tables.values():
            keyspace = topology.keyspaces.get(table.keyspace)
            if table.kind is not Kind.OBJECT or keyspace is None or not keyspace.ranges:
                continue
            if not keyspace.columns.any_open():
                path = place(("databases", name, "tables", table.name, "keyspace"))
                message = f"keyspace {keyspace.name} has no open shard: no new object could be made in it"
                problems.append(Problem(path, message, source))
    return problems


def _missing(name: str, topology: Topology) -> str:
    known = ", ".join(topology.keyspaces) or "none"
    return f"the topology has no keyspace {name!r}; it has: {known}"


def _taken(name: str, keyspace: Keyspace) -> str:
    return f"the name {name} is also that of a physical database of keyspace {keyspace.name}"


def _others(database: Database, name: str, schema: Schema, topology: Topology) -> Iterator[str]:
    """Why the tables that the schema does not name cannot be in keyspace `name`. Whoever may use the database
    sees all that is in it.
    """
    keyspace = topology.keyspaces.get(name)
    if keyspace is None:
        yield _missing(name, topology)
    elif keyspace.sharded:
        yield f"keyspace {name} is sharded: tables that the schema does not name need an unsharded one"
    for other in schema.databases.values():
        uses = name in (other.keyspace, other.others) or any(
            table.keyspace == name for table in other.tables.values()
        )
        if uses and other is not database:
            yield f"keyspace {name} has tables of database {other.name}, too: `others` needs one of its own"


def _pass_through(database: str, name: str, keyspace: Keyspace | None, topology: Topology) -> Iterator[str]:
    if keyspace is None:
        yield _missing(name, topology)
    elif keyspace.sharded:
        yield f"keyspace {name} is sharded: a database that passes through needs an unsharded one"
    physical = topology.physical(database)
    if physical and physical[0] is not keyspace:
        yield _taken(database, physical[0])


def _table(table: Table, keyspace: Keyspace | None, topology: Topology) -> Iterator[tuple[str, str]]:
    """Field and message of what `table` lacks in its keyspace."""
    if keyspace is None:
        yield "keyspace", _missing(table.keyspace, topology)
        return
    name, layout = keyspace.name, keyspace.layout
    match table.kind:
        case Kind.OBJECT:
            if layout is None or not layout.has_type or not layout.has_local:
                yield "keyspace", f"an object table needs a layout with a type and a local field: not {name}"
            elif table.type is not None and table.type > layout.type_mask:
                yield "type", f"is {table.type}: layout {layout.name} has types 1 to {layout.type_mask}"
        case Kind.MAPPING:
            if layout is None:
                yield "keyspace", f"a mapping table needs a keyspace with a layout: {name} has none"
        case Kind.TIMED:
            if layout is None or not layout.has_time:
                yield "keyspace", f"a timed table needs a layout with a time field: not keyspace {name}"
            elif table.shard_key and keyspace.shards is None:
                yield "shard_key", f"needs a fixed number of shards: keyspace {name} has no field 'shards'"
        case Kind.HASHED:
            if keyspace.hash is None:
                yield "keyspace", f"a hashed table needs a keyspace with a hash: {name} has none"
            elif keyspace.hash == "modulo" and table.key_type != "integer":
                yield "key", f"keyspace {name} hashes by modulo: the key must be an integer"
        case Kind.SINGLE | Kind.REFERENCE:
            if keyspace.sharded:
                yield "keyspace", f"a {table.kind} table needs an unsharded keyspace: {name} is sharded"


def succession_problems(old: Topology, new: Topology) -> list[Problem]:
    """Why a running proxy that serves `old` must not go over to `new`; empty when it may.

    A lower version is stale. The same version with other content is accepted: the source holds one
    document, and proxies that refused it would disagree with those that started later. What decides
    the shard of a row that already exists cannot change under a running proxy: restart for that.
    Shards do not vanish: see `lacking_problems`.
    """
    if new.version < old.version:
        message = f"is {new.version}: stale, version {old.version} is in use"
        return [Problem("version", message)]
    problems = lacking_problems(old, new)
    for name, keyspace in new.keyspaces.items():
        before = old.keyspaces.get(name)
        if before is None:
            continue
        for field in ("layout", "hash", "shards", "pattern", "database"):
            if getattr(before, field) != getattr(keyspace, field):
                place = f"keyspaces.{name}.{'database' if field == 'pattern' else field}"
                problems.append(
                    Problem(place, "cannot change while rows are placed by it: restart to force it")
                )
    return problems


def lacking_problems(old: Topology, new: Topology) -> list[Problem]:
    """The shards that `old` has and `new` lacks without listing them as dropped: statements would not find
    their rows, and no statement would fail. The same of unsharded keyspaces, and of the default host.
    """
    found = _lacking_databases(old, new)
    return found + [
        Problem(
            f"keyspaces.{name}.ranges",
            f"{shown(runs)} in no range, but in version {old.version}, which is in use: their rows would be "
            f"hidden. Put their ranges back. If their databases have no rows, {DROP_SHARDS}",
        )
        for name, runs in new.lacks(old).items()
    ]


def _lacking_databases(old: Topology, new: Topology) -> list[Problem]:
    """The unsharded keyspaces, and the default host, that `old` has and `new` lacks."""
    found = [
        Problem(
            f"keyspaces.{one.name}",
            f"is missing, but in version {old.version}, which is in use: the rows of its database would be "
            f"hidden. Put it back. If the database has no rows, {DROP_KEYSPACES}",
        )
        for one in new.hidden_keyspaces(old)
        if one.name not in new.dropped_keyspaces
    ]
    if old.default is not None and new.default is None and not new.dropped_default:
        found.append(
            Problem(
                "default",
                f"is missing, but in version {old.version}, which is in use: the databases on {old.default} "
                "that the document does not name would be hidden. Put it back. If they have no rows, publish "
                "this with `shardgate topology put --drop-shards`, which sets `dropped_default`",
            )
        )
    return found
