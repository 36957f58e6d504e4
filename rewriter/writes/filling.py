"""INSERTs with values that only a server knows, and that must be known before: subqueries over shards, and
what names a row's shard by an expression. They are asked for by one SELECT, then written in as literals.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from rewriter.plan import Plan
from rewriter.plans.read_write import FillIn, ReadThenWrite
from rewriter.route.context import Statement
from rewriter.route.scope import Scope, Unsupported, chains_within
from rewriter.splice import Part, Template
from rewriter.sql.statements.effects import assigns_insert_id
from rewriter.text.facts import Query, Span
from rewriter.text.parse_write import Insertion

from .read_write import databases_of, edits_of, hint_for, parts_of

_TABLES: Final = frozenset({"sharded", "single", "passthrough", "physical", "system", "default"})


class Ask(NamedTuple):
    """A value to ask for. `form`: "integer" and "text" say what its column holds, where the value names the
    row's shard; "" for any other.
    """

    value: Span
    form: str = ""


def plan_filled(statement: Statement, found: Insertion, scope: Scope, asks: Iterable[Ask]) -> Plan:
    """The plan of asking first; of several for one value the first counts. Raises Refuse."""
    edits, slots = edits_of(statement.source)
    wanted = list({ask.value: ask for ask in reversed([*asks])}.values())[::-1]
    parts: list[Part] = [b"SELECT " + hint_for(statement.source, scope)]
    for number, ask in enumerate(wanted):
        text = parts_of(statement.source, edits, *ask.value)
        parts += [b", "] if number else []
        parts += [b"CAST(", *text, b" AS CHAR)"] if ask.form == "text" else [b"(", *text, b")"]
    select = Template(parts)
    first = slots.end
    for number, ask in enumerate(wanted):
        edits.replace(ask.value, first + number)
    return ReadThenWrite(
        databases=databases_of(scope),
        session_slots=tuple(slots.names),
        select=select,
        ignore=found.ignore,
        assigns_id=any(assigns_insert_id(statement.source, *ask.value) for ask in wanted),
        writes=FillIn(edits.template(), tuple(ask.form for ask in wanted)),
    )


def reads_tables(found: Insertion, scope: Scope, *, of_shards: bool = False) -> list[Query]:
    """The subqueries in values and assignments that read tables. `of_shards`: sharded ones."""
    forms = {"sharded"} if of_shards else _TABLES
    return [
        query
        for query in found.block.queries
        if any(scope.targets[ref].form in forms for block in query.all_blocks() for ref in block.tables)
    ]


def with_subqueries(
    statement: Statement, found: Insertion, scope: Scope, *, of_shards: bool = False
) -> list[Ask]:
    """The values that have such subqueries. `of_shards`: those that read sharded tables. Raises Refuse when
    one depends on the row that is written.
    """
    queries = reads_tables(found, scope, of_shards=of_shards)
    values = [value for row in found.rows for value in row]
    values += [one.value for one in (*found.assigned, *found.on_duplicate)]
    asks = []
    for value in values:
        inside = [query for query in queries if value.first <= query.first < value.end]
        if not inside:
            continue
        if depends(statement, found, scope, value):
            raise Unsupported(
                what=f"this {found.verb}",
                reason="a subquery in its values depends on the row",
                alternative="SELECT the value first.",
            )
        asks.append(Ask(value))
    return asks


def depends(statement: Statement, found: Insertion, scope: Scope, value: Span) -> bool:
    """Whether a value names columns of the row itself, or its default."""
    source = statement.source
    for chain, block in chains_within(source, value, found.block):
        if scope.table_of(chain, block) is found.table or chain.column == "DEFAULT":
            return True
    return any(source.is_word(at, "DEFAULT", "VALUES", "VALUE") for at in range(*value))
