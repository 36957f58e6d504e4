"""Planning INSERT and REPLACE."""

from __future__ import annotations

from typing import NamedTuple

from config.schema import KeyType, Kind, Table, quote
from rewriter.plain.unsharded import on_one_host, plan_unsharded
from rewriter.plan import Plan
from rewriter.plans.insert_rows import Row, Spelling
from rewriter.plans.inserting import Insert
from rewriter.plans.unchanged import Stays
from rewriter.route.context import Splicer, Statement, not_yet
from rewriter.route.scope import Refuse, Scope, Unsupported
from rewriter.route.values import Value
from rewriter.splice import Part, Template
from rewriter.text.facts import Assigned, Span
from rewriter.text.parse_write import Insertion, WriteParser
from rewriter.text.tokens import Source

from .duplicate import Duplicates, ambiguous_name
from .everywhere import plan_everywhere
from .filling import Ask, depends, plan_filled, with_subqueries
from .known_values import known
from .own_id import edit_own_ids
from .placing import TEXTS, Placing
from .read_write import plan_insert
from .returning import edit_returning
from .single_row import single_row


def insert(statement: Statement) -> Plan | None:
    """The rule for INSERT and REPLACE. Raises Unreadable and Refuse."""
    source = statement.source
    if not source.is_word(0, "INSERT", "REPLACE"):
        return None
    found = WriteParser(source).insert()
    scope = Scope(source)
    scope.add_block(statement.names, found.block)
    if found.query is not None:
        scope.add_query(statement.names, found.query)
    if not scope.sharded():
        return _unsharded(statement, found, scope)
    if found.query is not None:
        if found.returning is not None:
            return not_yet("RETURNING", "the rows come from shards", "SELECT the rows afterwards.")
        if name := ambiguous_name(source, found, found.query, scope):
            clause = statement.names.env.flavour.ambiguous_column_clause
            raise Refuse("ambiguous_on_duplicate", column=name, clause=clause)
        return plan_insert(statement, found, found.query, scope)
    target = scope.targets[found.table]
    asks = with_subqueries(statement, found, scope, of_shards=target.form != "sharded")
    table = target.table
    if target.form != "sharded" or table is None:
        if not asks:
            return not_yet(f"this {found.verb}", "it reads sharded tables", "SELECT the values first.")
        return plan_filled(statement, found, scope, asks)
    planner = _Planner(statement, found, scope, table)
    try:
        asks = [*planner.unknown(), *asks]
        return plan_filled(statement, found, scope, asks) if asks else planner.plan()
    except Refuse as refusal:
        if refusal.error not in ("key_missing", "key_null", "unroutable_write"):
            raise
        raise planner.instead(refusal) from None


def _unsharded(statement: Statement, found: Insertion, scope: Scope) -> Plan:
    """The plan of an INSERT that reaches no shard. Raises Refuse."""
    named = [Assigned(span, "", Span(0, 0)) for span in found.columns or () if not found.assigned]
    # whose columns may name a database
    found.block.assignments = [*named, *found.assigned, *found.on_duplicate]
    blocks = [*found.block.all_blocks(), *(found.query.all_blocks() if found.query is not None else ())]
    try:
        everywhere = plan_everywhere(statement, found, blocks, scope, [scope.targets[found.table].table])
        plan = everywhere or plan_unsharded(statement, blocks, scope)
        return on_one_host(statement, plan, scope)
    except Refuse as refusal:  # the SELECT's tables are elsewhere: its rows can be read first
        alone = found.query is None or found.returning is not None or found.on_duplicate
        if alone or found.query is None or not isinstance(refusal, Unsupported):
            raise
        found.block.assignments = []
        return plan_insert(statement, found, found.query, scope)


class _Column(NamedTuple):
    name: str
    value: Span


