"""Constant expressions of a statement, evaluated when its literals are at hand.

A `Value` is made once for a fingerprint and evaluated for every statement of it: to a Python integer, or to
bytes. What is not plainly one of these raises `NotPlain`, and the statement is bound by a plan that does
not look at the value: `'12abc'` equals 12 for MySQL, NULL equals nothing, and that is for MySQL to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from config.layout import Layout
from rewriter.bound import BindError
from rewriter.sql.statements.functions import ID_FUNCTIONS
from rewriter.text.literals import (
    NotPlain,
    cast_integer,
    exact_integer,
    from_hex,
    parameter_integer,
    parameter_text,
    plain_integer,
    quoted_integer,
    slot_integer,
    slot_text,
    unquote,
)
from rewriter.text.tokens import HEX, INTEGER, LIST, NUMBER, PREFIXED, STRING, SYSTEM, VARIABLE, Source


@dataclass(frozen=True, slots=True)
class Value:
    """A constant expression: `kind` is "integer", "string", "national" (a string with its character set),
    "hex" (0x…), "bytes" (x'…'), "bits" (b'…'), "fixed" (0b…, which stays in the text: `index` is the number),
    "binary" (_binary x'…', never a number), "double" (1e3), "slot", "parameter"
    (of a prepared statement), "empty" (what IGNORE makes of NULL: 0 or ''), "exact" (a slot or parameter that
    must be an integer and no text), "cast" (what CAST AS UNSIGNED makes of digits), an operation.

    `index` is that of a literal or slot (of a double, which stays in the text, it is the number itself),
    `parts` are the operands.
    """

    kind: str
    index: int = -1
    parts: tuple[Value, ...] = ()
    layout: Layout | None = None

    def integer(self, values: tuple[bytes, ...]) -> int:
        """The value as an integer. Raises NotPlain."""
        kind = self.kind
        if kind == "integer":
            return plain_integer(values[self.index])
        if kind in ("string", "national"):
            return quoted_integer(values[self.index])
        if kind in ("double", "fixed"):
            return self.index
        if kind == "bits":
            return int.from_bytes(_from_bits(values[self.index])[-8:], "big")
        if kind == "hex":
            return int(values[self.index], 16) & 0xFFFFFFFFFFFFFFFF
        if kind == "binary":
            raise NotPlain
        if kind == "empty":
            return 0
        if kind == "slot":
            return slot_integer(values[self.index])
        if kind == "parameter":
            return parameter_integer(values[self.index])
        if kind == "bytes":
            return int.from_bytes(_from_quoted(values[self.index])[-8:], "big")
        if kind == "exact":
            return exact_integer(values[self.parts[0].index])
        if kind == "cast":
            return cast_integer(values[self.parts[0].index])
        return _OPERATIONS[kind](self.layout, [part.integer(values) for part in self.parts])

    def text(self, values: tuple[bytes, ...], backslashes: bool) -> bytes:
        """The value as a text's bytes, in the session's character set or (`is_bytes`) as stored.

        Raises NotPlain.
        """
        if self.kind == "empty":
            return b""
        if self.kind == "string":
            return unquote(values[self.index], backslashes)
        if self.kind in ("bytes", "binary"):
            return _from_quoted(values[self.index])
        if self.kind == "bits":
            return _from_bits(values[self.index])
        if self.kind == "hex":
            return from_hex(values[self.index])
        if self.kind == "parameter":
            return parameter_text(values[self.index], backslashes)
        return slot_text(values[self.index]) if self.kind == "slot" else _refuse_text()

    @property
    def is_bytes(self) -> bool:
        """Whether `text` gives bytes that no character set has to do with."""
        return self.kind in ("hex", "bytes", "bits", "binary", "slot")

    @property
    def may_fail(self) -> bool:
        """Whether `integer` may raise NotPlain (for a text: only that of a slot may)."""
        return self.kind in _UNSURE or any(part.may_fail for part in self.parts)


_UNSURE: Final = frozenset(
    {"string", "national", "binary", "slot", "parameter", "exact", "cast", *ID_FUNCTIONS}
)


def _from_quoted(raw: bytes) -> bytes:
    """The bytes of `x'…'`; `raw` is its inside with the closing quote. Raises BindError when it is none: what
    the statement is known by does not tell.
    """
    try:
        return from_hex(raw[:-1])
    except NotPlain:
        reason = "You have an error in your SQL syntax: x'...' has something other than hexadecimal digits"
        raise BindError("syntax_error", reason=reason) from None


def _from_bits(raw: bytes) -> bytes:
    """The bytes of `b'…'`, whose first one is filled up with zeros. Raises BindError as `_from_quoted`."""
    digits = raw[:-1]
    if digits.strip(b"01"):
        reason = "You have an error in your SQL syntax: b'...' has something other than the digits 0 and 1"
        raise BindError("syntax_error", reason=reason)
    return int(digits or b"0", 2).to_bytes((len(digits) + 7) // 8, "big")


def _refuse_text() -> bytes:
    raise NotPlain


def _make_id(layout: Layout | None, numbers: list[int]) -> int:
    try:
        if layout is None or len(numbers) != 3:
            raise NotPlain
        return layout.compose(shard=numbers[0], type=numbers[1], local=numbers[2])
    except ValueError:
        raise NotPlain from None


def _field(name: str) -> Callable[[Layout | None, list[int]], int]:
    def take(layout: Layout | None, numbers: list[int]) -> int:
        try:
            if layout is None or len(numbers) != 1:
                raise NotPlain
            return layout.decompose(numbers[0])[name]
        except (ValueError, KeyError):
            raise NotPlain from None

    return take


_OPERATIONS: Final[dict[str, Callable[[Layout | None, list[int]], int]]] = {
    "+": lambda _, numbers: numbers[0] + numbers[1],
    "-": lambda _, numbers: numbers[0] - numbers[1],
    "*": lambda _, numbers: numbers[0] * numbers[1],
    "negative": lambda _, numbers: -numbers[0],
    "MAKE_ID": _make_id,
    "SHARD_OF": _field("shard"),
    "TYPE_OF": _field("type"),
    "LOCAL_OF": _field("local"),
}

SLOT_FUNCTIONS: Final = {
    "LAST_INSERT_ID": "LAST_INSERT_ID()",
    "DATABASE": "DATABASE()",
    "SCHEMA": "DATABASE()",
    "CONNECTION_ID": "CONNECTION_ID()",
    "USER": "USER()",
    "SESSION_USER": "USER()",
    "SYSTEM_USER": "USER()",
    "CURRENT_USER": "CURRENT_USER()",
    "FOUND_ROWS": "FOUND_ROWS()",
    "ROW_COUNT": "ROW_COUNT()",
}
"""Functions without arguments whose value only the session knows, and the name of their slot."""

SLOT_VARIABLES: Final = {
    "@@last_insert_id": "@@last_insert_id",
    "@@session.last_insert_id": "@@last_insert_id",
    "@@local.last_insert_id": "@@last_insert_id",
    "@@identity": "@@last_insert_id",
    "@@session.identity": "@@last_insert_id",
    "@@local.identity": "@@last_insert_id",
    "@@pseudo_thread_id": "CONNECTION_ID()",
    "@@warning_count": "@@warning_count",
    "@@error_count": "@@error_count",
    "@@have_ssl": "@@have_ssl",
    "@@global.have_ssl": "@@have_ssl",
    "@@in_transaction": "@@in_transaction",
    "@@session.in_transaction": "@@in_transaction",
    "@@session_track_schema": "@@session_track_schema",
    "@@session.session_track_schema": "@@session_track_schema",
    "@@session_track_state_change": "@@session_track_state_change",
    "@@session.session_track_state_change": "@@session_track_state_change",
    "@@session_track_system_variables": "@@session_track_system_variables",
    "@@session.session_track_system_variables": "@@session_track_system_variables",
    "@@session_track_transaction_info": "@@session_track_transaction_info",
    "@@session.session_track_transaction_info": "@@session_track_transaction_info",
    "@@transaction_mode": "@@transaction_mode",
    "@@session.transaction_mode": "@@transaction_mode",
    "@@local.transaction_mode": "@@transaction_mode",
    "@@scatter_writes": "@@scatter_writes",
    "@@session.scatter_writes": "@@scatter_writes",
    "@@local.scatter_writes": "@@scatter_writes",
    "@@with_deleted": "@@with_deleted",
    "@@session.with_deleted": "@@with_deleted",
    "@@local.with_deleted": "@@with_deleted",
}
"""Variables whose value only the session knows, the proxy's own at last, and the name of their slot."""

