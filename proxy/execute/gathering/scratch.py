"""A table's definition on a shard to the one that its gathered rows go into, and rows to INSERTs. No I/O.

The definition is SHOW CREATE TABLE's, so that types, collations and flags stay the server's own. An
object's `local_id` becomes the virtual `id`. What does not belong to the rows (AUTO_INCREMENT of local ids,
generated values, constraints, partitions) is left out. Values travel as text, so each column is selected in a
form whose text says exactly what is stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from proxy.wire.resultset import decode_row
from rewriter.plans.gather import SCRATCH, quoted
from rewriter.reads.digits import is_rounded

_COLUMN: Final = re.compile(r"`((?:[^`]|``)+)` (.*)", re.DOTALL)
_KEY: Final = re.compile(r"(PRIMARY KEY|UNIQUE KEY `(?:[^`]|``)+`|KEY `(?:[^`]|``)+`) \((.*?)\)(?: |$)")
_KEY_PART: Final = re.compile(r"`((?:[^`]|``)+)`(?:\((\d+)\))?(?: DESC)?")
_TAIL: Final = re.compile(r"DEFAULT CHARSET=(\w+)(?: COLLATE=(\w+))?")
_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|\"(?:[^\"\\]|\\.|\"\")*\"|[()]", re.DOTALL)
_BYTES: Final = re.compile(
    r"(?:var)?binary\b|(?:tiny|medium|long)?blob\b|geometry|point\b|linestring|polygon|multi|geomcollection"
    r"|vector\b"
)
_INVISIBLE: Final = re.compile(r"\s*(?:/\*!\d+ INVISIBLE \*/|(?<= )INVISIBLE\b)")
_CHECKED_JSON: Final = re.compile(r" CHECK \(json_valid\(`(?:[^`]|``)+`\)\)")

_Literal = Callable[[bytes], bytes]


def _text(value: bytes) -> bytes:
    if b"\\" in value:
        value = value.replace(b"\\", b"\\\\")
    if b"'" in value:
        value = value.replace(b"'", b"\\'")
    return b"'" + value + b"'"


def _hex(value: bytes) -> bytes:
    return b"x'" + value.hex().encode() + b"'"


def _moment(value: bytes) -> bytes:
    """A TIMESTAMP, read as seconds; 0 is the zero value, which no other one is."""
    return b"'0000-00-00'" if not value.strip(b"0.") else b"FROM_UNIXTIME(" + value + b")"


@dataclass(frozen=True, slots=True)
class ScratchColumn:
    """One column: its definition for the scratch table, how it is selected, and how a value is written."""

    name: str
    definition: str
    selected: bytes
    literal: _Literal

    @property
    def integer(self) -> bool:
        """Whether its texts are whole numbers."""
        return re.match(r"(?:tiny|small|medium|big)?int\b", self.definition) is not None


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's columns and keys: what is made of it depends on the columns that are wanted."""

    columns: tuple[ScratchColumn, ...]
    keys: tuple[tuple[str, str, tuple[str, ...]], ...]  # (PRIMARY KEY …, the list, its columns in lower case)
    tail: str

    def select(self, wanted: Collection[str] | None, *, in_order: bool = False) -> Scratch:
        """The scratch table with these columns (lower case; None: all), at least one. `in_order`: and with
        those of the primary key, by which it is sorted then.
        """
        if wanted is not None and in_order:
            wanted = {*wanted, *(name for kind, _, of in self.keys if kind == "PRIMARY KEY" for name in of)}
        columns = [one for one in self.columns if wanted is None or one.name.lower() in wanted]
        columns = columns or [self.columns[0]]
        if all(_INVISIBLE.search(one.definition) for one in columns):  # a table has to show one
            columns = [replace(one, definition=_INVISIBLE.sub("", one.definition)) for one in columns]
        names = {one.name.lower() for one in columns}
        keys = [f"{kind} ({parts})" for kind, parts, of in self.keys if names.issuperset(of)]
        return Scratch(tuple(columns), tuple(keys), self.tail)


@dataclass(frozen=True, slots=True)
class Scratch:
    """A table for gathered rows."""

    columns: tuple[ScratchColumn, ...]
    keys: tuple[str, ...]
    tail: str

    @property
    def selected(self) -> bytes:
        """The select list that reads its rows."""
        return b", ".join(one.selected for one in self.columns)

    def create(self, name: bytes, *, real: bool) -> bytes:
        """CREATE TABLE; `real`: not a temporary one."""
        lines = [f"{quoted(one.name).decode()} {one.definition}" for one in self.columns]
        body = ", ".join([*lines, *self.keys]).encode("utf-8", "surrogateescape")
        kind = b"TABLE " if real else b"TEMPORARY TABLE "
        tail = self.tail.encode()
        return b"CREATE " + kind + SCRATCH + b"." + name + b" (" + body + b") ENGINE=InnoDB" + tail

    def insert(self, name: bytes) -> bytes:
        """INSERT up to its rows."""
        names = b", ".join(quoted(one.name) for one in self.columns)
        return b"INSERT INTO " + SCRATCH + b"." + name + b" (" + names + b") VALUES "

    def place(self, column: str) -> int:
        """The index of a column (lower case)."""
        return next(index for index, one in enumerate(self.columns) if one.name.lower() == column)


