"""The loops that meet every row which passes: over packet headers, over values for prepared statements, and
over those that rows are sorted by.

Their time is what a large result costs, so there is a twin of this file in C (`_row_packets.c` and
`_sort_keys.c`), for the same arguments the same results. It is built where there is a compiler; where there
is none, what stands here runs. `COMPILED` tells which one is in use. What they do is said here only, and
tests compare the two.

`most` is the length of a payload that goes on in the next packet: MAX_PAYLOAD, but in tests.
"""

from __future__ import annotations

from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Final

Bytes = bytes | bytearray | memoryview

_EOF = Struct("<IBHH")
_HEADER = Struct("<I").unpack_from
_HEADER_AND_BYTE = Struct("<IB").unpack_from


def walk_rows(data: Bytes, pos: int, most: int) -> tuple[int, int, int]:
    """Go over the whole plain rows from `pos` on: the position behind them, how many they are, and the header
    of the last one as an integer, 0 without any.

    Not plain is what may be something else than a row, or a part of one: an empty payload, one of `most`
    bytes and more, or one that begins with 0xFE or 0xFF. Raises ValueError when `pos` is negative.
    """
    if pos < 0:
        raise ValueError("the position is negative")
    header = rows = 0
    end = len(data)
    last = end - 5
    unpack = _HEADER_AND_BYTE
    while pos <= last:
        following, first = unpack(data, pos)
        length = following & 0xFFFFFF
        stop = pos + 4 + length
        if stop > end or first >= 0xFE or not 0 < length < most:
            break
        header = following
        pos = stop
        rows += 1
    return pos, rows, header


def whole_rows(data: Bytes, pos: int, most: int) -> tuple[int, int, int] | None:
    """How many rows, the warnings and the status, when all from `pos` on is plain rows (see `walk_rows`) and
    one EOF packet; else None.

    Raises ValueError when `pos` is negative.
    """
    end, rows, _ = walk_rows(data, pos, most)
    if len(data) - end != _EOF.size:
        return None
    header, first, warnings, status = _EOF.unpack_from(data, end)
    return (rows, warnings, status) if header & 0xFFFFFF == 5 and first == 0xFE else None


def renumber(block: Bytes, seq: int, most: int) -> tuple[bytes, int, int]:
    """A block of whole packets as it is with the numbers `seq` and following, modulo 256; the number behind
    the last; how many packets end a row.

    Raises ValueError when the last packet is cut.
    """
    out = bytearray(block)
    seq &= 0xFF
    unpack = _HEADER
    pos = rows = 0
    end = len(out)
    last = end - 4
    while pos <= last:
        length = unpack(out, pos)[0] & 0xFFFFFF
        out[pos + 3] = seq
        seq = (seq + 1) & 0xFF
        pos += 4 + length
        if length != most:
            rows += 1
    if pos != end:
        raise ValueError("the block ends within a packet")
    return bytes(out), seq, rows


def split_rows(data: Bytes, pos: int, most: int) -> tuple[list[bytes], int]:
    """The payloads of the whole plain rows from `pos` on (see `walk_rows`), and the position behind them.

    Raises ValueError when `pos` is negative.
    """
    if pos < 0:
        raise ValueError("the position is negative")
    rows: list[bytes] = []
    end = len(data)
    last = end - 5
    unpack = _HEADER_AND_BYTE
    while pos <= last:
        following, first = unpack(data, pos)
        length = following & 0xFFFFFF
        stop = pos + 4 + length
        if stop > end or first >= 0xFE or not 0 < length < most:
            break
        rows.append(bytes(data[pos + 4 : stop]))
        pos = stop
    return rows, pos


def binary_rows(data: Bytes, pos: int, kinds: bytes, seq: int, most: int) -> tuple[bytes, int, int]:
    """Binary rows, as packets numbered from `seq`, of the plain text rows from `pos` on; the position behind
    them; how many they are. It may stop before any row: who calls makes the others, by `binary.RowEncoder`.

    `kinds` has a byte for each column: `s` stays a string, `1`, `2`, `4`, `8` are integers of so many bytes,
    `d` is a DOUBLE, `t` a DATE or DATETIME; with any other a row is not plain. Here none is: RowEncoder is
    this function's twin. Raises ValueError when `pos` is negative.
    """
    if pos < 0:
        raise ValueError("the position is negative")
    return b"", pos, 0


def keyed_rows(
    data: Bytes, pos: int, columns: int, shown: int, parts: tuple[tuple[object, ...], ...], most: int
) -> tuple[list[bytes], list[bytes], int]:
    """The sort keys of the plain rows from `pos` on; these rows as packets of their first `shown` columns,
    numbered 0; the position behind them. It may stop before any row: who calls makes the others, by
    `sort_keys`, which says what keys and `parts` are like. Here no row is plain.

    Raises ValueError when `pos` is negative, or a part's column is none of these `columns`.
    """
    if pos < 0:
        raise ValueError("the position is negative")
    return [], [], pos


PYTHON: Final = (walk_rows, renumber, binary_rows, keyed_rows, split_rows, whole_rows)
"""Those of this file."""

if not TYPE_CHECKING:
    with suppress(ImportError):
        from ._row_packets import binary_rows, keyed_rows, renumber, split_rows, walk_rows, whole_rows

COMPILED: Final = walk_rows is not PYTHON[0]
