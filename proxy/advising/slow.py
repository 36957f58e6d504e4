"""The slow query log. An entry is some lines that begin with `# `, settings that the server adds, and the
statement up to the next such lines:

    # Time: 2026-11-23T12:46:00.817846Z
    # User@Host: root[root] @ localhost []  Id:    10
    # Query_time: 0.000190  Lock_time: 0.000001 Rows_sent: 1  Rows_examined: 1
    use shop;
    SET timestamp=1795437960;
    SELECT *
    FROM users;

Some servers tell the database in each (`Schema: shop`), others only where it is another than before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from .entries import MAX_STATEMENT, PREPARING, TOO_LONG, UNREADABLE, Entry, Notes, is_of_prepared, name_of
from .general import START

HEAD: Final = re.compile(rb"# (?:Time: \d|User@Host: )")
_FIGURE: Final = re.compile(rb"(Query_time|Rows_sent|Rows_examined): *([\d.]+)")
_SCHEMA: Final = re.compile(rb"\bSchema: *+(\S{0,300}+)(?:  |$)")
_USE: Final = re.compile(rb"use (`(?:[^`]|``)+`|[^;]+);", re.IGNORECASE)
_ADDED: Final = re.compile(
    rb"SET (?:last_insert_id=\d+,)?(?:insert_id=\d+,)?timestamp=[\d.]+;", re.IGNORECASE
)


_DIGITS: Final = 30
"""A figure has fewer."""


class Slow:
    """Reads one."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._database: str | None = None
        self._begin()

    def _begin(self) -> None:
        self._figures: dict[bytes, float] = {}
        self._text: list[bytes] = []
        self._size = 0
        self._headed = False

    def read(self, lines: Iterable[bytes]) -> Iterator[Entry]:
        """The statements, in order."""
        heading = 0
        for line in lines:
            if heading:
                heading -= 1
            elif HEAD.match(line):
                if self._text:
                    yield from self._entry()
                    self._begin()
                self._headed = True
            elif (start := START.fullmatch(line)) is not None:
                yield from self._entry()
                self._begin()
                self._notes.version = start[1].decode("latin-1")
                heading = 2
            elif not self._headed:
                self._notes.skipped[UNREADABLE] += bool(line)
            elif not self._text and self._is_head(line):
                continue
            else:
                self._size += len(line) + 1
                if self._size <= MAX_STATEMENT:
                    self._text.append(line)
        yield from self._entry()

    def _is_head(self, line: bytes) -> bool:
        """Whether a line before the statement is the server's."""
        if line.startswith(b"#"):
            for name, value in _FIGURE.findall(line):
                self._figures[name] = _number(value)
            schema = _SCHEMA.search(line)
            if schema is not None:
                self._database = name_of(schema[1]) or None
            return True
        use = _USE.fullmatch(line)
        if use is not None:
            self._database = name_of(use[1])
        return use is not None or _ADDED.fullmatch(line) is not None

    def _entry(self) -> Iterator[Entry]:
        """What has been read."""
        if not self._text:
            return
        if self._size >= MAX_STATEMENT:
            self._notes.skipped[TOO_LONG] += 1
            return
        sql = b"\n".join(self._text).rstrip().removesuffix(b";")
        if is_of_prepared(sql):
            self._notes.skipped[PREPARING] += 1
            return
        figures = self._figures
        examined, sent = figures.get(b"Rows_examined"), figures.get(b"Rows_sent")
        yield Entry(
            sql,
            self._database,
            seconds=figures.get(b"Query_time"),
            examined=None if examined is None else int(examined),
            sent=None if sent is None else int(sent),
        )


def _number(text: bytes) -> float:
    """What is no number that a server writes counts as 0."""
    try:
        return float(text) if len(text) < _DIGITS else 0.0
    except ValueError:
        return 0.0
