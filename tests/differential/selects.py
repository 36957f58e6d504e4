"""Random SELECTs on one table."""

from __future__ import annotations

import random
from dataclasses import replace

from config.schema import Kind
from tests.differential.catalog import NUMBERS, Catalog, ColumnModel, Family, TableModel
from tests.differential.expressions import Expressions
from tests.differential.parts import Expr, Item, Key, Select, Statement, leaf
from tests.differential.routes import Routed, Routes

KINDS = (
    (Kind.OBJECT,) * 8 + (Kind.MAPPING,) * 4 + (Kind.HASHED,) * 3 + (Kind.TIMED, Kind.SINGLE, Kind.REFERENCE)
)
LOCKS = (" FOR UPDATE", " LOCK IN SHARE MODE")


class Selects:
    """SELECTs over the tables of a catalog."""

    def __init__(self, rng: random.Random, catalog: Catalog) -> None:
        self.rng = rng
        self.catalog = catalog

    def table(self) -> TableModel:
        """A table that holds rows."""
        while True:
            found = self.catalog.kinds(self.rng.choice(KINDS))
            if found:
                return self.rng.choice(found)

    def statement(self, *, beyond: float) -> Statement:
        """A SELECT; with probability `beyond` one that need not be supported."""
        table = self.table()
        alias = self.rng.choice(("", "", "", "", " p", " AS p", " AS `P q`"))
        source = self.rng.choice(
            (table.name,) * 5 + (f"`{table.name}`", f"{self.catalog.database}.{table.name}")
        )
        qualifier = ""
        if self.rng.random() < (0.5 if alias else 0.1):
            qualifier = alias.replace(" AS ", "").strip() + "." if alias else f"{table.name}."
        draft = _Draft(self.rng, self.catalog, table, source + alias, qualifier)
        if self.rng.random() < beyond:
            select, kind = draft.beyond()
        elif self.rng.random() < 0.25:
            select, kind = draft.aggregated(), "aggregates"
        else:
            select, kind = draft.rows(), "rows"
        if self.rng.random() < 0.15:
            select = self._dressed(select)
        reach = draft.routed.reach if table.routing and table.kind is not Kind.SINGLE else "one host"
        return Statement(
            select.sql,
            f"{table.kind} {kind}, {reach}",
            select.features,
            select,
            exact_warnings=reach == "few" and not draft.routed.odd,
            # MySQL reads a row for LIMIT 0 OFFSET 1, and warns
            extra_warnings=draft.routed.odd or (select.limit == 0 and select.offset is not None),
        )

    def _dressed(self, select: Select) -> Select:
        """The same in another dress."""
        head = self.rng.choice(
            (
                "select ",
                "SELECT /* all */ ",
                "/* x */ SELECT\n\t",
                "SELECT ALL ",
                "SELECT HIGH_PRIORITY ",
                "SELECT SQL_SMALL_RESULT ",
                "SELECT -- id = 1\n ",
            )
        )
        if select.head != "SELECT ":
            return select
        tails = (" ", " # end", " -- end", " /* id = 5 */", ";", *LOCKS)
        tail = self.rng.choice(tails)
        if tail not in LOCKS:
            return replace(select, head=head, tail=tail)
        return replace(select, tail=tail, own=select.own | {"lock"})  # copies of rows are not locked


