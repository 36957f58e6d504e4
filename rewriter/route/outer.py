"""Outer joins that WHERE makes inner ones.

    SELECT p.* FROM pins p LEFT JOIN board_has_pins m ON m.pin_id = p.id WHERE m.board_id = 5

No row of NULLs in the place of `m` passes such a WHERE. So the join gives what an inner one gives, and its ON
condition narrows both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from rewriter.text.facts import Block, Condition, Span
from rewriter.text.spans import unwrapped
from rewriter.tree.terms import Joined, Term

from .context import Statement
from .scope import Refuse, Scope, chain_at

_EITHER: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "+", "-", "strict", "xor"})
"""NULL when one of the two operands is."""
_FIRST: Final = frozenset({"negative", "integer", "not", "in", "between"})
"""NULL when the first operand is."""

Mine = Callable[[Term], bool]
"""Whether a column is one of the table's."""


def strengthen(statement: Statement, scope: Scope, blocks: Iterable[Block]) -> None:
    """Take the outer joins of these blocks for what their WHERE makes of them."""
    for block in blocks:
        if block.nullable and block.where is not None and not block.odd_joins and not block.shared_columns:
            _strengthen(statement, scope, block, block.where)


def _strengthen(statement: Statement, scope: Scope, block: Block, where: Span) -> None:
    second = statement.second
    tree = second.tree
    joins = tree.joins(block) if tree is not None and second.alike(block) else None
    term = second.condition(where, block)
    if joins is None or term is None or len(joins) + 1 != len(block.tables):
        return
    if not all(one.plain for one in joins) or _joined(joins, set()) != _as_read(scope, block):
        return
    solid = {at for at in block.nullable if never(term, True, _columns_of(scope, block, at))}
    if solid:
        nullable, narrows = _joined(joins, solid)
        block.nullable = nullable
        block.conditions = [narrows[_at(scope, one)]._replace(span=one.span) for one in block.conditions]


def _at(scope: Scope, condition: Condition) -> Span:
    return unwrapped(scope.source, condition.span)


def _as_read(scope: Scope, block: Block) -> tuple[set[int], dict[Span, Condition]]:
    """What the first reader says."""
    found = {_at(scope, one): one._replace(span=_at(scope, one)) for one in block.conditions}
    return block.nullable, found


def _joined(joins: list[Joined], solid: set[int]) -> tuple[set[int], dict[Span, Condition]]:
    """Which tables may have rows of NULLs, and what the ON conditions restrict, when WHERE lets no such row
    of the `solid` tables pass.
    """
    nullable: set[int] = set()
    found: dict[Span, Condition] = {}
    joined = {0}
    for at, join in enumerate(joins, 1):
        left = join.side == "LEFT" and at not in solid
        right = join.side == "RIGHT" and not joined & solid
        narrows = frozenset({at} if left else joined if right else joined | {at})
        if join.on is not None:
            found[join.on] = Condition(join.on, narrows, narrows - nullable)
        nullable |= {at} if left else joined if right else set()
        joined = joined | {at}
    return nullable, found


def _columns_of(scope: Scope, block: Block, number: int) -> Mine:
    def mine(term: Term) -> bool:
        chain = chain_at(scope.source, term.span.first)
        try:
            return chain is not None and scope.table_of(chain, block) is block.tables[number]
        except Refuse:
            return False

    return mine


def never(term: Term, wanted: bool, mine: Mine) -> bool:
    """Whether a condition cannot be `wanted` (true, or false) where all columns of a table are NULL."""
    kind, parts = term.kind, term.parts
    if kind in ("and", "or"):
        enough = any if (kind == "and") is wanted else all
        return enough(never(one, wanted, mine) for one in parts)
    if kind == "not":
        return never(parts[0], not wanted, mine)
    if kind == "is null":
        return not wanted and null(parts[0], mine)
    if kind in ("is true", "is false"):
        return wanted and never(parts[0], kind == "is true", mine)
    if kind in ("=", "in") and parts[0].kind == "tuple":
        return wanted and any(null(one, mine) for one in parts[0].parts)
    return null(term, mine)


def null(term: Term, mine: Mine) -> bool:
    """Whether an expression is NULL where all columns of a table are."""
    if term.kind == "column":
        return term.span.first >= 0 and mine(term)
    if term.kind in _EITHER:
        return any(null(one, mine) for one in term.parts)
    return term.kind in _FIRST and null(term.parts[0], mine)
