"""Conditions that only the algebra narrows by, and statements that let them pass to other tables: whatever is
left out must not be missed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.differential.catalog import Catalog
from tests.differential.parts import Case, Statement
from tests.differential.world import World

#: Columns that hold IDs, by table: the first one routes.
COLUMNS: Final = {
    "pins": ("id",),
    "boards": ("id",),
    "users": ("id",),
    "board_has_pins": ("board_id", "pin_id"),
    "user_likes_pins": ("user_id", "pin_id"),
    "user_has_boards": ("user_id", "board_id"),
}

#: Statements: `{w}` is a condition on the table in the braces behind it, under the name behind the colon.
FORMS: Final = (
    ("SELECT * FROM {t} WHERE {w}", 6),
    ("SELECT COUNT(*), MIN({c}), MAX({c}) FROM {t} WHERE {w}", 2),
    ("SELECT {c}, COUNT(*) FROM {t} GROUP BY {c} HAVING {w}", 3),
    ("SELECT {c} FROM {t} HAVING {w}", 1),
    ("SELECT * FROM (SELECT {c}, COUNT(*) AS n FROM {t} GROUP BY {c}) x WHERE {w}", 2),
    ("SELECT * FROM (SELECT DISTINCT {cs} FROM {t}) x WHERE {w}", 1),
    ("SELECT * FROM (SELECT {c}, RANK() OVER (PARTITION BY {c} ORDER BY {c}) r FROM {t}) x WHERE {w}", 1),
    ("SELECT * FROM (SELECT {c}, RANK() OVER (ORDER BY {c}) AS r FROM {t}) x WHERE {w}", 1),
    ("SELECT * FROM (SELECT {c} AS k FROM {t} UNION ALL SELECT {oc} FROM {o}) x WHERE {k}", 2),
    ("SELECT * FROM (SELECT {c} AS k FROM {t} UNION SELECT {oc} FROM {o} UNION SELECT 5) x WHERE {k}", 1),
    ("WITH x AS (SELECT {cs} FROM {t}) SELECT a.{c} FROM x a JOIN x b ON a.{c} = b.{c} WHERE {a} AND {b}", 2),
    ("WITH x AS (SELECT {c}, COUNT(*) n FROM {t} GROUP BY {c}) SELECT y.{oc}, n FROM {o} y"
     " JOIN x ON x.{c} = y.{oc} WHERE {y}", 2),
    ("SELECT x.{c}, y.{oc} FROM {t} x JOIN {o} y ON y.{oc} = x.{c} WHERE {w}", 3),
    ("SELECT x.{c}, y.{oc} FROM {t} x LEFT JOIN {o} y ON y.{oc} = x.{c} WHERE {w}", 2),
    ("SELECT x.{c}, y.{oc} FROM {t} x LEFT JOIN {o} y ON y.{oc} = x.{c} WHERE {y}", 3),
    ("SELECT x.{c}, y.{oc} FROM {t} x RIGHT JOIN {o} y ON y.{oc} = x.{c} WHERE {w}", 2),
    ("SELECT x.{c}, y.{oc} FROM {t} x RIGHT JOIN {o} y ON y.{oc} = x.{c} WHERE {y}", 2),
    ("SELECT x.{c}, y.{oc} FROM {t} x LEFT JOIN {o} y ON y.{oc} = x.{c} AND {y} WHERE {w}", 2),
    ("SELECT x.{c}, y.{oc}, z.{oc} AS k FROM {t} x LEFT JOIN {o} y ON y.{oc} = x.{c}"
     " RIGHT JOIN {o} z ON z.{oc} = y.{oc} WHERE {w}", 3),
    ("SELECT x.{c}, y.{oc}, z.{oc} AS k FROM {t} x LEFT JOIN {o} y ON y.{oc} = x.{c}"
     " RIGHT JOIN {o} z ON z.{oc} = y.{oc} WHERE {y}", 2),
    ("SELECT x.{c}, y.{oc}, z.{c} AS k FROM {t} x RIGHT JOIN {o} y ON y.{oc} = x.{c}"
     " LEFT JOIN {t} z ON z.{c} = y.{oc} AND {y} WHERE {w}", 2),
    ("SELECT x.{c}, y.{oc} FROM {t} x, {o} y WHERE y.{oc} = x.{c} + 0 AND {w}", 1),
    ("SELECT x.{c}, g.n FROM {t} x LEFT JOIN (SELECT {oc}, COUNT(*) n FROM {o} GROUP BY {oc}) g"
     " ON g.{oc} = x.{c} WHERE {w}", 2),
    ("SELECT x.{c} FROM {t} x JOIN (SELECT {i} AS k UNION ALL SELECT {i}) v ON v.k = x.{c}", 1),
    ("SELECT x.{c} FROM {t} x WHERE x.{c} IN (SELECT {oc} FROM {o} y WHERE {y})", 1),
    ("SELECT x.{c} FROM {t} x WHERE EXISTS (SELECT 1 FROM {o} y WHERE y.{oc} = x.{c} AND {y}) AND {w}", 1),
)  # fmt: skip


@dataclass(frozen=True)
class Narrowing:
    """A generator of cases: one statement each, the same for a seed and a number."""

    world: World
    seed: int
    catalog: Catalog

    def case(self, number: int) -> Case:
        rng = random.Random(f"{self.seed}/{number}")
        drawn = _Drawn(rng, self.world)
        form = rng.choices([one for one, _ in FORMS], [weight for _, weight in FORMS])[0]
        return Case(
            number, "narrowing", (Statement(drawn.statement(form), "narrowing", extra_warnings=True),)
        )


class _Drawn:
    def __init__(self, rng: random.Random, world: World) -> None:
        self.rng = rng
        self.rows = {
            table: [
                dict(zip(world.tables[table].logical_columns, row, strict=True)) for row in world.rows[table]
            ]
            for table in COLUMNS
        }

    def statement(self, form: str) -> str:
        rng = self.rng
        table = rng.choice(list(COLUMNS))
        column = rng.choice(COLUMNS[table][:1] * 3 + COLUMNS[table])
        alike = [(one, name) for one, names in COLUMNS.items() for name in names if one != table]
        near = [one for one in alike if _means(*one) == _means(table, column)]
        other, other_column = rng.choice(near or alike)
        alias = "x." if "{t} x" in form else ""
        mine = (table, COLUMNS[table] if "{cs}" in form or " * FROM {t}" in form else (column,))
        theirs = (other, (other_column,))
        named: dict[str, Callable[[], str]] = {
            "t": lambda: table,
            "c": lambda: column,
            "cs": lambda: ", ".join(COLUMNS[table]),
            "o": lambda: other,
            "oc": lambda: other_column,
            "i": lambda: self.id(table, column),
            "w": lambda: self.condition(*mine, alias, 3),
            "y": lambda: self.condition(*theirs, "y.", 2),
            "k": lambda: self.condition(table, (column,), "", 2, "k"),
            "a": lambda: self.condition(table, (column,), "a.", 1),
            "b": lambda: self.condition(table, (column,), "b.", 1),
        }
        pieces = form.split("{")
        text = pieces[0]
        for piece in pieces[1:]:
            name, _, rest = piece.partition("}")
            text += named[name]() + rest
        return text

    def id(self, table: str, column: str) -> str:
        """One that there is, mostly; or one of another type, or no ID at all."""
        rng = self.rng
        if rng.random() < 0.85:
            return f"{rng.choice(self.rows[table][:40])[column]!s}"
        return rng.choice(["0", "5", str((1 << 46) + (2 << 36) + 7), "NULL"])

    def condition(self, table: str, columns: Sequence[str], alias: str, depth: int, called: str = "") -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.3:
            return self.leaf(table, rng.choice(columns), columns, alias, called)
        one = self.condition(table, columns, alias, depth - 1, called)
        other = self.condition(table, columns, alias, depth - 1, called)
        return rng.choice(
            [
                f"({one} AND {other})",
                f"({one} AND {other})",
                f"({one} OR {other})",
                f"({one} XOR {other})",
                f"NOT ({one})",
                f"NOT ({one} OR {other})",
                f"({one}) IS TRUE",
                f"({one}) IS NOT TRUE",
                f"({one}) IS FALSE",
                f"({one}) = 1",
                f"({one}) <> 0",
                f"({one}) <=> 0",
                f"IF({one}, {other}, 0)",
                f"CASE WHEN {one} THEN {other} WHEN {other} THEN 1 ELSE FALSE END",
                f"COALESCE({one}, {other})",
                f"IFNULL({one}, 0)",
                f"({one} OR 1 = 0)",
                f"({one} AND 1 <> 0)",
            ]
        )

    def leaf(self, table: str, column: str, columns: Sequence[str], alias: str, called: str) -> str:
        rng = self.rng
        name = alias + (called or column)
        one, other = self.id(table, column), self.id(table, column)
        pair = rng.choice([name for name in columns if name != column] or [column])
        row = rng.choice(self.rows[table][:40])
        tuples = [f"({self.id(table, column)}, {self.id(table, pair)})" for _ in range(2)]
        tuples.append(f"({row[column]!s}, {row[pair]!s})")
        more = alias + (called or pair)
        return rng.choice(
            [
                f"{name} = {one}",
                f"{name} <=> {one}",
                f"{name} <> {one}",
                f"{name} IN ({one}, {other})",
                f"{name} NOT IN ({one}, {other})",
                f"{name} IN ({one}, (SELECT {other}))",
                f"{name} BETWEEN {one} AND {other}",
                f"({name} >= {one} AND {name} <= {one} + {rng.randint(0, 9)})",
                f"NOT ({name} < {one} OR {name} > {other})",
                f"({name}, {more}) IN ({', '.join(tuples)})",
                f"({name}, {more}) = {tuples[-1]}",
                f"NOT (({name}, {more}) <> {tuples[-1]})",
                f"({name}, {more}) <=> {tuples[-1]}",
                f"{name} = IF(1 = {rng.randint(0, 1)}, {one}, {other})",
                f"{name} = CASE {rng.randint(0, 2)} WHEN 1 THEN {one} ELSE {other} END",
                f"{name} = COALESCE(NULL, {one}, {other})",
                f"{name} = (SELECT {one})",
                f"{name} = CAST('{rng.choice(['', ' ', '0'])}{one.replace('NULL', '7')}' AS UNSIGNED)",
                f"{name} = CAST({one} AS SIGNED)",
                f"CAST({name} AS UNSIGNED) = {one}",
                f"{name} + 0 = {one}",
                f"{name} + 3 = {one} + 3",
                f"3 + {name} - 1 = {one} + 2",
                f"{name} = '{one}'",
                f"({name}, {more}) = ('{row[column]!s}', '{row[pair]!s}')",
                f"{name} IS NULL",
                f"{name} IS NOT NULL",
            ]
        )


def _means(table: str, column: str) -> str:
    """What a column's IDs are of."""
    return table if column == "id" else column.removesuffix("_id") + "s"
