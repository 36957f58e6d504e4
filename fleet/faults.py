"""What is wrong with a fleet, and what to do about it: what hosts were found to have beside what they should.
Pure.

    missing      a database or a table is not where the topology says
    misplaced    a database is where the topology does not say: left over, or on two hosts
    definition   columns, indexes, collations that are not the schema's
    headroom     an AUTO_INCREMENT that is near its end
    rows         rows on a shard that is not theirs
    replication  a slave that does not replicate, or takes writes
    closed       a master, or a database on it, that takes no writes
    prepared     distributed transactions that are not finished
    grants       rights of the proxy's accounts, too few or too many
    reference    reference tables that are not the same everywhere
    unreachable  a host that could not be asked
    state        shards that clients wait for (`unfinished`)
    unfinished   a change of the tools that was begun and not finished (`unfinished`)
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from config.schema import Kind, Schema, Table, quote
from config.topology import Host, Keyspace, Topology
from fleet.create import Plan

HEADROOM: Final = 0.8
"""The share of an AUTO_INCREMENT's values that may be used up."""
LAG_SECONDS: Final = 60


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong. `database` is "" when it is of the whole host; `remedy`: what to do."""

    kind: str
    host: Host
    text: str
    remedy: str = ""
    database: str = ""


@dataclass(frozen=True)
class Definition:
    """A table as SHOW CREATE TABLE has it: `lines` without commas, and without the next AUTO_INCREMENT."""

    lines: tuple[str, ...]
    next_id: int = 0


@dataclass
class Found:
    """What one host was found to have. `tables`: of the databases that it should have. `full`: the databases
    that have rows, of those that look like shards' and are in no range; None: nobody has asked. `closed`: the
    server takes no writes; `read_only`: databases that take none.
    """

    databases: frozenset[str]
    tables: dict[tuple[str, str], Definition] = field(default_factory=dict)
    full: frozenset[str] | None = None
    closed: bool = False
    read_only: frozenset[str] = frozenset()
    wanted: dict[str, Definition] = field(default_factory=dict)
    """By the table's name: what this server makes of the schema's definition."""


_NEXT: Final = re.compile(r" AUTO_INCREMENT=([0-9]+)")
#: MySQL shows it after an ALTER where `innodb_file_per_table` is off: of no concern to statements.
_TABLESPACE: Final = re.compile(r"/\*!50100 TABLESPACE `[^`]*` \*/ ")


def read_definition(sql: str) -> Definition:
    """What SHOW CREATE TABLE gave."""
    found = _NEXT.search(sql)
    text = _TABLESPACE.sub("", _NEXT.sub("", sql))
    lines = tuple(line.strip().rstrip(",") for line in text.split("\n")[1:])
    return Definition(lines, int(found[1]) if found else 0)


def differences(wanted: Definition, found: Definition) -> list[str]:
    """How a table differs from what it should be, a sentence each."""
    said = []
    names = {line_name(line): line for line in wanted.lines}
    others = {line_name(line): line for line in found.lines}
    for name, line in names.items():
        if name not in others:
            said.append(f"lacks {line}")
        elif others[name] != line:
            said.append(f"has {others[name]} instead of {line}")
    said += [f"has {line} too many" for name, line in others.items() if name not in names]
    columns, have = (tuple(line for line in one.lines if line.startswith("`")) for one in (wanted, found))
    if not said and columns != have:
        said.append("has its columns in another order")
    return said


def line_name(line: str) -> str:
    """What a line of a definition defines: a column, a key, or the table's options."""
    if line.startswith("`"):
        return line[: line.index("`", 1) + 1]
    found = re.match(r"(?:(?:UNIQUE|FULLTEXT|SPATIAL) )?(?:KEY|CONSTRAINT) `((?:[^`]|``)*)`", line)
    if found:
        return f"key {found[1]}"
    return "primary key" if line.startswith("PRIMARY KEY") else "options" if line.startswith(")") else line


# --- databases -------------------------------------------------------------------------------------


def of_databases(plan: Plan, topology: Topology, found: Mapping[Host, Found]) -> Iterator[Fault]:
    """Databases that are missing, and those that are where they should not be."""
    slaves = _slaves(topology)
    for host, databases in plan.items():
        if host in found:
            yield from _missing(host, [one.name for one in databases], found)
    for host, having in found.items():
        own = {one.name for one in plan.get(host, ())} | slaves.get(host, set())
        for name in sorted(having.databases - own):
            keyspace = looks_like(topology, name)
            if keyspace:
                yield _misplaced(host, name, keyspace, topology, found)


def orphans(plan: Plan, topology: Topology, host: Host, databases: Iterable[str]) -> list[str]:
    """Those of a host's databases that look like shards', and that no range has."""
    own = {one.name for one in plan.get(host, ())}
    return [
        name
        for name in sorted(databases)
        if name not in own and topology.physical(name) is None and looks_like(topology, name)
    ]


