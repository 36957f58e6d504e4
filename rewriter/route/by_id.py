"""One ID to the text that its host gets: what binding a point SELECT is, or the INSERT of one row.

There is a twin of this file in C, `_by_id.c`, for the same arguments the same results. It is built where
there is a compiler; where there is none, what stands here runs. `COMPILED` tells which one is in use. What
it does is said here only, and tests compare the two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from rewriter.route.id_lists import Bits
from rewriter.splice import Template

_OVER: Final = 1 << 64
_LONG: Final = 40
"""Digits of a number that is not looked at."""
_BACKSLASH: Final = ord("\\")


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


class RowById(NamedTuple):
    """How the row of an INSERT is placed: the literal that has an ID, or a JSON text in which the ID is that
    `member`, in its quotes (b"": it is the ID itself). `id_offset`: K of shard 0 (None: the row has no ID).
    """

    literal: int
    member: bytes
    bits: Bits
    id_offset: int | None


def row_by_id(
    raw: bytes,
    values: tuple[bytes, ...],
    by_id: RowById,
    places: Mapping[int, tuple[str, bytes]],
    template: Template,
) -> tuple[str, int, bytes, bytes, int | None] | None:
    """Host, shard, text, database and K for the row whose ID is in the literal `raw`; None as `text_by_id`,
    or when a JSON text must be read to tell.

    `template` has holes for `values` and, behind them, for the shard's database, for K (0 for None), and for
    a local id that is to come (nothing). Raises IndexError when it names others.
    """
    _, member, bits, id_offset = by_id
    digits = member_of(raw, member) if member else raw
    if digits is None or len(digits) >= _LONG or not digits.isdigit():
        return None
    mask, expected, shift, shard_mask, _ = bits
    number = int(digits)
    if number & mask != expected or number >= _OVER:
        return None
    shard = number >> shift & shard_mask
    place = places.get(shard)
    if place is None:
        return None
    host, database = place
    if id_offset is not None:
        id_offset += shard << shift
    text = template.render((*values, database, b"%d" % (id_offset or 0), b""))
    return host, shard, text, database, id_offset


def member_of(raw: bytes, member: bytes) -> bytes | None:
    """The digits of a `member`, a name in its quotes, among the first texts and numbers of a JSON object,
    which `raw` is as a literal (with its closing quote, and perhaps the first one). None when the text must
    be read to tell.

    What stands behind it is not read: the server will say what is wrong with that. Where the member's name
    is nowhere else in the text, no other member of that name counts instead.
    """
    if _BACKSLASH in raw or raw.count(member) != 1:
        return None
    found = _finds(member).match(raw, raw.startswith(b"'"))
    return None if found is None else found[1] or found[2]


def quoted_member(path: tuple[str | int, ...]) -> bytes:
    """What `member_of` looks for; b"" for a path that it does not follow."""
    name = path[0] if len(path) == 1 else 0
    if not isinstance(name, str) or not name.isascii() or not name.isprintable() or set(name) & {'"', "\\"}:
        return b""
    return b'"%b"' % name.encode()


@cache
def _finds(member: bytes) -> re.Pattern[bytes]:
    """What finds the number of a member, behind others in which nothing is escaped."""
    others = rb"""(?:\s*+"[^"]*"\s*+:\s*+(?:"[^"]*"|[-+.0-9A-Za-z]++)\s*+,)*?"""
    number = rb"""(?:(0|[1-9][0-9]{0,18})|"([0-9]{1,19})")"""
    return re.compile(
        rb"\s*+\{" + others + rb"\s*+" + re.escape(member) + rb"\s*+:\s*+" + number + rb"\s*+[,}]"
    )


PYTHON: Final = text_by_id
PYTHON_ROW: Final = row_by_id
"""Those of this file."""

if not TYPE_CHECKING:
    with suppress(ImportError):
        from ._by_id import row_by_id, text_by_id

COMPILED: Final = text_by_id is not PYTHON
