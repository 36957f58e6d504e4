"""Create the databases and tables that a schema and a topology ask for, on all hosts in parallel.

Two halves: `wanted` says what should be where (pure), `create` compares that with what each host has and
makes what is missing. Run again, it finds nothing to do. Nothing that exists is ever changed; a table whose
hashed key is not binary and NO PAD is reported, because rows would be looked for on the wrong shard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pymysql
from pymysql.constants import CLIENT

from config.references import MISSING, Name, any_sql, reference_tables
from config.schema import SEQUENCES, KeyType, Kind, Schema, Table, quote
from config.topology import Host, Keyspace, Topology
from fleet.references import without_rows

Connection = pymysql.connections.Connection
Connect = Callable[[Host, int], Connection]
"""Opens a connection to a host; the integer is a set of client flags to log in with."""
Progress = Callable[[int, int], None]
"""Told (databases done, databases in all) from any thread."""

MOST_CONNECTIONS = 64
SOUND_COLLATIONS = ("utf8mb4_0900_bin", "utf8mb4_nopad_bin")


@dataclass(frozen=True)
class Physical:
    """One database on one host, and the logical tables it holds."""

    name: str
    tables: tuple[Table, ...] = ()


@dataclass
class HostReport:
    """What happened on one host. `problems` are sentences, each naming the database or table."""

    host: Host
    databases_created: int = 0
    databases_found: int = 0
    tables_created: int = 0
    tables_found: int = 0
    problems: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    """What would be run, of a dry run."""
    unknown: bool = False
    """The host could not be asked what it has."""


@dataclass(frozen=True)
class Report:
    """The outcome on all hosts; `seconds` of wall-clock time."""

    hosts: tuple[HostReport, ...]
    seconds: float

    @property
    def problems(self) -> list[str]:
        """All problems, each with its host."""
        return [f"{one.host}: {problem}" for one in self.hosts for problem in one.problems]

    @property
    def databases_created(self) -> int:
        return sum(one.databases_created for one in self.hosts)

    @property
    def tables_created(self) -> int:
        return sum(one.tables_created for one in self.hosts)


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


def _placed(
    keyspace: Keyspace, tables: Sequence[Table], hosts: Sequence[Host]
) -> list[tuple[Host, Physical]]:
    """The databases of one keyspace, each with its master."""
    if keyspace.sharded:
        placed = []
        if any(table.kind is Kind.TIMED for table in tables):
            tables = [*tables, SEQUENCES]
        for shard in keyspace.all_shards:
            host = keyspace.host_of(shard)
            if host is not None:
                placed.append((host, Physical(keyspace.database_of(shard).decode(), tuple(tables))))
        return placed
    everywhere = tuple(one for one in tables if one.kind is Kind.REFERENCE)
    here = tuple(one for one in tables if one.kind is Kind.REFERENCE or one.columns)
    placed = [(host, Physical(keyspace.database, everywhere)) for host in hosts if everywhere]
    placed = [(host, physical) for host, physical in placed if host != keyspace.master]
    if keyspace.master is not None:
        placed.append((keyspace.master, Physical(keyspace.database, here)))
    return placed


def create(
    schema: Schema,
    topology: Topology,
    connect: Connect,
    *,
    connections_per_host: int = 4,
    progress: Progress = lambda done, total: None,
    dry_run: bool = False,
) -> Report:
    """Create what is missing. A host's failure is in its report and does not stop the others. `dry_run`: only
    say what would be created.

    `connections_per_host` bounds the load on each host; at most 64 connections are open in all.
    """
    started = time.monotonic()
    plan = {host: databases for host, databases in wanted(schema, topology).items() if databases}
    reports = {host: HostReport(host) for host in plan}
    meter = _Meter(progress, sum(len(databases) for databases in plan.values()))
    workers = max(1, min(len(plan) * connections_per_host, MOST_CONNECTIONS))
    with ThreadPoolExecutor(workers, thread_name_prefix="create") as pool:
        found = dict(zip(plan, pool.map(lambda host: _look(host, connect, reports[host]), plan), strict=True))
        lacking = _without_rows(reference_tables(schema, topology), plan, found, connect, reports)
        for host, names in lacking.items():
            plan[host] = [_without(one, names) for one in plan[host]]
        parts = [
            _Part(host, databases[offset::connections_per_host], found[host], connect, dry_run)
            for offset in range(connections_per_host)
            for host, databases in plan.items()
            if reports[host].problems == []
        ]
        for part, result in zip(parts, pool.map(lambda part: part.run(meter), parts), strict=True):
            _add(reports[part.host], result)
        checks = [host for host in plan if reports[host].problems == []]
        for host, problems in zip(
            checks, pool.map(lambda host: _unsound(host, plan[host], connect), checks), strict=True
        ):
            reports[host].problems += problems
    for host, names in lacking.items():
        reports[host].problems += names.values()
    return Report(tuple(reports.values()), time.monotonic() - started)


class _Meter:
    """Counts databases. Increments race between threads only in what is shown for a moment."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def step(self) -> None:
        self._done += 1
        self._progress(self._done, self._total)


Existing = Mapping[str, frozenset[str]]
"""The databases of a host, and the tables of each."""