CHANGED_ON_SHARDS: Final = {
    "autocommit": b"SIGNED",
    "character_set_results": b"",
    "max_error_count": b"UNSIGNED",
    "net_write_timeout": b"UNSIGNED",
    "sql_log_bin": b"SIGNED",
    "sql_select_limit": b"UNSIGNED",
}
"""Session variables, and the types of numbers, of which a connection that reads shards or gathers their rows
may have another value than the session."""


LOCK_HOLDERS: Final = "(lock holders)"
"""The slot for `WHEN 57 THEN 3 …`: which session has the server's connection of that number."""

SLOT_TYPES: Final = {
    "LAST_INSERT_ID()": b"UNSIGNED",
    "@@last_insert_id": b"UNSIGNED",
    "CONNECTION_ID()": b"UNSIGNED",
    "FOUND_ROWS()": b"SIGNED",
    "ROW_COUNT()": b"SIGNED",
    "@@warning_count": b"UNSIGNED",
    "@@error_count": b"UNSIGNED",
    "@@in_transaction": b"UNSIGNED",
    "@@scatter_writes": b"SIGNED",
    "@@with_deleted": b"SIGNED",
    **{f"@@{name}": type_ for name, type_ in CHANGED_ON_SHARDS.items() if type_},
}
"""The types of numbers that only the session knows: a bare literal would have a smaller one."""

