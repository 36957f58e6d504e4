"""CREATE TABLEs, as mysqldump --no-data or SHOW CREATE TABLE write them, as values; of a dump with
the ALTER TABLEs that add to them.

The texts of columns and keys are kept as they stand, since a definition that is made anew may mean something
else. What is between these statements is not looked at, so a dump with rows can be read, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from config.column_type import Definition, read_definition
from config.definitions import Found, Key, Reference, at, read_element
from config.sqltext import SqlError, SqlToken, Tokens, by_commas, closing, tokens_of
from fleet.core.errors import Refused

_BEGIN: Final = re.compile(
    r"\s*(?:CREATE\s+TABLE|ALTER\s+TABLE|CREATE\s+(?:(?:UNIQUE|FULLTEXT|SPATIAL)\s+)?INDEX)\s", re.IGNORECASE
)
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


Look = Callable[[SourceTable, str], None]
"""Is given each CREATE TABLE as it was read, and its text."""


def read_dump(lines: Iterable[str], what: str, look: Look = lambda *_: None) -> list[SourceTable]:
    """The tables of a dump: its CREATE TABLEs, with what ALTER TABLE and CREATE INDEX add to them. Refused
    when one of these cannot be read.
    """
    found: dict[str, SourceTable] = {}
    for text in _statements(lines, what):
        tokens = _read(text, what)
        if tokens[0].word == "ALTER":
            table = _made(found, tokens, 2, text, what)
            found[table.name] = altered(table, text, tokens, what)
        elif "INDEX" in (tokens[1].word, at(tokens, 2).word):
            on = next((index for index, one in enumerate(tokens) if one.word == "ON"), len(tokens))
            table = _made(found, tokens, on + 1, text, what)
            found[table.name] = _indexed(table, text, tokens, on)
        else:
            alike = _like(found, tokens)
            table = alike or read_table(text, what)
            if alike is None:
                look(table, text)
            if table.name not in found:
                found[table.name] = table
            elif found[table.name] != table and "EXISTS" not in [one.word for one in tokens[:5]]:
                raise Refused(
                    f"{what} makes the table {table.name!r} twice: a dump must be of one database, as "
                    "mysqldump --no-data writes it"
                )
    return list(found.values())


def _read(text: str, what: str) -> list[SqlToken]:
    if any("\udc80" <= one <= "\udcff" for one in text):
        raise Refused(
            f"{what}: {text.strip()[:60]!r} is not in UTF-8: mysqldump "
            "--default-character-set=utf8mb4 writes it so"
        )
    try:
        return tokens_of(text)
    except SqlError as error:
        raise Refused(f"{what}: {text.strip()[:60]!r}: {error}") from None


def _named(tokens: Tokens, index: int) -> tuple[str, int]:
    """The name of the table that is written there, without its database, and where it ends."""
    while at(tokens, index).word in ("IF", "NOT", "EXISTS") and at(tokens, index + 1).is_name:
        index += 1
    if at(tokens, index + 1).is_op("."):
        index += 2
    return at(tokens, index).text, index + 1


def _made(found: Mapping[str, SourceTable], tokens: Tokens, index: int, text: str, what: str) -> SourceTable:
    name, _ = _named(tokens, index)
    if name not in found:
        raise Refused(f"{what}: {text.strip()[:60]!r}: it makes no table {name!r} before that")
    return found[name]


def _like(found: Mapping[str, SourceTable], tokens: Tokens) -> SourceTable | None:
    """Of CREATE TABLE name LIKE another."""
    name, index = _named(tokens, 2)
    index += at(tokens, index).is_op("(")
    if at(tokens, index).word != "LIKE":
        return None
    other = found.get(_named(tokens, index + 1)[0])
    return None if other is None else replace(other, name=name)


def _indexed(table: SourceTable, text: str, tokens: Tokens, on: int) -> SourceTable:
    """After CREATE [UNIQUE] INDEX name ON table (columns)."""
    _, opens = _named(tokens, on + 1)
    kind, name = ("", tokens[2]) if tokens[1].word == "INDEX" else (f"{tokens[1].word} ", tokens[3])
    listed = text[tokens[opens].start : tokens[closing(tokens, opens)].end]
    element = f"{kind}KEY {text[name.start : name.end]} {listed}"
    return _with(table, Element(element, read_element(tokens_of(element))))


def _with(table: SourceTable, element: Element) -> SourceTable:
    return replace(table, elements=(*table.elements, element))


def altered(table: SourceTable, text: str, tokens: Tokens, what: str) -> SourceTable:
    """The table after an ALTER TABLE that adds to it, as programs write it that put the keys behind the rows.
    Refused for one that takes away.
    """
    _, index = _named(tokens, 2)
    for part in by_commas(tokens[index:]):
        word, some = at(part, 0).word, part[1:]
        if word in ("ADD", "MODIFY", "CHANGE"):
            some = some[1:] if at(some, 0).word == "COLUMN" else some
            was = at(some, 0).text if word != "ADD" else ""
            some = some[1:] if word == "CHANGE" else some
            found = read_element(some)
            if found.column is not None:
                column = SourceColumn(found.column, _text(text, _without_place(some[1:])))
                names = [one.name.lower() for one in table.columns]
                there = names.index(was.lower()) if was.lower() in names else len(names)
                table = replace(table, columns=(*table.columns[:there], column, *table.columns[there + 1 :]))
            else:
                table = _with(table, Element(_text(text, some), found))
        elif word == "AUTO_INCREMENT":
            table = replace(table, counter=int(part[-1].text) if part[-1].text.isdigit() else None)
        elif word in ("DROP", "RENAME", "CONVERT"):
            raise Refused(
                f"{what}: {text.strip()[:60]!r} changes what there was: dump the tables as they are, by "
                "mysqldump --no-data"
            )
    return table


def _without_place(tokens: Tokens) -> Tokens:
    """A column's definition without FIRST, or AFTER another."""
    if at(tokens, len(tokens) - 1).word == "FIRST":
        return tokens[:-1]
    return tokens[:-2] if at(tokens, len(tokens) - 2).word == "AFTER" else tokens


