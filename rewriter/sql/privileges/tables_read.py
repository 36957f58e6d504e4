"""The databases of the tables in a statement, as the reader of clauses has them: beside what is judged by
words alone (reachable.py), since a user's list of databases hangs on it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rewriter.route.scope import INFORMATION_SCHEMA
from rewriter.sql.statements.forms import Kind
from rewriter.sql.statements.inner import behind_explain, behind_set_statement, is_explain, tail
from rewriter.sql.statements.table import form_of
from rewriter.text.facts import Block, Span
from rewriter.text.parse import Parser
from rewriter.text.parse_write import WriteParser, changes_behind_with
from rewriter.text.tokens import OPERATOR, Source, Unreadable

_NOT_READ: Final = (Unreadable, IndexError, KeyError)


class Read(NamedTuple):
    """`databases`: those in front of tables' names in what was read. `spans`: the queries and changes of rows
    that were read whole, where a qualifier that is none of these is a table's or an alias; `unread`: those
    that were not.
    """

    databases: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    unread: tuple[Span, ...] = ()

    def covers(self, at: int) -> bool:
        """Whether the token at `at` is in what was read whole."""
        return any(span.first <= at < span.end for span in self.spans)

    def misses(self, at: int) -> bool:
        """Whether it is in what could not be read."""
        return any(span.first <= at < span.end for span in self.unread)


def tables_read(source: Source) -> Read:
    """What the clauses say, wherever the statement or a query in it can be read; of information_schema others
    decide.
    """
    if not any(token.text == "." and token.kind == OPERATOR for token in source.tokens):
        return Read()
    first = behind_explain(source, 0).at if is_explain(source, 0) else 0
    if form_of(source).words == "SET STATEMENT":
        first = behind_set_statement(source)
    reader = _Reader(source)
    if form_of(source, first).kind in (Kind.QUERY, Kind.CHANGE):
        reader.whole(first)
    else:
        reader.inner(first)
    return Read(tuple(reader.databases), tuple(reader.spans), tuple(reader.unread))


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.databases: dict[str, None] = {}
        self.spans: list[Span] = []
        self.unread: list[Span] = []

    def whole(self, first: int) -> None:
        """A query or a change of rows, from `first` to the end."""
        end = len(self.source.tokens)
        try:
            blocks = _blocks_of(tail(self.source, first) if first else self.source)
        except _NOT_READ:
            self.unread.append(Span(first, end))
            self.inner(first)
            return
        self._note(blocks)
        self.spans.append(Span(first, end))

    def inner(self, first: int) -> None:
        """Queries within another statement."""
        source, at = self.source, first
        while at < len(source.tokens):
            if source.is_op(at, "("):
                self._parenthesized(at)
                at = source.closing[at]
            elif source.is_word(at, "SELECT") and at > first:
                self.whole(at)
                return
            at += 1

    def _parenthesized(self, at: int) -> None:
        parser, block = Parser(self.source), Block(at)
        parser.at = at
        try:
            parser.parenthesized(block)
        except _NOT_READ:
            self.unread.append(Span(at, self.source.closing[at] + 1))
            return
        for query in block.queries:
            self._note(list(query.all_blocks()))
            self.spans.append(Span(query.first, query.end))

    def _note(self, blocks: list[Block]) -> None:
        for block in blocks:
            for ref in block.tables:
                if ref.database is not None and ref.database.lower() != INFORMATION_SCHEMA:
                    self.databases[ref.database] = None


def _blocks_of(source: Source) -> list[Block]:
    """The blocks of a query or a change of rows. Raises what `_NOT_READ` has."""
    if source.is_word(0, "INSERT", "REPLACE"):
        insertion = WriteParser(source).insert()
        rows = [] if insertion.query is None else list(insertion.query.all_blocks())
        return [*insertion.block.all_blocks(), *rows]
    if source.is_word(0, "UPDATE", "DELETE") or changes_behind_with(source):
        return list(WriteParser(source).change().whole.all_blocks())
    parser = Parser(source)
    query = parser.query(None)
    if parser.at < parser.end:
        raise parser.unreadable("the end")
    return list(query.all_blocks())