TYPED_BY: Final = {
    "USER()": b"USER()",
    "CURRENT_USER()": b"CURRENT_USER()",
    "DATABASE()": b"DATABASE()",
    "@@have_ssl": b"@@have_ssl",
    **{f"@@{name}": b"@@%b" % name.encode() for name, type_ in CHANGED_ON_SHARDS.items() if not type_},
}
"""Texts that only the session knows, and the server's function that lends them type, length, collation."""

NUMBERED: Final = "(connection)"
"""The slot for the bytes whose CRC32 is the session's number: on MariaDB no other constant is of the type of
CONNECTION_ID(), an INT UNSIGNED."""


class Slots:
    """The session values a statement needs: gives each name the index of its value."""

    def __init__(self, literals: int) -> None:
        self._first = literals
        self.names: dict[str, int] = {}  # in their order

    def index(self, name: str) -> int:
        """The index, among the values, of slot `name`."""
        return self._first + self.names.setdefault(name, len(self.names))

    @property
    def end(self) -> int:
        """The index of the first value behind the slots."""
        return self._first + len(self.names)


def variable_slot(name: str) -> str:
    """The slot of a user variable: "@name"; "@`" in front of a name that begins with "@" or "`", which is
    not to be taken for a system variable's.
    """
    return ("@`" if name[:1] in ("@", "`") else "@") + name


def variable_of(slot: str) -> str:
    """The user variable's name, in lower case; "" when the slot is something else."""
    if slot[:2] == "@`":
        return slot[2:]
    return slot[1:] if slot[:1] == "@" and slot[1:2] != "@" else ""


def slot_at(source: Source, at: int) -> tuple[str, int] | None:
    """The session value that the tokens at `at` stand for: its slot and where it ends; None if it is none."""
    token = source.at(at)
    if at in source.marks:
        return f"?{'L' if _of_limit(source, at) else ''}{source.marks[at]}", at + 1
    if token.kind == VARIABLE:
        return None if source.is_op(at + 1, ":=") or not token.text else (variable_slot(token.text), at + 1)
    if token.kind == "system":
        name = SLOT_VARIABLES.get(token.text)
        return None if name is None else (name, at + 1)
    if token.kind != "word" or source.is_op(at - 1, "."):
        return None
    if token.text in SLOT_FUNCTIONS and source.is_op(at + 1, "(") and source.is_op(at + 2, ")"):
        return SLOT_FUNCTIONS[token.text], at + 3
    if token.text == "CURRENT_USER" and not source.is_op(at + 1, "(", "."):
        return "CURRENT_USER()", at + 1
    return None


def changed_variable_at(source: Source, at: int) -> tuple[str, int] | None:
    """The slot of a variable of `CHANGED_ON_SHARDS` that stands at `at`, and where it ends."""
    token = source.at(at)
    if token.kind != SYSTEM:
        return None
    name = token.text.removeprefix("@@").removeprefix("session.").removeprefix("local.")
    return (f"@@{name}", at + 1) if name in CHANGED_ON_SHARDS else None


def _of_limit(source: Source, at: int) -> bool:
    """Whether the token is a number of LIMIT, which takes integers only."""
    if source.is_word(at - 1, "LIMIT", "OFFSET"):
        return True
    return source.is_op(at - 1, ",") and source.is_word(at - 3, "LIMIT") and not source.is_op(at - 2, ")")


_MOST_DOUBLE: Final = float(1 << 64)

MAX_CONSTANT: Final = 100
"""So many tokens may be in one constant expression."""

_TEXTS: Final = ("string", "national", "bytes", "binary", "double", "parameter")
"""What arithmetic makes a double of, or is none for."""

