"""Create the databases and tables that a schema and a topology ask for.

`wanted` says what should be where, `look` what is there, `steps` what is to be made: one step a database,
with its missing tables. Run again, it finds nothing to do. Nothing that exists is ever changed; a table whose
hashed key is not binary and NO PAD is reported, because rows would be looked for on the wrong shard.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from config.references import MISSING, Name, any_sql, reference_tables
from config.schema import SEQUENCES, KeyType, Kind, Schema, Table, quote
from config.topology import Host, Keyspace, Topology
from fleet.core.errors import HostError
from fleet.core.hosts import Hosts
from fleet.core.journal import Operation
from fleet.core.progress import Progress, Silent
from fleet.core.run import Report, Taker
from fleet.core.steps import Step
from fleet.references import without_rows
from fleet.rows import tables_with_rows

_MADE = ("database\t", "tables\t")
"""What the keys of steps that make something begin with."""
_ZERO_DATE = re.compile(r"'(?:0000-\d\d|\d{4}-00|\d{4}-\d\d-00)")
_ZERO_DATES = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ALLOW_INVALID_DATES'"
"""For a DEFAULT of '0000-00-00', which the schema asks for and servers would refuse."""
SOUND_COLLATIONS = ("utf8mb4_0900_bin", "utf8mb4_nopad_bin")


@dataclass(frozen=True)
class Physical:
    """One database on one host, and the logical tables it holds."""

    name: str
    tables: tuple[Table, ...] = ()


Plan = Mapping[Host, Sequence[Physical]]
Existing = Mapping[str, frozenset[str]]
"""The databases of a host, and the tables of each."""


@dataclass(frozen=True)
class Actual:
    """What the hosts have. `lacking`: the reference tables that a host is to get with their rows, since
    others have some, and how. `problems` are sentences that begin with the host.
    """

    found: Mapping[Host, Existing]
    lacking: Mapping[Host, Mapping[Name, str]] = field(default_factory=dict)
    problems: Sequence[str] = ()


# --- what is wanted --------------------------------------------------------------------------------


def wanted(schema: Schema, topology: Topology) -> dict[Host, list[Physical]]:
    """The databases that each master should hold. ValueError when a table's keyspace is not in the topology.

    Single tables without declared columns get their database only; reference tables go to every master.
    """
    tables: dict[str, list[Table]] = {}
    for database in schema.databases.values():
        for table in database.tables.values():
            tables.setdefault(table.keyspace, []).append(table)
        if database.others is not None:
            tables.setdefault(database.others, [])
    plan: dict[Host, list[Physical]] = {host: [] for host in topology.hosts}
    for name, held in tables.items():
        keyspace = _keyspace(topology, name)
        for host, physical in _placed(keyspace, held, topology.hosts):
            plan[host].append(physical)
    for database in schema.databases.values():
        if database.keyspace is not None:
            master = _keyspace(topology, database.keyspace).master
            if master is not None:
                plan[master].append(Physical(database.name))
    return plan


def _keyspace(topology: Topology, name: str) -> Keyspace:
    found = topology.keyspaces.get(name)
    if found is None:
        raise ValueError(f"keyspace {name} of the schema is not in the topology")
    return found


def tables_of(keyspace: Keyspace, tables: Sequence[Table]) -> tuple[Table, ...]:
    """What each database of a sharded keyspace has, of the schema's `tables` there."""
    timed = any(table.kind is Kind.TIMED for table in tables)
    return (*tables, SEQUENCES) if timed else tuple(tables)


def _placed(
    keyspace: Keyspace, tables: Sequence[Table], hosts: Sequence[Host]
) -> list[tuple[Host, Physical]]:
    """The databases of one keyspace, each with its master."""
    if keyspace.sharded:
        held = tables_of(keyspace, tables)
        return [(host, Physical(name.decode(), held)) for host, name in keyspace.places.values()]
    everywhere = tuple(one for one in tables if one.kind is Kind.REFERENCE)
    here = tuple(one for one in tables if one.kind is Kind.REFERENCE or one.columns)
    placed = [(host, Physical(keyspace.database, everywhere)) for host in hosts if everywhere]
    placed = [(host, physical) for host, physical in placed if host != keyspace.master]
    if keyspace.master is not None:
        placed.append((keyspace.master, Physical(keyspace.database, here)))
    return placed


