"""A list of IDs to the texts that the hosts get: most of what binding a list costs.

There is a twin of this file in C, `_id_lists.c`, for the same arguments the same results. It is built where
there is a compiler; where there is none, what stands here runs. `COMPILED` tells which one is in use. What it
does is said here only, and tests compare the two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

DATABASE: Final = -1
BASE: Final = -2
CONSTANTS: Final = -3


class Bits(NamedTuple):
    """Where an ID has its shard. One of the column's has `id & mask == expected`, its shard is
    `id >> shift & shard_mask`, and `id & stored_mask` is what is stored. Each has 64 bits at most.
    """

    mask: int
    expected: int
    shift: int
    shard_mask: int
    stored_mask: int


class Most(NamedTuple):
    """So many IDs in a list, and so many shards and bytes in a text."""

    ids: int
    shards: int
    size: int


Texts = list[tuple[str, tuple[int, ...], bytes]]
"""The host, its shards and what it gets, once for each statement."""


def texts_by_host(
    raw: bytes,
    bits: Bits,
    places: Mapping[int, tuple[str, bytes]],
    pieces: tuple[bytes | int, ...],
    between: bytes,
    most: Most,
) -> Texts | None:
    """The texts for the IDs in `raw`, a list of integers with commas. IDs that can be no row's are left out:
    those of another form than `bits` says. `places` has each shard's host and database.

    A shard's text is made of `pieces`: bytes as they are, DATABASE its database, BASE the smallest of its
    possible IDs in digits, CONSTANTS what is stored of its IDs, in their order. A host's texts are joined by
    `between`, its shards in ascending order, as many in a text as `most` says. Hosts are in the order of
    their first shards. None: there are more numbers, some text has more bytes, or an ID is of a shard that is
    not in `places`. Raises ValueError when `raw` is no list.
    """
    if raw.count(b",") >= most.ids:
        return None
    mask, expected, shift, shard_mask, stored_mask = bits
    stored: dict[int, list[bytes]] = {}
    for number in _numbers(raw):
        if number & mask == expected:
            shard = number >> shift & shard_mask
            if shard in stored:
                stored[shard].append(b"%d" % (number & stored_mask))
            else:
                stored[shard] = [b"%d" % (number & stored_mask)]
    holes = [piece for piece in pieces if isinstance(piece, int)]
    form = b"".join([piece.replace(b"%", b"%%") if isinstance(piece, bytes) else b"%b" for piece in pieces])
    hosts: dict[str, list[tuple[list[int], list[bytes]]]] = {}
    for shard in sorted(stored):
        place = places.get(shard)
        if place is None:
            return None
        # as negative indexes: CONSTANTS, BASE, DATABASE
        values = (b", ".join(stored[shard]), b"%d" % (shard << shift | expected), place[1])
        chunks = hosts.setdefault(place[0], [([], [])])
        if len(chunks[-1][0]) >= most.shards:
            chunks.append(([], []))
        chunks[-1][0].append(shard)
        chunks[-1][1].append(form % tuple([values[hole] for hole in holes]))
    found = [
        (host, tuple(shards), between.join(texts))
        for host, chunks in hosts.items()
        for shards, texts in chunks
    ]
    return None if any(len(text) > most.size for _, _, text in found) else found


_OVER: Final = 1 << 64
_LONG: Final = 60


def _numbers(raw: bytes) -> list[int]:
    """The numbers of a list that have 64 bits."""
    elements = raw.split(b",")
    if b"_" in raw or b"+" in raw:
        raise ValueError("no list of integers")
    if len(max(elements, key=len)) >= _LONG:
        elements = list(map(_short, elements))
    try:
        return [number for number in map(int, elements) if 0 <= number < _OVER]
    except ValueError:
        raise ValueError("no list of integers") from None


def _short(element: bytes) -> bytes:
    """A number of many digits, or behind many spaces, with few."""
    digits = element.strip()
    if len(digits) < _LONG or not digits.removeprefix(b"-").isdigit():
        return digits
    return digits.lstrip(b"0") or b"0" if len(digits.lstrip(b"0")) < _LONG else b"%d" % _OVER


def is_list(raw: bytes) -> bool:
    """Whether these are integers with commas, as they are lifted from between parentheses: the first one has
    no sign, and no spaces stand at the ends.
    """
    return _LIST.fullmatch(raw) is not None


_LIST: Final = re.compile(rb"[0-9]++(?:\s*+,\s*+-?[0-9]++)*")

PYTHON: Final = (texts_by_host, is_list)
"""Those of this file."""

if not TYPE_CHECKING:
    with suppress(ImportError):
        from ._id_lists import is_list, texts_by_host

COMPILED: Final = texts_by_host is not PYTHON[0]
