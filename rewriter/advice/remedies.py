"""What would route a statement that scatters, is gathered or is refused.

Every change of the schema that is named has been tried: the statement was planned for the schema with it and
costs less. So have the statements to write instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from config.schema import Kind, Table
from rewriter.env import Env

from .changes import Change, Trials, new_table, others, reference, strict
from .clauses import Clauses, Named, Used, clauses_of
from .cost import RANK, Cost, Way
from .words import has_few_values, id_of, is_id, key_definition, singular, table_of_id

MOST: Final = 3
"""So many remedies are told of one statement."""

_ID: Final = "BIGINT UNSIGNED NOT NULL"
_WHOLE: Final = (Kind.OBJECT, Kind.TIMED)


@dataclass(frozen=True)
class Advice:
    """One remedy. `text` says it in a sentence, without literals. `change`: of the schema. `sql`: what to
    write instead, parameters as `?`. `to`: what the statement costs then, or those instead of it; None when
    that was not tried.
    """

    text: str
    change: Change | None = None
    sql: tuple[str, ...] = ()
    to: Cost | None = None

    @property
    def rank(self) -> int:
        """Smaller ones first."""
        return len(RANK) if self.to is None else RANK[self.to.way]


def advise(trials: Trials, sql: bytes, env: Env, cost: Cost) -> list[Advice]:
    """What would make a statement of this cost a better one, the best first. Never raises."""
    if cost.good:
        return []
    found = _named(trials, sql, env, cost)
    statement = trials.rewriter.statement(sql, env)
    clauses = None if statement is None else clauses_of(statement)
    if clauses is not None:
        found += _Remedies(trials, sql, env, cost, clauses).all()
    unique: dict[tuple[str, Change | None], Advice] = {}
    for one in found:
        unique.setdefault((one.text, one.change), one)
    return sorted(unique.values(), key=lambda one: one.rank)[:MOST]


def _named(trials: Trials, sql: bytes, env: Env, cost: Cost) -> list[Advice]:
    """For names that the schema does not have."""
    if cost.error is None or cost.error.name not in ("unknown_table", "unknown_database"):
        return []
    if cost.error.name == "unknown_database":
        name = cost.error.arguments["database"]
        return [
            Advice(f"name database {name} in the schema (`{name}: {{keyspace: …}}`: all of it on one host)")
        ]
    database, table = cost.error.arguments["database"], cost.error.arguments["table"]
    keyspaces = trials.rewriter.topology.keyspaces.values()
    home = next((one.name for one in keyspaces if not one.sharded), None)
    known = trials.rewriter.schema.databases.get(database)
    if home is None or known is None or known.passes_through:
        return [Advice(f"name table {table} in the schema")]
    change = others(database, home)
    to = trials.cost(sql, env, change)
    if not to.better(cost):
        return [Advice(f"name table {table} in the schema")]
    return [Advice(f"name {table} in the schema, or let all further tables be single ones", change, to=to)]


class _Remedies:
    def __init__(self, trials: Trials, sql: bytes, env: Env, cost: Cost, clauses: Clauses) -> None:
        self._trials = trials
        self._sql = sql
        self._env = env
        self._cost = cost
        self._clauses = clauses
        self._parameters = replace(env, parameters=True)

    def all(self) -> list[Advice]:
        found = [*self._changed()]
        for used in self._clauses.open:
            found += self._spoilt(used)
            found += self._read_first(used)
        if not any(one.to is not None and one.to.good for one in found):
            found += [*self._apart(), *self._conditions()]
        return found

    # changes of tables that there are

    def _changed(self) -> Iterator[Advice]:
        """The tables as they could be, one change at a time."""
        tables = {
            (one.table.database, one.table.name): one.table for one in self._clauses.tables if one.table
        }
        if any(one.kind not in (Kind.SINGLE, Kind.REFERENCE) for one in tables.values()):
            for table in tables.values():
                if table.kind is Kind.SINGLE:
                    yield from self._tried(
                        reference(table),
                        f"make {table.name} a reference table, if it is small and seldom written: it then "
                        "joins on every shard",
                    )
        for table in tables.values():
            for column in self._places(table):
                yield from self._tried(
                    strict(table, column),
                    f"keep every row of {table.name} on the shard of its `{column}`, so that conditions on "
                    f"`{column}` route",
                )

    def _places(self, table: Table) -> list[str]:
        """The columns by whose IDs the rows of a table could be placed."""
        if table.kind is not Kind.OBJECT or table.strict:
            return []
        names = [
            one.column
            for used in self._clauses.open
            if used.table is table
            for one in used.equal
            if not one.path
        ]
        names += [
            joint.column
            for one, mine, other, its in self._clauses.joined
            for name, joint in ((one, mine), (other, its))
            if joint.target.table is table
        ]
        ids = set(table.database and self._tables(table))
        found = []
        for name in dict.fromkeys(names):
            column = table.column(name)
            own = table.colocate is not None and table.colocate.column.lower() == name.lower()
            if column is None or not column.type.integer or name.lower() == "local_id":
                continue
            if own or is_id(name) or table_of_id(name, ids) is not None:
                found.append(column.name)
        return found

    def _tried(self, change: Change, text: str) -> Iterator[Advice]:
        to = self._trials.cost(self._sql, self._env, change)
        if to.better(self._cost):
            yield Advice(text, change, to=to)

    # tables that say which rows

    def _read_first(self, used: Used) -> Iterator[Advice]:
        """A table, which there is or could be, that answers which rows are meant."""
        if not self._clauses.simple:
            return
        unique = {key[0] for key in used.table.unique_keys if len(key) == 1}
        for named in sorted(
            used.equal, key=lambda one: (one.column.lower() not in unique, not is_id(one.short))
        ):
            found = [*self._existing(used, named)] or [*self._new(used, named)]
            if found:
                yield from found
                return

    def _existing(self, used: Used, named: Named) -> Iterator[Advice]:
        for other in self._tables(used.table).values():
            if other is used.table or not other.routing or other.routing.lower() != named.short.lower():
                continue
            sql = self._by(used, named, other)
            if sql is None:
                continue
            to = self._together(sql, None)
            if to is not None:
                yield Advice(f"read {other.name}, which is found by `{other.routing}`, first", sql=sql, to=to)

    def _new(self, used: Used, named: Named) -> Iterator[Advice]:
        made = self._mapping(used, named) or self._hashed(used, named)
        if made is None:
            return
        line, table, text = made
        change = Change(f"table {table.name}", table.database, (line,), (table,))
        sql = self._by(used, named, table)
        to = None if sql is None else self._together(sql, change)
        if sql is not None and to is not None:
            yield Advice(text, change, sql, to)

    def _mapping(self, used: Used, named: Named) -> tuple[str, Table, str] | None:
        """A list of rows by another's ID."""
        table, tables = used.table, self._tables(used.table)
        if table.kind is Kind.OBJECT and (is_id(named.short) or table_of_id(named.short, tables)):
            stored = table.column(named.column)
            if not named.path and stored is not None and not stored.type.integer:
                return None
            owner = table_of_id(named.short, tables)
            stem = singular(owner) if owner is not None else named.short.removesuffix("_id")
            name, to = f"{stem}_has_{table.name}", id_of(table.name)
        elif table.kind is Kind.MAPPING and named.column.lower() == (table.to_column or "").lower():
            name, to = f"{table.name}_by_{named.column}", table.from_column or ""
        else:
            return None
        fields = {"kind": "mapping", "keyspace": table.keyspace, "from": named.short, "to": to}
        made = new_table(self._free(name, tables), table.database, fields)
        text = f"a mapping table from `{named.short}` to `{to}`, written along with {table.name}"
        return None if made is None else (*made, text)

    def _hashed(self, used: Used, named: Named) -> tuple[str, Table, str] | None:
        """A table of rows by any value."""
        table, tables = used.table, self._tables(used.table)
        keyspaces = self._trials.rewriter.topology.keyspaces
        homes = [one.keyspace for one in tables.values() if one.kind is Kind.HASHED]
        homes += [one.name for one in keyspaces.values() if one.hash is not None and one.sharded]
        stored = None if named.path else table.column(named.column)
        definition = stored.definition if stored is not None else ""
        if not homes or has_few_values(named.short, definition) or table.kind is Kind.MAPPING:
            return None
        if stored is not None and stored.type.family in ("json", "float", "time"):
            return None
        to = id_of(table.name) if table.kind in _WHOLE else table.routing
        integer = stored is not None and stored.type.integer
        key = key_definition(definition, integer)
        if named.path and is_id(named.short):
            key = "BIGINT UNSIGNED"
        unique = (named.short.lower(),) in table.unique_keys
        goal = _ID
        if table.kind not in _WHOLE:
            keys = table.column(to)
            whole = keys is not None and keys.type.integer
            goal = f"{key_definition(keys.definition if keys is not None else '', whole)} NOT NULL"
        fields: dict[str, object] = {"kind": "hashed", "keyspace": homes[0], "key": named.short}
        if unique:
            fields["columns"] = {named.short: f"{key} PRIMARY KEY", to: goal}
        else:
            fields["columns"] = {named.short: f"{key} NOT NULL", to: goal}
            fields["indexes"] = [f"PRIMARY KEY ({named.short}, {to})"]
        name = self._free(f"{named.short}_to_{singular(to.removesuffix('_id'))}", tables)
        made = new_table(name, table.database, fields)
        text = f"a table hashed by `{named.short}` that says which `{to}`, written along with {table.name}"
        if not integer and not named.path:
            text += "; it finds the very bytes, so store and ask for one form (LOWER)"
        return None if made is None else (*made, text)

    def _free(self, name: str, tables: dict[str, Table]) -> str:
        while name in tables:
            name += "_2"
        return name[:64]

    def _tables(self, table: Table) -> dict[str, Table]:
        database = self._trials.rewriter.schema.databases.get(table.database)
        return {} if database is None else dict(database.tables)

    def _by(self, used: Used, named: Named, other: Table) -> tuple[str, ...] | None:
        """What to write instead, by way of `other`; None when that does not tell the rows."""
        table = used.table
        listed = named in used.lists
        some = "IN (?)" if listed else "= ?"
        more = " AND …" if used.terms > 1 else ""
        columns = {one.name.lower(): one.name for one in other.columns}
        if other.kind is Kind.MAPPING and table.kind is Kind.OBJECT:
            if (other.to_column or "").lower() != id_of(table.name).lower():
                return None
            if self._clauses.verb == "SELECT":
                return (
                    f"SELECT t.* FROM {other.name} m JOIN {table.name} t ON t.id = m.{other.to_column} "
                    f"WHERE m.{other.from_column} {some}{more}",
                )
            return (self._read(other, other.to_column or "", some), self._then(table, "id", f"IN (?){more}"))
        if other.kind is Kind.MAPPING and table.kind is Kind.MAPPING:
            if (other.to_column or "").lower() != (table.from_column or "").lower():
                return None
            read = self._read(other, other.to_column or "", some)
            if self._clauses.verb == "SELECT" and not more:
                return (read,)
            return (read, self._then(table, table.routing, f"IN (?) AND {named.column} {some}{more}"))
        if other.kind is not Kind.HASHED:
            return None
        goals = (id_of(table.name), "id") if table.kind in _WHOLE else (table.routing,)
        goal = next((columns[one.lower()] for one in goals if one.lower() in columns), None)
        if goal is None or goal.lower() == other.routing.lower():
            return None
        one = any(key in ((other.routing.lower(),),) for key in other.unique_keys)
        found = "= ?" if one and not listed else "IN (?)"
        return (self._read(other, goal, some), self._then(table, table.routing, found + more))

    def _read(self, other: Table, goal: str, some: str) -> str:
        return f"SELECT {goal} FROM {other.name} WHERE {other.routing} {some}"

    def _then(self, table: Table, column: str, some: str) -> str:
        where = f"WHERE {column} {some}"
        verb = self._clauses.verb
        if verb == "UPDATE":
            return f"UPDATE {table.name} SET … {where}"
        return (
            f"DELETE FROM {table.name} {where}" if verb == "DELETE" else f"SELECT … FROM {table.name} {where}"
        )

    def _together(self, sql: tuple[str, ...], change: Change | None) -> Cost | None:
        """The cost of statements one after another; None when one of them is no better."""
        worst: Cost | None = None
        for one in sql:
            if "SET …" in one:
                one = "SELECT … FROM " + one.removeprefix("UPDATE ").replace(" SET …", "")
            one = one.removesuffix(" AND …").replace("…", "*").replace("IN (?)", "IN (?, ?)")
            text = one.encode("utf-8", "surrogateescape")
            cost = self._trials.cost(text, self._parameters, change)
            if cost.way in (Way.REFUSED, Way.SCATTER, Way.GATHER):
                return None
            if worst is None or RANK[cost.way] > RANK[worst.way]:
                worst = cost
        return worst

    # the statement itself

    def _spoilt(self, used: Used) -> Iterator[Advice]:
        """Conditions that name the routing column and do not narrow."""
        for text in used.either:
            yield Advice(
                f"cut `{text}` into statements of their own: an OR narrows only where every side names "
                f"`{used.table.routing}`"
            )
        for text in used.nested:
            yield Advice(
                f"run the subquery of `{text}` by itself first, and send its values: "
                f"`{used.table.routing} IN (…)`"
            )
        for text in used.spoilt:
            yield Advice(
                f"`{text}` does not narrow: compare `{used.table.routing}` itself with constants, by = or IN"
            )

    def _conditions(self) -> Iterator[Advice]:
        """What would narrow each table that nothing narrows."""
        seen: set[str] = set()
        for used in self._clauses.open:
            columns = [name for name in (used.table.routing, used.table.shard_key, used.table.strict) if name]
            named = " or ".join(f"`{name}`" for name in columns)
            if used.name not in seen:
                seen.add(used.name)
                yield Advice(f"add a condition on {named} of {used.name}, by = or IN")

    def _apart(self) -> Iterator[Advice]:
        clauses = self._clauses
        nested = any(used.nested for used in clauses.open)
        if self._cost.way is Way.GATHER and clauses.several and clauses.open and not nested:
            parts = (f"{used.name} by `{used.table.routing}`" for used in clauses.open)
            names = ", ".join(dict.fromkeys(parts))
            yield Advice(f"read the tables one after another instead of the join: {names} IN (…)")
        if self._cost.way is Way.SCATTER and clauses.aggregated and not clauses.grouped:
            yield Advice("keep the number in a row of its own, if it is asked for often")
