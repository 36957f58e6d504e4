"""GET DIAGNOSTICS: what the session keeps of its last statement, as values of user variables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from proxy.engine.read_back import literal
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic, Outcome
from proxy.session.sqlstates import sqlstate_of
from proxy.session.state import Session
from proxy.wire.constants import ColumnType
from rewriter.plain.diagnostics import CONDITION
from rewriter.plans import Values
from rewriter.plans.builtins import GetDiagnostics
from rewriter.splice import Template
from rewriter.text.literals import NotPlain, parameter_integer

from .set import check_name

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_SIGNALLED: Final = frozenset({1642, 1643, 1644})
"""Error numbers of conditions that SIGNAL makes, if it gives them no other."""
_NO_SUCH_CONDITION: Final = Diagnostic("Error", 1758, "Invalid condition number", "35000")
_CONSTANTS: Final = {b"NULL": 0, b"FALSE": 0, b"TRUE": 1}
_KEPT: Final = re.compile(rb"_\w+ ?('[^'\\]*')(?: COLLATE \w+)?")
"""A user variable's value as the session keeps a text."""
_STANDARD: Final = frozenset("01234ABCDEFGH")
"""First characters of the classes of SQLSTATE that the standard defines, or leaves to itself."""


def get_diagnostics(client: Exchange, plan: GetDiagnostics, values: Values) -> None:
    """Set the user variables. A number of no condition is a condition itself, and sets nothing."""
    session = client.session
    for variable, _ in plan.items:
        check_name(session, variable)
    if plan.condition is None:
        of_statement = {"NUMBER": b"%d" % len(session.diagnostics), "ROW_COUNT": b"%d" % session.row_count}
        found = {f"@{variable}": of_statement[item] for variable, item in plan.items}
    else:
        number = _number(plan.condition, values)
        if not 1 <= number <= len(session.diagnostics):
            session.note_condition(_NO_SUCH_CONDITION)
            session.apply(Outcome(-1))
            client.reply_ok(warnings=1)
            return
        condition = session.diagnostics[number - 1]
        found = {f"@{variable}": _item(session, condition, item) for variable, item in plan.items}
    session.take_settings(session.settings.with_values(found))
    if session.tracker is not None:
        session.tracker.changed = True
    client.reply_ok()


def _number(condition: Template, values: Values) -> int:
    text = condition.render(values)
    known = _CONSTANTS.get(text.upper())
    if known is not None:
        return known
    kept = _KEPT.fullmatch(text)
    try:
        return parameter_integer(text if kept is None else kept[1])
    except NotPlain:
        raise ProxyError("unsupported", **CONDITION) from None


def _item(session: Session, condition: Diagnostic, item: str) -> bytes:
    """The SQL literal of an item of a condition. ProxyError where the session does not know it."""
    flavour = session.env.flavour
    state = condition.sqlstate
    usual = sqlstate_of(condition.code, flavour=flavour)
    signalled = condition.code in _SIGNALLED or (state and state != usual)
    if item == "MYSQL_ERRNO":
        return b"%d" % condition.code
    if item == "MESSAGE_TEXT":
        return _text(condition.message)
    if item == "RETURNED_SQLSTATE" and (state or not signalled):
        return _text(state or usual)
    if signalled:
        raise ProxyError(
            "unsupported",
            what=f"GET DIAGNOSTICS … {item} of a condition that SIGNAL has made",
            reason="it is on the server's connection, which sessions share",
            alternative="Read MYSQL_ERRNO and MESSAGE_TEXT.",
        )
    if item in ("CLASS_ORIGIN", "SUBCLASS_ORIGIN") and flavour.names_origins:
        return _text("ISO 9075" if usual[0] in _STANDARD else "MySQL")
    return _text("")


def _text(value: str) -> bytes:
    return literal(value.encode("utf-8", "replace"), ColumnType.VAR_STRING)
