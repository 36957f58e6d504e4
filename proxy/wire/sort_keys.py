"""Rows with sort keys: bytes that compare as the server compares the values they are made of.

A row has one key for all that it is sorted by, so that a merge compares two rows by comparing bytes. Each
value adds a part that is never the beginning of another value's part:

- a byte, 0 for NULL, which sorts first, 1 for anything else;
- NUMBER, of integers and decimals of any length: 0x80 and how many digits stand before the point, then the
  digits without the zeros at both ends, then a zero byte; of a negative number all that complemented;
- TIME: as the number that remains without the colons;
- DOUBLE: its eight bytes, the greatest first, so changed that they sort;
- BYTES: as they are, 0 as 0 and 255, and two zero bytes at the end;
- PADDED, for weights in a PAD SPACE collation, where the shorter of two goes on with spaces: without the
  spaces at its end, before each character how it and what follows compare with spaces (1 less, 3 more), 2 at
  the end.

DESC complements a value's whole part. Most rows are made by `row_packets.keyed_rows`; what is here says how,
and makes the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from . import row_packets
from .constants import MAX_PAYLOAD
from .packets import frame, read_lenenc_bytes
from .resultset import value_offsets
from .rows import first_row
from .wide import ASCII, Form

NUMBER, TIME, DOUBLE, BYTES, PADDED = b"n", b"t", b"d", b"b", b"p"

_MOST_DIGITS: Final = 100
_COMPLEMENT: Final = bytes(range(255, -1, -1))
_DOUBLE: Final = Struct(">d")
_U64: Final = Struct(">Q")
_NEGATIVE: Final = 1 << 63
_ALL: Final = (1 << 64) - 1
_time = re.compile(rb"(-?[0-9]+):([0-9]{2}):([0-9]{2}(?:\.[0-9]*)?)").fullmatch


class Part(NamedTuple):
    """One value of a row's key, that of `column`. `pad`: the weight of a space, for PADDED. Where `named` is
    not -1, that column must hold `name` in every row. Columns are counted from the first one.
    """

    kind: bytes
    descending: bool
    column: int
    pad: bytes = b""
    named: int = -1
    name: bytes = b""


class OtherName(Exception):
    """A row does not hold the name that `part` of its key is for, but `name`."""

    def __init__(self, part: Part, name: bytes | None) -> None:
        super().__init__(name)
        self.part = part
        self.name = name


def number_key(text: bytes) -> bytes:
    """Of an integer or a decimal. ValueError when it is none, or has over 100 digits before its point."""
    negative = text.startswith(b"-")
    whole, _, fraction = text[negative:].partition(b".")
    if not (whole + fraction).isdigit():
        raise ValueError(f"no number: {text[:80]!r}")
    whole, fraction = whole.lstrip(b"0"), fraction.rstrip(b"0")
    if len(whole) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(whole)} digits")
    key = bytes((0x80 + len(whole),)) + whole + fraction + b"\0"
    return key.translate(_COMPLEMENT) if negative and len(key) > 2 else key


def time_key(text: bytes) -> bytes:
    """Of `-12:34:56.789`. ValueError when it is no time."""
    found = _time(text)
    if found is None:
        raise ValueError(f"no time: {text[:80]!r}")
    return number_key(b"".join(found.groups()))


def double_key(text: bytes) -> bytes:
    """Of a FLOAT or DOUBLE. ValueError when it is none."""
    bits: int = _U64.unpack(_DOUBLE.pack(float(text) + 0.0))[0]
    return _U64.pack(_ALL - bits if bits & _NEGATIVE else bits | _NEGATIVE)


def bytes_key(text: bytes) -> bytes:
    """Of bytes that sort as such."""
    return text.replace(b"\0", b"\0\xff") + b"\0\0"


def padded_key(weight: bytes, pad: bytes) -> bytes:
    """Of a weight whose collation has spaces of the weight `pad`."""
    size = len(pad)
    if len(weight) % size:
        weight += pad[len(weight) % size :]
    units = [weight[start : start + size] for start in range(0, len(weight), size)]
    while units and units[-1] == pad:
        units.pop()
    pieces, mark = [b"\2"], b"\2"
    for unit in reversed(units):
        mark = b"\1" if unit < pad else b"\3" if unit > pad else mark
        pieces += (unit, mark)
    return b"".join(reversed(pieces))


_MAKERS: Final = {NUMBER: number_key, TIME: time_key, DOUBLE: double_key, BYTES: bytes_key}


def value_key(value: bytes | None, kind: bytes, pad: bytes = b"", *, descending: bool = False) -> bytes:
    """What one value adds to its row's key. ValueError when it is not of this kind."""
    if value is None:
        key = b"\0"
    elif kind == PADDED:
        key = b"\1" + padded_key(value, pad)
    else:
        key = b"\1" + _MAKERS[kind](value)
    return key.translate(_COMPLEMENT) if descending else key


def keyed(
    block: bytes, columns: int, shown: int, parts: Sequence[Part], form: Form = ASCII
) -> tuple[list[bytes], list[bytes]]:
    """The keys of a row block's rows, and the rows as packets of their first `shown` columns, to be numbered.
    `form`: that of names and numbers in the rows.

    Raises ProtocolError when one is no row of so many columns, ValueError when a value is not of its kind,
    OtherName when a column has another name than the parts say.
    """
    keys: list[bytes] = []
    packets: list[bytes] = []
    told, pos, end = tuple(parts), 0, len(block)
    while pos < end:
        if form is ASCII:
            some, theirs, pos = row_packets.keyed_rows(block, pos, columns, shown, told, MAX_PAYLOAD)
            keys += some
            packets += theirs
        if pos < end:
            payload, pos = first_row(block, pos)
            offsets = value_offsets(payload, columns)
            keys.append(b"".join([_part_of(payload, offsets, part, form) for part in told]))
            packets.append(frame(payload[: offsets[shown]]))
    return keys, packets


_NUMBERS: Final = (NUMBER, TIME, DOUBLE)


def _part_of(payload: bytes, offsets: Sequence[int], part: Part, form: Form) -> bytes:
    if part.named >= 0:
        name, _ = read_lenenc_bytes(payload, offsets[part.named])
        name = None if name is None else form.read(name)
        if name != part.name:
            raise OtherName(part, name)
    value, _ = read_lenenc_bytes(payload, offsets[part.column])
    if value is not None and part.kind in _NUMBERS:
        value = form.read(value)
    return value_key(value, part.kind, part.pad, descending=part.descending)
