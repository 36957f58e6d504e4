"""The databases of the tables in a statement, as the reader of clauses has them: beside what is judged by
words alone (reachable.py), since a user's list of databases hangs on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from rewriter.text.facts import Block
from rewriter.text.parse import Parser
from rewriter.text.parse_write import WriteParser, changes_behind_with
from rewriter.text.prefixes import behind_explain, is_explain, tail
from rewriter.text.tokens import Source, Unreadable

from .scope import INFORMATION_SCHEMA

_NOT_READ: Final = (Unreadable, IndexError, KeyError)


def databases_read(source: Source) -> tuple[str, ...]:
    """Those in front of tables' names, wherever the statement or a query in it can be read; of
    information_schema others decide.
    """
    found: dict[str, None] = {}
    for block in _blocks(source):
        for ref in block.tables:
            if ref.database is not None and ref.database.lower() != INFORMATION_SCHEMA:
                found[ref.database] = None
    return tuple(found)


def _blocks(source: Source) -> Iterator[Block]:
    if not any(source.is_op(at, ".") for at in range(len(source.tokens))):
        return
    if is_explain(source, 0):
        source = tail(source, behind_explain(source, 0).at)
    whole = _whole(source)
    if whole is not None:
        yield from whole
        return
    at = 0
    while at < len(source.tokens):
        if source.is_op(at, "("):
            yield from _inner(source, at)
            at = source.closing[at]
        elif source.is_word(at, "SELECT") and at:
            yield from _behind(source, at)
        at += 1


def _whole(source: Source) -> list[Block] | None:
    """The blocks of a query or a change of rows; None for what is none, or cannot be read."""
    try:
        if source.is_word(0, "INSERT", "REPLACE"):
            insertion = WriteParser(source).insert()
            rows = [] if insertion.query is None else list(insertion.query.all_blocks())
            return [*insertion.block.all_blocks(), *rows]
        if source.is_word(0, "UPDATE", "DELETE") or changes_behind_with(source):
            return list(WriteParser(source).change().whole.all_blocks())
        if source.is_word(0, "SELECT", "WITH", "VALUES", "TABLE") or source.is_op(0, "("):
            parser = Parser(source)
            query = parser.query(None)
            return list(query.all_blocks()) if parser.at >= parser.end else None
    except _NOT_READ:
        pass
    return None


def _inner(source: Source, at: int) -> list[Block]:
    """The blocks of the queries in the parentheses that open at `at`."""
    parser, block = Parser(source), Block(at)
    parser.at = at
    with suppress(*_NOT_READ):
        parser.parenthesized(block)
    return [one for query in block.queries for one in query.all_blocks()]


def _behind(source: Source, at: int) -> list[Block]:
    """The blocks of the query that begins at `at`, whatever is behind it."""
    parser = Parser(source)
    parser.at = at
    with suppress(*_NOT_READ):
        return list(parser.query(None).all_blocks())
    return []
