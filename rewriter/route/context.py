"""What the rules of the planner share while they plan one statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from config.layout import Layout
from config.schema import Table
from rewriter.plan import Reject
from rewriter.sql.statements.effects import Effects, effects_of
from rewriter.sql.statements.forms import StatementForm
from rewriter.sql.statements.table import form_of
from rewriter.text.edits import Edits
from rewriter.text.facts import Block, Span, TableRef
from rewriter.text.tokens import Source
from rewriter.tree.second import SecondReader

from .binding import Routing
from .columns import Columns, Extras
from .equal import Pairs, equals, listed
from .id_layouts import IdLayouts
from .keys import Keys
from .narrowing import Narrowing
from .predicates import Conditions, Relation
from .routing import ALL, Route, both
from .scope import Chain, Names, Refuse, Scope, Unsupported
from .slot_filling import Hints, fill_functions, fill_slots, take_hints
from .values import ConstantReader, Slots

Kept = Callable[[Block, Chain], bool]


@dataclass(slots=True, eq=False)
class Statement:
    """One statement while it is planned.

    `strict`: plan without constants that may turn out to be something else (see `Conditions`). `guards`
    collects the literals that the plan depends on: another value of one needs another plan. `second` is what
    the second reader says of it. `form` is its row in the statement table.
    """

    source: Source
    names: Names
    strict: bool = False
    guards: set[int] = field(default_factory=set)
    second: SecondReader = field(init=False)
    form: StatementForm = field(init=False)
    _effects: Effects | Literal["unread"] | None = field(init=False, default="unread")

    def __post_init__(self) -> None:
        self.form = form_of(self.source)
        self.second = SecondReader(self.source, self.names.env)

    def strictly(self) -> Statement:
        """The same statement, to be planned strictly. It steers this one's plan, too."""
        found = Statement(self.source, self.names, True, self.guards)
        found.second = self.second
        return found

    @property
    def effects(self) -> Effects | None:
        """The effects of the statement, read off its tokens once; None when it has none."""
        if self._effects == "unread":
            self._effects = effects_of(self.source, flavour=self.names.env.flavour)
        return self._effects

    def guard(self, span: Span) -> None:
        """The plan depends on the literals in `span`."""
        tokens = self.source.tokens[span.first : span.end]
        self.guards |= {token.literal for token in tokens if token.literal >= 0}

    @property
    def spaces(self) -> bool:
        """Whether the server's names of result columns go on with the spaces behind a word."""
        return self.names.env.ignore_space and self.names.env.flavour.labels_keep_spaces

    def layout(self, tables: list[Table]) -> Layout | None:
        """The layout that the ID functions mean: that of the statement's tables, else the first one."""
        keyspaces = self.names.topology.keyspaces
        named = [keyspaces[table.keyspace].layout for table in tables if table.keyspace in keyspaces]
        every = [keyspace.layout for keyspace in keyspaces.values()]
        return next((one for one in named + every if one is not None and one.has_local), None)


