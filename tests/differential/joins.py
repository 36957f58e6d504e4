"""Random joins of a table whose shards are known with one that its rows name by ID."""

from __future__ import annotations

import random

from config.schema import Kind
from tests.differential.catalog import Catalog, Family, TableModel
from tests.differential.expressions import Expressions
from tests.differential.parts import Statement
from tests.differential.routes import Routes

_TARGETS = (
    ("user_pins", "user_id", "pin_id", "pins", "id"),
    ("user_pins", "user_id", "pin_id", "pin_users", "pin_id"),
    ("pin_users", "pin_id", "user_id", "users", "id"),
    ("pin_users", "pin_id", "user_id", "user_pins", "user_id"),
    ("user_has_boards", "user_id", "board_id", "boards", "id"),
    ("user_has_boards", "user_id", "board_id", "board_has_pins", "board_id"),
    ("board_has_pins", "board_id", "pin_id", "pins", "id"),
    ("pin_liked_by_user", "pin_id", "user_id", "users", "id"),
    ("user_likes_pins", "user_id", "pin_id", "pins", "id"),
    ("photos", "id", "user_id", "photos", "user_id"),
    ("things", "id", "owner_id", "users", "id"),
)
"""A table, its routing column, the column that names rows of another, that one and its column."""


class Joins:
    """SELECTs that two reads can answer, and some that are nearly so."""

    def __init__(self, rng: random.Random, catalog: Catalog) -> None:
        self.rng = rng
        self.catalog = catalog
        self.targets = [one for one in _TARGETS if {one[0], one[3]} <= set(catalog.tables)]

    def statement(self) -> Statement:
        """One of them."""
        left, routing, column, right, key = self.rng.choice(self.targets)
        one, two = self.catalog.tables[left], self.catalog.tables[right]
        routed = Routes(self.rng, self.catalog, one, qualifier="a.")
        known = self.rng.sample(one.keys, min(len(one.keys), self.rng.choice((1, 1, 1, 1, 2, 5))))
        condition = f"a.{routing} IN ({', '.join(map(str, known))})"
        if one.routing == routing and self.chance(0.2):
            condition = self.text(routed.any().condition) or condition
        elif len(known) == 1:
            condition = f"a.{routing} = {known[0]}"
        link = self.rng.choice((f"b.{key} = a.{column}", f"a.{column} = b.{key}"))
        where = [condition, *([self.on(one, "a.")] if self.chance(0.3) else [])]
        on = [link, *([self.on(two, "b.")] if self.chance(0.4) else [])]
        kind = self.rng.choice(("JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", ","))
        if self.chance(0.1):
            where.append(self.on(two, "b."))
        self.rng.shuffle(where)
        self.rng.shuffle(on)
        text = f"{left} a {kind} {right} b ON {' AND '.join(on)} WHERE {' AND '.join(where)}"
        if kind == "RIGHT JOIN":
            text = f"{right} b {kind} {left} a ON {' AND '.join(on)} WHERE {' AND '.join(where)}"
        if kind == ",":
            text = f"{left} a, {right} b WHERE {' AND '.join([*on, *where])}"
        distinct = "DISTINCT " if self.chance(0.03) else ""
        order = self.order(one)
        sql = f"SELECT {distinct}{self.shown(one, two)} FROM {text}{order}"
        unique = two.kind is Kind.OBJECT
        total = bool(order) and unique and not distinct
        if not order or total:
            sql += self.limit() if total else ""
        return Statement(sql, "by id", extra_warnings=True, total=total)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def text(self, condition: object) -> str:
        return "" if condition is None else str(getattr(condition, "sql", ""))

    def on(self, table: TableModel, qualifier: str) -> str:
        """A condition on one table."""
        return Expressions(self.rng, table, mysql=self.catalog.mysql, qualifier=qualifier).condition(1).sql

    def order(self, table: TableModel) -> str:
        """ORDER BY columns of the first table, all of whose rows it tells apart; or none."""
        if not table.total or self.chance(0.3):
            return ""
        more = [self.rng.choice([one.name for one in table.of(Family.INTEGER, Family.WIDE, Family.DECIMAL)])]
        names = [*(more if self.chance(0.6) else []), *table.total]
        return " ORDER BY " + ", ".join(f"a.{name}" + self.rng.choice(("", " DESC")) for name in names)

    def limit(self) -> str:
        if self.chance(0.3):
            return ""
        offset = f" OFFSET {self.rng.choice((0, 1, 2, 20))}" if self.chance(0.4) else ""
        return f" LIMIT {self.rng.choice((0, 1, 2, 3, 10, 50))}{offset}"

    def shown(self, one: TableModel, two: TableModel) -> str:
        """Columns of both, stars and constants among them."""
        items = []
        for _ in range(self.rng.choice((1, 1, 2, 3, 5))):
            qualifier, table = self.rng.choice((("a.", one), ("b.", two)))
            name = self.rng.choice([column.name for column in table.columns])
            form = self.rng.random()
            if form < 0.2:
                items.append(qualifier + "*")
            elif form < 0.25:
                items.append(self.rng.choice(("1", "'x' AS k", "NULL", "2.50 AS d")))
            elif form < 0.35:
                items.append(f"LENGTH({qualifier}{name}) AS l")
            elif form < 0.45:
                items.append(f"{qualifier}{name} AS `{self.rng.choice(('n', 'sequence', 'ts', 'x y'))}`")
            else:
                items.append(qualifier + name)
        return "*" if self.chance(0.12) else ", ".join(items)