# --- what is to be done ----------------------------------------------------------------------------


def steps(plan: Plan, actual: Actual) -> list[Step]:
    """What makes the databases and tables that hosts lack. A host that could not be asked has no steps."""
    made = []
    for host, databases in plan.items():
        found = actual.found.get(host)
        if found is not None:
            lacking = actual.lacking.get(host, {})
            made += [step for one in databases if (step := _step(host, one, found, lacking))]
    return made


def _step(host: Host, database: Physical, found: Existing, lacking: Collection[Name]) -> Step | None:
    held = found.get(database.name)
    missing = [
        one
        for one in database.tables
        if one.name not in (held or ()) and (database.name, one.name) not in lacking
    ]
    statements = [one.create_sql(database.name) for one in missing]
    if any(_ZERO_DATE.search(one) for one in statements):
        statements = [_ZERO_DATES, *statements, "SET SESSION sql_mode = DEFAULT"]
    names = ",".join(one.name for one in missing)
    if held is None:
        statements.insert(0, f"CREATE DATABASE IF NOT EXISTS {quote(database.name)} CHARACTER SET utf8mb4")
        text = f"make {database.name} with {len(missing)} tables"
        return Step(_key("database", host, database.name), text, host, tuple(statements))
    if not missing:
        return None
    text = f"make {len(missing)} tables in {database.name}: {names}"
    return Step(_key("tables", host, database.name, names), text, host, tuple(statements))


def undo_steps(operation: Operation, found: Mapping[Host, Existing], full: Collection[Name]) -> list[Step]:
    """What takes back the databases and tables that an operation made. `full`: the tables, by host and name
    as in `db00001.pins`, that have rows by now: those, and their databases, stay.
    """
    made: dict[str, Step] = {}
    for planned in operation.planned.values():
        if not planned.key.startswith(_MADE):
            continue
        kind, host, database, *names = planned.key.split("\t")
        held = found.get(host, {}).get(database)
        if held is None:
            continue
        if kind == "database" and not any((host, f"{database}.{name}") in full for name in held):
            made[_key(host, database)] = _drop(host, database)
        for name in names[0].split(",") if kind == "tables" else ():
            if name in held and (host, f"{database}.{name}") not in full:
                made[_key(host, database, name)] = _drop(host, database, name)
    return [one for key, one in made.items() if key.count("\t") == 1 or key.rpartition("\t")[0] not in made]


def _drop(host: Host, database: str, table: str = "") -> Step:
    name = f"{database}.{table}" if table else database
    of = (
        f"TABLE IF EXISTS {quote(database)}.{quote(table)}"
        if table
        else f"DATABASE IF EXISTS {quote(database)}"
    )
    return Step(_key("drop", host, name), f"drop {name}", host, (f"DROP {of}",))


def _key(*parts: str) -> str:
    return "\t".join(parts)


# --- what is there ---------------------------------------------------------------------------------


async def existing(hosts: Hosts, host: Host) -> Existing:
    """The databases of `host` and the tables of each. HostError."""
    tables: dict[str, set[str]] = {
        str(name): set()
        for (name,) in await hosts.query(host, "SELECT schema_name FROM information_schema.schemata")
    }
    listed = "SELECT table_schema, table_name FROM information_schema.tables"
    for database, table in await hosts.query(host, listed):
        tables.setdefault(str(database), set()).add(str(table))
    return {database: frozenset(names) for database, names in tables.items()}


