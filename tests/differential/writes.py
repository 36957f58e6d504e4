"""Random writes and transactions, as cases of a few statements that build on each other."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from config.schema import Kind
from tests.differential.catalog import Catalog, ColumnModel, Family, TableModel, Value, literal
from tests.differential.changes import Changes
from tests.differential.expressions import Expressions
from tests.differential.parts import ID, Statement
from tests.differential.routes import LOCAL_BITS, SHARD_SHIFT, TYPE_SHIFT, Routes

FRESH = 20_000_000_000  # local ids from here on belong to no row of the world
CHANGES = 0.3  # share of changes of several tables, or by subqueries
KINDS = (Kind.OBJECT,) * 6 + (Kind.MAPPING,) * 4 + (Kind.HASHED,) * 3 + (Kind.SINGLE,)


class Writes:
    """Writes over the tables of a catalog. One object makes one case: it remembers what it has inserted."""

    def __init__(self, rng: random.Random, catalog: Catalog, number: int) -> None:
        self.rng = rng
        self.catalog = catalog
        self._next = FRESH + number * 1000
        self._made: dict[str, list[Any]] = {}

    # --- cases -----------------------------------------------------------------------------------

    def batch(self, beyond: float) -> list[Statement]:
        """Statements that commit by themselves, and reads of what they have done."""
        found: list[Statement] = []
        for _ in range(self.rng.randrange(1, 6)):
            table = self.table()
            if self.catalog.refers and self.rng.random() < CHANGES:
                found.append(Changes(self.rng, self.catalog).statement())
                continue
            found.append(self.write(table, beyond))
            if self.rng.random() < 0.5:
                found.append(self.read(table))
        return found

    def transaction(self) -> list[Statement]:
        """BEGIN, some statements, COMMIT or ROLLBACK; half of them on one shard only."""
        begin = self.rng.choice(("BEGIN", "START TRANSACTION", "SET autocommit = 0", "begin work"))
        end = self.rng.choice(("COMMIT", "ROLLBACK"))
        found = [Statement(begin, "transaction")]
        single = self.rng.random() < 0.5
        shard = self.rng.choice(self.catalog.shards) if single else None
        for _ in range(self.rng.randrange(1, 6)):
            table = self.table() if shard is None else self._sharded_table()
            if self.rng.random() < 0.35:
                found.append(self.read(table, shard, lock=True))
            else:
                found.append(self.write(table, 0.0, shard))
        if self.rng.random() < 0.2:
            place = self.rng.randrange(1, len(found) + 1)
            found.insert(place, Statement("SAVEPOINT s1", "transaction"))
            found.append(Statement("ROLLBACK TO SAVEPOINT s1", "transaction"))
        found.append(Statement(end, "transaction"))
        if begin.startswith("SET"):
            found.append(Statement("SET autocommit = 1", "transaction"))
        return found

    def table(self) -> TableModel:
        """A table that holds rows."""
        while True:
            found = self.catalog.kinds(self.rng.choice(KINDS))
            if found:
                return self.rng.choice(found)

    def _sharded_table(self) -> TableModel:
        return self.rng.choice(self.catalog.kinds(Kind.OBJECT, Kind.MAPPING))

    # --- statements ------------------------------------------------------------------------------

    def write(self, table: TableModel, beyond: float, shard: int | None = None) -> Statement:
        """One write; `shard`: to that one only."""
        if beyond and self.rng.random() < beyond:
            return self._beyond(table)
        makers: list[Callable[[TableModel, int | None], Statement]] = [
            self.insert,
            self.update,
            self.update,
            self.delete,
        ]
        if table.kind is Kind.OBJECT:
            makers.append(self.insert_placed)
        return self.rng.choice(makers)(table, shard)

    def read(self, table: TableModel, shard: int | None = None, *, lock: bool = False) -> Statement:
        """The rows that the case works on."""
        condition = self._which(table, shard)
        tail = " FOR UPDATE" if lock and self.rng.random() < 0.6 else ""
        sql = f"SELECT * FROM {table.name} WHERE {condition}{tail}"
        return Statement(sql, f"{table.kind} read after write", extra_warnings=True)

    def insert(self, table: TableModel, shard: int | None = None) -> Statement:
        """Rows with all their keys given."""
        single = table.kind in (Kind.SINGLE,) or shard is not None
        rows = [self._row(table, shard) for _ in range(self.rng.choice((1, 1, 1, 2, 3, 6)))]
        if self.rng.random() < 0.06 and (single or len(rows) == 1):
            rows.append(rows[0])  # a duplicate: an error, if there is a unique key
        names = list(table.columns)
        optional = [one for one in names if one.nullable]
        for one in optional:
            if self.rng.random() < 0.15:
                names.remove(one)
        if self.rng.random() < 0.2:
            self.rng.shuffle(names)
        into = f"{self.rng.choice(('INSERT INTO', 'INSERT INTO', 'insert'))} {table.name}"
        if len(rows) == 1 and self.rng.random() < 0.15:
            text = ", ".join(f"{one.name} = {self._sql(rows[0][one.name])}" for one in names)
            return self._write(f"{into} SET {text}", table, "insert")
        listed = ", ".join(one.name for one in names)
        columns = "" if names == list(table.columns) and self.rng.random() < 0.2 else f" ({listed})"
        values = ", ".join("(" + ", ".join(self._sql(row[one.name]) for one in names) + ")" for row in rows)
        return self._write(f"{into}{columns} VALUES {values}", table, "insert")

    def insert_placed(self, table: TableModel, shard: int | None = None) -> Statement:
        """An object whose ID shardgate makes: beside another one, or anywhere."""
        row = self._row(table, shard)
        names = [one.name for one in table.columns if one.name != "id"]
        near: int | None = None
        extra: tuple[str, int] | None = None
        if table.colocate is not None:
            column, _, path = table.colocate.partition(":")
            near = self._other(table, table.colocate, shard)
            if path:
                document = json.loads(str(row[column]))
                document[path.removeprefix("$.")] = near
                row[column] = json.dumps(document, ensure_ascii=False)
            elif column in names:
                row[column] = near
            else:
                extra = (column, near)
        values = [self._sql(row[name]) for name in names]
        given = names + ([extra[0]] if extra else [])
        told = values + ([str(extra[1])] if extra else [])
        sql = f"INSERT INTO {table.name} ({', '.join(given)}) VALUES ({', '.join(told)})"
        twin = f"INSERT INTO {table.name} (id, {', '.join(names)}) VALUES ({ID}, {', '.join(values)})"
        return Statement(
            sql,
            f"{table.kind} insert, placed",
            twin=twin,
            made=table.name,
            near=near,
            tables=frozenset({table.name}),
        )

    def update(self, table: TableModel, shard: int | None = None) -> Statement:
        """Some columns of some rows."""
        fixed = {table.routing, *table.total}
        columns = [one for one in table.columns if one.name not in fixed]
        chosen = self.rng.sample(columns, min(len(columns), self.rng.choice((1, 1, 2))))
        assigned = ", ".join(f"{one.name} = {self._new(table, one)}" for one in chosen)
        condition = self._which(table, shard)
        if self.rng.random() < 0.25:
            condition += f" AND {Expressions(self.rng, table, mysql=self.catalog.mysql).condition(1).sql}"
        verb = self.rng.choice(("UPDATE", "UPDATE", "update"))
        return self._write(f"{verb} {table.name} SET {assigned} WHERE {condition}", table, "update")

    def delete(self, table: TableModel, shard: int | None = None) -> Statement:
        """Some rows."""
        condition = self._which(table, shard)
        if self.rng.random() < 0.25:
            condition += f" AND {Expressions(self.rng, table, mysql=self.catalog.mysql).condition(1).sql}"
        return self._write(f"DELETE FROM {table.name} WHERE {condition}", table, "delete")

    def _write(self, sql: str, table: TableModel, verb: str, *features: str) -> Statement:
        return Statement(
            sql,
            f"{table.kind} {verb}",
            frozenset(features),
            tables=frozenset({table.name}),
            extra_warnings=True,
        )

    def _beyond(self, table: TableModel) -> Statement:
        """What may be refused."""
        if table.kind is Kind.SINGLE:
            return self.update(table)
        row = self._row(table, None)
        listed = ", ".join(one.name for one in table.columns)
        values = (
            f"{table.name} ({listed}) VALUES ({', '.join(self._sql(row[one.name]) for one in table.columns)})"
        )
        other = next(one for one in reversed(table.columns) if one.name not in (table.routing, *table.total))
        condition = self._which(table, None)
        match self.rng.choice(("replace", "ignore", "duplicate", "routing", "scatter", "limit", "bad id")):
            case "replace":
                return self._write(f"REPLACE INTO {values}", table, "replace", "replace")
            case "ignore":
                return self._write(f"INSERT IGNORE INTO {values}", table, "insert", "insert ignore")
            case "duplicate":
                sql = f"INSERT INTO {values} ON DUPLICATE KEY UPDATE {other.name} = {other.name}"
                return self._write(sql, table, "insert", "on duplicate key")
            case "routing":
                sql = f"UPDATE {table.name} SET {table.routing} = {table.routing} WHERE {condition}"
                return self._write(sql, table, "update", "routing column update")
            case "scatter":
                sql = f"UPDATE {table.name} SET {other.name} = {other.name} WHERE {other.name} IS NOT NULL"
                return self._write(sql, table, "update", "scatter write")
            case "limit":
                sql = f"DELETE FROM {table.name} WHERE {condition} ORDER BY {table.routing} LIMIT 100"
                return self._write(sql, table, "delete", "limit of a write")
            case _:
                return self._impossible(table)

    def _impossible(self, table: TableModel) -> Statement:
        """An INSERT with an ID that this table cannot have: it must be refused."""
        if table.kind is not Kind.OBJECT:
            return self.delete(table)
        row = self._row(table, None)
        wrong = self.rng.choice(
            (row["id"] ^ 1 << TYPE_SHIFT, row["id"] | 1 << 62, -5, (60000 << SHARD_SHIFT) + 1)
        )
        names = ", ".join(one.name for one in table.columns)
        values = ", ".join(self._sql(wrong if one.name == "id" else row[one.name]) for one in table.columns)
        sql = f"INSERT INTO {table.name} ({names}) VALUES ({values})"
        return Statement(
            sql,
            "object insert, impossible",
            frozenset({"insert of an impossible id"}),
            twin="",
            tables=frozenset({table.name}),
        )

    # --- conditions and values -------------------------------------------------------------------

    def _which(self, table: TableModel, shard: int | None) -> str:
        """A condition that names rows of `table` by their keys: of the world, or those just made."""
        if not table.routing or table.kind is Kind.SINGLE:
            two = ", ".join(literal(self.rng.choice(table.keys)) for _ in range(2))
            return f"{table.columns[0].name} IN ({two})"
        made = self._made.get(table.name, [])
        if made and self.rng.random() < 0.6:
            keys = self.rng.sample(made, min(len(made), self.rng.choice((1, 2))))
        elif shard is not None:
            keys = self._on(table, shard, self.rng.choice((1, 2, 3)))
        else:
            routes = Routes(self.rng, self.catalog, table)
            routed = self.rng.choice((routes.point, routes.some))()
            assert routed.condition is not None
            return routed.condition.sql
        if len(keys) == 1:
            return f"{table.routing} = {literal(keys[0])}"
        return f"{table.routing} IN ({', '.join(map(literal, keys))})"

    def _on(self, table: TableModel, shard: int, count: int) -> list[int]:
        """Keys on one shard, of rows if it has some."""
        found = [one for one in table.keys if one >> SHARD_SHIFT == shard]
        if not found:
            return [shard << SHARD_SHIFT | table.type << TYPE_SHIFT | 1]
        return [self.rng.choice(found) for _ in range(count)]

    def _row(self, table: TableModel, shard: int | None) -> dict[str, Any]:
        """A new row by column: a fresh key, and for the rest values like those of the world."""
        row = {one.name: self._value(one) for one in table.columns}
        self._next += 1
        if table.kind is Kind.OBJECT:
            place = self.rng.choice(self.catalog.shards) if shard is None else shard
            row["id"] = place << SHARD_SHIFT | table.type << TYPE_SHIFT | self._next & (1 << LOCAL_BITS) - 1
        elif table.kind is Kind.MAPPING:
            row[table.routing] = self.rng.choice(
                self._on(table, shard, 1) if shard is not None else table.keys
            )
            for name in table.total:
                if name != table.routing:
                    row[name] = self._next
        elif table.column(table.columns[0].name).family is Family.WIDE:
            row[table.columns[0].name] = self._next
        elif table.column(table.columns[0].name).family is Family.BINARY:
            row[table.columns[0].name] = b"t%d" % self._next
        else:
            row[table.columns[0].name] = f"Neu-{self._next}"
        self._made.setdefault(table.name, []).append(row[table.routing or table.columns[0].name])
        return row

    def _value(self, column: ColumnModel) -> Value:
        known = [one for one in column.values if one is not None]
        if column.nullable and (not known or self.rng.random() < 0.15):
            return None
        return self.rng.choice(known)

    def _other(self, table: TableModel, column: str, shard: int | None) -> int:
        """An ID that `column` may hold; on the shard, if one is given."""
        target = self.catalog.tables[self.catalog.refers[table.name, column]]
        if shard is not None:
            return self._on(target, shard, 1)[0]
        found = self.rng.choice(target.keys)
        assert isinstance(found, int)
        return found

    def _new(self, table: TableModel, column: ColumnModel) -> str:
        """The right side of an assignment."""
        name = column.name
        if column.family is Family.INTEGER and self.rng.random() < 0.3:
            return f"IF({name} BETWEEN -100 AND 100, {name} + 1, {name})"
        if column.family is Family.JSON and not column.nullable and self.rng.random() < 0.6:
            return f"JSON_SET({name}, '$.seen', {self.rng.randrange(5)}, '$.note', 'a''b')"
        if table.kind is Kind.OBJECT and column.family is Family.TEXT and self.rng.random() < 0.2:
            return "RIGHT(CONCAT('id ', id), 8)"
        return self._sql(self._value(column))

    def _sql(self, value: Value) -> str:
        return literal(value)