def looks_like(topology: Topology, database: str) -> str:
    """The keyspace whose shards' databases have names like this one, or ""."""
    sharded = (one for one in topology.keyspaces.values() if one.sharded)
    return next((one.name for one in sharded if _shape(one).fullmatch(database)), "")


def _slaves(topology: Topology) -> dict[Host, set[str]]:
    """The databases of each slave."""
    found: dict[Host, set[str]] = {}
    for keyspace in topology.keyspaces.values():
        for one in keyspace.ranges:
            if one.slave is not None:
                names = found.setdefault(one.slave, set())
                names |= {keyspace.database_of(n).decode() for n in range(one.first, one.last + 1)}
    return found


@functools.lru_cache(maxsize=256)
def _shape(keyspace: Keyspace) -> re.Pattern[str]:
    """The names of its databases, of any shard."""
    before, after = re.split(r"\{[^}]*\}", keyspace.pattern, maxsplit=1)
    padded = re.search(r":0([0-9]+)d\}", keyspace.pattern)
    digits = f"[0-9]{{{int(padded[1])},}}" if padded else "[0-9]+"
    return re.compile(re.escape(before) + digits + re.escape(after))


def _missing(host: Host, names: Iterable[str], found: Mapping[Host, Found]) -> Iterator[Fault]:
    for name in names:
        if name in found[host].databases:
            continue
        other = next((one for one, having in found.items() if name in having.databases), None)
        text, remedy = "the database is missing", "make it, empty: shardgate fleet create"
        if other is not None:
            text += f", but there is one on {other}"
            remedy = "its rows may be there: move it, or correct the topology"
        yield Fault("missing", host, text, remedy, name)


def _misplaced(
    host: Host, name: str, keyspace: str, topology: Topology, found: Mapping[Host, Found]
) -> Fault:
    physical = topology.physical(name)
    if physical is None:
        full = found[host].full
        text = f"a database like those of {keyspace}, but no range has such a shard"
        remedy = (
            "put its range back: shardgate topology rollback VERSION (see shardgate topology history), or "
            "shardgate topology put with a document that has it"
        )
        if full is None or name in full:
            text += ". It has rows, which no statement finds" if full is not None else ""
        else:
            text += ". It has no rows"
            remedy = "nothing is hidden; if it is to be a shard, " + remedy
        return Fault("misplaced", host, text, remedy, name)
    master = physical[0].host_of(physical[1]) or ""
    if master in found and name in found[master].databases:
        text = f"the database is on two hosts: the topology has it on {master}"
        remedy = (
            f"if a split has left it, shardgate fleet cleanup drops it when {master} is shown to have its "
            "rows; else compare their rows"
        )
    else:
        text = f"the database is here, but the topology has it on {master}"
        remedy = "move it there, or correct the topology"
    return Fault("misplaced", host, text, remedy, name)


def of_writes(plan: Plan, found: Mapping[Host, Found]) -> Iterator[Fault]:
    """Masters that take no writes, and databases that take none there."""
    for host, having in found.items():
        if having.closed:
            text = "takes no writes: it is read_only, and a master"
            yield Fault("closed", host, text, _OPENED.format("SET GLOBAL read_only = OFF"))
        for one in plan.get(host, ()):
            if one.name in having.read_only:
                text = "the database takes no writes: it is READ ONLY"
                yield Fault("closed", host, text, _OPENED.format("ALTER DATABASE … READ ONLY = 0"), one.name)


_OPENED: Final = (
    "a change that is not finished may have closed it: shardgate fleet status, which says how to go on. "
    "If there is none, and no other server takes writes for the same databases: {}"
)


# --- tables ----------------------------------------------------------------------------------------


def of_tables(plan: Plan, topology: Topology, found: Mapping[Host, Found]) -> Iterator[Fault]:
    """Tables that are missing or otherwise than the schema has them, and AUTO_INCREMENTs near their end."""
    for host, databases in plan.items():
        having = found.get(host)
        if having is None:
            continue
        for database in databases:
            if database.name not in having.databases:
                continue
            for table in database.tables:
                definition = having.tables.get((database.name, table.name))
                if definition is None:
                    text = f"the table {table.name} is missing"
                    yield Fault("missing", host, text, "make it: shardgate fleet create", database.name)
                    continue
                wanted = having.wanted.get(table.name)
                for text in differences(wanted, definition) if wanted is not None else ():
                    remedy = "alter it: shardgate fleet ddl, or the schema, whichever is wrong"
                    yield Fault("definition", host, f"{table.name} {text}", remedy, database.name)
                yield from _headroom(host, database.name, table, definition, topology)