class Splicer:
    """The edits of a statement on sharded tables, and all that they are computed from."""

    def __init__(self, statement: Statement, scope: Scope) -> None:
        source, names = statement.source, statement.names
        self.statement = statement
        self.source = source
        self.scope = scope
        self.slots = Slots(len(source.literals))
        self.edits = Edits(source)
        tables = [scope.targets[ref].table for ref in scope.sharded()]
        layout = statement.layout([table for table in tables if table is not None])
        fill_slots(source, self.slots, self.edits, variables=False, known=True, on_shards=True)
        self.hints: Hints = take_hints(source, self.edits)
        self.layouts = IdLayouts(layout, source, names, scope)
        fill_functions(source, self.edits, self.layouts)
        self.extras = Extras(self.slots.end)
        self.conditions = Conditions(
            source,
            scope,
            Keys(names.topology, names.env),
            ConstantReader(source, self.slots, layout),
            strict=statement.strict,
        )
        self._pairs: dict[Span, Pairs] = {}
        self.narrowing = Narrowing(source, scope, self.conditions, statement.second, statement.guard)
        self.columns = Columns(
            source, scope, self.edits, self.extras, self.conditions, statement.guard, statement.spaces
        )
        #: Whether reads see no hidden rows, see hidden.py.
        self.hides = not (self.hints.with_deleted or names.env.with_deleted)

    def routes(self, refs: list[TableRef], kept: Kept | None = None) -> list[Route]:
        """The route of each of these references to sharded tables, as WHERE, ON and hints narrow them; with
        `kept` HAVING, too: see `Narrowing.of_having`.
        """
        hinted = self._hinted(refs)
        if hinted is not None:
            return [hinted] * len(refs)
        own: dict[TableRef, Route] = {}
        links: dict[TableRef, set[TableRef]] = {ref: set() for ref in refs}
        for ref in refs:
            narrowing = _narrowing(self.scope.blocks[ref], ref)
            own[ref] = self._own_route(ref, narrowing, kept)
            for span in narrowing:
                for match in self.narrowing.equalities(span, self.scope.blocks[ref]):
                    if ref in (match.ref, match.other):
                        other = match.other if match.ref is ref else match.ref
                        if other is not None and other in links:
                            links[ref].add(other)
        found = [both([own[one] for one in _reachable(ref, links)]) for ref in refs]
        if any(route.unbounded for route in found):
            own |= {
                ref: self._by_equals(ref) for ref, route in zip(refs, found, strict=True) if route.unbounded
            }
            found = [both([own[one] for one in _reachable(ref, links)]) for ref in refs]
        return found

    def _own_route(self, ref: TableRef, narrowing: list[Span], kept: Kept | None) -> Route:
        block = self.scope.blocks[ref]
        found = both([self.narrowing.route(span, ref) for span in narrowing])
        if found.unbounded and kept is not None:
            found = self.narrowing.of_having(block, ref, kept)
        return found

    def _by_equals(self, ref: TableRef) -> Route:
        """The route by columns that are equal to the routing column, and do not route themselves."""
        block, second, conditions = self.scope.blocks[ref], self.statement.second, self.conditions
        if len(block.tables) < 2 or block.nullable or block.odd_joins or not second.alike(block):
            return (
                ALL  # a row of NULLs, which stands where rows are left out, may be what another column is of
            )
        spans = _narrowing(block, ref)
        alike = equals(self.scope, conditions, second, block, ref, spans, self._pairs)
        found = listed(self.scope, conditions, second, block, alike, spans)
        if found.unbounded and len(alike) > 1:
            found = both([self.narrowing.by_equals(span, ref, alike) for span in spans])
        return found

    def colocated(self, refs: list[TableRef]) -> bool:
        """Whether rows of these references that belong together are on one shard, all of them: equal routing
        values connect the references. Then each shard gives its part of the whole.
        """
        links: dict[TableRef, set[TableRef]] = {ref: set() for ref in refs}
        for ref in refs:
            for span in _narrowing(self.scope.blocks[ref], ref):
                for match in self.narrowing.equalities(span, self.scope.blocks[ref]):
                    one, other = match.ref, match.other
                    if other is not None and one in links and other in links and ref in (one, other):
                        links[one].add(other)
                        links[other].add(one)
        return len(_reachable(refs[0], links)) == len(refs)

    def routing(self, refs: list[TableRef], routes: list[Route]) -> Routing:
        """How the statement finds its shards, once all edits are made. Raises Refuse."""
        return Routing(
            keyspace=keyspace_of(self.scope, refs),
            tables=table_names(self.scope, refs),
            comparisons=tuple(self.conditions.comparisons),
            ranges=tuple(self.conditions.ranges),
            offsets=tuple(self.conditions.offsets),
            routes=tuple(routes),
            extras=self.extras.items,
            in_list=self.statement.names.limits.in_list,
            naming=self._naming(routes),
        )

    def _naming(self, routes: list[Route]) -> tuple[int, ...]:
        """The comparisons whose constants name rows: those that route, and others in WHERE and ON that are
        not negated.
        """
        found = {number for route in routes for number in route.indexes("in")}
        spans = [
            span
            for block in self.scope.blocks.values()
            for span in (block.where, *(condition.span for condition in block.conditions))
            if span is not None
        ]
        found |= {
            match.number
            for match in self.conditions.matches.values()
            if match.relation is Relation.ONE_OF
            and any(span.first <= match.span.first < span.end for span in spans)
            and not _negated(self.source, match.span)
        }
        return tuple(sorted(found))

    def _hinted(self, refs: list[TableRef]) -> Route | None:
        if self.hints.shard is None and self.hints.same_shard_as is None:
            return None
        table = self.scope.targets[refs[0]].table
        keyspace = self.statement.names.topology.keyspaces[table.keyspace if table is not None else ""]
        shard = self.hints.shard
        if self.hints.same_shard_as is not None:
            layout = self.statement.layout([table] if table is not None else [])
            shard = layout.shard_of(self.hints.same_shard_as) if layout is not None else None
        if shard is None or keyspace.host_of(shard) is None:
            raise Refuse("unknown_shard", keyspace=keyspace.name, shard=str(shard))
        return Route("shards", fixed=frozenset({shard}))