class _Draft:
    """One SELECT in the making."""

    def __init__(
        self, rng: random.Random, catalog: Catalog, table: TableModel, source: str, qualifier: str
    ) -> None:
        self.rng = rng
        self.catalog = catalog
        self.table = table
        self.source = source
        self.qualifier = qualifier
        self.expressions = Expressions(rng, table, mysql=catalog.mysql, qualifier=qualifier)
        self.routed: Routed = (
            Routes(rng, catalog, table, qualifier=qualifier).any() if table.routing else Routed(None, "")
        )

    # --- conditions ------------------------------------------------------------------------------

    def where(self) -> tuple[Expr, ...]:
        """The routing condition among others, in any place."""
        others = [self.expressions.condition(2) for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2)))]
        found = ([self.routed.condition] if self.routed.condition is not None else []) + others
        self.rng.shuffle(found)
        return tuple(found)

    # --- rows ------------------------------------------------------------------------------------

    def items(self) -> tuple[Item, ...]:
        form = self.rng.random()
        star = Item(leaf("*", Family.INTEGER))
        if form < 0.2:
            return (star,)
        if form < 0.25 and self.qualifier:
            return (Item(leaf(self.qualifier + "*", Family.INTEGER)),)
        if form < 0.3:
            return (star, *(self.item() for _ in range(self.rng.randrange(1, 3))))
        return tuple(self.item() for _ in range(self.rng.choice((1, 2, 2, 3, 4, 6))))

    def item(self) -> Item:
        if self.table.routing and self.rng.random() < 0.35:
            expression = self.expressions.column(self.table.column(self.table.routing))
        elif self.rng.random() < 0.06:
            constants = ("1", "'x'", "NULL", "DATABASE()", "1.50", "TRUE", "x'41'", "DATE '2012-01-01'")
            expression = leaf(self.rng.choice(constants), Family.INTEGER)
        elif self.rng.random() < 0.5:
            expression = self.expressions.plain()
        else:
            expression = self.expressions.anything()
        alias = ""
        if self.rng.random() < 0.3:
            name = self.rng.choice(("a", "b", "id", "`x y`", "'quoted'", "Größe", "total"))
            alias = self.rng.choice((" AS ", " ")) + name
        return Item(expression, alias)

    def rows(self) -> Select:
        """Rows as they are stored."""
        items = self.items()
        order = self.order(items)
        limit, offset = self.limit()
        return Select(
            self.source,
            items,
            self.where(),
            order=order,
            limit=limit,
            offset=offset,
            comma=self.rng.random() < 0.3,
        )

    def limit(self) -> tuple[int | None, int | None]:
        """LIMIT and OFFSET."""
        if self.rng.random() < 0.5:
            return None, None
        limit = self.rng.choice((0, 1, 1, 2, 5, 10, 10, 50, 1000, 18446744073709551615))
        return limit, self.rng.choice((None, None, None, 0, 1, 3, 20, 5000))

    def order(self, items: tuple[Item, ...]) -> tuple[Key, ...]:
        """Some sort keys; sometimes enough to leave no ties."""
        if self.rng.random() < 0.35:
            return ()
        keys = [self.key(items) for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3)))]
        if self.table.total and self.rng.random() < 0.5:
            keys += [
                Key(self.expressions.column(self.table.column(name)), direction=self.direction())
                for name in self.table.total
            ]
        aliased = [one for one in items if one.alias.split()[-1:] == ["id"]]
        if (
            aliased and sum(map(self._shows_id, items)) > 1
        ):  # ambiguous, on MariaDB always and on MySQL sometimes
            keys = [key for key in keys if not _is_id(key.expression)]
        return tuple(self._meant(key, aliased) for key in keys)

    def _shows_id(self, item: Item) -> bool:
        """Whether a result column is called `id`."""
        name = item.alias.split()[-1] if item.alias else item.expression.sql.rpartition(".")[2].strip("`")
        return name.lower() == "id" or (name == "*" and self.table.routing == "id")

    def _meant(self, key: Key, aliased: list[Item]) -> Key:
        """`id` alone means the result column of that name, if there is one."""
        if not aliased or key.written is not None or not _is_id(key.expression):
            return key
        return self._written(aliased[0].expression, key.expression.sql, key.direction)

    def direction(self) -> str:
        return self.rng.choice(("", "", " ASC", " DESC", " DESC", " desc"))

    def key(self, items: tuple[Item, ...]) -> Key:
        """One sort key: a column, an expression, a number, an alias."""
        expressions, direction = self.expressions, self.direction()
        form = self.rng.random()
        starred = any(one.expression.sql.endswith("*") for one in items)
        if form < 0.15 and not starred:
            number = self.rng.randrange(len(items))
            return self._written(items[number].expression, str(number + 1), direction)
        aliased = [one for one in items if one.alias.strip().removeprefix("AS ") in ("a", "b", "total")]
        if form < 0.3 and len({one.alias.split()[-1] for one in aliased}) == len(aliased) == 1:
            return self._written(aliased[0].expression, aliased[0].alias.split()[-1], direction)
        if form < 0.5 and self.table.routing:
            return Key(expressions.column(self.table.column(self.table.routing)), direction=direction)
        if form < 0.9:
            column = self.rng.choice(self.table.columns)
            if column.family is Family.JSON and self.rng.random() < 0.8:
                column = self.table.columns[0]
            found = (
                expressions.path(Family.TEXT, Family.INTEGER, Family.FLOAT)
                if self.rng.random() < 0.3
                else None
            )
            return self._typed(found or expressions.column(column), direction)
        found = self.rng.choice((expressions.number, expressions.text))(2)
        if len(found.parts) == 1:  # alone a number would mean a column
            found = Expr(("(", found, " + 0)"), found.family)
        return Key(found, direction=direction)

    def _typed(self, expression: Expr, direction: str) -> Key:
        return Key(expression, direction=direction)

    def _written(self, expression: Expr, written: str, direction: str) -> Key:
        return replace(self._typed(expression, direction), written=written)

    # --- aggregates ------------------------------------------------------------------------------

    def aggregated(self) -> Select:
        """COUNT, SUM, MIN and MAX over everything that matches."""
        items = tuple(self.aggregate() for _ in range(self.rng.choice((1, 1, 2, 3))))
        limit = self.rng.choice((None,) * 8 + (0, 1, 5))
        return Select(self.source, items, self.where(), limit=limit)

    def aggregate(self) -> Item:
        expressions = self.expressions
        form = self.rng.random()
        if form < 0.3:
            expression = leaf(
                self.rng.choice(("COUNT(*)", "count(*)", "COUNT(1)", "COUNT( * )")), Family.INTEGER
            )
        elif form < 0.45:
            expression = Expr(("COUNT(", expressions.anything(1), ")"), Family.INTEGER)
        elif form < 0.65:
            inner = expressions.some_column(*NUMBERS, Family.WIDE) or expressions.number(1)
            if self.rng.random() < 0.4:
                inner = expressions.number(2)
            expression = Expr(("SUM(", inner, ")"), Family.DECIMAL)
        else:
            inner = expressions.anything(1) if self.rng.random() < 0.3 else self._extreme()
            expression = Expr((self.rng.choice(("MIN(", "MAX(")), inner, ")"), inner.family)
        return Item(expression, self.rng.choice(("", "", "", " AS n", " total")))

    def _extreme(self) -> Expr:
        column = self.rng.choice([one for one in self.table.columns if one.family is not Family.JSON])
        return self.expressions.column(column)

    # --- what single shards do not answer -------------------------------------------------------

    def _clear(self) -> ColumnModel:
        """A column whose equal values look the same."""
        found = [one for one in self.table.columns if one.family is not Family.TEXT]
        return self.rng.choice(found or [self.table.columns[0]])

    def beyond(self) -> tuple[Select, str]:
        """What single shards answer, and a gather over several."""
        form = self.rng.choice(
            ("group", "distinct", "count distinct", "avg", "sum of aggregates", "subquery")
        )
        where, expressions = self.where(), self.expressions
        items: tuple[Item, ...]
        if form == "group":
            key = expressions.column(self._clear())
            items = (Item(key), Item(leaf("COUNT(*)", Family.INTEGER)))
            return Select(self.source, items, where, group=(key,)), "GROUP BY"
        if form == "distinct":
            items = (Item(expressions.column(self._clear())),)
            return Select(self.source, items, where, head="SELECT DISTINCT "), "DISTINCT"
        if form == "subquery":
            column = self.rng.choice(self.table.columns).name
            inner = leaf(
                f"{self.qualifier}{column} IN (SELECT {column} FROM {self.table.name})", Family.BOOLEAN
            )
            items = (Item(leaf("COUNT(*)", Family.INTEGER)),)
            return Select(self.source, items, (*where, inner)), "subquery"
        some = expressions.column(self.rng.choice(self.table.of(*NUMBERS, Family.WIDE, Family.TEXT)))
        one = {
            "count distinct": Expr(("COUNT(DISTINCT ", some, ")"), Family.INTEGER),
            "avg": Expr(("AVG(", some, ")"), Family.DECIMAL),
            "sum of aggregates": leaf("COUNT(*) + 1", Family.INTEGER),
        }[form]
        return Select(self.source, (Item(one),), where), form


def _is_id(expression: Expr) -> bool:
    return expression.sql.strip("`").lower() == "id"