async def look(schema: Schema, topology: Topology, hosts: Hosts, plan: Plan) -> Actual:
    """What the hosts of a plan have."""
    problems: list[str] = []

    async def of(host: Host) -> tuple[Host, Existing | None]:
        try:
            return host, await existing(hosts, host)
        except HostError as error:
            problems.append(f"{host}: {error}")
            return host, None

    answers = await asyncio.gather(*(of(host) for host, databases in plan.items() if databases))
    found = {host: answer for host, answer in answers if answer is not None}
    lacking: dict[Host, dict[Name, str]] = {}
    for name in reference_tables(schema, topology):
        rows = {}
        for host, databases in found.items():
            try:
                there = name[1] in databases.get(name[0], ())
                rows[host] = int((await hosts.query(host, any_sql(name)))[0][0]) if there else MISSING
            except HostError as error:
                problems.append(f"{host}: {name[0]}.{name[1]} cannot be read: {error}")
        for host, text in without_rows(name, rows).items():
            lacking.setdefault(host, {})[name] = text
    return Actual(found, lacking, problems)


async def with_rows(hosts: Hosts, operation: Operation) -> tuple[dict[Host, Existing], set[tuple[str, str]]]:
    """For `undo_steps`: what the hosts of an operation have, and which tables of its databases have rows."""
    names: dict[Host, set[str]] = {}
    for planned in operation.planned.values():
        if planned.key.startswith(_MADE):
            names.setdefault(planned.host, set()).add(planned.key.split("\t")[2])
    found = {host: await existing(hosts, host) for host in names}
    full: set[tuple[str, str]] = set()
    for host, databases in names.items():
        tables = [(name, table) for name in databases for table in found[host].get(name, ())]
        full |= {(host, ".".join(name)) for name in await tables_with_rows(hosts, host, tables)}
    return found, full


# --- all at once -----------------------------------------------------------------------------------


@dataclass
class Created:
    """The outcome of `create`: sentences that begin with a host, and what was done."""

    problems: list[str]
    databases: int
    tables: int
    seconds: float


async def create(
    schema: Schema, topology: Topology, hosts: Hosts, progress: Progress | None = None
) -> Created:
    """Make what is missing, without a journal: for servers that are thrown away."""
    started = time.monotonic()
    plan = wanted(schema, topology)
    actual = await look(schema, topology, hosts, plan)
    report = Report()
    await Taker(hosts, progress or Silent()).take(steps(plan, actual), report)
    problems = [*actual.problems, *report.problems, *left_over(actual)]
    problems += await unsound_keys(hosts, plan, actual.found)
    return Created(problems, *made(report.done), time.monotonic() - started)


def made(done: Iterable[Step]) -> tuple[int, int]:
    """Databases and tables of steps that were taken."""
    databases = tables = 0
    for one in done:
        create = [sql.startswith("CREATE TABLE") for sql in one.statements]
        databases += one.key.startswith("database\t")
        tables += sum(create)
    return databases, tables


def left_over(actual: Actual) -> Iterator[str]:
    """What the operator has to make."""
    for host, names in actual.lacking.items():
        for text in names.values():
            yield f"{host}: {text}"


async def unsound_keys(hosts: Hosts, plan: Plan, found: Mapping[Host, Existing]) -> list[str]:
    """The hashed tables whose text key calls different bytes equal."""
    problems: list[str] = []
    for host in found:
        keys = {
            (database.name, table.name): table.routing
            for database in plan.get(host, ())
            for table in database.tables
            if table.kind is Kind.HASHED and table.key_type is KeyType.TEXT
        }
        if not keys:
            continue
        names = ", ".join(sorted({f"'{table}'" for _, table in keys}))
        columns = (
            "SELECT table_schema, table_name, column_name, collation_name, data_type"
            f" FROM information_schema.columns WHERE table_name IN ({names})"
        )
        try:
            rows = await hosts.query(host, columns)
        except HostError as error:
            problems.append(f"{host}: the keys of hashed tables cannot be verified: {error}")
            continue
        problems += [
            f"{host}: {unsound_key(database, table, column, collation)}"
            for database, table, column, collation, data_type in rows
            if keys.get((database, table), "").lower() == column.lower()
            and collation not in SOUND_COLLATIONS
            and data_type.lower() != "varbinary"
        ]
    return problems


def unsound_key(database: str, table: str, column: str, collation: str) -> str:
    """What is wrong with it."""
    return (
        f"{database}.{table}: the key {column} has collation {collation}, which is not binary and NO PAD:"
        f" different bytes are equal there, so rows are not found; use one of {', '.join(SOUND_COLLATIONS)}"
    )
