"""Texts of others, for a terminal: clients' statements, what servers and pages answer."""

from __future__ import annotations

from typing import Any, Final

_ODD: Final = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Without what a terminal would obey: escape sequences, control characters, changes of direction.

    >>> printable("a\\x1b[2Jb")
    'a\ufffd[2Jb'
    """
    return text if text.isprintable() else "".join(one if one.isprintable() else _ODD for one in text)


def printable_lines(text: str) -> str:
    """The same of a text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def all_printable(value: Any) -> Any:
    """A value as JSON has it, with all of its texts printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [all_printable(one) for one in value]
    if isinstance(value, dict):
        return {printable(name): all_printable(one) for name, one in value.items()}
    return value
