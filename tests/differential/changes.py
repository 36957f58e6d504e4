"""Random UPDATEs and DELETEs of several tables, or whose rows and values subqueries find."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from config.schema import Kind
from tests.differential.catalog import Catalog, ColumnModel, Family, TableModel, literal
from tests.differential.parts import Statement
from tests.differential.routes import Routes

_READ = (Family.INTEGER, Family.WIDE, Family.DECIMAL, Family.TEXT, Family.DATETIME, Family.DATE, Family.ENUM)


@dataclass(frozen=True)
class Pair:
    """`child` has a column that names the rows of `parent`."""

    child: TableModel
    parent: TableModel
    column: str

    @property
    def on(self) -> str:
        return f"p.{self.parent.routing or self.parent.columns[0].name} = c.{self.column}"


class Changes:
    """Changes over the tables of a catalog."""

    def __init__(self, rng: random.Random, catalog: Catalog) -> None:
        self.rng = rng
        self.catalog = catalog

    def pairs(self) -> list[Pair]:
        """The tables that can be joined."""
        tables = self.catalog.tables
        return [
            Pair(tables[child], tables[parent], column)
            for (child, column), parent in self.catalog.refers.items()
            if ":" not in column and column in [one.name for one in tables[child].columns]
            and tables[child].keys and tables[child].kind is not Kind.SINGLE
        ]  # fmt: skip

    def statement(self) -> Statement:
        """One change."""
        pair = self.rng.choice(self.pairs())
        makers: list[Callable[[Pair], tuple[str, set[str]]]] = [
            self._update_child,
            self._update_child,
            self._update_parent,
            self._update_both,
            self._delete_child,
            self._delete_both,
            self._update_by_subquery,
            self._delete_by_subquery,
            self._update_to_subquery,
            self._limited,
        ]
        sql, tables = self.rng.choice(makers)(pair)
        return Statement(sql, "change, several tables", tables=frozenset(tables), extra_warnings=True)

    # --- joins -----------------------------------------------------------------------------------

    def _joined(self, pair: Pair) -> str:
        left, right = (pair.child, "c"), (pair.parent, "p")
        kind = self.rng.choice(("JOIN", "JOIN", "INNER JOIN", ","))
        if self.rng.random() < 0.3:
            left, right = right, left
        text = f"{left[0].name} {left[1]} {kind} {right[0].name} {right[1]}"
        return text if kind == "," else f"{text} ON {pair.on}"

    def _tables(self, pair: Pair) -> tuple[str, str]:
        """The tables with their join, and WHERE."""
        if self.rng.random() < 0.15:
            joined = f"{pair.child.name} c LEFT JOIN {pair.parent.name} p ON {pair.on}"
            return joined, f" WHERE {self._which(pair.child, 'c.')}"
        joined = self._joined(pair)
        conditions = [] if " ON " in joined else [pair.on]
        table, label = self.rng.choice(((pair.child, "c."), (pair.child, "c."), (pair.parent, "p.")))
        if table.kind is not Kind.SINGLE:
            conditions.append(self._which(table, label))
        if self.rng.random() < 0.3:
            conditions.append(self._condition(pair.child, "c."))
        return joined, f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def _update_child(self, pair: Pair) -> tuple[str, set[str]]:
        joined, where = self._tables(pair)
        assigned = self._assigned(pair.child, "c.", pair.parent, "p.")
        return f"UPDATE /*+ scatter */ {joined} SET {assigned}{where}", {pair.child.name}

    def _update_parent(self, pair: Pair) -> tuple[str, set[str]]:
        joined, where = self._tables(pair)
        assigned = self._assigned(pair.parent, "p.")
        return f"UPDATE /*+ scatter */ {joined} SET {assigned}{where}", {pair.parent.name}

    def _update_both(self, pair: Pair) -> tuple[str, set[str]]:
        joined, where = self._tables(pair)
        assigned = f"{self._assigned(pair.parent, 'p.')}, {self._assigned(pair.child, 'c.')}"
        tables = {pair.child.name, pair.parent.name}
        return f"UPDATE /*+ scatter */ {joined} SET {assigned}{where}", tables

    def _delete_child(self, pair: Pair) -> tuple[str, set[str]]:
        joined, where = self._tables(pair)
        head = self.rng.choice(("DELETE /*+ scatter */ c FROM {}", "DELETE /*+ scatter */ FROM c USING {}"))
        return head.format(joined) + where, {pair.child.name}

    def _delete_both(self, pair: Pair) -> tuple[str, set[str]]:
        joined, where = self._tables(pair)
        return f"DELETE /*+ scatter */ c, p FROM {joined}{where}", {pair.child.name, pair.parent.name}

    # --- subqueries ------------------------------------------------------------------------------

    def _chosen(self, pair: Pair) -> str:
        """The parents that a subquery chooses."""
        key = pair.parent.routing or pair.parent.columns[0].name
        return f"SELECT p.{key} FROM {pair.parent.name} p WHERE {self._condition(pair.parent, 'p.')}"

    def _update_by_subquery(self, pair: Pair) -> tuple[str, set[str]]:
        name = pair.child.name
        sql = f"UPDATE /*+ scatter */ {name} SET {self._assigned(pair.child, '')}"
        return f"{sql} WHERE {self._subquery(pair)}", {name}

    def _delete_by_subquery(self, pair: Pair) -> tuple[str, set[str]]:
        name = pair.child.name
        return f"DELETE /*+ scatter */ FROM {name} WHERE {self._subquery(pair)}", {name}

    def _subquery(self, pair: Pair) -> str:
        outer = f"{pair.child.name}.{pair.column}"
        if self.rng.random() < 0.5:
            return f"{outer} {self.rng.choice(('IN', 'IN', 'NOT IN'))} ({self._chosen(pair)})"
        key = pair.parent.routing or pair.parent.columns[0].name
        word = self.rng.choice(("EXISTS", "NOT EXISTS"))
        return f"{word} ({self._chosen(pair)} AND p.{key} = {outer})"

    def _update_to_subquery(self, pair: Pair) -> tuple[str, set[str]]:
        name = pair.child.name
        to = self._writable(pair.child)
        column = self._like(to, pair.parent)
        key = pair.parent.routing or pair.parent.columns[0].name
        if column is None:
            return self._update_by_subquery(pair)
        value = (
            f"(SELECT MAX(p.{column.name}) FROM {pair.parent.name} p WHERE p.{key} = {name}.{pair.column})"
        )
        where = self._which(pair.child, "")
        return f"UPDATE /*+ scatter */ {name} SET {to.name} = {value} WHERE {where}", {name}

    def _limited(self, pair: Pair) -> tuple[str, set[str]]:
        """LIMIT, with an order that leaves no choice but among equal rows."""
        table = self.rng.choice((pair.child, pair.parent))
        order = ", ".join(table.total or tuple(one.name for one in table.columns))
        if table.kind is Kind.SINGLE:
            return self._update_by_subquery(pair)
        tail = f"ORDER BY {order} LIMIT {self.rng.choice((0, 1, 2, 5, 20))}"
        which = f" WHERE {self._which(table, '')}" if self.rng.random() < 0.7 else ""
        if self.rng.random() < 0.4:
            return f"DELETE /*+ scatter */ FROM {table.name}{which} {tail}", {table.name}
        assigned = self._assigned(table, "")
        return f"UPDATE /*+ scatter */ {table.name} SET {assigned}{which} {tail}", {table.name}

    # --- parts -----------------------------------------------------------------------------------

    def _which(self, table: TableModel, qualifier: str) -> str:
        if table.kind is Kind.SINGLE:
            two = ", ".join(literal(self.rng.choice(table.keys)) for _ in range(2))
            return f"{qualifier}{table.columns[0].name} IN ({two})"
        routes = Routes(self.rng, self.catalog, table, qualifier=qualifier)
        routed = self.rng.choice((routes.point, routes.some))()
        assert routed.condition is not None
        return routed.condition.sql

    def _condition(self, table: TableModel, qualifier: str) -> str:
        one = self.rng.choice(table.of(*_READ))
        values = [value for value in one.values if value is not None]
        if not values:
            return f"{qualifier}{one.name} IS NULL"
        operator = self.rng.choice(("=", "<>", "<", ">=", "<=>"))
        return f"{qualifier}{one.name} {operator} {literal(self.rng.choice(values))}"

    def _writable(self, table: TableModel) -> ColumnModel:
        fixed = {table.routing, *table.total, "user_id", "owner_id"}
        return self.rng.choice([one for one in table.columns if one.name not in fixed])

    def _like(self, column: ColumnModel, table: TableModel) -> ColumnModel | None:
        """A column whose values may stand in `column`."""
        found = [one for one in table.of(column.family) if one.family in _READ]
        return self.rng.choice(found) if found and column.nullable else None

    def _assigned(
        self, table: TableModel, qualifier: str, other: TableModel | None = None, label: str = ""
    ) -> str:
        column = self._writable(table)
        source = None if other is None or self.rng.random() < 0.4 else self._like(column, other)
        if source is not None:
            return f"{qualifier}{column.name} = {label}{source.name}"
        if column.family is Family.INTEGER and self.rng.random() < 0.5:
            name = qualifier + column.name
            return f"{name} = IF({name} BETWEEN -100 AND 100, {name} + 1, {name})"
        values = [value for value in column.values if value is not None or column.nullable]
        return f"{qualifier}{column.name} = {literal(self.rng.choice(values))}"
