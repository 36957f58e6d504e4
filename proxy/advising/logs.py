"""Which kind of log a file is, by what is in it, and its statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, Protocol

from . import digests, general, slow
from .digests import Digests
from .entries import Entry, Notes
from .general import General
from .lines import Lines
from .script import Script
from .slow import Slow


class Format(StrEnum):
    """The kinds of logs."""

    GENERAL = "general"
    SLOW = "slow"
    DIGEST = "digest"
    SQL = "sql"


class Reader(Protocol):
    """Reads one log."""

    def read(self, lines: Iterable[bytes]) -> Iterator[Entry]:
        """The statements, in order."""
        ...


READERS: Final[Mapping[Format, Callable[[Notes], Reader]]] = {
    Format.GENERAL: General,
    Format.SLOW: Slow,
    Format.DIGEST: Digests,
    Format.SQL: Script,
}


def format_of(beginning: bytes) -> Format:
    """The format of a log that begins so; SQL is what nothing else is."""
    lines = beginning.replace(b"\r\n", b"\n").split(b"\n")
    if digests.is_heading(lines[0]):
        return Format.DIGEST
    if any(slow.HEAD.match(line) for line in lines):
        return Format.SLOW
    if any(general.ENTRY.fullmatch(line) or general.START.fullmatch(line) for line in lines):
        return Format.GENERAL
    return Format.SQL


def entries(lines: Lines, format: Format, notes: Notes) -> Iterator[Entry]:
    """The statements of a log. Raises OSError and EOFError."""
    return READERS[format](notes).read(lines)
