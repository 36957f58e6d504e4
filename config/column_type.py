"""Column definitions, read once: SQL text in, a `ColumnType` and what else is said of the column out.

    "varchar(64) CHARACTER SET utf8mb4 NOT NULL"  ->  kind "varchar", length 64, charset "utf8mb4"; not_null

Whoever has a `Column` asks its `facts`; nobody else reads the text. This reader takes what it knows and
leaves out the rest: `column_sql.py` is the strict one. `kind` is the name under which information_schema has
the type (`data_type`), so that INTEGER, INT4 and INT are `int`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from config.definitions import at, read_column
from config.sqltext import SqlError, SqlToken, Tokens, closing, tokens_of
from config.type_rules import TYPES

_SAME: Final = {
    **dict.fromkeys(("INT1", "BOOL", "BOOLEAN"), "tinyint"),
    **dict.fromkeys(("INT3", "MIDDLEINT"), "mediumint"),
    **dict.fromkeys(("INT4", "INTEGER"), "int"),
    **dict.fromkeys(("INT8", "SERIAL"), "bigint"),
    **dict.fromkeys(("DEC", "NUMERIC", "FIXED", "NUMBER"), "decimal"),
    **dict.fromkeys(("FLOAT8", "REAL"), "double"),
    **dict.fromkeys(("CHARACTER", "NCHAR"), "char"),
    **dict.fromkeys(("VARCHAR2", "NVARCHAR", "VARCHARACTER"), "varchar"),
    "INT2": "smallint",
    "FLOAT4": "float",
    "RAW": "varbinary",
    "LONG": "mediumtext",
    "CLOB": "longtext",
    "GEOMCOLLECTION": "geometrycollection",
}
"""The types that have a second name."""

_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_MOST_OF_A_FLOAT: Final = 24
"""FLOAT(25) and more is a DOUBLE."""


@dataclass(frozen=True)
class ColumnType:
    """The type of a column.

    `length` and `decimals` are the numbers in the parentheses, None where there are none; `members` the
    values of an ENUM or SET. `collations`: as named; a definition for both servers names one for each.
    `bytewise`: BINARY, ASCII, UNICODE or BYTE stands behind the type, which chooses a collation.
    """

    kind: str
    length: int | None = None
    decimals: int | None = None
    unsigned: bool = False
    zerofill: bool = False
    charset: str | None = None
    collations: tuple[str, ...] = ()
    bytewise: bool = False
    members: tuple[str, ...] = ()

    @cached_property
    def family(self) -> str:
        """The family that it has in `type_rules.py`; "" for a type that is not known."""
        rule = TYPES.get(self.kind.upper())
        return "" if rule is None else rule.family

    @property
    def integer(self) -> bool:
        """Whether its values are whole numbers (a YEAR's and BIT's are, too, but not as others see them)."""
        return self.kind in _BITS

    @property
    def floating(self) -> bool:
        """Whether it is a FLOAT or a DOUBLE."""
        return self.family == "real"

    @property
    def rounded(self) -> bool:
        """Whether the text of a value has fewer digits than the value: FLOAT, and DOUBLE(n,m)."""
        return self.floating and (self.kind == "float" or self.decimals is not None)

    @property
    def textual(self) -> bool:
        """Whether its values are texts with a character set."""
        return self.family in ("string", "text", "list", "json")

    @property
    def binary(self) -> bool:
        """Whether its values are plain bytes."""
        return self.family in ("bytes", "blob")

    @property
    def listed(self) -> bool:
        """Whether it is an ENUM or a SET."""
        return self.family == "list"

    @property
    def long(self) -> bool:
        """Whether a key can have only the beginning of it."""
        return self.family in ("text", "blob", "json")

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the largest number that an integer holds; None for other types."""
        bits = _BITS.get(self.kind)
        if bits is None:
            return None
        if self.unsigned or self.zerofill:
            return 0, (1 << bits) - 1
        return -(1 << bits - 1), (1 << bits - 1) - 1


@dataclass(frozen=True)
class Definition:
    """What a column's definition says. `default` is its first token ("NULL" for one of no other value), None
    where there is no DEFAULT. `generated`: AS (…). `not_null` also by PRIMARY KEY and SERIAL.
    """

    type: ColumnType
    not_null: bool = False
    primary: bool = False
    unique: bool = False
    auto_increment: bool = False
    generated: bool = False
    default: str | None = None


_UNKNOWN: Final = Definition(ColumnType(""))


@lru_cache(maxsize=10_000)
def read_definition(text: str) -> Definition:
    """Read the SQL behind a column's name. What is no SQL has the type of the kind ""."""
    try:
        tokens = tokens_of(text)
    except SqlError:
        return _UNKNOWN
    return definition_of(tokens)


