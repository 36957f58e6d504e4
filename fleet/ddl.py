"""What `shardgate fleet ddl` is to do: one definition over all shards. Pure.

A statement cannot say whether it was run already: ADD COLUMN fails the second time, ADD INDEX makes a second
index. So it is run on an empty copy of each definition that is found, and what comes of it is the target:

    a shard whose definition leads to another   is to be altered
    one whose definition is a target            is done
    one that the statement does not fit         is told

The targets that the journal knows of the same statement count, too: no shard may be left that leads there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from config.definitions import Found, read_element
from config.keys import (
    counting_problem,
    key_holds,
    may_count,
    reference_holds,
    reference_problem,
    unique_problem,
)
from config.routing_columns import routing_columns
from config.schema import Kind, Schema, Table, quote
from config.sqltext import SqlError, tokens_of
from config.topology import Host, Topology
from fleet.core.errors import Refused
from fleet.core.journal import Operation
from fleet.core.steps import Step
from fleet.faults import Definition, line_name
from fleet.statement import Statement

_KEY: Final = "alter"
_ELEMENT: Final = re.compile(
    r"`|(?:PRIMARY|UNIQUE|KEY|INDEX|FULLTEXT|SPATIAL|CONSTRAINT|FOREIGN|CHECK)\b", re.IGNORECASE
)

Results = Mapping[str, Definition | str]
"""By the digest of a definition: what the statement makes of it, or what the server says instead."""


@dataclass
class Actual:
    """What the hosts have: the table in each database, and `results` of all definitions there. `problems`
    are sentences that begin with the host.
    """

    tables: dict[Host, dict[str, Definition]] = field(default_factory=dict)
    results: dict[Host, Results] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def places(table: Table, topology: Topology) -> dict[Host, list[str]]:
    """The databases with the table, by their masters."""
    keyspace = topology.keyspaces[table.keyspace]
    found: dict[Host, list[str]] = {}
    if keyspace.sharded:
        for host, name in keyspace.places.values():
            found.setdefault(host, []).append(name.decode())
    elif table.kind is Kind.REFERENCE:
        found = {host: [keyspace.database] for host in topology.hosts}
    elif keyspace.master is not None:
        found = {keyspace.master: [keyspace.database]}
    return found


def digest(definition: Definition) -> str:
    """Stands for a definition in the journal."""
    return hashlib.sha256("\n".join(definition.lines).encode()).hexdigest()[:16]


# --- the steps -------------------------------------------------------------------------------------


@dataclass
class Alteration:
    """What is left to do, and how many tables are `done`. `problems`: those that the statement does not fit.
    `target`: what it comes to.
    """

    steps: list[Step] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    done: int = 0
    target: Definition | None = None


def known_targets(operations: Collection[Operation]) -> frozenset[str]:
    """The targets that operations with the same statement had."""
    return frozenset(key[3] for one in operations for key in _keys(one))


def planned_tables(operation: Operation) -> tuple[str, dict[Host, list[str]]]:
    """The name of the table that an operation alters, and in which databases it was to, by their masters."""
    table, found = "", dict[Host, list[str]]()
    for _, host, name, _target in _keys(operation):
        database, _, table = name.partition(".")
        found.setdefault(host, []).append(database)
    return table, {host: sorted(databases) for host, databases in found.items()}


def _keys(operation: Operation) -> list[list[str]]:
    keys = (planned.key.split("\t") for planned in operation.planned.values())
    return [key for key in keys if key[0] == _KEY]


def alteration(statement: Statement, actual: Actual, known: Collection[str]) -> Alteration:
    """The steps to what is wanted. Refused when nobody can tell which shards are done."""
    made: dict[str, Definition] = {}
    for host, results in actual.results.items():
        for name, result in results.items():
            if name in known or isinstance(result, str):
                continue
            back = results.get(digest(result))
            if digest(result) != name and isinstance(back, Definition) and digest(back) == name:
                raise Refused(
                    f"{host}: {statement.table.name} is defined in two ways, and the statement makes each of "
                    "the other: nobody can tell which shards are done"
                )
            made[digest(result)] = result
    found = Alteration(target=next(iter(made.values()), None))
    unfit: dict[tuple[Host, str], list[str]] = {}
    for host, tables in actual.tables.items():
        for database, definition in tables.items():
            result = actual.results[host][digest(definition)]
            if digest(definition) in known or digest(definition) in made:
                found.done += 1
                found.target = found.target or definition
            elif isinstance(result, str):
                unfit.setdefault((host, result), []).append(database)
            else:
                found.steps.append(_step(statement, host, database, digest(result)))
    for (host, text), names in unfit.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        found.problems.append(f"{host}: {names[0]}.{statement.table.name}{others}: {text}")
    return found


def _step(statement: Statement, host: Host, database: str, target: str) -> Step:
    name = f"{database}.{statement.table.name}"
    key = "\t".join((_KEY, host, name, target))
    return Step(key, f"alter {name}", host, (statement.sql(database),), action=_KEY)


# --- what may not be changed -----------------------------------------------------------------------


def check(table: Table, schema: Schema, before: Definition, after: Definition) -> None:
    """Refuse what takes away what the proxies go by, and keys that cannot hold over shards."""
    _check_columns(table, before, after)
    for line in after.lines:
        if line in before.lines:
            continue
        found = _read(line)
        for key in found.keys:
            if not key_holds(table, key):
                raise Refused(f"{table.name}: {unique_problem(table, key)}")
        if found.counts and found.column is not None and not may_count(table, found.column):
            raise Refused(f"{table.name}: {counting_problem(found.column)}")
        for reference in found.references:
            other = schema.table(table.database, reference.table)
            if not reference_holds(table, other, reference):
                raise Refused(f"{table.name}: {reference_problem(reference)}")


def _check_columns(table: Table, before: Definition, after: Definition) -> None:
    fixed = {one.lower(): "says on which shard a row is" for one in routing_columns(table)}
    named = {one.lower(): "is named in the schema" for one in _named(table)}
    left = {line_name(line).lower(): line for line in after.lines}
    for line in before.lines:
        quoted = line_name(line).lower()
        column = quoted.strip("`") if line.startswith("`") else ""
        why = fixed.get(column) or named.get(column)
        if why and quoted not in left:
            raise Refused(f"'{column}' of {table.name} {why}: it cannot go")
        if column in fixed and left[quoted] != line:
            raise Refused(f"'{column}' of {table.name} {why}: leave it as it is. It would be {left[quoted]}")
    if before.lines[0] != after.lines[0] and table.kind is Kind.OBJECT:
        raise Refused(f"'local_id' is the first column of {table.name}: put none before it")


def _named(table: Table) -> list[str]:
    colocate = table.colocate
    names = [table.sequence_column, colocate.column if colocate is not None and colocate.stored else None]
    return [one for one in names if one]


def _read(line: str) -> Found:
    """What a line of SHOW CREATE TABLE says of keys, or an element in the schema."""
    if not _ELEMENT.match(line):  # the table's options, its partitions
        return Found()
    try:
        return read_element(tokens_of(line))
    except SqlError:  # a CHECK or a comment in characters that are not read: no key
        return Found()


# --- what the schema is to say ---------------------------------------------------------------------


def declaration(
    statement: Statement, declared: Definition, target: Definition
) -> dict[str, dict[str, str] | list[str]]:
    """The `columns` and `indexes` of the table in the schema that make the target; empty when those that it
    has do. `declared`: what a server makes of them.
    """
    table = statement.table
    if _parts(declared) == _parts(target):
        return {}
    keys = {_same(line) for line in target.lines} - {""}
    columns: dict[str, str] = {}
    for line in target.lines:
        if not line.startswith("`"):
            continue
        name = line_name(line).strip("`")
        own = table.column(name)
        kept = own is not None and line in declared.lines and _inline(name, own.definition) <= keys
        columns[name] = (
            own.definition
            if own is not None and kept
            else statement.columns.get(name.lower(), line.removeprefix(f"`{name}` "))
        )
    inline = {one for name, definition in columns.items() for one in _inline(name, definition)}
    indexes = [one for one in table.indexes if not _same(one) or _same(one) in keys]
    written = inline | {_same(one) for one in indexes}
    for line in target.lines:
        check = line.startswith("CONSTRAINT ") and not _same(line) and line not in declared.lines
        if check or (_same(line) and _same(line) not in written):
            indexes.append(line)
    said: dict[str, dict[str, str] | list[str]] = {}
    if list(columns.items()) != [(one.name, one.definition) for one in table.columns]:
        said["columns"] = columns
    return said | ({"indexes": indexes} if indexes != list(table.indexes) else {})


def _parts(definition: Definition) -> tuple[list[str], set[str]]:
    """The columns in order, and the keys and conditions; not the table's options."""
    columns = [line for line in definition.lines if line.startswith("`")]
    return columns, {*definition.lines[:-1]} - {*columns}


def _same(element: str) -> str:
    """What the texts of one key or FOREIGN KEY have in common; "" for what is none. A key without a name has
    that of its first column.
    """
    return _of_keys(Found() if element.startswith("`") else _read(element))


def _inline(name: str, definition: str) -> set[str]:
    """The keys that a column's definition makes."""
    found = _read(f"{quote(name)} {definition}")
    return {_of_keys(Found(keys=(one,))) for one in found.keys}


def _of_keys(found: Found) -> str:
    keys = [f"{one} {one.name or one.columns[0]}" for one in found.keys]
    return "; ".join([*keys, *map(str, found.references)]).lower()
