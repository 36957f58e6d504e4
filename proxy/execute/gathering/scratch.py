"""A table's definition on a shard to the one that its gathered rows go into, and rows to INSERTs. No I/O.

The definition is SHOW CREATE TABLE's, so that types, collations and flags stay the server's own, cut into
tokens. (information_schema takes 4 ms for the same, not 0.1 or 0.5, and that before every gathering; it has
no temporary tables, and MySQL's spoils the quotes in a DEFAULT's expression.) An object's `local_id` becomes
the virtual `id`. What does not belong to the rows (AUTO_INCREMENT of local ids, generated values,
constraints, partitions) is left out. Values travel as text, so each column is selected in a form whose text
says exactly what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from config.column_type import ColumnType, read_definition
from config.definitions import at
from config.sqltext import SqlError, SqlToken, Tokens, by_commas, closing, tokens_of
from proxy.errors import ProxyError
from proxy.wire.resultset import decode_row
from rewriter.plans.gather import SCRATCH, quoted

_Literal = Callable[[bytes], bytes]
_Key = tuple[str, str, tuple[str, ...]]
"""`PRIMARY KEY` or the like, its list, and the columns there in lower case."""

_OF_JSON: Final = 7
"""So many tokens has `CHECK (json_valid(`x`))`, which makes a text MariaDB's JSON."""


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
    """One column: its definition for the scratch table (`visible`: without INVISIBLE), how it is selected,
    and how a value is written.
    """

    name: str
    definition: str
    visible: str
    selected: bytes
    literal: _Literal
    type: ColumnType

    @property
    def invisible(self) -> bool:
        """Whether `*` leaves it out."""
        return self.definition != self.visible


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's columns and keys: what is made of it depends on the columns that are wanted."""

    columns: tuple[ScratchColumn, ...]
    keys: tuple[_Key, ...]
    tail: str

    def select(self, wanted: Collection[str] | None, *, in_order: bool = False) -> Scratch:
        """The scratch table with these columns (lower case; None: all), at least one. It has all columns of
        the primary key or none, since a column's definition tells whether it is one of these. `in_order`: it
        has them anyway, and is sorted by them.
        """
        primary = {name for kind, _, of in self.keys if kind == "PRIMARY KEY" for name in of}
        if wanted is not None and (in_order or not primary.isdisjoint(wanted)):
            wanted = {*wanted, *primary}
        columns = [one for one in self.columns if wanted is None or one.name.lower() in wanted]
        columns = columns or [self.columns[0]]
        if all(one.invisible for one in columns):  # a table has to show one
            columns = [replace(one, definition=one.visible) for one in columns]
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
    """Read SHOW CREATE TABLE. `routing`: see `Piece`. ProxyError when it cannot be read."""
    try:
        return _read(create, is_object=is_object, routing=routing)
    except SqlError as error:
        raise ProxyError("unread_definition", reason=error, begin=create[:80]) from None


def _read(create: str, *, is_object: bool, routing: frozenset[str] | None) -> Shape:
    tokens = tokens_of(create)
    opens = _opening(tokens)
    closes = closing(tokens, opens)
    columns: list[ScratchColumn] = []
    keys: list[_Key] = []
    if is_object:
        keys.append(("PRIMARY KEY", "`id`", ("id",)))
    elements = by_commas(tokens[opens + 1 : closes])
    if not all(elements):
        raise SqlError("has nothing between two commas")
    for element in elements:
        key = _key(create, element, is_object=is_object, routing=routing)
        if key is not None:
            keys.append(key)
    counted = {of[0] for _, _, of in keys}  # AUTO_INCREMENT is for the first column of a key
    for element in elements:
        if element[0].kind != "name":
            continue
        name = element[0].text
        if is_object and name.lower() == "local_id":
            columns.append(_column("id", "bigint unsigned NOT NULL"))
        else:
            kept = _plain(element[1:], counts=name.lower() in counted)
            shown = [token for token in kept if token.word != "INVISIBLE"]
            columns.append(_column(name, _text_of(create, kept), _text_of(create, shown)))
    return Shape(tuple(columns), tuple(keys), _tail(tokens[closes:]))