def definition_of(tokens: Tokens) -> Definition:
    """The type that the tokens behind a column's name define. Without tokens its kind is ""."""
    if not tokens:
        return _UNKNOWN
    reader = _Reader(tokens)
    found = read_column("", tokens)
    kinds = {key.kind for key in found.keys}
    serial = tokens[0].word == "SERIAL"
    return Definition(
        reader.type(),
        not_null=reader.not_null or serial or "primary" in kinds,
        primary="primary" in kinds,
        unique="unique" in kinds,
        auto_increment=found.counts,
        generated=reader.generated,
        default=reader.default,
    )


class _Reader:
    """Goes over the tokens once; what it meets is in its fields."""

    def __init__(self, tokens: Tokens) -> None:
        self.kind, behind = _kind(tokens)
        self.numbers: list[int] = []
        self.members: tuple[str, ...] = ()
        if at(tokens, behind).is_op("("):
            end = closing(tokens, behind)
            self._parentheses(tokens[behind + 1 : end])
            behind = end + 1
        self.words: set[str] = set()
        self.charset: str | None = "utf8mb3" if tokens[0].word in ("NATIONAL", "NCHAR", "NVARCHAR") else None
        self.collations: list[str] = []
        self.not_null = self.generated = False
        self.default: str | None = None
        self._attributes(tokens, behind)
        if tokens[0].word == "SERIAL":
            self.words.add("UNSIGNED")

    def type(self) -> ColumnType:
        kind, numbers = self.kind, [*self.numbers, None, None]
        if kind == "float" and numbers[1] is None and (numbers[0] or 0) > _MOST_OF_A_FLOAT:
            kind = "double"
        return ColumnType(
            kind,
            numbers[0],
            numbers[1],
            unsigned=kind != "year" and not self.words.isdisjoint(("UNSIGNED", "ZEROFILL")),
            zerofill="ZEROFILL" in self.words,
            charset=self.charset,
            collations=tuple(self.collations),
            bytewise=not self.words.isdisjoint(("BINARY", "ASCII", "UNICODE", "BYTE")),
            members=self.members,
        )

    def _parentheses(self, inside: Tokens) -> None:
        if self.kind in ("enum", "set"):
            self.members = tuple(_unquoted(one.text) for one in inside if one.kind == "string")
        else:
            self.numbers = [int(one.text) for one in inside if one.kind == "number" and one.text.isdigit()]

    def _attributes(self, tokens: Tokens, index: int) -> None:
        while index < len(tokens):
            word = tokens[index].word
            if tokens[index].is_op("("):
                self.generated |= at(tokens, index - 1).word == "AS"
                index = closing(tokens, index)
            elif word in ("COMMENT", "COLLATE", "CHARSET", "DEFAULT") or (
                word == "SET" and at(tokens, index - 1).word == "CHARACTER"
            ):
                index += 1 + at(tokens, index + 1).is_op("=")
                self._valued(word, at(tokens, index))
                index -= at(tokens, index).is_op("(")
            elif word == "NOT" and at(tokens, index + 1).word == "NULL":
                self.not_null = True
            elif word:
                self.words.add(word)
            index += 1

    def _valued(self, word: str, value: SqlToken) -> None:
        text = _unquoted(value.text) if value.kind == "string" else value.text
        if word == "DEFAULT":
            self.default = value.text.upper() if value.word else value.text
        elif word == "COLLATE":
            self.collations.append(text)
        elif word != "COMMENT":
            self.charset = text


def _kind(tokens: Tokens) -> tuple[str, int]:
    """The type's name, and the index of what follows it."""
    index = int(tokens[0].word == "NATIONAL")
    word = at(tokens, index).word
    kind = _SAME.get(word, word.lower())
    following = at(tokens, index + 1).word
    if kind == "char" and following in ("VARYING", "VARCHAR"):
        return "varchar", index + 2
    if (kind, following) == ("double", "PRECISION"):
        return kind, index + 2
    if word == "LONG" and following in ("VARCHAR", "VARBINARY"):
        return ("mediumtext" if following == "VARCHAR" else "mediumblob"), index + 2
    return kind, index + 1


def _unquoted(text: str) -> str:
    """The value of a string token."""
    quote, body, found = text[-1], text[text.index(text[-1]) + 1 : -1], []
    index = 0
    while index < len(body):
        one, two = body[index], body[index + 1 : index + 2]
        if (one == "\\" and two) or one == two == quote:
            one, index = (_ESCAPES.get(two, two) if one == "\\" else one), index + 1
        found.append(one)
        index += 1
    return "".join(found)