class _Planner:
    """Plans one INSERT."""

    def __init__(self, statement: Statement, found: Insertion, scope: Scope, table: Table) -> None:
        self.source: Source = statement.source
        self.statement = statement
        self.found = found
        self.table = table
        self.splicer = Splicer(statement, scope)
        self.placing = Placing(statement, self.splicer, table, ignore=found.ignore)
        self.first = self.splicer.slots.end  # the indexes of the database, K, and the row's local id
        self.is_object = table.kind is Kind.OBJECT
        self.is_timed = table.kind is Kind.TIMED
        self.same: dict[str, Value] = {}  # see `Duplicates`
        self.stays: list[Stays] = []
        self.asks = False  # LAST_INSERT_ID(id) is assigned to the row there is
        self.added: tuple[Part, ...] = ()  # the value of a column that the client does not name
        self.added_name = b""
        self.dated = False  # a row gets the time of now for its sequence

    def plan(self) -> Plan:
        """The plan. Raises Refuse."""
        found, splicer = self.found, self.splicer
        name = self.source.text(found.table.span.end - 1, found.table.span.end)
        splicer.edits.replace(found.table.span, b"`", self.first, b"`." + name)
        rows = self._rows()
        if rows:
            self._add([one.name for one in rows[0]])
        dropped = self._dropped([column.name for column in rows[0]] if rows else [])
        if found.alias_columns and (dropped or self.added):
            raise Unsupported(
                what="names for the columns of the new row",
                reason="the row that is stored has other columns",
                alternative="Name the row only: AS new.",
            )
        self._duplicate([column.name for column in rows[0]] if rows else [])
        column_metadata = None
        if found.returning is not None:
            column_metadata = edit_returning(
                self.source, splicer.edits, found.returning, self.table, self.first + 1
            )
        self._column_list(dropped)
        for row in rows:  # all of them before the first row's text is taken
            self._local_ids(row)
        flavour = self.statement.names.env.flavour
        planned = tuple(
            Row(
                self.placing.hints(dict(row)),
                self._row(number, row, dropped),
                single_row(self.source, found, self.table, row, flavour=flavour),
                self._spellings(row),
            )
            for number, row in enumerate(rows)
        )
        before, behind = self._around()
        keyspace = self.statement.names.topology.keyspaces[self.table.keyspace]
        return Insert(
            session_slots=tuple(splicer.slots.names),
            databases=(self.table.database,),
            keyspace=keyspace.name,
            table=f"{self.table.database}.{self.table.name}",
            type=self.table.type if self.is_object else None,
            rows=planned,
            before=before,
            behind=behind,
            backslashes=self.placing.backslashes,
            timed=self.is_timed,
            dated=self.dated,
            returning=found.returning is not None,
            column_metadata=column_metadata,
            ignore=found.ignore,
            asks=self.asks,
            strict=self.placing.strict,
            same=tuple(self.same.items()),
            stays=tuple(self.stays),
        )

    def unknown(self) -> list[Ask]:
        """The values that name shards and are no constants, but for a server. Raises Refuse."""
        asks: list[Ask] = []
        for row in self._rows():
            try:
                self.placing.hints(dict(row))
            except Refuse as refusal:
                if refusal.error != "unroutable_write":
                    raise
                mine = self._ask(row)
                if not mine:
                    raise
                asks += mine
        return asks

    def _ask(self, row: list[_Column]) -> list[Ask]:
        """What is to be asked to know a row's shard."""
        table = self.table
        names = {name.lower(): "integer" for name in (table.routing, table.shard_key) if name}
        if table.key_type in (KeyType.TEXT, KeyType.BINARY):
            names = {table.routing.lower(): "text"}
        if table.colocate is not None:
            names[table.colocate.column.lower()] = "" if table.colocate.path is not None else "integer"
        asks = []
        for name, value in row:
            if name not in names or self.placing.is_default(value):
                continue
            constant = self.splicer.conditions.constant(value)
            text = names[name] == "text"
            if constant is not None and not (text and constant.kind not in TEXTS):
                continue
            if depends(self.statement, self.found, self.splicer.scope, value):
                return []
            asks.append(Ask(value, names[name]))
        return asks

    def _rows(self) -> list[list[_Column]]:
        """The rows, each with its columns' names (lower case) and values."""
        found = self.found
        if found.assigned:
            return [[_Column(one.name.lower(), one.value) for one in found.assigned]]
        if found.columns is not None:
            names = [self.source.tokens[span.end - 1].name.lower() for span in found.columns]
        else:
            names = [name.lower() for name in self.table.logical_columns]
        rows = []
        for number, values in enumerate(found.rows):
            if values and len(values) != len(names):
                raise Refuse("wrong_value_count", row=str(number + 1))
            rows.append([_Column(name, value) for name, value in zip(names, values, strict=False)])
        return rows

    def instead(self, refusal: Refuse) -> Refuse:
        """What a server has against the statement before it misses a value: an unknown column."""
        rows = self._rows()
        names = [one.name for one in rows[0]] if rows else []
        known = {name.lower() for name in self.table.logical_columns} | self._dropped(names)
        unknown = [name for name in names if name not in known | {"local_id"}]
        if not unknown or not self.table.logical_columns:
            return refusal
        clause = self.statement.names.env.flavour.unknown_column_clause
        return Refuse("unknown_column", column=unknown[0], clause=clause)

    def _dropped(self, names: list[str]) -> set[str]:
        """Columns that only route, which the stored table lacks."""
        colocate = self.table.colocate
        if colocate is None or colocate.stored or self.table.column(colocate.column) is not None:
            return set()
        return {colocate.column.lower()} & set(names)

    def _add(self, names: list[str]) -> None:
        """A column that is stored and not named: a timed table's `id`, a mapping's sequence."""
        if self.is_timed and "id" not in names:
            self.added_name, self.added = b"`id`", (self.first + 2,)
        sequence = self.table.sequence_column
        if self.table.dated and sequence is not None and sequence.lower() not in names:
            self.added_name, self.added = quote(sequence).encode(), now_as_sequence(self.first + 2)
            self.dated = True

    # the text

    def _local_ids(self, row: list[_Column]) -> None:
        """A hole for the `id` that is given, and wherever a value names it; the time of now for a sequence by
        DEFAULT.
        """
        if self.is_object:
            given = [one.value for one in row if not self.placing.is_default(one.value)]
            edit_own_ids(self.splicer, self.found, row, self.first + 2, given)
        for column in row:
            if self.table.dated and column.name == (self.table.sequence_column or "").lower():
                if self.source.is_word(column.value.first, "DEFAULT") and _is_word(column.value):
                    self.splicer.edits.replace(column.value, *now_as_sequence(self.first + 2))
                    self.dated = True
                continue
            if column.name != "id":
                continue
            if self.is_timed or (self.is_object and not self.placing.is_default(column.value)):
                self.splicer.edits.replace(column.value, self.first + 2)

    def _row(self, number: int, row: list[_Column], dropped: set[str]) -> Template:
        """A row in its parentheses, or the assignments of INSERT … SET."""
        tokens, edits = self.source.tokens, self.splicer.edits
        if self.found.assigned:
            kept = [one for one in self.found.assigned if one.name.lower() not in dropped]
            assigned = self._joined([Span(one.column.first, one.value.end) for one in kept])
            added = [self.added_name, b" = ", *self.added, b", "] if self.added else []
            return Template([*added, *assigned])
        span = self.found.row_spans[number]
        if self.added and row:
            values = self._joined([column.value for column in row])
            return Template([b"(", *self.added, b", ", *values, b")"])
        if not dropped or not row:
            return Template(edits.parts(tokens[span.first].start, tokens[span.end - 1].end))
        kept_values = [column.value for column in row if column.name not in dropped]
        return Template([b"(", *self._joined(kept_values), b")"])

    def _spellings(self, row: list[_Column]) -> tuple[Spelling, ...] | None:
        """How the row's literals must be spelt; None when a server has to resolve a value."""
        found: list[Spelling] = []
        for column in row:
            spellings = known(self.source, column.value)
            if spellings is None:
                return None
            found += spellings
        return tuple(found)

    def _joined(self, spans: list[Span]) -> list[Part]:
        parts: list[Part] = []
        for span in spans:
            parts += [b", "] if parts else []
            start, end = self.source.tokens[span.first].start, self.source.tokens[span.end - 1].end
            parts += self.splicer.edits.parts(start, end)
        return parts

    def _column_list(self, dropped: set[str]) -> None:
        """`id` is stored as `local_id`; columns that only route are left out."""
        found, edits = self.found, self.splicer.edits
        spans = found.columns if found.columns is not None else [one.column for one in found.assigned]
        for span in spans:
            last = Span(span.end - 1, span.end)
            if self.is_object and self.source.tokens[last.first].name.lower() == "id":
                edits.replace(span, b"local_id")
            elif span.end - span.first > 1:  # the table's name before the column's
                edits.replace(span, self.source.text(*last))
        if self.added and found.columns_span is not None:
            edits.replace(found.columns_span, b"(" + self.added_name + b", ", *self._joined(spans), b")")
        if dropped and found.columns_span is not None and found.columns is not None:
            names = [self.source.tokens[one.end - 1].name.lower() for one in found.columns]
            kept = [one for one, name in zip(found.columns, names, strict=True) if name not in dropped]
            edits.replace(found.columns_span, b"(", *self._joined(kept), b")")

    def _duplicate(self, names: list[str]) -> None:
        """ON DUPLICATE KEY UPDATE."""
        duplicates = Duplicates(self.splicer, self.found, self.table, names, self.first + 1)
        duplicates.edit()
        self.asks = duplicates.asks
        self.same = duplicates.same
        self.stays = duplicates.stays

    def _around(self) -> tuple[Template, Template]:
        """What stands before the rows, and what behind them."""
        tokens, edits, found = self.source.tokens, self.splicer.edits, self.found
        if found.assigned:
            first, last = found.assigned[0].column.first, found.assigned[-1].value.end
        else:
            first, last = found.row_spans[0].first, found.row_spans[-1].end
        before = edits.parts(tokens[0].start, tokens[first].start)
        behind: tuple[Part, ...] = ()
        if last < len(tokens):
            behind = edits.parts(tokens[last - 1].end, tokens[-1].end)
        return Template(before), Template(behind)


def now_as_sequence(row: int) -> tuple[Part, ...]:
    """The time of the server's now as a sequence of 38 digits: 13 of milliseconds and 25 zeros. Rows of one
    statement in one list are a millisecond apart; `row` is the index of their number.
    """
    now = b"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"
    return b"(" + now + b" + ", row, b") * 1" + b"0" * 25


def _is_word(value: Span) -> bool:
    return value.end - value.first == 1
