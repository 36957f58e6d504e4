"""Databases and tables whose rows a query wants from a view, from the values in its conditions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from rewriter.plain.views import Shown
from rewriter.plans import SystemViews, Values
from rewriter.plans.limits import Operand
from rewriter.route.routing import split_strings
from rewriter.text.literals import NotPlain, parameter_text, slot_text, unquote

if TYPE_CHECKING:
    from proxy.session.state import Session

_PLAIN: Final = re.compile(r"[0-9A-Za-z_$]+")
_WILD: Final = re.compile(r"[%_\\]")


class Wanted(NamedTuple):
    """Names of databases, and how others begin that are wanted, too; None: any. Names of tables."""

    schemas: frozenset[str] | None = None
    prefixes: tuple[str, ...] = ()
    tables: tuple[str, ...] | None = None

    @property
    def named(self) -> bool:
        """Whether only databases are wanted that are named."""
        return self.schemas is not None and not self.prefixes

    def of(self, shown: Iterable[Shown]) -> list[Shown]:
        """Those of the databases that may have wanted rows."""
        if self.tables is not None:
            tables = set(map(_key, self.tables))
            shown = [one for one in shown if one.tables is None or tables.intersection(map(_key, one.tables))]
        if self.schemas is None:
            return list(shown)
        keys = set(map(_key, self.schemas))
        return [one for one in shown if (key := _key(one.logical)) in keys or key.startswith(self.prefixes)]


def wanted(session: Session, plan: SystemViews, values: Values) -> list[Wanted]:
    """What is wanted of each of the plan's views. `values`: the literals and the session's values."""
    found = []
    for limits in plan.limits:
        schemas, prefixes = _names(session, limits.schemas, values)
        tables, patterns = _names(session, limits.tables, values)
        only = tables is not None and not patterns and all(map(_PLAIN.fullmatch, tables))
        found.append(
            Wanted(
                None if schemas is None else frozenset(schemas),
                tuple(map(_key, prefixes)),
                tuple(dict.fromkeys(tables)) if only and tables is not None else None,
            )
        )
    return found


def _names(
    session: Session, operands: Sequence[Operand] | None, values: Values
) -> tuple[list[str] | None, list[str]]:
    """The names, and what patterns begin with; None for what cannot be read."""
    if operands is None:
        return None, []
    names, prefixes = [], []
    for operand in operands:
        try:
            texts = _texts(session, operand, values[operand.value])
        except (NotPlain, UnicodeDecodeError):
            return None, []
        for text in texts:
            wild = _WILD.search(text) if operand.pattern else None
            if wild is None:
                names.append(text)
            else:
                prefixes.append(text[: wild.start()])
    return names, prefixes


def _texts(session: Session, operand: Operand, raw: bytes) -> list[str]:
    """The texts of a value; none of NULL, which equals nothing. Raises NotPlain and UnicodeDecodeError."""
    backslashes, codec = not session.no_backslash_escapes, session.env.codec
    if operand.listed:
        strings = split_strings(raw, backslashes)
        return [unquote(one[1:], backslashes).decode(codec) for one in strings]
    if operand.literal:
        return [unquote(raw, backslashes).decode(codec)]
    if raw == b"NULL":
        return []
    try:
        return [slot_text(raw).decode()]
    except NotPlain:
        return [parameter_text(raw, backslashes).decode(codec)]


def _key(name: str) -> str:
    """What names have in common that some server takes for equal: without accents, case and blanks behind."""
    letters = unicodedata.normalize("NFKD", name)
    return "".join(one for one in letters if not unicodedata.combining(one)).casefold().rstrip(" ")
