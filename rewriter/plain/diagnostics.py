"""GET DIAGNOSTICS: the proxy keeps the diagnostics of a session, whichever connections its statements use."""

from __future__ import annotations

from typing import Final

from rewriter.plan import Plan
from rewriter.plans.builtins import GetDiagnostics
from rewriter.route.context import Statement
from rewriter.route.scope import Refuse
from rewriter.splice import Template
from rewriter.sql.statements.table import FORMS, recognize
from rewriter.text.tokens import NAME, SYSTEM, VARIABLE, WORD, Source

from .builtins import Texts, Words
from .unsharded import About, Place, Text

_GET: Final = FORMS["GET DIAGNOSTICS"]
_OF_STATEMENT: Final = frozenset({"NUMBER", "ROW_COUNT"})
_OF_CONDITION: Final = frozenset(
    {"CLASS_ORIGIN", "SUBCLASS_ORIGIN", "RETURNED_SQLSTATE", "MESSAGE_TEXT", "MYSQL_ERRNO"}
    | {"CONSTRAINT_CATALOG", "CONSTRAINT_SCHEMA", "CONSTRAINT_NAME", "CATALOG_NAME", "SCHEMA_NAME"}
    | {"TABLE_NAME", "COLUMN_NAME", "CURSOR_NAME"}
)
_ROW: Final = "ROW_NUMBER"


def get_diagnostics(statement: Statement) -> Plan | None:
    """GET [CURRENT] DIAGNOSTICS with user variables. Any other is an error outside of a routine, which a
    server words.
    """
    source = statement.source
    recognized = recognize(source)
    if recognized.form is not _GET:
        return None
    words = Words(source, recognized.end)
    texts = Texts(statement)
    condition = None
    known = _OF_STATEMENT
    if words.take("CONDITION"):
        known = _OF_CONDITION
        condition = _condition(words, texts)
        if statement.names.env.flavour.numbers_conditions:
            known |= {_ROW}
    items = _items(words)
    if source.is_word(1, "STACKED") or items is None or not known.issuperset(item for _, item in items):
        return Text(statement).plan(Place(), About())
    if any(item == _ROW for _, item in items):
        reason = "its value is of the server's connection, which sessions share"
        raise Refuse(
            "unsupported", what=f"GET DIAGNOSTICS … {_ROW}", reason=reason, alternative="Read MESSAGE_TEXT."
        )
    return GetDiagnostics(items=items, condition=condition, session_slots=tuple(texts.slots.names))


def _condition(words: Words, texts: Texts) -> Template | None:
    """The number of a condition; None where none stands. Raises Refuse for what the proxy cannot evaluate."""
    source, first = words.source, words.at
    while not words.done and not _is_target(source, words.at):
        words.at += 1
    if words.done or words.at == first:
        return None
    constant = source.is_word(first, "NULL", "TRUE", "FALSE")
    if words.at - first > 1 or (source.at(first).kind in (WORD, NAME, SYSTEM) and not constant):
        refuse_condition()
    return texts.template(first, words.at)


def refuse_condition() -> None:
    """Raise Refuse for a number of a condition that only a server can evaluate."""
    raise Refuse("unsupported", **CONDITION)


CONDITION: Final = {
    "what": "GET DIAGNOSTICS with this number of a condition",
    "reason": "the proxy answers it, and evaluates no expressions",
    "alternative": "Write the number, or set a user variable to it.",
}


def _is_target(source: Source, at: int) -> bool:
    return source.at(at).kind == VARIABLE and source.is_op(at + 1, "=")


def _items(words: Words) -> tuple[tuple[str, str], ...] | None:
    """The variables and what they get, to the end; None for anything else."""
    found = []
    while _is_target(words.source, words.at) and words.source.at(words.at + 2).kind == WORD:
        found.append((words.source.at(words.at).text, words.source.at(words.at + 2).text))
        words.at += 3
        if words.done:
            return tuple(found)
        if not words.op(","):
            return None
    return None
