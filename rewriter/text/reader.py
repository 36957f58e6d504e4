"""Walking over tokens: the steps that all parsers share, and where clauses and expressions end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from .facts import Block, Query, Span
from .tokens import WORD, Source, Unreadable

SET_OPERATORS: Final = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS"})
CLAUSES: Final = frozenset(
    {"FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "FOR", "LOCK", "INTO", "PROCEDURE"}
    | {"UNION", "EXCEPT", "INTERSECT", "FETCH", "OFFSET", "RETURNING", "QUALIFY"}
)


class Reader(ABC):
    """Reads one statement's tokens from left to right; `at` is where it stands."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.at = 0
        self.end = len(source.tokens)

    # small steps

    def take(self, *words: str) -> bool:
        """Step over one of `words`, if one stands here."""
        if self.at < self.end and self.source.is_word(self.at, *words):
            self.at += 1
            return True
        return False

    def take_op(self, operator: str) -> bool:
        """Step over `operator`, if it stands here."""
        if self.at < self.end and self.source.is_op(self.at, operator):
            self.at += 1
            return True
        return False

    def need(self, *words: str) -> None:
        """Step over one of `words`; Unreadable when none stands here."""
        if not self.take(*words):
            raise self.unreadable(" or ".join(words))

    def need_op(self, operator: str) -> None:
        """Step over `operator`; Unreadable when it does not stand here."""
        if not self.take_op(operator):
            raise self.unreadable(operator)

    def name(self) -> str:
        """Step over a name; Unreadable when none stands here."""
        if self.at >= self.end or not self.source.is_name(self.at):
            raise self.unreadable("a name")
        self.at += 1
        return self.source.tokens[self.at - 1].name

    def unreadable(self, wanted: str) -> Unreadable:
        """The error that something else was expected here."""
        found = self.source.at(self.at).text or "the end" if self.at < self.end else "the end"
        return Unreadable(f"expected {wanted}, found {found}")

    def word(self) -> str:
        """The unquoted word that stands here, in upper case; "" when none does."""
        token = self.source.at(self.at)
        return token.text if self.at < self.end and token.kind == WORD else ""

    def opens_query(self, at: int) -> bool:
        """Whether the parenthesis at `at` holds a query, perhaps in further parentheses."""
        source = self.source
        if source.is_word(at + 1, "SELECT", "WITH"):
            return True
        if source.is_word(at + 1, "VALUES", "TABLE"):
            return not source.is_op(at + 2, "(", ",", ")", ".")
        if not source.is_op(at + 1, "(") or not self.opens_query(at + 1):
            return False
        after = source.closing[at + 1] + 1
        return after == source.closing[at] or source.is_word(after, *SET_OPERATORS, "ORDER", "LIMIT", "FOR")

    @abstractmethod
    def query(self, outer: Block | None) -> Query:
        """A query expression, up to a closing parenthesis or the end."""

    # expressions

    def expression(self, block: Block | None, stop: Callable[[], bool]) -> Span:
        """Step over an expression up to where `stop` says so, or to the end; it may be empty.

        Its subqueries are read and added to `block`.
        """
        first = self.at
        while self.at < self.end and not stop():
            if self.source.is_op(self.at, "("):
                self.parenthesized(block)
            else:
                self.at += 1
        return Span(first, self.at)

    def parenthesized(self, block: Block | None) -> None:
        """Step over parentheses, reading the subqueries in them."""
        close = self.source.closing[self.at]
        self.at += 1
        before, self.end = self.end, close
        if self.opens_query(self.at - 1):
            query = self.query(block)
            if block is not None:
                block.queries.append(query)
        else:
            self.expression(block, lambda: False)
        if self.at != close:
            raise self.unreadable(")")
        self.end = before
        self.at = close + 1

    def at_clause(self) -> bool:
        """Whether a clause of a query block begins here."""
        source = self.source
        word = self.word()
        if word not in CLAUSES or source.is_op(self.at - 1, "."):
            return False
        if word == "FOR":
            return source.is_word(self.at + 1, "UPDATE", "SHARE")
        if word in ("GROUP", "ORDER"):
            return source.is_word(self.at + 1, "BY") and not source.is_word(self.at - 1, "FOR")
        if word == "WINDOW":
            return source.is_name(self.at + 1) and source.is_word(self.at + 2, "AS")
        if word == "LOCK":
            return source.is_word(self.at + 1, "IN")
        if word == "FETCH":
            return source.is_word(self.at + 1, "FIRST", "NEXT")
        if word == "OFFSET":  # the standard's form, OFFSET 5 ROWS; `_limit` knows its own; else a name
            return source.is_word(self.at + 2, "ROW", "ROWS")
        return True

    def _comma_or_clause(self) -> bool:
        return self.source.is_op(self.at, ",") or self.at_clause()

    def filled(self, span: Span) -> Span:
        """`span`, unless it is empty: then Unreadable."""
        if span.first == span.end:
            raise self.unreadable("an expression")
        return span

    def inside(self, outer: Block | None) -> Query:
        """The query in the parentheses that open here."""
        close = self.source.closing[self.at]
        before, self.end = self.end, close
        self.at += 1
        query = self.query(outer)
        if self.at != close:
            raise self.unreadable(")")
        self.end = before
        self.at = close + 1
        return query
