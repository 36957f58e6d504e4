"""How FOUND_ROWS() is known after a statement that one host runs. After most it is the number of rows that
were sent, or what it was before when none are; these are the others.
"""

from __future__ import annotations

from typing import Final

from config.flavour import Flavour
from rewriter.text.tokens import INTEGER, WORD, Source

from .forms import FoundRows, Kind, StatementForm
from .inner import behind_explain
from .table import FORMS, form_of

ASK: Final = "ask"
"""Only the server knows."""
KEEP: Final = "keep"
"""The rows that are sent do not count."""
ONE: Final = "one"
"""Always 1."""
PRIMED: Final = "primed"
"""Only the server knows, and whether it is what it was before."""

Found = str | int
"""One of these, "" for the usual, or the literal that holds the OFFSET: the rows before it count too."""

_SETS: Final = ("UNION", "EXCEPT", "INTERSECT")
_ASKED: Final = frozenset({"SQL_CALC_FOUND_ROWS", "INTO", "FETCH", "PROCEDURE"})


def found_rows_of(source: Source, form: StatementForm, *, flavour: Flavour) -> Found:
    """How FOUND_ROWS() is known after the statement with this row."""
    words = {token.text for token in source.tokens if token.kind == WORD}
    of_selects = flavour.found_rows_of_selects
    if "RETURNING" in words and form.writes_rows:
        return KEEP
    match form.found_rows:
        case FoundRows.ROWS:
            return ""
        case FoundRows.QUERY:
            return _of_query(source, words)
        case FoundRows.INSERT:
            return "" if "SELECT" not in words else PRIMED if of_selects else ASK
        case FoundRows.UPDATE:
            return ASK if _several(source, "SET") else ""  # see `Session.matched`
        case FoundRows.DELETE:
            joins = words.intersection({"USING", "JOIN"}) or _several(source, "WHERE")
            return ASK if joins else ""
        case FoundRows.DO:
            return ONE if not of_selects else ASK if "SELECT" in words else ""
        case FoundRows.CREATE:
            return PRIMED if of_selects and "SELECT" in words else ""  # if it fails, too
        case FoundRows.EXPLAIN:
            return _explained(source, form, words, flavour=flavour)
        case FoundRows.KEEP:
            return KEEP
        case FoundRows.SELECTS:
            return KEEP if of_selects else ""
        case FoundRows.ASK:
            return ASK
        case FoundRows.PRIMED:
            return PRIMED


def _of_query(source: Source, words: set[str]) -> Found:
    if words.intersection(_ASKED):
        return ASK
    if "LIMIT" not in words:
        return ""
    return ASK if words.intersection(_SETS) else _offset(source)


def _explained(source: Source, form: StatementForm, words: set[str], *, flavour: Flavour) -> Found:
    """EXPLAIN that runs the statement leaves what that leaves."""
    at = behind_explain(source, 0).at
    explained = form_of(source, at)
    if form.words == "ANALYZE":
        return PRIMED
    if explained.kind not in (Kind.QUERY, Kind.CHANGE):
        return ""
    if any(source.is_word(place, "ANALYZE") for place in range(at)):
        return PRIMED
    selects = explained is FORMS["SELECT"]
    return ASK if flavour.found_rows_of_selects and "FROM" not in words and selects else KEEP


def _several(source: Source, end: str) -> bool:
    """Whether the tables before the word `end` are more than one."""
    at = 1
    while at < len(source.tokens) and not source.is_word(at, end):
        if source.is_op(at, ",") or source.is_word(at, "JOIN", "STRAIGHT_JOIN"):
            return True
        at = source.closing.get(at, at) + 1
    return False


def _offset(source: Source) -> Found:
    """The literal of the statement's own OFFSET."""
    at = 0
    while at < len(source.tokens) and not source.is_word(at, "LIMIT"):
        at = source.closing.get(at, at) + 1
    if source.is_op(at + 2, ","):
        at += 1
    elif source.is_word(at + 2, "OFFSET"):
        at += 3
    else:
        return ""
    token = source.at(at)
    return token.literal if token.kind == INTEGER and token.literal >= 0 else ASK