def _look(host: Host, connect: Connect, report: HostReport) -> Existing:
    """What `host` has now; a host that does not answer gets a problem."""
    try:
        with connect(host, 0) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT schema_name FROM information_schema.schemata")
            tables: dict[str, set[str]] = {row[0]: set() for row in cursor.fetchall()}
            cursor.execute("SELECT table_schema, table_name FROM information_schema.tables")
            for database, table in cursor.fetchall():
                tables.setdefault(database, set()).add(table)
    except pymysql.MySQLError as error:
        report.unknown = True
        report.problems.append(f"cannot be read: {_words(error)}")
        return {}
    return {database: frozenset(names) for database, names in tables.items()}


def _without_rows(
    names: Sequence[Name],
    plan: Mapping[Host, Sequence[Physical]],
    found: Mapping[Host, Existing],
    connect: Connect,
    reports: Mapping[Host, HostReport],
) -> dict[Host, dict[Name, str]]:
    """The reference tables that hosts are to get with their rows, since others have some, and how."""
    lacking: dict[Host, dict[Name, str]] = {}
    hosts = [host for host in plan if not reports[host].problems]
    for name in names:
        rows: dict[Host, int] = {}
        for host in hosts:
            if name[1] not in found[host].get(name[0], ()):
                rows[host] = MISSING
                continue
            try:
                with connect(host, 0) as connection, connection.cursor() as cursor:
                    cursor.execute(any_sql(name))
                    row = cursor.fetchone()
                    rows[host] = int(row[0]) if row else 0
            except pymysql.MySQLError as error:
                reports[host].problems.append(f"{name[0]}.{name[1]} cannot be read: {_words(error)}")
        for host, text in without_rows(name, rows).items():
            lacking.setdefault(host, {})[name] = text
    return lacking


def _without(database: Physical, names: Mapping[Name, str]) -> Physical:
    """The database without these tables: the copy makes them."""
    return Physical(
        database.name, tuple(one for one in database.tables if (database.name, one.name) not in names)
    )


@dataclass
class _Part:
    """Some databases of one host, made over one connection."""

    host: Host
    databases: Sequence[Physical]
    existing: Existing
    connect: Connect
    dry_run: bool = False

    def run(self, meter: _Meter) -> HostReport:
        report = HostReport(self.host)
        if not self.databases:
            return report
        try:
            with self.connect(self.host, CLIENT.MULTI_STATEMENTS) as connection:
                for database in self.databases:
                    self._make(connection, database, report)
                    meter.step()
        except pymysql.MySQLError as error:
            report.problems.append(f"cannot be reached: {_words(error)}")
        return report

    def _make(self, connection: Connection, database: Physical, report: HostReport) -> None:
        """One network write for a database with all its tables."""
        held = self.existing.get(database.name)
        missing = [one for one in database.tables if held is None or one.name not in held]
        statements = [one.create_sql(database.name) for one in missing]
        if held is None:
            statements.insert(
                0, f"CREATE DATABASE IF NOT EXISTS {quote(database.name)} CHARACTER SET utf8mb4"
            )
        try:
            if self.dry_run:
                report.statements += statements
            elif statements:
                with connection.cursor() as cursor:
                    cursor.execute(";\n".join(statements))
                    while cursor.nextset():
                        pass
        except pymysql.MySQLError as error:
            if not connection.open:
                raise
            report.problems.append(f"{database.name}: {_words(error)}")
            return
        report.databases_created += held is None
        report.databases_found += held is not None
        report.tables_created += len(missing)
        report.tables_found += len(database.tables) - len(missing)


def _add(total: HostReport, part: HostReport) -> None:
    total.databases_created += part.databases_created
    total.databases_found += part.databases_found
    total.tables_created += part.tables_created
    total.tables_found += part.tables_found
    total.problems += part.problems
    total.statements += part.statements


def _unsound(host: Host, databases: Sequence[Physical], connect: Connect) -> list[str]:
    """The hashed tables on `host` whose text key calls different bytes equal."""
    keys = {
        (database.name, table.name): table.routing
        for database in databases
        for table in database.tables
        if table.kind is Kind.HASHED and table.key_type is KeyType.TEXT
    }
    if not keys:
        return []
    names = sorted({table for _, table in keys})
    marks = ", ".join(["%s"] * len(names))
    try:
        with connect(host, 0) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_schema, table_name, column_name, collation_name, data_type"
                f" FROM information_schema.columns WHERE table_name IN ({marks})",
                names,
            )
            rows = cursor.fetchall()
    except pymysql.MySQLError as error:
        return [f"the keys of hashed tables cannot be verified: {_words(error)}"]
    return [
        f"{database}.{table}: the key {column} has collation {collation}, which is not binary and NO PAD:"
        f" different bytes are equal there, so rows are not found; use one of {', '.join(SOUND_COLLATIONS)}"
        for database, table, column, collation, data_type in rows
        if keys.get((database, table), "").lower() == column.lower()
        and collation not in SOUND_COLLATIONS
        and data_type.lower() != "varbinary"
    ]


def _words(error: pymysql.MySQLError) -> str:
    """The server's or the driver's message, with its number."""
    if len(error.args) > 1:
        return f"{error.args[1]} ({error.args[0]})"
    return str(error)
