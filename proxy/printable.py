"""Texts of others, for a terminal: clients' statements, what servers and pages answer."""

from __future__ import annotations

import codecs
import io
import re
from typing import Any, Final, TextIO

_ODD: Final = "\N{REPLACEMENT CHARACTER}"

_SIMPLER: Final = dict(zip("▁▂▃▄▅▆▇█…–—·×→’‘“”µ✓", "_.:-=+*#~--|x>''\"\"u+", strict=True))
"""Of our own characters: one for one, so that columns stay below each other."""
_LEFT_OUT: Final = re.compile(r"(?<![^ ({])…")
"""What stands for something (`{keyspace: …}`): what ends a name that was cut is one character still."""


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


def _simpler(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    parts = (
        "..." if _LEFT_OUT.match(error.object, at) else _SIMPLER.get(error.object[at], "?")
        for at in range(error.start, error.end)
    )
    return "".join(parts), error.end


codecs.register_error("simpler", _simpler)


def simplify(stream: TextIO) -> None:
    """Let it write what its encoding lacks with other characters, where it would fail: what somebody else has
    said of that stays.
    """
    if not isinstance(stream, io.TextIOWrapper):
        return
    utf8 = codecs.lookup(stream.encoding).name == "utf-8"
    if stream.errors == "strict" or (stream.errors == "surrogateescape" and not utf8):
        stream.reconfigure(errors="simpler")
