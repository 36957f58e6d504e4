"""One ID to the text that its host gets: what binding a point SELECT is.

There is a twin of this file in C, `_by_id.c`, for the same arguments the same results. It is built where
there is a compiler; where there is none, what stands here runs. `COMPILED` tells which one is in use. What
it does is said here only, and tests compare the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from rewriter.route.id_lists import Bits
from rewriter.splice import Template

_OVER: Final = 1 << 64
_LONG: Final = 40
"""Digits of a number that is not looked at."""


def text_by_id(
    raw: bytes,
    values: tuple[bytes, ...],
    bits: Bits,
    places: Mapping[int, tuple[str, bytes]],
    template: Template,
) -> tuple[str, int, bytes, bytes] | None:
    """Host, shard, text and database for the ID that `raw` is in digits; None when it can be no row's: `raw`
    is anything else, the ID is of another form than `bits` says, or of a shard that is not in `places` (its
    host and its database).

    `template` has holes for `values` and, behind them, for the shard's database, what is stored of the ID,
    and the rest of it; these two are among its integers. Raises IndexError when it names others.
    """
    if len(raw) >= _LONG or not raw.isdigit():
        return None
    mask, expected, shift, shard_mask, stored_mask = bits
    number = int(raw)
    if number & mask != expected or number >= _OVER:
        return None
    shard = number >> shift & shard_mask
    place = places.get(shard)
    if place is None:
        return None
    host, database = place
    stored = number & stored_mask
    # `render`, without a call
    text = template.text % template.pick((*values, database, stored, number - stored))
    return host, shard, text, database


PYTHON: Final = text_by_id
"""The one of this file."""

if not TYPE_CHECKING:
    with suppress(ImportError):
        from ._by_id import text_by_id

COMPILED: Final = text_by_id is not PYTHON
