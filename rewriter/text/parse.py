"""Tokens to facts: query expressions and their blocks.

A reader of clauses, not of expressions: a clause ends where a reserved word of the next one stands
outside of parentheses, and what is inside an expression stays a span. Subqueries are read wherever they
stand. Whatever this does not know raises Unreadable or is marked odd; it never guesses.
"""

from __future__ import annotations

from typing import Final

from .facts import Block, Limit, Projection, Query, SortItem, Span
from .parse_tables import TableReader
from .reader import SET_OPERATORS
from .tokens import HINT, INTEGER, NAME, OPERATOR, STRING, WORD

MODIFIERS: Final = frozenset(
    {"ALL", "DISTINCT", "DISTINCTROW", "HIGH_PRIORITY", "STRAIGHT_JOIN", "SQL_SMALL_RESULT", "SQL_BIG_RESULT"}
    | {"SQL_BUFFER_RESULT", "SQL_NO_CACHE", "SQL_CACHE", "SQL_CALC_FOUND_ROWS"}
)
_OPERANDS: Final = frozenset({"NULL", "TRUE", "FALSE", "DEFAULT", "MAXVALUE"})
_NOT_OPERANDS: Final = frozenset(
    {"AND", "OR", "XOR", "NOT", "IS", "IN", "LIKE", "BETWEEN", "DIV", "MOD", "REGEXP", "RLIKE"}
    | {"BINARY", "COLLATE", "CASE", "WHEN", "THEN", "ELSE", "INTERVAL", "DISTINCT", "ALL"}
    | {"EXISTS", "MATCH", "OVER", "BY"}
)
_TYPED: Final = frozenset({"DATE", "TIME", "TIMESTAMP"})


