r"""The general log. An entry is a line, and all lines up to the next one that begins as entries do:

    2026-11-23T12:46:00.817715Z     10 Query        SELECT *
    FROM users

or, where a time stands only before the first entry of a second,

    261123 12:45:56      5 Query    SELECT 1
                         5 Query    SELECT 2

with tabs between. Each entry has its connection's number, by which the current database is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from .entries import MAX_STATEMENT, PREPARING, TOO_LONG, UNREADABLE, Entry, Notes, is_of_prepared, name_of

ENTRY: Final = re.compile(
    rb"(?:\d{6} +\d{1,2}:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[-+]\d\d:\d\d)|\t)"
    rb"\t *(\d+) ([A-Z][A-Za-z_]*(?: [A-Za-z]+){0,3})(?:\t(.*)|\s*)",
    re.DOTALL,
)
START: Final = re.compile(rb".{0,1000}?,? Version: (\S{1,200}).{0,1000} started with:\s*+")
"""What a server writes first, in three lines."""

_ON: Final = re.compile(rb".*? on (\S*)(?: using .*)?", re.DOTALL)
_USE: Final = re.compile(rb"\s*USE\s+(`(?:[^`]|``)+`|[^\s;]+)\s*+;?\s*+", re.IGNORECASE)

MAX_CONNECTIONS: Final = 100_000
"""Of so many connections, those that were opened last, the current database is kept."""


class General:
    """Reads one."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._databases: dict[bytes, str] = {}

    def read(self, lines: Iterable[bytes]) -> Iterator[Entry]:
        """The statements, in order."""
        connection, text, size = b"", None, 0
        heading = 0
        for line in lines:
            if heading:
                heading -= 1
                continue
            found = ENTRY.fullmatch(line)
            if found is None:
                start = START.fullmatch(line)
                if start is not None:
                    self._notes.version = start[1].decode("latin-1")
                    yield from self._entry(connection, text, size)
                    text, heading = None, 2
                elif text is None:
                    self._notes.skipped[UNREADABLE] += bool(line)
                else:
                    size += len(line) + 1
                    if size <= MAX_STATEMENT:
                        text.append(line)
                continue
            yield from self._entry(connection, text, size)
            connection, command, argument = found[1], found[2], found[3] or b""
            text = [argument] if self._is_statement(connection, command, argument) else []
            size = len(argument) if text else 0
        yield from self._entry(connection, text, size)

    def _is_statement(self, connection: bytes, command: bytes, argument: bytes) -> bool:
        if command in (b"Query", b"Execute"):
            return True
        if command in (b"Connect", b"Change user"):
            found = _ON.fullmatch(argument)
            self._uses(connection, found[1] if found is not None else b"")
        elif command == b"Init DB":
            self._uses(connection, argument)
        elif command == b"Quit":
            self._databases.pop(connection, None)
        return False

    def _uses(self, connection: bytes, database: bytes) -> None:
        self._databases.pop(connection, None)
        if database.strip():
            if len(self._databases) >= MAX_CONNECTIONS:
                del self._databases[next(iter(self._databases))]
            self._databases[connection] = name_of(database)

    def _entry(self, connection: bytes, text: list[bytes] | None, size: int) -> Iterator[Entry]:
        """What has been read."""
        if not text:
            return
        if size >= MAX_STATEMENT:
            self._notes.skipped[TOO_LONG] += 1
            return
        sql = b"\n".join(text)
        if is_of_prepared(sql):  # what they run has entries of its own
            self._notes.skipped[PREPARING] += 1
            return
        yield Entry(sql, self._databases.get(connection))
        use = _USE.fullmatch(sql)
        if use is not None:
            self._uses(connection, use[1])
