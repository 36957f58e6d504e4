"""Random SELECTs over groups of one table's rows, and over its distinct rows.

Keys and aggregates of all kinds, as columns, expressions, aliases and numbers; HAVING, ORDER BY, LIMIT and
ROLLUP; also as derived tables, in UNION and in subqueries. Nothing is asked for that depends on the order of
rows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from config.schema import Kind
from tests.differential.catalog import Catalog, Family, TableModel
from tests.differential.expressions import Expressions
from tests.differential.parts import Statement
from tests.differential.routes import Routes

EXACT = (Family.INTEGER, Family.WIDE, Family.DECIMAL, Family.DATE, Family.DATETIME, Family.TIME, Family.YEAR)
"""Families whose equal values look the same."""
ALSO = (Family.ENUM, Family.SET, Family.BIT, Family.FLOAT)
SUMMED = (Family.INTEGER, Family.WIDE, Family.DECIMAL, Family.FLOAT, Family.YEAR)
MOST_CONCATENATED = 1024  # bytes: group_concat_max_len


@dataclass(frozen=True)
class Group:
    """A key: its expression, what the select list has, and how GROUP BY names it."""

    expression: str
    item: str
    name: str


class Groups:
    """Statements on `table`, whose columns are qualified with `qualifier` (such as `t.`)."""

    def __init__(self, rng: random.Random, catalog: Catalog, table: TableModel) -> None:
        self.rng = rng
        self.catalog = catalog
        self.table = table
        self.alias = "t" if self.chance(0.3) else ""
        self.qualifier = "t." if self.alias and self.chance(0.6) else ""
        self.odd = False

    def statement(self) -> Statement:
        """One of them."""
        form = self.rng.random()
        total = False
        if form < 0.55:
            sql, total = self.grouped()
        elif form < 0.7:
            sql, total = self.distinct()
        elif form < 0.8:
            sql = self.whole()
        elif form < 0.9:
            sql = self.inside()
        else:
            sql = self.mistaken()
        return Statement(sql, "groups", extra_warnings=True, total=total)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def columns(self, *families: Family) -> list[str]:
        return [self.qualifier + one.name for one in self.table.of(*families)]

    def pick(self, *families: Family) -> str:
        return self.rng.choice(self.columns(*families) or self.columns(*EXACT) or [self.table.routing])

    def source(self, *, routed: bool = True) -> str:
        """FROM and WHERE. `routed`: it may name IDs, on which MySQL makes other columns depend."""
        text = f" FROM {self.table.name}" + (f" {self.alias}" if self.alias else "")
        conditions = []
        if routed and self.table.routing and self.chance(0.35):
            route = Routes(self.rng, self.catalog, self.table, qualifier=self.qualifier).any()
            if route.condition is not None:
                conditions.append(route.condition.sql)
        if self.chance(0.35):
            conditions.append(self.expressions().condition(1).sql)
        return text + (" WHERE " + " AND ".join(conditions) if conditions else "")

    def expressions(self) -> Expressions:
        return Expressions(self.rng, self.table, mysql=self.catalog.mysql, qualifier=self.qualifier)

    # --- keys ------------------------------------------------------------------------------------

    def key_expression(self) -> str:
        """An expression whose equal values look the same."""
        form = self.rng.random()
        if form < 0.45:
            return self.pick(*EXACT)
        if form < 0.6:
            return self.pick(*ALSO, *EXACT)
        number = self.pick(Family.INTEGER, Family.WIDE, Family.DECIMAL)
        forms = [f"{number} % 3", f"({number} DIV 2)", f"IFNULL({number}, -1)", f"{number} IS NULL"]
        forms += [f"CASE WHEN {number} > 1 THEN 'x' ELSE 'y' END", f"ABS({number})", f"{number} / 3"]
        texts = self.columns(Family.TEXT)
        if texts:
            text = self.rng.choice(texts)
            forms += [f"CHAR_LENGTH({text})", f"HEX({text})", f"LEFT(HEX({text}), 2)"]
        moments = self.columns(Family.DATETIME, Family.DATE)
        if moments:
            moment = self.rng.choice(moments)
            forms += [f"YEAR({moment})", f"DATE({moment})", f"DATE_FORMAT({moment}, '%Y-%m')"]
            forms += [f"{moment} - INTERVAL 1 DAY"]
        documents = self.columns(Family.JSON)
        if documents:
            document = self.rng.choice(documents)
            forms += [f"JSON_VALUE({document}, '$.age')", f"JSON_EXTRACT({document}, '$.user_id')"]
            forms += [f"HEX(JSON_UNQUOTE(JSON_EXTRACT({document}, '$.city')))", f"JSON_LENGTH({document})"]
            if self.catalog.mysql:
                forms += [f"HEX({document}->>'$.name')", f"{document}->'$.rank'"]
        return self.rng.choice(forms)

    def keys(self) -> list[Group]:
        found: list[Group] = []
        for number in range(1, self.rng.choice((1, 1, 1, 2, 2, 3)) + 1):
            expression = self.key_expression()
            if any(expression == one.expression for one in found):
                continue
            form = self.rng.random()
            if form < 0.55:
                found.append(Group(expression, expression, expression))
            elif form < 0.8:
                found.append(Group(expression, f"{expression} AS k{number}", f"k{number}"))
            elif form < 0.9 or len(found) + 1 != number:
                found.append(Group(expression, f"{expression} k{number}", expression))
            else:
                found.append(Group(expression, expression, str(number)))
        return found

    # --- aggregates ------------------------------------------------------------------------------

    def aggregate(self) -> str:
        """One that gives the same in any order of rows."""
        number, any_ = self.pick(*SUMMED), self.pick(*EXACT, *ALSO)
        whole = self.pick(Family.INTEGER, Family.WIDE)
        clear = self.pick(*EXACT)
        forms = [
            "COUNT(*)",
            "COUNT(*)",
            f"COUNT({any_})",
            f"COUNT(DISTINCT {any_})",
            f"COUNT(DISTINCT {clear}, {any_})" if clear != any_ else "COUNT(*)",
            f"SUM({number})",
            f"SUM({number} * 2 - 1)",
            f"SUM({number} / 4)",
            f"SUM(DISTINCT {number})",
            f"AVG({number})",
            f"AVG(DISTINCT {number})",
            f"AVG({number} + 1)",
            f"MIN({clear})",
            f"MAX({any_})",
            f"MAX(DISTINCT {clear})",
            f"BIT_AND({whole})",
            f"BIT_OR({whole})",
            f"BIT_XOR({whole})",
            f"GROUP_CONCAT(DISTINCT {clear} ORDER BY {clear} SEPARATOR ';')",
            f"GROUP_CONCAT(DISTINCT {clear} ORDER BY {clear} DESC)",
            f"SUM({whole} > 0)",
            f"COUNT(IF({whole} > 0, 1, NULL))",
            f"SUM({self.expressions().number(1).sql})",
        ]
        texts = self.columns(Family.TEXT)
        if texts:
            text = self.rng.choice(texts)
            forms += [f"COUNT(DISTINCT {text})", f"MIN(HEX({text}))", f"MAX(CHAR_LENGTH({text}))"]
        raw = self.columns(Family.BINARY)
        if raw:
            forms += [f"HEX(MIN({self.rng.choice(raw)}))", f"COUNT(DISTINCT {self.rng.choice(raw)})"]
        return self.rng.choice(forms)

    def computed(self) -> str:
        """An aggregate, or an expression of some."""
        one = self.aggregate()
        if self.chance(0.65):
            return one
        number, other = self.pick(Family.INTEGER, Family.WIDE, Family.DECIMAL), self.pick(*SUMMED)
        return self.rng.choice(
            (
                f"AVG({number}) * 3",
                f"CASE WHEN SUM({number}) > 5 THEN AVG({number}) ELSE -1 END",
                f"IF(COUNT(*) > 1, AVG({number}), 0)",
                f"ROUND(AVG({number}), 1)",
                f"SUM({number}) / COUNT(*)",
                "COUNT(*) / 7",
                "COUNT(*) + 1",
                f"COUNT(*) DIV 2 - COUNT({other})",
                f"IF(COUNT(*) > 2, MAX({number}), NULL)",
                f"CONCAT(COUNT(*), ':', MIN({number}))",
                f"CASE WHEN SUM({number}) > 5 THEN COUNT(*) ELSE -1 END",
                f"COALESCE(SUM({number}), 0)",
                f"({one} IS NULL)",
                f"FLOOR(AVG({number}))",
                f"-SUM({number})",
            )
        )

    def having(self) -> str:
        number = self.pick(Family.INTEGER, Family.WIDE, Family.DECIMAL)
        return " HAVING " + self.rng.choice(
            (
                "COUNT(*) > 1",
                f"COUNT(*) BETWEEN 1 AND 3 AND MAX({number}) IS NOT NULL",
                f"AVG({number}) > 1.5",
                f"NOT SUM({number}) < 3",
                f"MIN({number}) = MAX({number}) OR COUNT(DISTINCT {number}) > 1",
            )
        )

    # --- statements ------------------------------------------------------------------------------

    def grouped(self) -> tuple[str, bool]:
        keys = self.keys()
        items = [one.item for one in keys]
        positions = any(one.name.isdigit() for one in keys)
        for number in range(self.rng.choice((0, 1, 2, 3))):
            alias = f" AS a{number}" if self.chance(0.3) else ""
            items.append(self.computed() + alias)
        if not positions and self.chance(0.2):
            self.rng.shuffle(items)
        rollup, distinct = self.chance(0.1), self.chance(0.08)  # (MariaDB loses a DISTINCT with ROLLUP)
        text = "SELECT " + ("DISTINCT " if distinct and not rollup else "") + ", ".join(items) + self.source()
        text += " GROUP BY " + ", ".join(one.name for one in keys)
        rollup = rollup and "DISTINCT" not in text  # (MariaDB counts wrongly there, over a primary key)
        text += " WITH ROLLUP" if rollup else ""
        text += self.having() if self.chance(0.3) else ""
        if rollup or self.chance(0.5):
            return text, False
        order = [one.expression if self.chance(0.8) else one.name for one in keys]
        if distinct:
            return text, False
        first = [self.rng.choice(("COUNT(*) DESC", f"MAX({self.pick(*EXACT)})"))] if self.chance(0.4) else []
        text += " ORDER BY " + ", ".join([*first, *(one + self.rng.choice(("", " DESC")) for one in order)])
        text += f" LIMIT {self.rng.randrange(1, 9)}" if self.chance(0.5) else ""
        return text + (" OFFSET 2" if "LIMIT" in text and self.chance(0.3) else ""), True

    def distinct(self) -> tuple[str, bool]:
        keys = self.keys()
        text = "SELECT DISTINCT " + ", ".join(one.item for one in keys) + self.source()
        if self.chance(0.5):
            return text, False
        text += " ORDER BY " + ", ".join(one.expression for one in keys)
        return text + (f" LIMIT {self.rng.randrange(1, 9)}" if self.chance(0.6) else ""), True

    def whole(self) -> str:
        """Without GROUP BY."""
        made = [self.computed() for _ in range(self.rng.choice((1, 2, 3, 4)))]
        if self.table.kind is Kind.OBJECT:  # whose rows are looked at in the order of their IDs
            number = self.pick(*SUMMED)
            made += [f"STDDEV({number})"] if self.chance(0.2) else []
        items = ", ".join(made)
        having = self.having() if self.chance(0.15) else ""
        return f"SELECT {items}{self.source()}{having}"

    def inside(self) -> str:
        """As a part of another statement."""
        key, number = self.pick(*EXACT), self.pick(Family.INTEGER, Family.WIDE, Family.DECIMAL)
        groups = f"SELECT {key} AS k, COUNT(*) AS n, {self.aggregate()} AS g{self.source()} GROUP BY {key}"
        return self.rng.choice(
            (
                f"SELECT d.n, COUNT(*), MAX(d.k) FROM ({groups}) d GROUP BY d.n",
                f"SELECT COUNT(*) FROM (SELECT DISTINCT {key}{self.source()}) d",
                f"SELECT {key}, COUNT(*){self.source()} GROUP BY {key}"
                f" UNION SELECT DISTINCT {key}, 0{self.source()}",
                f"SELECT COUNT(*){self.source()} UNION ALL SELECT SUM({number}){self.source()}",
                f"WITH w AS ({groups}) SELECT k, n FROM w WHERE n > 1",
                f"SELECT (SELECT MAX({number}){self.source()}) AS m, (SELECT COUNT(*){self.source()}) AS c",
                f"SELECT k, n, RANK() OVER (ORDER BY n) FROM ({groups}) d",
            )
        )

    def mistaken(self) -> str:
        """What fails alike, or is nearly wrong."""
        key, other = self.pick(*EXACT), self.pick(*EXACT)
        choices = [
            f"SELECT {key}, COUNT(*){self.source(routed=False)} GROUP BY nosuch",
            f"SELECT {key}, COUNT(*){self.source(routed=False)} GROUP BY 7",
            f"SELECT {key}, COUNT(*) AS cnt{self.source(routed=False)} GROUP BY cnt",
            f"SELECT {key}{self.source(routed=False)} GROUP BY {key} HAVING nosuch > 1",
            f"SELECT COUNT(COUNT(*)){self.source(routed=False)}",
            f"SELECT {key}{self.source(routed=False)} WHERE COUNT(*) > 1"
            if "WHERE" not in self.source(routed=False)
            else "SELECT 1",
            f"SELECT MAX({key}) AS {other.rpartition('.')[2]}{self.source(routed=False)} GROUP BY {key}",
            f"SELECT COUNT(DISTINCT *){self.source(routed=False)}",
            f"SELECT SUM({key}, {other}){self.source(routed=False)}",
        ]
        if self.catalog.mysql and key != other:
            choices += [
                f"SELECT {key}, {other}, COUNT(*){self.source(routed=False)} GROUP BY {key}",
                f"SELECT {key}, COUNT(*){self.source(routed=False)}",
                f"SELECT DISTINCT {key}{self.source(routed=False)} ORDER BY {other}",
                f"SELECT {key}{self.source(routed=False)} GROUP BY {key} ORDER BY {other}",
            ]
        return self.rng.choice(choices)