_INTRODUCERS: Final = ("_UTF8MB4", "_UTF8MB3", "_UTF8", "_LATIN1", "_ASCII", "_BINARY")
"""Character sets whose digits are ASCII's."""


class ConstantReader:
    """Reads a constant expression off a span of tokens."""

    def __init__(self, source: Source, slots: Slots, layout: Layout | None) -> None:
        self._source = source
        self._slots = slots
        self._layout = layout
        self._at = 0
        self._end = 0

    def read(self, first: int, end: int) -> Value | None:
        """The constant that exactly these tokens are, or None."""
        found = self.prefix(first, end)
        return found[0] if found is not None and found[1] == end else None

    def prefix(self, first: int, end: int) -> tuple[Value, int] | None:
        """The longest constant that stands at `first`, and where it ends; None when there is none.

        An expression of more than MAX_CONSTANT tokens is taken for none.
        """
        self._at, self._end = first, min(end, first + MAX_CONSTANT)
        value = self._sum()
        return None if value is None else (value, self._at)

    def _operator(self, *operators: str) -> str:
        if self._at < self._end and self._source.is_op(self._at, *operators):
            self._at += 1
            return self._source.tokens[self._at - 1].text
        return ""

    def _sum(self) -> Value | None:
        left = self._product()
        while left is not None and (operator := self._operator("+", "-")):
            right = self._product()
            left = _arithmetic(operator, left, right)
        return left

    def _product(self) -> Value | None:
        left = self._signed()
        while left is not None and self._operator("*"):
            right = self._signed()
            left = _arithmetic("*", left, right)
        return left

    def _signed(self) -> Value | None:
        if self._operator("-"):
            inner = self._signed()
            return None if inner is None or inner.kind in _TEXTS else Value("negative", parts=(inner,))
        if self._operator("+"):
            inner = self._signed()
            return None if inner is None or inner.kind in _TEXTS else inner
        return self._primary()

    def _primary(self) -> Value | None:
        source, at = self._source, self._at
        if at >= self._end:
            return None
        token = source.at(at)
        if token.kind in (INTEGER, STRING, HEX) and token.literal >= 0:
            self._at += 1
            return Value(token.kind, token.literal)
        if token.kind == PREFIXED and token.literal >= 0 and token.text[:1] in "xX":
            self._at += 1
            return Value("bytes", token.literal)
        if token.kind == PREFIXED and token.literal >= 0 and token.text[:1] in "bB":
            self._at += 1
            return Value("bits", token.literal)
        if token.kind == NUMBER and token.text.startswith("0b"):
            self._at += 1
            return Value("fixed", int(token.text[2:], 2) & 0xFFFFFFFFFFFFFFFF)
        if token.kind == LIST:
            return None
        if token.kind == PREFIXED and token.literal >= 0 and token.text[:1] in "nN":
            self._at += 1
            return Value("national", token.literal)
        if token.kind == "word" and token.text in _INTRODUCERS and source.at(at + 1).kind == STRING:
            self._at += 2
            literal = source.at(at + 1).literal
            return Value("national", literal) if literal >= 0 else None
        if source.is_word(at, "_BINARY") and source.at(at + 1).text[:1] in ("x", "X"):
            literal = source.at(at + 1).literal if source.at(at + 1).kind == PREFIXED else -1
            self._at += 2
            return Value("binary", literal) if literal >= 0 else None
        if token.kind == NUMBER and "e" in token.text.lower() and "b" not in token.text.lower():
            self._at += 1
            double = float(token.text)
            return Value("double", int(double)) if double.is_integer() and double < _MOST_DOUBLE else None
        if self._operator("("):
            inner = self._sum()
            return inner if self._operator(")") else None
        slot = slot_at(source, at)
        if slot is not None and slot[1] <= self._end:
            self._at = slot[1]
            return Value("parameter" if slot[0][0] == "?" else "slot", self._slots.index(slot[0]))
        if source.is_word(at, *ID_FUNCTIONS) and source.is_op(at + 1, "("):
            return self._call(token.text)
        return None

    def _call(self, name: str) -> Value | None:
        self._at += 2
        parts = []
        while True:
            part = self._sum()
            if part is None:
                return None
            parts.append(part)
            if self._operator(")"):
                return Value(name, parts=tuple(parts), layout=self._layout)
            if not self._operator(","):
                return None


def _arithmetic(operator: str, left: Value, right: Value | None) -> Value | None:
    if right is None or left.kind in _TEXTS or right.kind in _TEXTS:
        return None
    return Value(operator, parts=(left, right))