def _headroom(
    host: Host, database: str, table: Table, definition: Definition, topology: Topology
) -> Iterator[Fault]:
    layout = topology.keyspaces[table.keyspace].layout if table.keyspace else None
    if table.kind is not Kind.OBJECT or layout is None:
        return
    limit = layout.local_mask
    if definition.next_id > limit * HEADROOM:
        share = 100 * definition.next_id / limit
        text = (
            f"{table.name}: AUTO_INCREMENT is {definition.next_id}, {share:.0f} % of what IDs have room for"
        )
        remedy = (
            "set it lower when no row is near it (ALTER TABLE … AUTO_INCREMENT); "
            "else close the shard for new objects: open: false"
        )
        yield Fault("headroom", host, text, remedy, database)


def wrong_rows_sql(keyspace: Keyspace, shard: int, table: Table) -> str | None:
    """Counts the rows whose ID is of another shard, with the least and the greatest such ID; None when every
    row of the table belongs where it is, or when a hash says where it belongs.
    """
    layout = keyspace.layout
    column = table.strict if table.kind is Kind.OBJECT else table.routing
    if column is None or layout is None or table.kind not in (Kind.MAPPING, Kind.TIMED, Kind.OBJECT):
        return None
    name = quote(column)
    place = f"(CAST({name} AS UNSIGNED) >> {layout.shard_shift}) & {layout.shard_mask}"
    rest = f"FROM {quote(keyspace.database_of(shard).decode())}.{quote(table.name)} WHERE {place} <> {shard}"
    return f"SELECT COUNT(*), CAST(MIN({name}) AS CHAR), CAST(MAX({name}) AS CHAR) {rest}"


def wrong_rows(host: Host, database: str, table: str, count: int, least: object, greatest: object) -> Fault:
    """There are rows of other shards; `least` and `greatest` of their routing values."""
    text = f"{table} has {count} rows of other shards, from {least} to {greatest}"
    remedy = "they are never found: copy them to their shards, then delete them here"
    return Fault("rows", host, text, remedy, database)


# --- slaves ----------------------------------------------------------------------------------------


def pairs(topology: Topology) -> list[tuple[Host, Host]]:
    """Slaves with their masters."""
    listed = [(topology.default_slave, topology.default)]
    for keyspace in topology.keyspaces.values():
        listed += [(one.slave, one.master) for one in keyspace.ranges]
        listed.append((keyspace.slave, keyspace.master))
    return list(dict.fromkeys((slave, master) for slave, master in listed if slave and master))


def of_slave(
    host: Host, master: Host, status: Sequence[Mapping[str, Any]], *, read_only: bool
) -> Iterator[Fault]:
    """`status`: the rows of SHOW REPLICA STATUS, or SHOW SLAVE STATUS."""
    if not read_only:
        yield Fault("replication", host, "takes writes, though it is a slave", "SET GLOBAL read_only = ON")
    if not status:
        remedy = f"let it replicate from {master}, from a copy of all that is there"
        yield Fault("replication", host, "does not replicate", remedy)
    for row in status:
        source = f"{_of(row, 'Host')}:{_of(row, 'Port')}"
        if source != master:
            text = f"replicates from {source}, but the topology says {master}"
            yield Fault("replication", host, text, "correct the topology, or what it replicates from")
        for thread, name in (("IO", "receives"), ("SQL", "applies")):
            state = row.get(f"Replica_{thread}_Running", row.get(f"Slave_{thread}_Running"))
            if state != "Yes":
                error = row.get(f"Last_{thread}_Error") or f"its {thread} thread does not run"
                yield Fault(
                    "replication", host, f"{name} nothing: {error}", "see to that, then START REPLICA"
                )
        lag = row.get("Seconds_Behind_Source", row.get("Seconds_Behind_Master"))
        if lag is not None and int(lag) > LAG_SECONDS:
            yield Fault("replication", host, f"is {lag} s behind", "look what its SQL thread does")


def _of(row: Mapping[str, Any], name: str) -> object:
    return row.get(f"Source_{name}", row.get(f"Master_{name}"))


# --- shown -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """Faults that differ in the database only."""

    fault: Fault
    databases: tuple[str, ...]

    @property
    def where(self) -> str:
        """The host, and the databases."""
        return f"{self.fault.host} {self.names}".rstrip()

    @property
    def names(self) -> str:
        """The databases: the first, the last, how many."""
        names = self.databases
        return f"{names[0]} … {names[-1]} ({len(names)} databases)" if len(names) > 1 else "".join(names)


def grouped(faults: Iterable[Fault]) -> list[Group]:
    """In the order of the first of each group."""
    groups: dict[tuple[str, str, str, str], list[Fault]] = {}
    for one in faults:
        groups.setdefault((one.kind, one.host, one.text, one.remedy), []).append(one)
    return [Group(of[0], tuple(one.database for one in of if one.database)) for of in groups.values()]


def tables_by_keyspace(schema: Schema) -> dict[str, list[Table]]:
    """The schema's tables, by the keyspace that they lie in."""
    found: dict[str, list[Table]] = {}
    for database in schema.databases.values():
        for table in database.tables.values():
            found.setdefault(table.keyspace, []).append(table)
    return found
