"""How many tables a statement joins, counted in its tokens before anything else is done with it.

A server takes 61 tables in one query block and refuses more (1116). To look into a join takes the planner a
time that grows with the square of its tables, so it need not look into what no server would run. Only what
is surely a table of the block is counted: in a FROM, an UPDATE or a DELETE … USING, what begins it, follows a
comma or a JOIN, also within the parentheses of a join. A derived table is one, and a block of its own.
"""

from __future__ import annotations

from typing import Final

from .tokens import OPERATOR, WORD, Source

MAX_TABLES: Final = 61
"""So many tables take MySQL and MariaDB in a join."""

_JOINS: Final = ("JOIN", "STRAIGHT_JOIN")
_BEFORE_TABLE: Final = ("FROM", "UPDATE", *_JOINS, ",", "(")
_WHERE: Final = ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW", "FOR", "LOCK", "PROCEDURE")
_ENDS: Final = frozenset((*_WHERE, "INTO", "SET", "VALUES", "VALUE"))
"""Words behind the tables of a block. That one of them may be a name in some place is no harm: then less is
counted."""
_INDEX_FOR: Final = "INDEX FOR"
_NEW_BLOCK: Final = ("SELECT", "UNION", "EXCEPT", "INTERSECT", "MINUS")
_SUBQUERY: Final = ("SELECT", "WITH", "VALUES", "TABLE")


class _Block:
    """A query block: its tables so far, and whether tables are what is being listed."""

    __slots__ = ("listing", "query", "tables")

    def __init__(self) -> None:
        self.query = False
        self.tables = 0
        self.listing = False

    def begin(self, *, listing: bool) -> None:
        self.tables, self.listing = int(listing), listing


def most_tables(source: Source) -> int:
    """The tables of the block that has most; 0 for a statement of few words."""
    tokens = source.tokens
    if len(tokens) <= MAX_TABLES:
        return 0
    deletes = source.is_word(0, "DELETE")
    block, stack, most = _Block(), [], 0
    block.query = True
    before = ""  # the word or operator before
    for index, token in enumerate(tokens):
        text = token.text if token.kind in (WORD, OPERATOR) else ""
        if text == "FOR" and before in ("INDEX", "KEY"):
            text = _INDEX_FOR
        elif before == _INDEX_FOR:
            text = ""  # JOIN, ORDER or GROUP: what the index is for
        if token.kind == OPERATOR and text == "(":
            stack.append(block)
            joined = block.listing and before in _BEFORE_TABLE
            if not joined or source.is_word(index + 1, *_SUBQUERY):
                block = _Block()
        elif token.kind == OPERATOR and text == ")" and stack:
            block = stack.pop()
        elif text:
            _read(block, text, update=index == 0, using=deletes and not stack)
            most = max(most, block.tables)
        before = text
    return most


def _read(block: _Block, text: str, *, update: bool, using: bool) -> None:
    """A word or an operator. `update`: the statement's first; `using`: a DELETE's own USING may come."""
    if text in _NEW_BLOCK:
        block.query = True
        block.begin(listing=False)
    elif text == ";":
        block.begin(listing=False)
    elif (text == "FROM" and block.query) or (text == "USING" and using) or (text == "UPDATE" and update):
        block.begin(listing=True)
    elif not block.listing:
        return
    elif text == "," or text in _JOINS:
        block.tables += 1
    elif text in _ENDS:
        block.listing = False