def row_literal(columns: Sequence[ScratchColumn], values: Sequence[bytes | None]) -> bytes:
    """A row for INSERT."""
    parts = [
        b"NULL" if value is None else column.literal(value)
        for column, value in zip(columns, values, strict=True)
    ]
    return b"(" + b",".join(parts) + b")"


def read_rows(payloads: Sequence[bytes], columns: int) -> list[list[bytes | None]]:
    """The values of text rows."""
    return [decode_row(payload, columns) for payload in payloads]


# -- reading definitions
# ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1000)
def shape_of(create: str, *, is_object: bool, routing: frozenset[str] | None) -> Shape:
    """Read SHOW CREATE TABLE. `routing`: see `Piece`."""
    lines = create.split("\n")
    columns: list[ScratchColumn] = []
    keys: list[tuple[str, str, tuple[str, ...]]] = []
    end = next(at for at, line in enumerate(lines) if line.startswith(")"))
    if is_object:
        keys.append(("PRIMARY KEY", "`id`", ("id",)))
    for line in lines[1:end]:
        line = line.strip().removesuffix(",")
        column = _COLUMN.match(line)
        if column is not None:
            name = column[1].replace("``", "`")
            if is_object and name.lower() == "local_id":
                columns.append(ScratchColumn("id", "bigint unsigned NOT NULL", b"`id`", _text))
            else:
                columns.append(_column(name, column[2]))
            continue
        key = _key(line, is_object=is_object, routing=routing)
        if key is not None:
            keys.append(key)
    tail = _TAIL.search(lines[end])
    text = ""
    if tail is not None:
        text = f" DEFAULT CHARSET={tail[1]}" + (f" COLLATE={tail[2]}" if tail[2] else "")
    counted = {of[0] for _, _, of in keys}
    return Shape(
        tuple(one if one.name.lower() in counted else _uncounted(one) for one in columns),
        tuple(keys),
        text,
    )


def shape_of_columns(rows: Sequence[Sequence[bytes | None]]) -> Shape:
    """Read SHOW FULL COLUMNS, of a view: it has columns and no keys."""
    columns = []
    for name, type_, collation, null, *_ in rows:
        texts = [(one or b"").decode("utf-8", "surrogateescape") for one in (name, type_, collation)]
        definition = texts[1] + (f" COLLATE {texts[2]}" if texts[2] else "")
        columns.append(_column(texts[0], definition + (" NOT NULL" if null == b"NO" else " NULL")))
    return Shape(tuple(columns), (), "")


def _key(
    line: str, *, is_object: bool, routing: Collection[str] | None
) -> tuple[str, str, tuple[str, ...]] | None:
    """A key of the scratch table; None for one that it has not. One that is unique on its shard only is no
    unique key.
    """
    found = _KEY.match(line)
    if found is None:
        return None
    parts = _KEY_PART.findall(found[2])
    if _KEY_PART.sub("", found[2]).strip(", "):
        return None  # of an expression
    names = tuple(name.replace("``", "`").lower() for name, _ in parts)
    kind, text = found[1], found[2]
    if is_object:
        if kind == "PRIMARY KEY":
            return None  # the local id's: `id` has one
        text = re.sub(r"`local_id`", "`id`", text, flags=re.IGNORECASE)
        names = tuple("id" if name == "local_id" else name for name in names)
    if routing is not None and not kind.startswith("KEY") and not set(routing) & set(names):
        kind = "KEY" if kind == "PRIMARY KEY" else kind.removeprefix("UNIQUE ")
    return kind, text, names


def _column(name: str, definition: str) -> ScratchColumn:
    definition = _plain(definition)
    lower = definition.lower()
    sql = quoted(name)
    if lower.startswith("timestamp"):
        return ScratchColumn(name, definition, b"UNIX_TIMESTAMP(" + sql + b")", _moment)
    if is_rounded(lower):  # as a DOUBLE its text has all digits
        return ScratchColumn(name, definition, sql + b" * 1e0", _text)
    if lower.startswith("bit"):  # bytes on the wire, or a number in a UNION
        return ScratchColumn(name, definition, sql + b" + 0", bytes)
    return ScratchColumn(name, definition, sql, _hex if _BYTES.match(lower) else _text)


def _uncounted(column: ScratchColumn) -> ScratchColumn:
    """Without AUTO_INCREMENT, which is for the first column of a key."""
    definition = re.sub(r" AUTO_INCREMENT\b", "", column.definition)
    return ScratchColumn(column.name, definition, column.selected, column.literal)


def _plain(definition: str) -> str:
    """A column's definition without what makes or checks its values."""
    if " CHECK (" in definition and not _CHECKED_JSON.search(definition):
        definition = _cut(definition, " CHECK (")
    if " GENERATED ALWAYS AS (" in definition:
        definition = _cut(definition, " GENERATED ALWAYS AS (")
        definition = re.sub(r" (?:VIRTUAL|STORED|PERSISTENT)\b", "", definition, count=1)
    elif " AS (" in definition:
        definition = _cut(definition, " AS (")
        definition = re.sub(r" (?:VIRTUAL|STORED|PERSISTENT)\b", "", definition, count=1)
    return re.sub(r" GENERATED ALWAYS AS ROW (?:START|END)", "", definition)


def _cut(text: str, opening: str) -> str:
    """`text` without `opening` and what follows up to its closing parenthesis."""
    start = text.index(opening)
    depth, at = 1, start + len(opening)
    while depth:
        found = _QUOTED.search(text, at)
        if found is None:
            return text[:start]
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        at = found.end()
    return text[:start] + text[at:]
