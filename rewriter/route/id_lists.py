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

_LIST: Final = re.compile(rb"\s*-?[0-9]+\s*(?:,\s*-?[0-9]+\s*)*")


class Bits(NamedTuple):
    """Where an ID has its shard. One of the column's has `id & mask == expected`, its shard is
    `id >> shift & shard_mask`, and `id & stored_mask` is what is stored. Each has 64 bits at most.
    """

    mask: int
    expected: int
    shift: int
    shard_mask: int
    stored_mask: int


Texts = list[tuple[str, tuple[int, ...], bytes]]
"""The host, its shards and what it gets, once for each statement."""


def texts_by_host(
    raw: bytes,
    bits: Bits,
    places: Mapping[int, tuple[str, bytes]],
    pieces: tuple[bytes | int, ...],
    between: bytes,
    chunk: int,
    most: int,
) -> Texts | None:
    """The texts for the IDs in `raw`, a list of integers with commas. IDs that can be no row's are left out:
    those of another form than `bits` says, or of a shard that is not in `places` (its host and its database).

    A shard's text is made of `pieces`: bytes as they are, DATABASE its database, BASE the smallest of its
    possible IDs in digits, CONSTANTS what is stored of its IDs, in their order. A host's texts are joined by
    `between`, its shards in ascending order, `chunk` of them at most in one text. Hosts are in the order of
    their first shards. None: some text has more than `most` bytes. Raises ValueError when `raw` is no list.
    """
    if _LIST.fullmatch(raw) is None:
        raise ValueError("no list of integers")
    mask, expected, shift, shard_mask, stored_mask = bits
    stored: dict[int, list[bytes]] = {}
    for element in raw.split(b","):
        digits = element.strip()
        number = int(digits) if len(digits) < _LONG else _long(digits)
        if 0 <= number < _OVER and number & mask == expected:
            stored.setdefault(number >> shift & shard_mask, []).append(b"%d" % (number & stored_mask))
    hosts: dict[str, list[list[tuple[int, bytes]]]] = {}
    for shard in sorted(stored):
        place = places.get(shard)
        if place is None:
            continue
        host, database = place
        kinds = {
            DATABASE: database,
            BASE: b"%d" % (shard << shift | expected),
            CONSTANTS: b", ".join(stored[shard]),
        }
        text = b"".join([piece if isinstance(piece, bytes) else kinds[piece] for piece in pieces])
        chunks = hosts.setdefault(host, [[]])
        if len(chunks[-1]) >= chunk:
            chunks.append([])
        chunks[-1].append((shard, text))
    found = [
        (host, tuple([shard for shard, _ in one]), between.join([text for _, text in one]))
        for host, chunks in hosts.items()
        for one in chunks
    ]
    return None if any(len(text) > most for _, _, text in found) else found


_OVER: Final = 1 << 64
_LONG: Final = 60


def _long(digits: bytes) -> int:
    """An integer of many digits; any that is above 64 bits is as good as another."""
    short = digits.lstrip(b"0") or b"0"
    return int(short) if len(short) < _LONG else _OVER


PYTHON: Final = texts_by_host
"""The one of this file."""

if not TYPE_CHECKING:
    with suppress(ImportError):
        from ._id_lists import texts_by_host

COMPILED: Final = texts_by_host is not PYTHON
