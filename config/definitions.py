"""What a CREATE TABLE says of keys: unique keys, numbers that count themselves, references.

These readers find what matters to a sharded table in the elements of a definition, and leave it to a
server to judge the rest; `column_sql.py` is the strict one. An element is one of the parts between the
commas of CREATE TABLE ( … ), or what stands behind ADD in ALTER TABLE.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from config.sqltext import END, SqlToken, Tokens, by_commas, closing

KeyKind = Literal["primary", "unique", "index", "fulltext", "spatial"]

_KEY_WORDS: Final = ("INDEX", "KEY")
_STARTS: Final = frozenset(
    {"CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"}
)
_TYPE_WORDS: Final = ("USING", "TYPE")


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of a key. `column` is None for an expression. `whole`: not only its first characters."""

    column: str | None
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Key:
    """A key or index of a table."""

    kind: KeyKind
    parts: tuple[KeyPart, ...]
    name: str = ""

    @property
    def unique(self) -> bool:
        """Whether two rows cannot have the same values in it."""
        return self.kind in ("primary", "unique")

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns in lower case, in order; "" for an expression."""
        return tuple((part.column or "").lower() for part in self.parts)

    def __str__(self) -> str:
        head = {"primary": "PRIMARY KEY", "unique": "UNIQUE KEY", "index": "KEY"}.get(self.kind)
        listed = ", ".join((part.column or "(…)") + ("" if part.whole else "(…)") for part in self.parts)
        return f"{head or self.kind.upper() + ' KEY'} ({listed})"


@dataclass(frozen=True, slots=True)
class Reference:
    """A FOREIGN KEY: these `columns` refer to `wanted` of `table` (in `database`, when it is written).

    `acts`: what it does by itself, in upper case: `ON DELETE SET NULL`.
    """

    columns: tuple[str, ...]
    database: str | None
    table: str
    wanted: tuple[str, ...]
    acts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What an element says."""

    column: str | None = None
    keys: tuple[Key, ...] = ()
    references: tuple[Reference, ...] = ()
    counts: bool = False
    """Whether it is a column with AUTO_INCREMENT."""


def at(tokens: Tokens, index: int) -> SqlToken:
    """The token at `index`; END behind the last."""
    return tokens[index] if 0 <= index < len(tokens) else END


def is_column(tokens: Tokens) -> bool:
    """Whether an element is a column, and no key, constraint or condition."""
    return bool(tokens) and tokens[0].is_name and tokens[0].word not in _STARTS


def read_element(tokens: Tokens) -> Found:
    """What one element says of keys."""
    if not tokens or not tokens[0].is_name:
        return Found()
    if not is_column(tokens):
        return _key_element(tokens)
    return read_column(tokens[0].text, tokens[1:])


def read_column(name: str, tokens: Tokens) -> Found:
    """What a column's definition (behind its name) says of keys."""
    keys: list[Key] = []
    references: list[Reference] = []
    part = (KeyPart(name),)
    counts = at(tokens, 0).word == "SERIAL"
    if counts:
        keys.append(Key("unique", part, name))
    index = 0
    while index < len(tokens):
        word = tokens[index].word
        if tokens[index].is_op("("):
            index = closing(tokens, index)
        elif word == "AUTO_INCREMENT":
            counts = True
        elif word == "SERIAL" and at(tokens, index + 1).word == "DEFAULT":
            counts = True
            keys.append(Key("unique", part, name))
        elif word == "UNIQUE":
            keys.append(Key("unique", part, name))
            index += at(tokens, index + 1).word == "KEY"
        elif word == "PRIMARY" or (word == "KEY" and at(tokens, index - 1).word != "COLUMN_FORMAT"):
            keys.append(Key("primary", part))
            index += word == "PRIMARY" and at(tokens, index + 1).word == "KEY"
        elif word == "REFERENCES":
            references.append(_reference((name,), tokens[index:]))
            break
        elif word in ("COMMENT", "COLLATE", "CHARSET"):
            index += 1
        index += 1
    return Found(name, tuple(keys), tuple(references), counts)


def _key_element(tokens: Tokens) -> Found:
    index = 0
    name = ""
    if tokens[0].word == "CONSTRAINT":
        index = 1
        if at(tokens, 1).is_name and at(tokens, 1).word not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            name, index = tokens[1].text, 2
    word = at(tokens, index).word
    opens = next((one for one in range(index, len(tokens)) if tokens[one].is_op("(")), len(tokens))
    if word == "FOREIGN":
        columns = tuple(part.column or "" for part in _parts(tokens, opens))
        behind = closing(tokens, opens) + 1
        return Found(references=(_reference(columns, tokens[behind:]),))
    if word == "CHECK" or opens == len(tokens):
        return Found()
    kind: KeyKind = "index"
    if word in ("PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL"):
        kind = word.lower()  # type: ignore[assignment]
        index += 1
    index += at(tokens, index).word in _KEY_WORDS
    named = at(tokens, index)
    if index < opens and named.is_name and named.word not in _TYPE_WORDS:
        name = named.text
    return Found(keys=(Key(kind, _parts(tokens, opens), "" if kind == "primary" else name),))


def _parts(tokens: Tokens, opens: int) -> tuple[KeyPart, ...]:
    """The columns in the parentheses that open at `opens`."""
    return key_parts(tokens[opens + 1 : closing(tokens, opens)])


def key_parts(tokens: Tokens) -> tuple[KeyPart, ...]:
    """The columns of a key, which stand in its parentheses."""
    found = []
    for part in by_commas(tokens):
        first = at(part, 0)
        found.append(KeyPart(first.text, not at(part, 1).is_op("(")) if first.is_name else KeyPart(None))
    return tuple(found)


def _reference(columns: tuple[str, ...], tokens: Tokens) -> Reference:
    """`REFERENCES table (columns) ON DELETE …`."""
    database, table, index = None, at(tokens, 1).text, 2
    if at(tokens, 2).is_op("."):
        database, table, index = table, at(tokens, 3).text, 4
    wanted: tuple[str, ...] = ()
    if at(tokens, index).is_op("("):
        wanted = tuple(part.column or "" for part in _parts(tokens, index))
        index = closing(tokens, index) + 1
    acts = [
        " ".join(token.word for token in tokens[one : one + 4] if token.word)
        for one in range(index, len(tokens))
        if tokens[one].word == "ON" and at(tokens, one + 1).word in ("DELETE", "UPDATE")
    ]
    return Reference(columns, database, table, wanted, tuple(acts))