def _negated(source: Source, span: Span) -> bool:
    """Whether NOT stands before a condition, or before parentheses around it."""
    opens = [at for at, close in source.closing.items() if at < span.first and close >= span.end]
    return any(source.is_word(at - 1, "NOT") or source.is_op(at - 1, "!") for at in (span.first, *opens))


def _narrowing(block: Block, ref: TableRef) -> list[Span]:
    """The conditions that rows of `ref` must fulfil to matter."""
    number = block.tables.index(ref)
    spans = [condition.span for condition in block.conditions if number in condition.narrows]
    return spans + ([block.where] if block.where is not None else [])


def _reachable(ref: TableRef, links: dict[TableRef, set[TableRef]]) -> list[TableRef]:
    found = [ref]
    for one in found:
        found += [other for other in sorted(links[one], key=lambda r: r.span.first) if other not in found]
    return found


def not_yet(what: str, reason: str, alternative: str = "") -> Reject:
    """The plan for what is not supported over several shards."""
    arguments = {"what": what, "reason": reason, "alternative": alternative}
    return Reject(error="not_supported_yet", arguments=arguments)


_OF_NAMES: Final = frozenset({"unknown_table", "unknown_database", "unknown_column", "no_database"})
"""Errors that servers have, too, and that they give only for what they can read."""


def refused(refusal: Refuse) -> Reject:
    """The plan that refuses the statement. A server reads it to its end before it looks for a name."""
    return Reject(error=refusal.error, arguments=refusal.arguments, probe=refusal.error in _OF_NAMES)


def keyspace_of(scope: Scope, refs: list[TableRef]) -> str:
    """The one keyspace of sharded tables. Raises Refuse when there are several."""
    names = {target.table.keyspace for ref in refs if (target := scope.targets[ref]).table is not None}
    if len(names) > 1:
        raise Unsupported(
            what="this statement",
            reason=f"its tables are in different keyspaces ({', '.join(sorted(names))})",
            alternative="Read the tables one by one.",
        )
    return names.pop()


def table_names(scope: Scope, refs: list[TableRef]) -> tuple[str, ...]:
    """The tables as `database.table`, each once."""
    tables: list[Table] = []
    for ref in refs:
        table = scope.targets[ref].table
        if table is not None:
            tables.append(table)
    return tuple(dict.fromkeys(f"{table.database}.{table.name}" for table in tables))


__all__ = ["ALL", "Splicer", "Statement", "keyspace_of", "not_yet", "refused", "table_names"]
