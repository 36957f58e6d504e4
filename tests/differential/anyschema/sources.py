"""Random tables, joins and conditions: what SELECTs over the tables of a world are made from."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.differential.anyschema.keys import Keys
from tests.differential.anyschema.places import AnyWorld, Column, Model
from tests.differential.anyschema.terms import Ref, Terms, named
from tests.differential.anyschema.tree import Node, clause, fixed, items

ALIASES = ("a", "b", "t0", "t1", "T2", "`x y`", "`é`", "`select`", "p", "q")


@dataclass
class Source:
    """What stands in FROM: its SQL, the columns it gives, and those that order its rows totally."""

    node: Node
    refs: list[Ref]
    total: list[str] | None = None
    tables: list[tuple[str, Model]] = field(default_factory=list)


class Sources:
    """What stands in FROM and WHERE. `mysql`: the servers are MySQL."""

    def __init__(self, rng: random.Random, world: AnyWorld, *, mysql: bool) -> None:
        self.rng = rng
        self.world = world
        self.mysql = mysql
        self.keys = Keys(rng, world)
        self._aliases: list[str] = []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # --- names -----------------------------------------------------------------------------------

    def model(self) -> Model:
        return self.rng.choice(list(self.world.models.values()))

    def table_name(self, model: Model) -> str:
        name = named(model.name, self.rng)
        form = self.rng.random()
        if form < 0.06:
            return f"`{self.world.database}`.{name}"
        return f"`{self.world.database}` . `{model.name}`" if form < 0.08 else name

    def alias(self) -> str:
        if not self._aliases:
            self._aliases = self.rng.sample(ALIASES, len(ALIASES))
        return self._aliases.pop()

    def column_name(self, column: Column, qualifier: str) -> str:
        name = column.name
        if self.chance(0.05):
            name = name.upper() if self.chance(0.5) else name.lower()
        if qualifier and self.chance(0.98):
            return qualifier + "." + (f"`{name}`" if self.chance(0.1) or name[0].isdigit() else name)
        return named(name, self.rng)

    def ref(self, column: Column, qualifier: str, model: Model) -> Ref:
        return Ref(self.column_name(column, qualifier), column, model)

    # --- sources ---------------------------------------------------------------------------------

    def table(self, model: Model, *, alias: bool | None = None) -> Source:
        name = self.table_name(model)
        aliased = self.chance(0.5) if alias is None else alias
        qualifier = ""
        if aliased:
            qualifier = self.alias()
            name += self.rng.choice((" ", " AS ", " as ")) + qualifier
        elif self.chance(0.3):
            qualifier = f"`{model.name}`"
        refs = [self.ref(one, qualifier, model) for one in model.columns]
        own = qualifier or f"`{model.name}`"
        return Source(fixed(name), refs, [f"{own}.`{one}`" for one in model.total] or None, [(own, model)])

    def condition(self, source: Source, depth: int = 2) -> Node:
        """A condition on the columns of a source."""
        if self.chance(0.5) and source.tables:
            qualifier, model = self.rng.choice(source.tables)
            found = self.keys.condition(
                model,
                lambda column: self.column_name(
                    column, qualifier if len(source.tables) > 1 else self.rng.choice(("", qualifier))
                ),
            )
            if found is not None:
                return found
        return self.terms(source).make("b", self.rng.choice((0, 1, 1, depth)))

    def terms(self, source: Source) -> Terms:
        return Terms(self.rng, source.refs, mysql=self.mysql)

    def where(self, source: Source, likely: float = 0.75) -> Node:
        if not self.chance(likely):
            return clause()
        conditions = [self.condition(source) for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3)))]
        return clause(
            self.rng.choice((" WHERE ", " where ", "\nWHERE ")),
            items(conditions, self.rng.choice((" AND ", " AND ", " and ", " && "))),
        )

    def narrow(self, source: Source) -> Node:
        """A WHERE that routes where that is possible."""
        qualifier, model = source.tables[0]
        found = self.keys.condition(model, lambda column: self.column_name(column, qualifier))
        return clause(" WHERE ", found) if found is not None else clause()

    def link(self, left: Source, right: Source) -> str:
        """A condition that joins two sources, along references where there are some."""
        pairs = [
            (one.sql, two.sql)
            for one in left.refs for two in right.refs
            if one.column.refers and one.column.refers == two.column.refers
        ]  # fmt: skip
        if pairs and self.chance(0.9):
            one, two = self.rng.choice(pairs)
        else:
            one, two = "", ""
            for _ in range(20):
                first, second = self.rng.choice(left.refs), self.rng.choice(right.refs)
                if first.column.family == second.column.family and first.column.family not in "j":
                    one, two = first.sql, second.sql
                    break
            if not one:
                return f"{self.rng.choice(left.refs).sql} IS NOT NULL"
        if self.chance(0.3):
            one, two = two, one
        return f"{one}{self.rng.choice((' = ', ' = ', ' = ', '=', ' <=> '))}{two}"

    def partner(self, source: Source) -> Model:
        """A table that can be joined to a source by a reference."""
        wanted = {one.column.refers for one in source.refs if one.column.refers}
        found = [
            one for one in self.world.models.values() if wanted & {other.refers for other in one.columns}
        ]
        return self.rng.choice(found) if found and self.chance(0.9) else self.model()

    def join(self, count: int) -> Source:
        """A chain of tables."""
        left = self.derived() if self.chance(0.07) else self.table(self.model(), alias=True)
        parts: list[str | Node] = [left.node]
        straight = True
        for _ in range(count):
            right = self.derived() if self.chance(0.07) else self.table(self.partner(left), alias=True)
            kind = self.rng.choice(
                (
                    " JOIN ",
                    " JOIN ",
                    " INNER JOIN ",
                    " LEFT JOIN ",
                    " LEFT JOIN ",
                    " LEFT OUTER JOIN ",
                    " RIGHT JOIN ",
                    " STRAIGHT_JOIN ",
                    ", ",
                )
            )
            if kind == ", " and (not straight or count > 1):
                kind = " JOIN "
            on = self.link(left, right)
            whole = Source(fixed(), left.refs + right.refs, None, left.tables + right.tables)
            if kind == ", ":
                parts += [kind, right.node]
                self._pending = on
            else:
                more = clause(" AND ", self.condition(whole, 1)) if self.chance(0.25) else clause()
                parts.append(
                    clause(kind, right.node, " ON ", on, more)
                    if count > 1
                    else fixed(kind, right.node, " ON ", on, more)
                )
            straight = straight and "LEFT" not in kind and "RIGHT" not in kind
            total = left.total + right.total if left.total and right.total else None
            left = Source(fixed(), whole.refs, total, whole.tables)
        return Source(fixed(*parts), left.refs, left.total, left.tables)

    _pending = ""

    def derived(self) -> Source:
        """A subquery in FROM."""
        inner = self.table(self.model())
        alias = self.alias()
        chosen = self.rng.sample(inner.refs, min(len(inner.refs), self.rng.randrange(1, 4)))
        shown, refs = [], []
        for index, ref in enumerate(chosen):
            name = f"d{index}"
            shown.append(f"{ref.sql} AS {name}")
            refs.append(Ref(f"{alias}.{name}", ref.column, ref.model))
        tail = clause()
        if self.chance(0.2) and inner.total:
            tail = fixed(" ORDER BY ", ", ".join(inner.total), f" LIMIT {self.rng.choice((1, 5, 20))}")
        distinct = self.rng.choice(("", "", "", "DISTINCT "))
        loose = bool(distinct) and any(one.column.family in "te" for one in chosen)
        node = Node(
            (
                f"(SELECT {distinct}",
                ", ".join(shown),
                " FROM ",
                inner.node,
                self.where(inner, 0.5),
                tail,
                f") {self.rng.choice(('', 'AS '))}{alias}",
            ),
            loose=loose,
        )
        return Source(node, refs, None, [])
