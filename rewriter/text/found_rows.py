"""How FOUND_ROWS() is known after a statement that one host runs. After most it is the number of rows that
were sent, or what it was before when none are; these are the others.
"""

from __future__ import annotations

from typing import Final

from config.flavour import Flavour

from .tokens import INTEGER, WORD, Source

ASK: Final = "ask"
"""Only the server knows."""
KEEP: Final = "keep"
"""The rows that are sent do not count."""
MATCHED: Final = "matched"
"""What UPDATE has found, which its reply tells."""

ONE: Final = "one"
"""Always 1."""
PRIMED: Final = "primed"
"""Only the server knows, and whether it is what it was before."""

Found = str | int
"""One of these, "" for the usual, or the literal that holds the OFFSET: the rows before it count too."""

_SETS: Final = ("UNION", "EXCEPT", "INTERSECT")
_QUIET: Final = frozenset({"CHECK", "CHECKSUM", "OPTIMIZE", "REPAIR", "HANDLER", "HELP", "XA"})
_QUIETLY_SHOWN: Final = (
    *("CREATE", "PROCESSLIST", "GRANTS", "PRIVILEGES", "PROFILES", "ENGINE", "BINLOG", "RELAYLOG", "BINARY"),
    *("REPLICA", "REPLICAS", "SLAVE", "MASTER"),
)


def found_rows_of(source: Source, verb: str, *, flavour: Flavour) -> Found:
    """How FOUND_ROWS() is known after the statement."""
    words = {token.text for token in source.tokens if token.kind == WORD}
    of_selects = flavour.found_rows_of_selects
    if verb in ("SELECT", "WITH") or source.is_op(0, "("):
        if words.intersection(_ASKED):
            return ASK
        if "LIMIT" not in words:
            return ""
        return ASK if words.intersection(_SETS) else _offset(source)
    if "RETURNING" in words:
        return KEEP
    if verb in ("INSERT", "REPLACE"):
        return "" if "SELECT" not in words else PRIMED if of_selects else ASK
    if verb == "UPDATE":
        several = _several(source, "SET")
        return ASK if several else "" if of_selects else MATCHED
    if verb == "DELETE":
        return ASK if words.intersection({"USING", "JOIN"}) or _several(source, "WHERE") else ""
    if verb in ("CALL", "EXECUTE", "BEGIN"):
        return PRIMED
    if verb == "DO":
        return ONE if not of_selects else ASK if "SELECT" in words else ""
    if verb == "CREATE":
        return (
            ASK if of_selects and "SELECT" in words and source.is_word(1, "TABLE", "TEMPORARY", "OR") else ""
        )
    if verb == "ANALYZE":
        return PRIMED if words.intersection(_EXPLAINED - {"TABLE"}) else KEEP
    if verb in _QUIET or (verb == "VALUES" and of_selects):
        return KEEP
    if verb == "SHOW":
        shown = 2 if source.is_word(1, "FULL") else 1
        return KEEP if source.is_word(shown, *_QUIETLY_SHOWN) else ""
    if verb in ("EXPLAIN", "DESCRIBE", "DESC"):
        return _explained(source, words, flavour=flavour)
    return ""


_ASKED: Final = frozenset({"SQL_CALC_FOUND_ROWS", "INTO", "FETCH", "PROCEDURE"})
_EXPLAINED: Final = frozenset({"SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "TABLE", "VALUES"})


def _explained(source: Source, words: set[str], *, flavour: Flavour) -> Found:
    if len(source.tokens) < 3 or not words.intersection(_EXPLAINED):
        return ""
    if "ANALYZE" in words:
        return PRIMED
    return ASK if flavour.found_rows_of_selects and "FROM" not in words and "SELECT" in words else KEEP


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
