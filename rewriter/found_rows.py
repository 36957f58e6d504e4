"""How FOUND_ROWS() is known after a statement that one host runs. After most it is the number of rows that
were sent, or what it was before when none are; these are the others.
"""

from __future__ import annotations

from typing import Final

from .tokens import INTEGER, WORD, Source

ASK: Final = "ask"
"""Only the server knows."""
KEEP: Final = "keep"
"""The rows that are sent do not count."""
MATCHED: Final = "matched"
"""What UPDATE has found, which its reply tells."""

Found = str | int
"""One of these, "" for the usual, or the literal that holds the OFFSET: the rows before it count too."""

_SETS: Final = ("UNION", "EXCEPT", "INTERSECT")
_QUIET: Final = frozenset({"ANALYZE", "CHECK", "CHECKSUM", "OPTIMIZE", "REPAIR", "HANDLER"})


def found_rows_of(source: Source, verb: str, *, mariadb: bool) -> Found:
    """How FOUND_ROWS() is known after the statement."""
    words = {token.text for token in source.tokens if token.kind == WORD}
    if verb in ("SELECT", "WITH") or source.is_op(0, "("):
        if "SQL_CALC_FOUND_ROWS" in words or "INTO" in words:
            return ASK
        if "LIMIT" not in words:
            return ""
        return ASK if words.intersection(_SETS) else _offset(source)
    if "RETURNING" in words:
        return KEEP
    if verb in ("INSERT", "REPLACE"):
        return ASK if "SELECT" in words else ""
    if verb == "UPDATE":
        several = _several(source, "SET")
        return ASK if several else "" if mariadb else MATCHED
    if verb == "DELETE":
        return ASK if words.intersection({"USING", "JOIN"}) or _several(source, "WHERE") else ""
    if verb in _QUIET or (verb == "SHOW" and source.is_word(1, "CREATE")):
        return KEEP
    if verb in ("EXPLAIN", "DESCRIBE", "DESC"):
        return KEEP if len(source.tokens) > 2 and words.intersection(_EXPLAINED) else ""
    return ""


_EXPLAINED: Final = ("SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "TABLE", "VALUES")


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
