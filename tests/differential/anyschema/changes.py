"""Random writes and transactions, as cases of a few statements that build on each other."""

from __future__ import annotations

import random
from collections.abc import Callable

from config.schema import Kind
from tests.differential.anyschema.places import AnyWorld, Column, Model
from tests.differential.anyschema.reads import Reads
from tests.differential.anyschema.sources import Source
from tests.differential.anyschema.steps import ID, Step
from tests.differential.anyschema.terms import Ref, Terms, named
from tests.differential.anyschema.tree import Form, Node, clause, fixed, form_of, items
from tests.differential.catalog import Value, literal

Row = dict[str, str]
"""A row by column; the values are SQL."""


class Changes:
    """Writes over the tables of a world. One object makes one case: it remembers what it has inserted."""

    def __init__(self, rng: random.Random, world: AnyWorld, number: int, *, mysql: bool) -> None:
        self.rng = rng
        self.world = world
        self.mysql = mysql
        self.reads = Reads(rng, world, mysql=mysql)
        self.keys = self.reads.keys
        self._next = 500_000 + number * 50
        self._made: dict[str, list[str]] = {}

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def steps(self) -> list[Step]:
        """The statements of a case."""
        if self.chance(0.3):
            return self.transaction()
        found: list[Step] = []
        for _ in range(self.rng.randrange(1, 5)):
            model = self.reads.model()
            found.append(self.write(model))
            if self.chance(0.35):
                found.append(self.look(model))
            if self.chance(0.05):
                found.append(self.said())
        return found

    def transaction(self) -> list[Step]:
        """BEGIN, some statements, COMMIT or ROLLBACK."""
        begin = self.rng.choice(("BEGIN", "START TRANSACTION", "SET autocommit = 0", "begin work"))
        found = [self.plain(begin)]
        names: list[str] = []
        for _ in range(self.rng.randrange(1, 6)):
            model = self.reads.model()
            form = self.rng.random()
            if form < 0.2:
                found.append(self.look(model, lock=True))
            elif form < 0.28:
                names.append(self.rng.choice(("s1", "s2", "`sp x`")))
                found.append(self.plain(f"SAVEPOINT {names[-1]}"))
            elif form < 0.34 and names:
                found.append(
                    self.plain(
                        f"{self.rng.choice(('ROLLBACK TO SAVEPOINT', 'ROLLBACK TO', 'RELEASE SAVEPOINT'))} {self.rng.choice(names)}"
                    )
                )
            elif form < 0.36:
                found.append(
                    self.plain(
                        self.rng.choice(("ROLLBACK TO nowhere", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN"))
                    )
                )
            else:
                found.append(self.write(model))
        found.append(self.plain(self.rng.choice(("COMMIT", "COMMIT", "ROLLBACK", "ROLLBACK", "commit work"))))
        if begin.startswith("SET"):
            found.append(self.plain("SET autocommit = 1"))
        return found

    def plain(self, sql: str) -> Step:
        return Step(fixed(sql), "transaction")

    def said(self) -> Step:
        return Step(
            fixed(self.rng.choice(("SELECT ROW_COUNT()", "SELECT FOUND_ROWS()", "SELECT LAST_INSERT_ID()"))),
            "session",
            Form(counted=True),
        )

    def look(self, model: Model, *, lock: bool = False) -> Step:
        tail = (
            self.rng.choice((" FOR UPDATE", " LOCK IN SHARE MODE", "", " FOR SHARE" if self.mysql else ""))
            if lock
            else ""
        )
        tree = fixed(f"SELECT * FROM {self.name(model)}", self.which(model), tail)
        return Step(tree, "read after write", form_of(tree))

    # --- names and values ------------------------------------------------------------------------

    def name(self, model: Model) -> str:
        return self.reads.table_name(model)

    def column(self, column: Column) -> str:
        return named(column.name, self.rng)

    def value(self, model: Model, column: Column) -> str:
        """A value for a column, as SQL."""
        if column.nullable and self.chance(0.12):
            return "NULL"
        if column.refers and column.name != "id":
            return (
                str(self.keys.id_of(column.refers))
                if self.chance(0.9)
                else self.keys.written(self.rng.choice(self.world.models[column.refers].keys))
            )
        if column.type.values:
            value: Value = self.rng.choice(list(column.type.values))
        else:
            return "'{\"a\": 7}'" if column.family == "j" else "1"
        if self.chance(0.06):
            return self.rng.choice(("DEFAULT", "NULL", "''", "-1", "'zz'", "1e10", "999999999999", "0"))
        if isinstance(value, str) and ("\\" in value or "\0" in value):
            value = "a"
        return literal(value)

    def row(self, model: Model) -> Row:
        """A new row."""
        self._next += 1
        row = {one.name: self.value(model, one) for one in model.given}
        first = model.columns[0].name
        if model.kind is Kind.OBJECT:
            bits = self.world.layouts[model.keyspace]
            shard = self.rng.choice(self.world.shards[model.keyspace])
            row["id"] = str(shard << bits["shard"][0] | model.number << bits["type"][0] | self._next)
        elif model.kind is Kind.TIMED:
            bits = self.world.layouts["media"]
            shards = self.world.shards["media"]
            shard = self.rng.choice(shards)
            if model.shard_key:
                column = model.column(model.shard_key)
                known = self.rng.choice(
                    self.world.models[column.refers].keys if column.refers else (0, 1, 5, 17, 1000)
                )
                row[model.shard_key] = str(known)
                shard = int(str(known)) % len(shards)
            row["id"] = str((15_000_100_000 + self._next) << bits["time"][0] | shard << bits["shard"][0])
        elif model.kind is Kind.MAPPING:
            for name in model.total:
                column = model.column(name)
                row[name] = (
                    str(self.keys.rng.choice(self.world.models[column.refers].keys))
                    if column.refers
                    else str(self._next)
                )
        elif model.kind is Kind.HASHED:
            key = model.column(model.routing)
            row[model.routing] = {"n": str(self._next % 30000 + 40), "x": f"'new{self._next}'"}.get(
                key.family, f"'Neu{self._next} '"
            )
            if key.type.sql == "SMALLINT":
                row[model.routing] = str(100 + self._next % 30000)
        elif model.column(first).family == "n":
            row[first] = str(self._next % 30000 + 40)
        else:
            row[first] = "'" + self.rng.choice("abcdefgh") + self.rng.choice("mnopqrst") + "'"
        key_name = model.routing or first
        self._made.setdefault(model.name, []).append(row[key_name])
        return row

    def which(self, model: Model, *, alias: str = "") -> Node:
        """A WHERE that names rows by their keys, or other ones."""
        made = self._made.get(model.name)
        key = model.routing or model.columns[0].name
        name = f"{alias}.`{key}`" if alias else f"`{key}`"

        def written(column: Column) -> str:
            return f"{alias}.`{column.name}`" if alias else self.column(column)

        if made and self.chance(0.5):
            chosen = self.rng.sample(made, min(len(made), self.rng.choice((1, 2))))
            node = fixed(f"{name} IN (", items(chosen), ")")
        else:
            node = self.keys.condition(model, written) or fixed(
                f"{name} IN (", items([literal(self.rng.choice(model.keys)) for _ in range(2)]), ")"
            )
        if self.chance(0.25):
            refs = [Ref(written(one), one, model) for one in model.columns]
            more = Terms(self.rng, refs, mysql=self.mysql).make("b", self.rng.choice((0, 1)))
            return fixed(" WHERE ", node, clause(self.rng.choice((" AND ", " AND ", " OR ")), more))
        return fixed(" WHERE ", node)

    # --- writes ----------------------------------------------------------------------------------

    def write(self, model: Model) -> Step:
        makers: list[Callable[[Model], Step]] = [
            self.insert, self.insert, self.update, self.update, self.delete, self.upsert, self.from_select, self.odd,
        ]  # fmt: skip
        if model.kind in (Kind.OBJECT, Kind.TIMED):
            makers.append(self.placed)
        return self.rng.choice(makers)(model)

    def step(self, model: Model, kind: str, *parts: str | Node, twin: str | None = None) -> Step:
        return Step(fixed(*parts), f"{model.kind} {kind}", twin=twin, tables=frozenset({model.name}))

    def values(self, model: Model, rows: list[Row]) -> tuple[str, Node]:
        """The columns and the rows of an INSERT."""
        names = [
            one for one in model.given if one.name == model.routing or self.chance(0.9) or not one.nullable
        ]
        if self.chance(0.3):
            self.rng.shuffle(names)
        listed = ", ".join(self.column(one) for one in names)
        return f" ({listed})", items(
            [fixed("(" + ", ".join(row[one.name] for one in names) + ")") for row in rows],
            self.rng.choice((", ", ",")),
        )

    def insert(self, model: Model) -> Step:
        rows = [self.row(model) for _ in range(self.rng.choice((1, 1, 1, 2, 3, 6)))]
        into = self.rng.choice(
            (
                "INSERT INTO ",
                "INSERT INTO ",
                "insert into ",
                "INSERT ",
                "INSERT IGNORE INTO ",
                "REPLACE INTO ",
                "REPLACE ",
            )
        )
        if len(rows) == 1 and self.chance(0.15):
            text = items([f"{self.column(one)} = {rows[0][one.name]}" for one in model.given])
            return self.step(model, "insert", into, self.name(model), " SET ", text)
        if self.chance(0.15):
            rows.append(rows[0])
        columns, values = self.values(model, rows)
        whole = len(model.given) == len(model.columns) and not any(one.hidden for one in model.columns)
        if whole and self.chance(0.15):
            columns, values = "", items([fixed("(" + ", ".join(row.values()) + ")") for row in rows])
        return self.step(
            model,
            "insert",
            into,
            self.name(model),
            columns,
            self.rng.choice((" VALUES ", " values", " VALUE ")),
            values,
        )

    def upsert(self, model: Model) -> Step:
        """INSERT with ON DUPLICATE KEY UPDATE, often of keys that are there."""
        rows = [self.row(model) for _ in range(self.rng.choice((1, 1, 2, 3)))]
        key = model.routing or model.columns[0].name
        for row in rows:
            if self.chance(0.5) and model.kind is not Kind.MAPPING:
                row[key] = literal(self.rng.choice(model.keys))
        if model.shard_key:
            return self.update(model)
        others = [one for one in model.given if one.name not in (model.routing, *model.total)]
        if not others:
            return self.insert(model)
        chosen = self.rng.sample(others, min(len(others), 2))
        assigned = []
        for one in chosen:
            name = self.column(one)
            assigned.append(f"{name} = {self.rng.choice((f'VALUES({name})', name, self.value(model, one)))}")
        columns, values = self.values(model, rows)
        return self.step(
            model,
            "upsert",
            "INSERT INTO ",
            self.name(model),
            columns,
            " VALUES ",
            values,
            " ON DUPLICATE KEY UPDATE ",
            items(assigned),
        )

    def placed(self, model: Model) -> Step:
        """An INSERT without id: the plain server gets the ID that was made."""
        row = self.row(model)
        names = [one for one in model.given if one.name != "id"]
        if not names or (model.kind is Kind.TIMED and not model.shard_key):
            return self.insert(model)
        if model.colocate:
            row[model.colocate] = str(
                self.keys.rng.choice(self.world.models[model.column(model.colocate).refers].keys[:1])
            )
        listed = ", ".join(self.column(one) for one in names)
        values = ", ".join(row[one.name] for one in names)
        self._made[model.name].pop()
        table = self.name(model)
        twin = f"INSERT INTO {table} (id, {listed}) VALUES ({ID}, {values})"
        return self.step(model, "placed", f"INSERT INTO {table} ({listed}) VALUES ({values})", twin=twin)

    def assigned(self, model: Model, alias: str = "") -> Node:
        others = [
            one for one in model.given if one.name not in (model.routing, model.shard_key, *model.total)
        ] or model.given[-1:]
        if self.chance(0.03):
            others = model.given
        front = f"{alias}." if alias else ""
        refs = [Ref(f"{front}`{one.name}`", one, model) for one in model.columns]
        terms = Terms(self.rng, refs, mysql=self.mysql)
        parts: list[str | Node] = []
        for one in self.rng.sample(others, min(len(others), self.rng.choice((1, 1, 2)))):
            value: str | Node = self.value(model, one)
            if self.chance(0.25) and one.family in "ntd":
                value = terms.make(one.family, 1)
            parts.append(fixed(f"{front}`{one.name}` = ", value))
        return items(parts)

    def update(self, model: Model) -> Step:
        alias = self.rng.choice(("", "", "", "x", "`u 1`"))
        name = self.name(model) + (f" AS {alias}" if alias else "")
        head = self.rng.choice(
            (
                "UPDATE ",
                "UPDATE ",
                "update ",
                "UPDATE LOW_PRIORITY ",
                "UPDATE IGNORE ",
                "UPDATE /*+ scatter */ ",
                "UPDATE /*+ scatter */ ",
            )
        )
        return self.step(
            model,
            "update",
            head,
            name,
            " SET ",
            self.assigned(model, alias),
            self.which(model, alias=alias),
            self.tail(model),
        )

    def tail(self, model: Model) -> Node:
        if not self.chance(0.15) or not model.total:
            return clause()
        total = ", ".join(f"`{one}`{self.rng.choice(('', ' DESC'))}" for one in model.total)
        return clause(f" ORDER BY {total}", clause(f" LIMIT {self.rng.choice((0, 1, 2, 5))}"))

    def delete(self, model: Model) -> Step:
        head = self.rng.choice(
            (
                "DELETE FROM ",
                "DELETE FROM ",
                "delete from ",
                "DELETE QUICK FROM ",
                "DELETE IGNORE FROM ",
                "DELETE /*+ scatter */ FROM ",
            )
        )
        return self.step(model, "delete", head, self.name(model), self.which(model), self.tail(model))

    def from_select(self, model: Model) -> Step:
        """INSERT … SELECT, from the table itself or another one."""
        names = ", ".join(f"`{one.name}`" for one in model.given)
        verb = self.rng.choice(("REPLACE INTO ", "INSERT IGNORE INTO ", "INSERT INTO "))
        other = [one for one in model.given if one.name not in (model.routing, model.shard_key, *model.total)]
        tail = (
            f" ON DUPLICATE KEY UPDATE `{other[0].name}` = {self.value(model, other[0])}"
            if other and verb == "INSERT INTO "
            else ""
        )
        return self.step(
            model,
            "insert select",
            f"{verb}{self.name(model)} ({names}) SELECT {names} FROM {self.name(model)}",
            self.which(model),
            tail,
        )

    def odd(self, model: Model) -> Step:
        """What is rare: several tables, subqueries, mistakes."""
        name = self.name(model)
        key = model.routing or model.columns[0].name
        other = self.reads.partner(self.reads.table(model))
        form = self.rng.choice(
            (
                "multi update",
                "multi delete",
                "in select",
                "empty",
                "defaults",
                "missing",
                "everything",
                "variable",
                "delete join",
                "exists",
            )
        )
        match form:
            case "multi update" if other is not model:
                link = self.reads.link(self._source(model, "m"), self._source(other, "o"))
                return self.step(
                    model,
                    "multi update",
                    f"UPDATE {name} m JOIN {self.name(other)} o ON {link} SET ",
                    self.assigned(model, "m"),
                    self.which(model, alias="m"),
                )
            case "multi delete" | "delete join" if other is not model:
                link = self.reads.link(self._source(model, "m"), self._source(other, "o"))
                head = (
                    f"DELETE m FROM {name} m" if form == "delete join" else f"DELETE FROM m USING {name} AS m"
                )
                return self.step(
                    model,
                    "multi delete",
                    f"{head} JOIN {self.name(other)} o ON {link}",
                    self.which(model, alias="m"),
                )
            case "in select" | "exists" if other is not model:
                link = self.reads.link(self._source(model, f"`{model.name}`"), self._source(other, "o"))
                test = f"EXISTS (SELECT 1 FROM {self.name(other)} o WHERE {link})"
                if form == "in select":
                    ids = [one for one in other.columns if one.refers]
                    test = f"`{key}` IN (SELECT {f'`{ids[0].name}`' if ids else '1'} FROM {self.name(other)})"
                return self.step(
                    model,
                    "subquery write",
                    f"{self.rng.choice(('DELETE', 'DELETE /*+ scatter */'))} FROM {name} WHERE {test}",
                )
            case "empty":
                return self.step(
                    model, "update", f"UPDATE {name} SET ", self.assigned(model), f" WHERE `{key}` IN (NULL)"
                )
            case "defaults":
                row = self.row(model)
                given = [
                    one
                    for one in model.given
                    if one.name == key or one.name in model.total or one.name == model.shard_key
                ]
                listed = ", ".join(f"`{one.name}`" for one in given)
                return self.step(
                    model,
                    "insert",
                    f"INSERT INTO {name} ({listed}) VALUES ({', '.join(row[one.name] for one in given)})",
                )
            case "missing":
                return self.step(model, "mistake", self.rng.choice((
                    f"UPDATE {name} SET missing = 1 WHERE `{key}` = 1", f"INSERT INTO {name} (`{key}`, missing) VALUES (1, 2)",
                    f"DELETE FROM {name} WHERE missing = 1 AND `{key}` = 1", f"INSERT INTO {name} (`{key}`, `{key}`) VALUES (1, 2)",
                    f"INSERT INTO {name} (`{key}`) VALUES (1, 2)", f"UPDATE {name} SET WHERE `{key}` = 1", f"DELETE {name} WHERE 1",
                )))  # fmt: skip
            case "variable":
                return self.step(
                    model,
                    "update",
                    f"UPDATE {name} SET ",
                    self.assigned(model),
                    f" WHERE `{key}` = (SELECT {literal(self.rng.choice(model.keys))})",
                )
            case _:
                verb = self.rng.choice((f"DELETE /*+ scatter */ FROM {name}", f"DELETE FROM {name}"))
                if self.chance(0.5):
                    return self.step(
                        model, "update", f"UPDATE /*+ scatter */ {name} SET ", self.assigned(model)
                    )
                return self.step(model, "delete", verb)

    def _source(self, model: Model, alias: str) -> Source:
        return Source(fixed(), [Ref(f"{alias}.`{one.name}`", one, model) for one in model.columns])
