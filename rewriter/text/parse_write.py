"""Tokens to facts: INSERT, REPLACE, UPDATE and DELETE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from .facts import Assigned, Block, Query, Span, TableRef
from .parse import Parser
from .tokens import HINT, INTEGER, OPERATOR, Source, Unreadable

_OF_INSERT = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE")
_OF_UPDATE = ("LOW_PRIORITY", "IGNORE")
_OF_DELETE = ("LOW_PRIORITY", "QUICK", "IGNORE")


@dataclass(slots=True, eq=False)
class Change:
    """UPDATE or DELETE. `block` has the tables, the conditions and, of an UPDATE, the assignments.

    `targets` are the tables of a multi-table DELETE, as written, empty otherwise. `joined` is where the
    tables with their joins stand. `returning`: the statement has a RETURNING clause. `ignore`: it says
    IGNORE. `first` is its verb, which may stand behind WITH; `whole` has these queries and the block.
    """

    verb: Literal["UPDATE", "DELETE"]
    block: Block
    targets: list[TableRef] = field(default_factory=list)
    joined: Span = field(default=Span(0, 0))
    returning: Span | None = None
    ignore: bool = False
    first: int = 0
    whole: Query = field(default_factory=lambda: Query(0))

    @property
    def several(self) -> bool:
        """Whether it is one of the forms for several tables."""
        return len(self.block.tables) != 1 or bool(self.targets) or self.block.tables[0].form != "table"


@dataclass(slots=True, eq=False)
class Insertion:
    """INSERT or REPLACE.

    `columns` as written, None when there is no list. Exactly one of `rows` (each a list of value spans,
    `row_spans` with their parentheses), `assignments` (INSERT … SET, whose list is `columns` and the one
    row) and `query` is filled; INSERT … SET has `assigned` too. `on_duplicate` are the assignments of
    ON DUPLICATE KEY UPDATE, whose clause and everything behind the rows is `tail`. `alias` is the row's, in
    lower case, and `alias_columns` those of its columns.
    """

    verb: Literal["INSERT", "REPLACE"]
    table: TableRef
    ignore: bool = False
    columns: list[Span] | None = None
    columns_span: Span | None = None
    rows: list[list[Span]] = field(default_factory=list)
    row_spans: list[Span] = field(default_factory=list)
    assigned: list[Assigned] = field(default_factory=list)
    query: Query | None = None
    block: Block = field(default_factory=lambda: Block(0))
    on_duplicate: list[Assigned] = field(default_factory=list)
    tail: Span | None = None
    returning: Span | None = None
    alias: str = ""
    alias_columns: list[str] = field(default_factory=list)


class WriteParser(Parser):
    """Reads a write from its verb to its end."""

    def change(self) -> Change:
        """UPDATE or DELETE, perhaps behind WITH."""
        whole = Query(self.at)
        if self.take("WITH"):
            self._with(whole, None)
        first = self.at
        found = self.update() if self.word() == "UPDATE" else self.delete()
        whole.terms.append(found.block)
        found.first, found.whole = first, whole
        return found

    def update(self) -> Change:
        """`UPDATE tables SET … [WHERE] [ORDER BY] [LIMIT]`."""
        self.need("UPDATE")
        ignore = self._modifiers(_OF_UPDATE)
        block = Block(self.at)
        change = Change("UPDATE", block, ignore=ignore)
        first = self.at
        self._tables_until_set(block)
        change.joined = Span(first, self.at)
        self.need("SET")
        block.assignments = self._assignments(block, self.at_clause)
        self._clauses(block)
        self._check_limit(block)
        self._finish()
        return change

    def delete(self) -> Change:
        """`DELETE FROM t …`, or one of the two forms for several tables."""
        self.need("DELETE")
        ignore = self._modifiers(_OF_DELETE)
        block = Block(self.at)
        change = Change("DELETE", block, ignore=ignore)
        if not self.take("FROM"):
            change.targets = self._targets()
            self.need("FROM")
        elif self._names_several():
            change.targets = self._targets()
            self.need("USING")
        first = self.at
        if change.targets:
            self.tables(block)
        else:
            table = self.table_name()
            block.tables.append(table)
            self.after_table(table)
        change.joined = Span(first, self.at)
        change.returning = self._clauses_and_returning(block)
        self._check_limit(block)
        if change.targets and (block.order_span is not None or block.limit is not None):
            raise self.unreadable("the end")
        self._finish()
        return change

    def insert(self) -> Insertion:
        """`INSERT` or `REPLACE`, in each of its forms."""
        verb: Literal["INSERT", "REPLACE"] = "INSERT" if self.word() == "INSERT" else "REPLACE"
        self.need("INSERT", "REPLACE")
        ignore = self._modifiers(_OF_INSERT)
        self.take("INTO")
        insertion = Insertion(verb, self.table_name(), ignore)
        insertion.block.tables.append(insertion.table)
        if self.source.is_word(self.at, "PARTITION") and self.source.is_op(self.at + 1, "("):
            self.at = self.source.closing[self.at + 1] + 1
        if self.source.is_op(self.at, "(") and not self.opens_query(self.at):
            insertion.columns_span = Span(self.at, self.source.closing[self.at] + 1)
            insertion.columns = self._list(insertion.block)
        if self.take("VALUES", "VALUE"):
            self._rows(insertion)
        elif self.take("SET"):
            insertion.assigned = self._assignments(insertion.block, self._at_tail)
        else:
            insertion.query = self._source_query()
        self._tail(insertion)
        self._finish()
        return insertion

    def _modifiers(self, words: tuple[str, ...]) -> bool:
        """Step over modifiers: whether IGNORE is one."""
        while self.source.at(self.at).kind == HINT:
            self.at += 1
        ignore = False
        while self.word() in words and not self.source.is_op(self.at + 1, "."):
            ignore = ignore or self.word() == "IGNORE"
            self.at += 1
        return ignore

    def _check_limit(self, block: Block) -> None:
        """A write has `LIMIT number` only: no server may be asked when its IDs match nothing."""
        limit = block.limit
        if limit is None:
            return
        rows = self.source.at(limit.rows.first)
        plain = rows.kind == INTEGER or (rows.kind == OPERATOR and rows.text == "?")
        if limit.offset is not None or not plain or limit.rows.end - limit.rows.first > 1:
            raise Unreadable("a write takes LIMIT and one number")

    def _finish(self) -> None:
        if self.at < self.end:
            raise self.unreadable("the end")

    def _tables_until_set(self, block: Block) -> None:
        depth, at = 0, self.at
        while at < self.end and not (depth == 0 and self.source.is_word(at, "SET")):
            at = self.source.closing.get(at, at) + 1
        before, self.end = self.end, at
        self.tables(block)
        self.end = before

    def _names_several(self) -> bool:
        """Whether, behind DELETE FROM, a list of targets with USING stands."""
        at = self.at
        while at < self.end and not self.source.is_word(at, "WHERE", "ORDER", "LIMIT", "RETURNING"):
            if self.source.is_word(at, "USING"):
                return True
            at = self.source.closing.get(at, at) + 1
        return False

    def _targets(self) -> list[TableRef]:
        targets = []
        while True:
            targets.append(self._target())
            if not self.take_op(","):
                return targets

    def _target(self) -> TableRef:
        """`t`, `db.t`, `t.*` or `db.t.*`."""
        first, names = self.at, [self.name()]
        end = self.at
        while self.take_op("."):
            if self.take_op("*"):
                break
            names.append(self.name())
            end = self.at
        if len(names) > 2:
            raise self.unreadable("a table")
        return TableRef("table", Span(first, end), names[-1], names[0] if len(names) > 1 else None)

    def _list(self, block: Block) -> list[Span]:
        """The items in the parentheses that open here; none between empty ones."""
        close = self.source.closing[self.at]
        before, self.end = self.end, close
        self.at += 1
        items = []
        while self.at < close:
            span = self.expression(block, lambda: self.source.is_op(self.at, ","))
            items.append(self.filled(span))
            if self.at < close and not (self.take_op(",") and self.at < close):
                raise self.unreadable("a value")
        self.end = before
        self.at = close + 1
        return items

    def _rows(self, insertion: Insertion) -> None:
        while True:
            first = self.at
            self.take("ROW")
            if not self.source.is_op(self.at, "("):
                raise self.unreadable("(")
            insertion.rows.append(self._list(insertion.block))
            insertion.row_spans.append(Span(first, self.at))
            if not self.take_op(","):
                return

    def _at_tail(self) -> bool:
        source = self.source
        if source.is_word(self.at, "ON") and source.is_word(self.at + 1, "DUPLICATE"):
            return True
        if source.is_word(self.at, "AS") and source.is_name(self.at + 1):
            return True
        return source.is_word(self.at, "RETURNING") and not source.is_op(self.at - 1, ".")

    def _assignments(self, block: Block, stop: Callable[[], bool]) -> list[Assigned]:
        source, found = self.source, []
        while True:
            first = self.at
            name = self.name()
            while self.take_op("."):
                name = self.name()
            column = Span(first, self.at)
            if not self.take_op("="):
                self.need_op(":=")
            value = self.expression(block, lambda: source.is_op(self.at, ",") or stop())
            found.append(Assigned(column, name, self.filled(value)))
            if not self.take_op(","):
                return found

    def _source_query(self) -> Query:
        """The query of INSERT … SELECT, which ends before ON DUPLICATE KEY."""
        at = self.at
        while at < self.end and not (
            self.source.is_word(at, "ON") and self.source.is_word(at + 1, "DUPLICATE")
        ):
            at = self.source.closing.get(at, at) + 1
        before, self.end = self.end, at
        query = self.query(None)
        if self.at < self.end and self.word() != "RETURNING":
            raise self.unreadable("the end of the query")
        self.end = before
        return query

    def _tail(self, insertion: Insertion) -> None:
        first = self.at
        if self.take("AS"):  # the row's alias
            insertion.alias = self.name().lower()
            if self.source.is_op(self.at, "(") and self.at < self.end:
                close = self.source.closing[self.at]
                names = self.source.tokens[self.at + 1 : close : 2]
                insertion.alias_columns = [one.name.lower() for one in names]
                self.at = close + 1
        if self.take("ON"):
            for word in ("DUPLICATE", "KEY", "UPDATE"):
                self.need(word)
            insertion.on_duplicate = self._assignments(insertion.block, self._at_tail)
        if self.take("RETURNING"):
            insertion.returning = Span(self.at - 1, self.end)
            self.at = self.end
        if first < self.at:
            insertion.tail = Span(first, self.at)

    def _clauses_and_returning(self, block: Block) -> Span | None:
        self._clauses(block)
        if block.odd is not None and self.source.is_word(block.odd.first, "RETURNING"):
            returning, block.odd = block.odd, None
            return returning
        return None


def changes_behind_with(source: Source) -> bool:
    """Whether the statement is WITH … UPDATE or WITH … DELETE."""
    at = 1
    while source.is_word(0, "WITH") and at < len(source.tokens):
        if source.is_word(at, "UPDATE", "DELETE"):
            return True
        if source.is_word(at, "SELECT", "VALUES", "TABLE"):
            return False
        at = source.closing.get(at, at) + 1
    return False
