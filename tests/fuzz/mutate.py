"""Spoiling bytes, by a seeded chooser: the same one spoils the same bytes in the same way."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

#: What protocols are often wrong about: ends of strings, NULL, length prefixes, limits of integers.
BYTES = (0, 1, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)
PIECES = (
    b"\0", b"\xff\xff\xff\xff", b"\xfb", b"\xfc\xff\xff", b"\xfd\xff\xff\xff", b"\xfe" + b"\xff" * 8,
    b"\xfe\0\0\0\0\0\0\0\x80", b"\xfe\xff\xff\xff\x7f\0\0\0\0", b"\0" * 9, b"\xff" * 23, b"\xc3\x28",
    b"'", b"`", b"*/", b";",
)  # fmt: skip

Change = Callable[[Random, bytearray], None]


def _flip(chooser: Random, data: bytearray) -> None:
    data[chooser.randrange(len(data))] ^= 1 << chooser.randrange(8)


def _byte(chooser: Random, data: bytearray) -> None:
    data[chooser.randrange(len(data))] = chooser.choice(BYTES)


def _cut(chooser: Random, data: bytearray) -> None:
    del data[chooser.randrange(len(data)) :]


def _remove(chooser: Random, data: bytearray) -> None:
    place = chooser.randrange(len(data))
    del data[place : place + chooser.randrange(1, 9)]


def _insert(chooser: Random, data: bytearray) -> None:
    place = chooser.randrange(len(data) + 1)
    data[place:place] = chooser.choice(PIECES) * chooser.choice((1, 1, 1, 100))


def _repeat(chooser: Random, data: bytearray) -> None:
    place = chooser.randrange(len(data))
    piece = data[place : place + chooser.randrange(1, 33)]
    data[place:place] = piece * chooser.choice((1, 2, 50))


def _number(chooser: Random, data: bytearray) -> None:
    """A 16, 32 or 64-bit integer of another value."""
    size, form = chooser.choice(((2, "<H"), (4, "<I"), (8, "<Q")))
    place = chooser.randrange(len(data))
    value = chooser.choice((0, 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1, chooser.getrandbits(8 * size)))
    data[place : place + size] = struct.pack(form, value)


def _random(chooser: Random, data: bytearray) -> None:
    place = chooser.randrange(len(data))
    data[place : place + 16] = chooser.randbytes(chooser.randrange(0, 33))


CHANGES: Sequence[Change] = (_flip, _byte, _byte, _cut, _remove, _insert, _repeat, _number, _random)


def spoil(chooser: Random, data: bytes) -> bytes:
    """`data` with one to three changes. What is empty may become anything."""
    changed = bytearray(data)
    for _ in range(chooser.choice((1, 1, 1, 2, 3))):
        if changed:
            chooser.choice(CHANGES)(chooser, changed)
        else:
            changed += chooser.choice(PIECES)
    return bytes(changed)


def pieces(chooser: Random, data: bytes) -> list[bytes]:
    """`data` in one to four pieces, as a network might deliver it."""
    places = sorted(chooser.randrange(len(data) + 1) for _ in range(chooser.choice((0, 0, 1, 3))))
    edges = [0, *places, len(data)]
    return [data[first:last] for first, last in pairwise(edges) if last > first]
