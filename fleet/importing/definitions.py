"""CREATE TABLEs, as mysqldump --no-data or SHOW CREATE TABLE write them, as values.

The texts of columns and keys are kept as they stand, since a definition that is made anew may mean something
else. What is between the CREATE TABLEs is not looked at, so a dump with rows can be read, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from config.column_type import Definition, read_definition
from config.definitions import Found, Key, Reference, at, read_element
from config.sqltext import SqlError, SqlToken, Tokens, by_commas, closing, tokens_of
from fleet.core.errors import Refused

_BEGIN: Final = re.compile(r"\s*CREATE\s+TABLE\s", re.IGNORECASE)
_LONGEST: Final = 4 << 20
"""Characters of one CREATE TABLE."""


@dataclass(frozen=True)
class SourceColumn:
    """A column; `definition` is what stands behind its name."""

    name: str
    definition: str

    @cached_property
    def facts(self) -> Definition:
        """What the definition says."""
        return read_definition(self.definition)


@dataclass(frozen=True)
class Element:
    """A key or constraint of a table: its text, and what it says."""

    text: str
    found: Found


@dataclass(frozen=True)
class SourceTable:
    """A table of the source. `collation`: what its texts have unless they say another, "" for the server's.
    `counter`: the next AUTO_INCREMENT, where it is told.
    """

    name: str
    columns: tuple[SourceColumn, ...]
    elements: tuple[Element, ...]
    charset: str = ""
    collation: str = ""
    counter: int | None = None

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """All keys and indexes, those of single columns first."""
        found = [key for one in self._of_columns for key in one.keys]
        return (*found, *(key for one in self.elements for key in one.found.keys))

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """The FOREIGN KEYs."""
        found = [reference for one in self._of_columns for reference in one.references]
        return (*found, *(reference for one in self.elements for reference in one.found.references))

    @cached_property
    def _of_columns(self) -> tuple[Found, ...]:
        return tuple(read_element([_name(one.name), *tokens_of(one.definition)]) for one in self.columns)

    @cached_property
    def primary(self) -> tuple[str, ...]:
        """The columns of the PRIMARY KEY; of a UNIQUE key without NULLs, where there is none."""
        for kind in ("primary", "unique"):
            for key in self.keys:
                parts = [self.column(part.column or "") for part in key.parts]
                whole = all(part.whole for part in key.parts)
                if key.kind == kind and whole and all(one and one.facts.not_null for one in parts):
                    return tuple(one.name for one in parts if one)
                if key.kind == kind == "primary":
                    return tuple(one.name for one in parts if one)
        return ()

    @property
    def counted(self) -> str:
        """The column with AUTO_INCREMENT, "" where there is none."""
        return next((one.name for one in self.columns if one.facts.auto_increment), "")

    def column(self, name: str) -> SourceColumn | None:
        """The column of that name, in any case."""
        return next((one for one in self.columns if one.name.lower() == name.lower()), None)


def _name(text: str) -> SqlToken:
    return SqlToken("name", text)


def read_dump(lines: Iterable[str], what: str) -> list[SourceTable]:
    """The tables of a dump. Refused when a CREATE TABLE cannot be read."""
    return [read_table(text, what) for text in _statements(lines, what)]


def _statements(lines: Iterable[str], what: str) -> Iterator[str]:
    """The CREATE TABLEs, each without its semicolon."""
    held: list[str] | None = None
    for line in lines:
        if held is None:
            if not _BEGIN.match(line):
                continue
            held = []
        held.append(line)
        text = "".join(held)
        if len(text) > _LONGEST:
            raise Refused(f"{what}: the statement from {held[0].strip()[:60]!r} on has no end")
        if line.rstrip().endswith(";") and _complete(text):
            held = None
            yield text.rstrip().removesuffix(";")


def _complete(text: str) -> bool:
    """Whether the semicolon at its end is no part of a text."""
    try:
        return bool(tokens_of(text))
    except SqlError:
        return False


def read_table(text: str, what: str) -> SourceTable:
    """One CREATE TABLE. Refused when it cannot be read."""
    try:
        tokens = tokens_of(text)
    except SqlError as error:
        raise Refused(f"{what}: {text.strip()[:60]!r}: {error}") from None
    opens = next((index for index, one in enumerate(tokens) if one.is_op("(")), len(tokens))
    name = at(tokens, opens - 1)
    if opens == len(tokens) or not name.is_name:
        raise Refused(f"{what}: {text.strip()[:60]!r} lists no columns")
    ends = closing(tokens, opens)
    columns, elements = [], []
    for part in by_commas(tokens[opens + 1 : ends]):
        found = read_element(part)
        if found.column is not None:
            columns.append(SourceColumn(found.column, _text(text, part[1:])))
        else:
            elements.append(Element(_text(text, part), found))
    options = _options(tokens[ends + 1 :])
    counter = options.get("AUTO_INCREMENT", "")
    return SourceTable(
        name.text,
        tuple(columns),
        tuple(elements),
        options.get("CHARSET", ""),
        options.get("COLLATE", ""),
        int(counter) if counter.isdigit() else None,
    )


def _text(text: str, part: Tokens) -> str:
    """A part as it stands; the comment that a server opens is closed in it."""
    if not part:
        return ""
    found = text[part[0].start : part[-1].end]
    return " ".join(found.split("\n")) + (" */" if found.count("/*") > found.count("*/") else "")


def _options(tokens: Tokens) -> dict[str, str]:
    """`CHARSET=utf8mb4 COLLATE=…` by their names."""
    found: dict[str, str] = {}
    for index, token in enumerate(tokens):
        if token.word in ("CHARSET", "COLLATE", "AUTO_INCREMENT"):
            behind = index + 1 + at(tokens, index + 1).is_op("=")
            found.setdefault(token.word, at(tokens, behind).text.strip("'\""))
    return found