class Parser(TableReader):
    """Reads one statement that is a query."""

    def query(self, outer: Block | None) -> Query:
        """A query expression, up to a closing parenthesis or the end."""
        query = Query(self.at)
        if self.take("WITH"):
            self._with(query, outer)
        self._term(query, outer)
        while self.word() in SET_OPERATORS:
            operator = self.word()
            self.at += 1
            if self.word() in ("ALL", "DISTINCT"):
                operator += " " + self.word()
                self.at += 1
            query.operators.append(operator)
            self._term(query, outer)
        if self.at < self.end and (query.operators or not isinstance(query.terms[0], Block)):
            query.tail = Block(self.at, outer)
            self._clauses(query.tail)
        elif query.operators and isinstance(query.terms[-1], Block):
            self._move_tail(query)
        query.end = self.at
        return query

    def _move_tail(self, query: Query) -> None:
        """ORDER BY and LIMIT behind a last term without parentheses are the whole compound's."""
        last = query.terms[-1]
        assert isinstance(last, Block)
        if last.order_span is None and last.limit is None and last.lock is None and last.into is None:
            return
        tail = Block(last.first, last.outer)
        tail.order, tail.order_span, tail.limit = last.order, last.order_span, last.limit
        tail.lock, tail.into = last.lock, last.into
        last.order, last.order_span, last.limit, last.lock, last.into = [], None, None, None, None
        query.tail = tail

    def _with(self, query: Query, outer: Block | None) -> None:
        query.recursive = self.take("RECURSIVE")
        while True:
            name = self.name()
            if self.source.is_op(self.at, "("):
                self.at = self.source.closing[self.at] + 1
            self.need("AS")
            if not self.source.is_op(self.at, "("):
                raise self.unreadable("(")
            query.ctes[name] = self.inside(outer)
            if not self.take_op(","):
                return

    def _term(self, query: Query, outer: Block | None) -> None:
        if self.source.is_op(self.at, "(") and self.at < self.end:
            query.terms.append(self.inside(outer))
        elif self.word() == "SELECT":
            query.terms.append(self._block(outer))
        elif self.word() == "VALUES":
            block = Block(self.at, outer)
            self.at += 1
            self.expression(block, lambda: self.at_clause())
            block.end = self.at
            query.terms.append(block)
            self._clauses(block)
        elif self.take("TABLE"):
            block = Block(self.at - 1, outer)
            block.projections.append(Projection(Span(self.at - 1, self.at), None, star=True))
            block.odd = Span(self.at - 1, self.at)
            block.tables.append(self.table_name())
            query.terms.append(block)
            self._clauses(block)
        else:
            raise self.unreadable("SELECT")

    def _block(self, outer: Block | None) -> Block:
        block = Block(self.at, outer)
        self.at += 1
        while self.source.at(self.at).kind == HINT:
            self.at += 1
        while self.word() in MODIFIERS and not self.source.is_op(self.at + 1, "."):
            block.modifiers[self.word()] = self.at
            self.at += 1
        while True:
            if block.projections and self.source.is_op(self.at, "*"):
                raise self.unreadable("an expression")  # a bare * stands first, or nowhere
            block.projections.append(self._projection(block))
            if not self.take_op(","):
                break
        block.select_end = self.at
        self._clauses(block)
        return block

    def _projection(self, block: Block) -> Projection:
        source, first = self.source, self.at
        if self.take_op("*"):
            return Projection(Span(first, self.at), None, star=True)
        span = self.expression(block, self._comma_or_clause)
        if span.first == span.end:
            raise self.unreadable("an expression")
        last = span.end - 1
        if source.is_op(last, "*") and source.is_op(last - 1, "."):
            return Projection(span, None, star=True, qualifier=source.tokens[last - 2].name)
        if last > first and source.tokens[last].kind in (WORD, NAME, STRING):
            if source.is_word(last - 1, "AS"):
                if last - 1 == first:
                    self.at = first
                    raise self.unreadable("an expression")
                return Projection(Span(first, last - 1), _unquoted(source.tokens[last].name))
            if self._implicit_alias(first, last):
                return Projection(Span(first, last), _unquoted(source.tokens[last].name))
        return Projection(span, None)

    def _implicit_alias(self, first: int, last: int) -> bool:
        """Whether the last token of a select expression, which begins at `first`, is an alias without AS."""
        source = self.source
        before, token = source.tokens[last - 1], source.tokens[last]
        if token.kind == WORD and (token.text in _OPERANDS | _NOT_OPERANDS or self._ends(first, last)):
            return False
        if before.kind == OPERATOR:
            return before.text in (")", "}", "?")
        if token.kind == STRING and before.kind == STRING:
            return False  # neighbouring strings are one
        if token.kind == STRING and before.kind == WORD and before.text.startswith("_"):
            return False  # _utf8'…'
        if token.kind == STRING and before.kind == WORD and before.text in _TYPED:
            return False  # DATE '…'
        if token.kind == WORD and source.is_word(last - 2, "INTERVAL"):
            return False  # INTERVAL 1 DAY
        if source.is_word(last - 1, "ESCAPE"):  # x LIKE y ESCAPE z; else a column of that name
            return not any(source.is_word(at, "LIKE") for at in range(first, last - 2))
        return before.kind != WORD or before.text not in _NOT_OPERANDS

    def _ends(self, first: int, last: int) -> bool:
        """Whether the word at `last` ends an expression that it is a part of: CASE … END, IS UNKNOWN."""
        source = self.source
        if source.is_word(last, "END"):
            open_, at = 0, first
            while at <= last:
                if source.is_word(at, "CASE"):
                    open_ += 1
                elif source.is_word(at, "END") and open_ > 0 and self._behind_operand(at):
                    open_ -= 1
                    if at == last:
                        return True
                at = source.closing.get(at, at) + 1
            return False
        negated = source.is_word(last - 1, "NOT") and source.is_word(last - 2, "IS")
        return source.is_word(last, "UNKNOWN") and (negated or source.is_word(last - 1, "IS"))

    def _behind_operand(self, at: int) -> bool:
        """Whether an expression may be complete in front of `at`, so that a keyword may follow."""
        before = self.source.tokens[at - 1]
        if before.kind == OPERATOR:
            return before.text in (")", "}", "?")
        return before.kind != WORD or before.text not in _NOT_OPERANDS

    # the clauses behind the select list

    def _clauses(self, block: Block) -> None:
        while self.at < self.end:
            word = self.word()
            if word in SET_OPERATORS:
                break
            self._clause(block, word)
        block.end = self.at

    def _clause(self, block: Block, word: str) -> None:
        first = self.at
        if not self.at_clause():
            raise self.unreadable("a clause")
        self.at += 1
        if word == "FROM":
            self.tables(block)
            block.from_end = self.at
        elif word == "WHERE":
            block.where = self.filled(self.expression(block, self.at_clause))
        elif word == "HAVING":
            block.having = self.filled(self.expression(block, self.at_clause))
        elif word == "GROUP":
            self.at += 1
            block.group = self._items(block)
            block.group_span = Span(first, self.at)
        elif word == "ORDER":
            self.at += 1
            block.order = self._items(block)
            block.order_span = Span(first, self.at)
        elif word == "WINDOW":
            block.windows = self.expression(block, self.at_clause)
        elif word == "LIMIT":
            block.limit = self._limit(first)
        elif word in ("FOR", "LOCK"):
            self.expression(None, self.at_clause)
            block.lock = Span(block.lock.first if block.lock else first, self.at)
        elif word == "INTO":
            self.expression(None, self.at_clause)
            block.into = Span(first, self.at)
        else:
            self.expression(block, lambda: False)
            block.odd = Span(first, self.at)

    def _items(self, block: Block) -> list[SortItem]:
        items = []
        while True:
            span = self.filled(self.expression(block, self._comma_or_clause))
            descending = False
            if self.source.is_word(span.end - 1, "ASC", "DESC") and span.end - span.first > 1:
                descending = self.source.is_word(span.end - 1, "DESC")
                span = Span(span.first, span.end - 1)
            elif self.source.is_word(span.end - 1, "ROLLUP") and self.source.is_word(span.end - 2, "WITH"):
                block.modifiers["ROLLUP"] = span.end - 2
                span = Span(span.first, span.end - 2)
            items.append(SortItem(self._number(span), descending))
            if not self.take_op(","):
                return items

    def _number(self, span: Span) -> Span:
        """`(2)` names a column as 2 does: what is in the parentheses."""
        source, inner = self.source, span
        while source.is_op(inner.first, "(") and source.closing[inner.first] == inner.end - 1:
            inner = Span(inner.first + 1, inner.end - 1)
        return inner if inner.end - inner.first == 1 and source.at(inner.first).kind == INTEGER else span

    def _limit(self, first: int) -> Limit:
        count = self.filled(self.expression(None, self._comma_or_offset))
        offset = None
        if self.take_op(","):
            offset, count = count, self.filled(self.expression(None, self.at_clause))
        elif self.word() == "OFFSET":
            self.at += 1
            offset = self.filled(self.expression(None, self.at_clause))
        return Limit(Span(first, self.at), count, offset)

    def _comma_or_offset(self) -> bool:
        return self.word() == "OFFSET" or self._comma_or_clause()


def _unquoted(name: str) -> str:
    """An alias as it was meant, when it was written as a string."""
    return name[1:-1] if name[:1] in ("'", '"') and name[-1:] == name[:1] and len(name) > 1 else name
