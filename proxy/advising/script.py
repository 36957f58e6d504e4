"""Statements with `;` between, as the `mysql` program reads them: DELIMITER, quotes and comments included."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from .entries import CUT_OFF, MAX_STATEMENT, TOO_LONG, Entry, Notes, name_of
from .lines import Lines

_INSIDE: Final = {
    b"'": re.compile(rb"\\.|''|'", re.DOTALL),
    b'"': re.compile(rb'\\.|""|"', re.DOTALL),
    b"`": re.compile(rb"``|`"),
    b"/*": re.compile(rb"\*/"),
}
_DELIMITER: Final = re.compile(
    rb"\s*+DELIMITER\s++(\S{1,15})\s*+", re.IGNORECASE
)  # `mysql` takes no longer one
_USE: Final = re.compile(rb"\s*USE\s+(`(?:[^`]|``)+`|[^\s;]+)\s*", re.IGNORECASE)
_COMMENTS: Final = re.compile(
    rb"(?:\s++|--(?:\s[^\n]*+|\Z|(?=\n))|#[^\n]*+|/\*(?![!+]|M!)(?:[^*]++|\*(?!/))*+\*/)*+"
)


class Script:
    """Reads one."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._delimiter(b";")
        self._database: str | None = None
        self._begin()

    def _delimiter(self, text: bytes) -> None:
        self._end = text
        self._special = re.compile(rb"['\"`]|--(?=\s|$)|#|/\*|" + re.escape(text))

    def _begin(self) -> None:
        self._text: list[bytes] = []
        self._size = 0
        self._within = b""  # the quote or comment that the next line goes on with

    def read(self, lines: Iterable[bytes]) -> Iterator[Entry]:
        """The statements, in order."""
        for line in lines:
            if isinstance(lines, Lines) and lines.cut:
                self._notes.skipped[TOO_LONG] += 1
                self._begin()
                continue
            found = None if self._within else _DELIMITER.fullmatch(line)
            if found is not None and _is_nothing(b"\n".join(self._text)):
                self._begin()
                self._delimiter(found[1])
                continue
            yield from self._line(line)
        if self._within:
            self._notes.skipped[CUT_OFF] += 1
        else:
            yield from self._entry()

    def _line(self, line: bytes) -> Iterator[Entry]:
        begin = at = 0
        while True:
            if self._within:
                found = _INSIDE[self._within].search(line, at)
                if found is None:
                    break
                at = found.end()
                if found[0] in (self._within, b"*/"):
                    self._within = b""
                continue
            found = self._special.search(line, at)
            if found is None or found[0] in (b"--", b"#"):
                break
            at = found.end()
            if found[0] == self._end:
                self._keep(line[begin : found.start()])
                yield from self._entry()
                begin = at
            else:
                self._within = found[0]
        self._keep(line[begin:])

    def _keep(self, part: bytes) -> None:
        if self._text or part.strip() or self._within:
            self._size += len(part) + 1
            if self._size <= MAX_STATEMENT:
                self._text.append(part)

    def _entry(self) -> Iterator[Entry]:
        """What has been read."""
        text, size = self._text, self._size
        self._begin()
        if size >= MAX_STATEMENT:
            self._notes.skipped[TOO_LONG] += 1
            return
        sql = b"\n".join(text)
        if _is_nothing(sql):
            return
        comments = _COMMENTS.match(sql)
        use = _USE.fullmatch(sql, comments.end() if comments is not None else 0)
        if use is not None:
            self._database = name_of(use[1])
        yield Entry(sql, self._database)


def _is_nothing(sql: bytes) -> bool:
    """Whether there are only comments."""
    comments = _COMMENTS.match(sql)
    return comments is not None and comments.end() == len(sql)
