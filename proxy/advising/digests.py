r"""performance_schema.events_statements_summary_by_digest, exported: as `mysql -B` prints it (a tab between
any two columns, \n, \t and \\ in them) or as CSV, in any order of columns, which the first line names.

DIGEST_TEXT is needed; QUERY_SAMPLE_TEXT, where there is one, is a statement with its values, and better.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from typing import Final

from .entries import CUT_SHORT, MAX_STATEMENT, TOO_LONG, UNREADABLE, Entry, Notes, is_of_prepared

_ESCAPE: Final = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPES: Final = {b"n": b"\n", b"t": b"\t", b"0": b"\0", b"r": b"\r"}
_RUNS: Final = re.compile(rb"(?:(PREPARE)|EXECUTE)\s+(?=[A-Z(])(?!\S+\s+USING\b)")
_PICO: Final = 1e12

TEXT: Final = "DIGEST_TEXT"
_SAMPLES: Final = ("QUERY_SAMPLE_TEXT", "ORIGINAL")


def is_heading(line: bytes) -> bool:
    """Whether a first line names the columns of such an export."""
    names = _columns(line)
    return TEXT in names


def _columns(line: bytes) -> list[str]:
    text = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
    cells = text.split("\t") if "\t" in text else next(_csv(iter([text]), Notes()), [])
    return [one.strip().upper() for one in cells]


class Digests:
    """Reads one."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def read(self, lines: Iterable[bytes]) -> Iterator[Entry]:
        """A statement of each kind."""
        source = iter(lines)
        heading = next(source, b"")
        names = _columns(heading)
        for cells in self._rows(source, b"\t" in heading, len(names)):
            yield from self._entry(dict(zip(names, cells, strict=True)))

    def _rows(self, lines: Iterator[bytes], tabs: bool, width: int) -> Iterator[list[bytes | None]]:
        if tabs:
            rows: Iterable[list[bytes]] = (line.split(b"\t") for line in lines if line)
        else:
            texts = (line.decode("utf-8", "surrogateescape") + "\n" for line in lines)
            rows = (
                [one.encode("utf-8", "surrogateescape") for one in row] for row in _csv(texts, self._notes)
            )
        for row in rows:
            if len(row) != width:
                self._notes.skipped[UNREADABLE] += bool(row)
                continue
            yield [_unescaped(one) if tabs else one if one != b"NULL" else None for one in row]

    def _entry(self, row: dict[str, bytes | None]) -> Iterator[Entry]:
        text = row.get(TEXT)
        if text is None:  # the row of what found no room
            self._notes.skipped["statements of which the server had no room for a digest"] += (
                _whole(row, "COUNT_STAR") or 1
            )
            return
        schema = row.get("SCHEMA_NAME")
        seconds = _whole(row, "SUM_TIMER_WAIT")
        entry = Entry(
            text,
            None if schema is None else schema.decode("utf-8", "surrogateescape"),
            times=_whole(row, "COUNT_STAR") or 1,
            seconds=None if seconds is None else seconds / _PICO,
            examined=_whole(row, "SUM_ROWS_EXAMINED"),
            sent=_whole(row, "SUM_ROWS_SENT"),
        )
        sample = next((found for name in _SAMPLES if (found := row.get(name))), None)
        if is_of_prepared(text):
            runs = _RUNS.match(text)
            if runs is None or runs[1]:
                self._notes.skipped["kinds of PREPARE and EXECUTE by SQL"] += 1
                return
            entry, sample = entry._replace(sql=text[runs.end() :]), None
        if sample is not None and not sample.endswith(b"..."):
            if len(sample) >= MAX_STATEMENT:
                self._notes.skipped[TOO_LONG] += 1
                return
            yield entry._replace(sql=sample)
        elif entry.sql.rstrip().endswith(b"...") and not entry.sql.rstrip().endswith(b"(...)"):
            self._notes.skipped[CUT_SHORT] += 1
        else:
            yield entry._replace(parameters=True, digest=True)


def _csv(texts: Iterator[str], notes: Notes) -> Iterator[list[str]]:
    csv.field_size_limit(MAX_STATEMENT * 4)
    reader = csv.reader(texts, doublequote=True)
    while True:
        try:
            yield next(reader)
        except csv.Error:
            notes.skipped[UNREADABLE] += 1
        except StopIteration:
            return


def _unescaped(cell: bytes) -> bytes | None:
    if cell in (b"NULL", b"\\N"):
        return None
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), cell) if b"\\" in cell else cell


def _whole(row: dict[str, bytes | None], name: str) -> int | None:
    text = row.get(name) or b""
    return int(text) if text.isdigit() and len(text) < 25 else None