def _statements(lines: Iterable[str], what: str) -> Iterator[str]:
    """Those that say what tables are, each without its semicolon; those within routines are not."""
    held: list[str] | None = None
    delimiter = ";"
    for line in lines:
        if held is None:
            if line.upper().startswith("DELIMITER"):
                delimiter = line[len("DELIMITER") :].strip()
            if delimiter != ";" or not _BEGIN.match(line):
                continue
            held = []
        held.append(line)
        text = "".join(held)
        if len(text) > _LONGEST:
            raise Refused(f"{what}: the statement from {held[0].strip()[:60]!r} on has no end")
        if line.rstrip().endswith(";") and _complete(text):
            held = None
            yield text.rstrip().removesuffix(";")
    if held is not None:
        raise Refused(f"{what}: the statement from {held[0].strip()[:60]!r} on has no end")


def _complete(text: str) -> bool:
    """Whether the semicolon at its end is no part of a text."""
    try:
        return bool(tokens_of(text))
    except SqlError:
        return False


def read_table(text: str, what: str) -> SourceTable:
    """One CREATE TABLE. Refused when it cannot be read."""
    tokens = _read(text, what)
    opens = next((index for index, one in enumerate(tokens) if one.is_op("(")), len(tokens))
    name = at(tokens, opens - 1)
    if opens == len(tokens) or not name.is_name:
        raise Refused(f"{what}: {text.strip()[:60]!r} lists no columns")
    ends = closing(tokens, opens)
    columns, elements = [], []
    for part in by_commas(tokens[opens + 1 : ends]):
        found = read_element(part)
        if at(part, 0).word == "PERIOD" and at(part, 1).word == "FOR":
            continue  # names columns that are there
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


def without_references(definition: str) -> str:
    """A column's definition without a FOREIGN KEY in it."""
    tokens, depth = tokens_of(definition), 0
    for index, token in enumerate(tokens):
        depth += token.is_op("(") - token.is_op(")")
        if depth or token.word != "REFERENCES":
            continue
        _, end = _named(tokens, index + 1)
        end = closing(tokens, end) + 1 if at(tokens, end).is_op("(") else end
        while at(tokens, end).word in ("ON", "MATCH"):
            end += 2 if tokens[end].word == "MATCH" else 3
            end += at(tokens, end - 1).word in ("SET", "NO")
        behind = definition[tokens[end].start :] if end < len(tokens) else ""
        return f"{definition[: token.start].rstrip()} {behind}".rstrip()
    return definition


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