def shape_of_columns(rows: Sequence[Sequence[bytes | None]]) -> Shape:
    """Read SHOW FULL COLUMNS, of a view: it has columns and no keys."""
    columns = []
    for name, type_, collation, null, *_ in rows:
        texts = [(one or b"").decode("utf-8", "surrogateescape") for one in (name, type_, collation)]
        definition = texts[1] + (f" COLLATE {texts[2]}" if texts[2] else "")
        columns.append(_column(texts[0], definition + (" NOT NULL" if null == b"NO" else " NULL")))
    return Shape(tuple(columns), (), "")


def _opening(tokens: Tokens) -> int:
    """The index of the first parenthesis that opens."""
    for index, token in enumerate(tokens):
        if token.is_op("("):
            return index
    raise SqlError("lacks a parenthesis")


def _tail(tokens: Tokens) -> str:
    """The character set and the collation behind the last parenthesis."""
    found = ""
    for index, token in enumerate(tokens[:-2]):
        if token.word in ("CHARSET", "COLLATE") and tokens[index + 1].is_op("="):
            found += (" DEFAULT CHARSET=" if token.word == "CHARSET" else " COLLATE=") + tokens[
                index + 2
            ].text
    return found


def _key(create: str, element: Tokens, *, is_object: bool, routing: Collection[str] | None) -> _Key | None:
    """A key of the scratch table; None for one that it has not, and for what is no key. One that is unique on
    its shard only is no unique key.
    """
    if element[0].word not in ("PRIMARY", "UNIQUE", "KEY"):
        return None
    opens = _opening(element)
    kind = _text_of(create, element[:opens])
    names, texts = [], []
    for part in by_commas(element[opens + 1 : closing(element, opens)]):
        words = [token.word for token in part if token.kind == "word" and token.word != "DESC"]
        if part[0].kind != "name" or words:
            return None  # of an expression
        names.append(part[0].text.lower())
        texts.append(_text_of(create, part))
    if is_object:
        if kind == "PRIMARY KEY":
            return None  # the local id's: `id` has one
        texts = [
            "`id`" + text[len("`local_id`") :] if name == "local_id" else text
            for name, text in zip(names, texts, strict=True)
        ]
        names = ["id" if name == "local_id" else name for name in names]
    if routing is not None and not kind.startswith("KEY") and not set(routing) & set(names):
        kind = "KEY" if kind == "PRIMARY KEY" else kind.removeprefix("UNIQUE ")
    return kind, ",".join(texts), tuple(names)


def _column(name: str, definition: str, visible: str = "") -> ScratchColumn:
    type_ = read_definition(definition).type
    sql = quoted(name)
    literal: _Literal = _text
    if type_.kind == "timestamp":
        sql, literal = b"UNIX_TIMESTAMP(" + sql + b")", _moment
    elif type_.rounded:  # as a DOUBLE its text has all digits
        sql += b" * 1e0"
    elif type_.kind == "bit":  # bytes on the wire, or a number in a UNION
        sql, literal = sql + b" + 0", bytes
    elif type_.binary or type_.family == "shape" or type_.kind == "vector":
        literal = _hex
    return ScratchColumn(name, definition, visible or definition, sql, literal, type_)


def _plain(tokens: Tokens, *, counts: bool) -> list[SqlToken]:
    """A column's definition without what makes or checks its values."""
    kept: list[SqlToken] = []
    index = 0
    while index < len(tokens):
        word, behind = tokens[index].word, index + 1
        if tokens[index].is_op("("):
            behind = closing(tokens, index) + 1
        elif word in ("CHECK", "AS") and at(tokens, behind).is_op("("):
            behind = closing(tokens, behind) + 1
        elif word == "AS":  # ROW START, ROW END
            behind += 2
        elif word == "GENERATED":
            behind += at(tokens, behind).word == "ALWAYS"
        json = word == "CHECK" and behind - index == _OF_JSON and tokens[index + 2].word == "JSON_VALID"
        left_out = word in ("CHECK", "AS", "GENERATED", "VIRTUAL", "STORED", "PERSISTENT") and not json
        if not left_out and (counts or word != "AUTO_INCREMENT"):
            kept += tokens[index:behind]
        index = behind
    return kept


def _text_of(create: str, tokens: Tokens) -> str:
    """These tokens as they are written, but in no comments."""
    found, end = "", tokens[0].start if tokens else 0
    for token in tokens:
        found += (" " if token.start > end else "") + create[token.start : token.end]
        end = token.end
    return found
