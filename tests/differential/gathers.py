"""Random SELECTs that no shard can answer alone: joins, groups, subqueries, CTEs, UNION, windows.

They join along the references that the rows have, so that there is something to find and never too much.
Whatever is not certain on one server (the order of ties, one of several equal texts) is not asked for.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.differential.catalog import NUMBERS, Catalog, Family, TableModel
from tests.differential.expressions import Expressions
from tests.differential.groups import Groups
from tests.differential.parts import Statement
from tests.differential.routes import Routes

PAIRS = (
    ("user_pins", "user_id", "users", "id"),
    ("user_pins", "pin_id", "pins", "id"),
    ("pin_users", "pin_id", "pins", "id"),
    ("pin_users", "user_id", "users", "id"),
    ("user_pins", "pin_id", "pin_users", "pin_id"),
    ("things", "owner_id", "users", "id"),
    ("mails", "user_id", "users", "id"),
    ("photos", "user_id", "users", "id"),
    ("photos", "user_id", "user_pins", "user_id"),
    ("names", "user_id", "users", "id"),
    ("user_has_boards", "user_id", "users", "id"),
    ("user_has_boards", "board_id", "boards", "id"),
    ("board_has_pins", "board_id", "boards", "id"),
    ("board_has_pins", "pin_id", "pins", "id"),
    ("board_has_pins", "board_id", "user_has_boards", "board_id"),
    ("pin_liked_by_user", "pin_id", "pins", "id"),
    ("email_to_user", "user_id", "users", "id"),
)
"""Columns that refer to others, of the wide world's tables and of the demo's."""

TOGETHER = (
    ("user_pins", "user_id", "users", "id"),
    ("pin_users", "pin_id", "pins", "id"),
    ("user_pins", "user_id", "user_pins", "user_id"),
    ("things", "id", "things", "id"),
    ("photos", "user_id", "photos", "user_id"),
    ("mails", "email", "mails", "email"),
    ("user_has_boards", "user_id", "users", "id"),
    ("board_has_pins", "board_id", "boards", "id"),
)
"""Pairs whose equal values are on one shard."""

CLEAR = (Family.INTEGER, Family.WIDE, Family.DECIMAL)
"""Values that look the same when they are equal."""


class Gathers:
    """SELECTs over several tables, or over groups of rows."""

    def __init__(self, rng: random.Random, catalog: Catalog) -> None:
        self.rng = rng
        self.catalog = catalog
        self.odd = False
        self.pairs = [one for one in PAIRS if {one[0], one[2]} <= set(catalog.tables)]
        self.routed = [one for one in TOGETHER if {one[0], one[2]} <= set(catalog.tables)]

    def statement(self) -> Statement:
        """One of them."""
        if self.chance(0.3):
            wide = [name for name in ("things", "pins") if name in self.catalog.tables]
            table = self.table(self.rng.choice(wide)) if self.chance(0.4) else self.any_table()
            return Groups(self.rng, self.catalog, table).statement()
        forms: dict[str, Callable[[], str]] = {
            "join": self.join,
            "group": self.group,
            "aggregates": self.aggregates,
            "semi-join": self.semi_join,
            "scalar subquery": self.scalar,
            "derived": self.derived,
            "set operation": self.set_operation,
            "cte": self.cte,
            "window": self.window,
            "using": self.using,
            "first rows": self.first_rows,
            "together": self.together,
        }
        kind = self.rng.choice(("join", "join", "group", "semi-join", "together", *forms))
        sql = forms[kind]()
        return Statement(sql, f"gather {kind}", extra_warnings=True, total=kind == "first rows")

    # --- parts -----------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def table(self, name: str) -> TableModel:
        return self.catalog.tables[name]

    def any_table(self) -> TableModel:
        return self.table(self.rng.choice(self.rng.choice(self.pairs)[::2]))

    def condition(self, table: TableModel, qualifier: str) -> str:
        """A condition on one table, that routes or does not."""
        if table.routing and self.chance(0.5):
            routed = Routes(self.rng, self.catalog, table, qualifier=qualifier).any()
            self.odd |= routed.odd
            if routed.condition is not None:
                return routed.condition.sql
        expressions = Expressions(self.rng, table, mysql=self.catalog.mysql, qualifier=qualifier)
        return expressions.condition(1).sql

    def conditions(self, table: TableModel, qualifier: str, most: int = 2) -> list[str]:
        return [self.condition(table, qualifier) for _ in range(self.rng.randrange(most + 1))]

    def where(self, table: TableModel, qualifier: str = "", most: int = 2) -> str:
        found = self.conditions(table, qualifier, most)
        return " WHERE " + " AND ".join(found) if found else ""

    def clear(self, table: TableModel) -> str:
        """A column whose equal values look the same."""
        return self.rng.choice([one.name for one in table.of(*CLEAR)] or [table.routing])

    def columns(self, table: TableModel, qualifier: str = "") -> list[str]:
        names = [one.name for one in table.columns]
        return [
            qualifier + name for name in self.rng.sample(names, min(len(names), self.rng.randrange(1, 4)))
        ]

    def aggregate(self, table: TableModel, qualifier: str = "") -> str:
        """One that gives the same in any order of rows."""
        number = qualifier + self.rng.choice(
            [one.name for one in table.of(*NUMBERS, Family.WIDE)] or [self.clear(table)]
        )
        clear = qualifier + self.clear(table)
        return self.rng.choice(
            (
                "COUNT(*)",
                f"COUNT({number})",
                f"COUNT(DISTINCT {clear})",
                f"SUM({number})",
                f"MIN({number})",
                f"MAX({number})",
                f"AVG({clear})",
                f"BIT_XOR({clear})",
                f"GROUP_CONCAT(DISTINCT {clear} ORDER BY {clear} DESC SEPARATOR ';')",
                f"COUNT(*) * 2 + MAX({clear})",
            )
        )

    # --- forms -----------------------------------------------------------------------------------

    def join(self) -> str:
        """A chain of two to four tables."""
        left, left_column, right, right_column = self.step(None)
        aliases = {"a": left}
        text, on_where = f"{left} a", []
        last = "a"
        for alias in "bcd"[: self.rng.choice((1, 1, 1, 2, 2, 3))]:
            if alias != "b":
                left, left_column, right, right_column = self.step(aliases[last])
            aliases[alias] = right
            on = f"{alias}.{right_column} = {last}.{left_column}"
            on = on if self.chance(0.5) else f"{last}.{left_column} = {alias}.{right_column}"
            kind = self.rng.choice(
                ("JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", ",")
            )
            if kind == "," and not set(text.split()) & {"LEFT", "RIGHT"}:
                text += f" CROSS JOIN {right} {alias}"
                on_where.append(on)
            else:
                kind = "JOIN" if kind == "," else kind
                more = self.conditions(self.table(right), f"{alias}.", 1) if self.chance(0.4) else []
                more += self.conditions(self.table(aliases[last]), f"{last}.", 1) if self.chance(0.15) else []
                text += f" {kind} {right} {alias} ON " + " AND ".join([on, *more])
            last = alias
        for alias, name in aliases.items():
            if self.chance(0.7 if alias == "a" else 0.25):
                on_where += self.conditions(self.table(name), f"{alias}.", 1)
            if self.chance(0.05):
                on_where.append(f"{alias}.{self.table(name).columns[0].name} IS NULL")
        where = " WHERE " + " AND ".join(on_where) if on_where else ""
        return self.shown(aliases, f" FROM {text}{where}")

    def step(self, left: str | None) -> tuple[str, str, str, str]:
        """A pair, in either direction, that begins at `left`."""
        both = [*self.pairs, *((c, d, a, b) for a, b, c, d in self.pairs)]
        return self.rng.choice([one for one in both if left is None or one[0] == left])

    def shown(self, aliases: dict[str, str], rest: str) -> str:
        form, alias = self.rng.random(), self.rng.choice(list(aliases))
        table = self.table(aliases[alias])
        if form < 0.15:
            return "SELECT *" + rest
        if form < 0.3:
            return f"SELECT {alias}.*" + rest
        if form < 0.4:
            return f"SELECT {self.aggregate(table, alias + '.')}, COUNT(*)" + rest
        if form < 0.55:
            key = f"{alias}.{self.clear(table)}"
            having = " HAVING COUNT(*) > 1" if self.chance(0.3) else ""
            return (
                f"SELECT {key}, COUNT(*), {self.aggregate(table, alias + '.')}{rest} GROUP BY {key}{having}"
            )
        if form < 0.7:
            clear = [f"{name}.{self.clear(self.table(of))}" for name, of in aliases.items()]
            return f"SELECT DISTINCT {', '.join(clear)}{rest}"
        shown = [one for name, of in aliases.items() for one in self.columns(self.table(of), f"{name}.")]
        return f"SELECT {', '.join(shown)}{rest}"

    def group(self) -> str:
        table = self.any_table()
        key = self.clear(table)
        second = self.rng.choice(("", "", f", {self.clear(table)}"))
        rollup = " WITH ROLLUP" if not second and self.chance(0.1) else ""
        having = f" HAVING {self.aggregate(table)} IS NOT NULL AND COUNT(*) < 9" if self.chance(0.4) else ""
        items = ", ".join(self.aggregate(table) for _ in range(self.rng.choice((1, 2, 3))))
        return (
            f"SELECT {key}{second}, {items} FROM {table.name}{self.where(table)}"
            f" GROUP BY {key}{second}{rollup}{having}"
        )

    def aggregates(self) -> str:
        table = self.any_table()
        items = ", ".join(self.aggregate(table) for _ in range(self.rng.choice((1, 2, 3))))
        return f"SELECT {items} FROM {table.name}{self.where(table)}"

    def semi_join(self) -> str:
        """IN, EXISTS and their negations."""
        left, left_column, right, right_column = self.step(None)
        inner = self.conditions(self.table(right), "i.", 1)
        negated = self.rng.choice(("", "", "NOT "))
        form = self.rng.choice(("in", "in", "exists", "any", "in group"))
        outer = self.conditions(self.table(left), "o.", 1)
        if form == "exists":
            link = [f"i.{right_column} = o.{left_column}", *inner]
            self.rng.shuffle(link)
            test = f"{negated}EXISTS (SELECT 1 FROM {right} i WHERE {' AND '.join(link)})"
        else:
            where = " WHERE " + " AND ".join(inner) if inner else ""
            tail = f" GROUP BY i.{right_column} HAVING COUNT(*) > 1" if form == "in group" else ""
            query = f"(SELECT i.{right_column} FROM {right} i{where}{tail})"
            test = (
                f"o.{left_column} = ANY {query}" if form == "any" else f"o.{left_column} {negated}IN {query}"
            )
        outer.insert(self.rng.randrange(len(outer) + 1), test)
        joint = " OR " if self.chance(0.1) else " AND "
        items = self.rng.choice(("*", "o.*", "COUNT(*)", ", ".join(self.columns(self.table(left), "o."))))
        return f"SELECT {items} FROM {left} o WHERE {joint.join(outer)}"

    def scalar(self) -> str:
        """A subquery in the select list or in a comparison, correlated or not."""
        left, left_column, right, right_column = self.step(None)
        table = self.table(right)
        inner = self.conditions(table, "i.", 1)
        if self.chance(0.7):
            inner.append(f"i.{right_column} = o.{left_column}")
        where = " WHERE " + " AND ".join(inner) if inner else ""
        query = f"(SELECT {self.aggregate(table, 'i.')} FROM {right} i{where})"
        outer = self.where(self.table(left), "o.")
        if self.chance(0.3):
            test = f"(SELECT COUNT(*) FROM {right} i{where}) > 1"
            return f"SELECT o.* FROM {left} o{outer}{' AND ' if outer else ' WHERE '}{test}"
        return f"SELECT {', '.join(self.columns(self.table(left), 'o.'))}, {query} FROM {left} o{outer}"

    def derived(self) -> str:
        left, left_column, right, right_column = self.step(None)
        table = self.table(left)
        inner = (
            f"SELECT {left_column} AS k, COUNT(*) AS n, {self.aggregate(table)} AS g"
            f" FROM {left}{self.where(table)} GROUP BY {left_column}"
        )
        if self.chance(0.3):
            inner = (
                f"SELECT {left_column} AS k, 1 AS n, {self.clear(table)} AS g FROM {left}{self.where(table)}"
            )
        kind = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN"))
        where = self.where(self.table(right), "t.", 1)
        return (
            f"SELECT d.k, d.n, d.g, t.{self.clear(self.table(right))} FROM ({inner}) d {kind} {right} t"
            f" ON t.{right_column} = d.k{where}"
        )

    def set_operation(self) -> str:
        first, second = self.any_table(), self.any_table()
        operators = ["UNION", "UNION ALL", "UNION DISTINCT", "EXCEPT", "INTERSECT"]
        one, two = self.clear(first), self.clear(second)
        text = (
            f"SELECT {one} FROM {first.name}{self.where(first)} {self.rng.choice(operators)}"
            f" SELECT {two} FROM {second.name}{self.where(second)}"
        )
        if self.chance(0.3):
            return f"{text} ORDER BY 1 DESC"
        return f"SELECT COUNT(*), MAX(x.{one}) FROM ({text}) x" if self.chance(0.3) else text

    def cte(self) -> str:
        left, left_column, right, right_column = self.step(None)
        table = self.table(left)
        body = (
            f"SELECT {left_column} AS k, COUNT(*) AS n FROM {left}{self.where(table)} GROUP BY {left_column}"
        )
        if self.chance(0.4):
            return f"WITH c AS ({body}) SELECT a.k, a.n, b.n FROM c a JOIN c b ON b.n = a.n AND b.k <= a.k"
        if self.chance(0.3):
            return (
                f"WITH RECURSIVE c AS ({body}),"
                " r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 5)"
                " SELECT r.x, COUNT(*) FROM r JOIN c ON c.n = r.x GROUP BY r.x"
            )
        where = self.where(self.table(right), "t.", 1)
        return f"WITH c AS ({body}) SELECT c.n, t.* FROM c JOIN {right} t ON t.{right_column} = c.k{where}"

    def window(self) -> str:
        table = self.any_table()
        total = ", ".join(table.total)
        number = self.rng.choice([one.name for one in table.of(*NUMBERS)] or [self.clear(table)])
        part = f"PARTITION BY {self.clear(table)} " if self.chance(0.6) else ""
        functions = ["RANK()", f"SUM({number})", "COUNT(*)"]
        if total:
            clear = self.clear(table)
            functions += ["ROW_NUMBER()", f"LAG({clear})", f"FIRST_VALUE({clear})"]
        function = self.rng.choice(functions)
        order = f"ORDER BY {total or self.clear(table)}" + self.rng.choice(("", " DESC"))
        items = [*self.columns(table), f"{function} OVER ({part}{order}) AS w"]
        return f"SELECT {', '.join(items)} FROM {table.name}{self.where(table)}"

    def first_rows(self) -> str:
        """Of a table and what it may be joined with, in an order by the table's own columns."""
        both = [*self.pairs, *((c, d, a, b) for a, b, c, d in self.pairs)]
        ordered = [one for one in both if self.table(one[0]).total]
        left, left_column, right, right_column = self.rng.choice(ordered)
        table = self.table(left)
        columns = ", ".join(self.columns(table, "a."))
        text = f"SELECT {columns} FROM {left} a"
        if self.chance(0.7):
            more = self.conditions(self.table(right), "b.", 1) if self.chance(0.3) else []
            text += f" LEFT JOIN {right} b ON " + " AND ".join([f"b.{right_column} = a.{left_column}", *more])
        text += self.where(table, "a.", 1)
        expressions = Expressions(self.rng, table, mysql=self.catalog.mysql, qualifier="a.")
        order = [expressions.number(1).sql + self.rng.choice(("", " DESC"))] if self.chance(0.5) else []
        order = [one for one in order if "a." in one]
        documents = table.of(Family.JSON)
        if documents and self.chance(0.4):
            order.append(f"JSON_EXTRACT(a.{documents[0].name}, '$.rank') DESC")
        order += [f"a.{one}" + self.rng.choice(("", " DESC")) for one in table.total]
        text += f" ORDER BY {', '.join(order)} LIMIT {self.rng.choice((0, 1, 3, 10, 50))}"
        return text + (f" OFFSET {self.rng.choice((0, 2, 20))}" if self.chance(0.4) else "")

    def together(self) -> str:
        """Tables joined by their routing values, in FROM or by a subquery."""
        left, left_column, right, right_column = self.rng.choice(self.routed)
        if self.chance(0.5):
            left, left_column, right, right_column = right, right_column, left, left_column
        one, two = self.table(left), self.table(right)
        link = f"b.{right_column} = a.{left_column}"
        link = " AND ".join([link, *(self.conditions(two, "b.", 1) if self.chance(0.3) else [])])
        form = self.rng.random()
        if form < 0.2:
            test = f"{self.rng.choice(('', 'NOT '))}EXISTS (SELECT * FROM {right} b WHERE {link})"
            return f"SELECT {', '.join(self.columns(one, 'a.'))} FROM {left} a WHERE {test}"
        if form < 0.35:
            inner = f"(SELECT {self.aggregate(two, 'b.')} FROM {right} b WHERE {link})"
            return f"SELECT a.{left_column}, {inner} FROM {left} a{self.where(one, 'a.', 1)}"
        kind = self.rng.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"))
        rest = f" FROM {left} a {kind} {right} b ON {link}{self.where(one, 'a.', 1)}"
        shown = [*self.columns(one, "a."), *self.columns(two, "b.")]
        if form < 0.6:
            key = self.rng.choice((f"a.{left_column}", f"b.{right_column}", f"a.{self.clear(one)}"))
            items = [key, self.aggregate(one, "a."), self.aggregate(two, "b.")]
            items += [self.rng.choice(shown)] if self.catalog.mysql and self.chance(0.3) else []
            tail = self.rng.choice(
                ("", "", " HAVING COUNT(*) > 1", f" ORDER BY COUNT(*) DESC, {key} LIMIT 5")
            )
            if any("GROUP_CONCAT" in one for one in items):
                tail = ""  # MySQL gives it another type where it sorts what it has found
            return f"SELECT {', '.join(items)}{rest} GROUP BY {key}{tail}"
        if form < 0.7:
            return f"SELECT {self.aggregate(one, 'a.')}, {self.aggregate(two, 'b.')}{rest}"
        if form < 0.8:
            return f"SELECT DISTINCT a.{left_column}, b.{self.clear(two)}{rest}"
        return f"SELECT {', '.join(shown)}{rest}"

    def using(self) -> str:
        """Joins by common names, of tables that share one."""
        shared = [one for one in self.pairs if one[1] == one[3]]
        if not shared:
            return self.join()
        left, column, right, _ = self.rng.choice(shared)
        kind = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN"))
        items = self.rng.choice(("*", column, f"{left}.*", "COUNT(*)"))
        where = self.where(self.table(left), f"{left}.", 1)
        return f"SELECT {items} FROM {left} {kind} {right} USING ({column}){where}"
