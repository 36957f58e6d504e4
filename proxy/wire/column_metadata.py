"""Column definitions with other origins: the logical database where a server names its own, and an origin for
columns that have none there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from .constants import BINARY_COLLATION, ColumnFlag, ColumnType
from .packets import ProtocolError, frame, lenenc_bytes, read_lenenc, read_lenenc_bytes

_TAIL = Struct("<BHIBHBxx")
_KEY = ColumnFlag.PRI_KEY | ColumnFlag.UNSIGNED | ColumnFlag.AUTO_INCREMENT | ColumnFlag.PART_KEY
_DIGITS = 20


class Origin(NamedTuple):
    """Schema, table (as the statement calls it), stored table and stored column of a column definition."""

    schema: bytes
    table: bytes
    org_table: bytes
    org_name: bytes


@dataclass(frozen=True)
class Header:
    """What a result set began with once, and what the client got instead. `pieces`: what stands between the
    places where it had the shard's database; `size`: its length.
    """

    size: int
    pieces: tuple[bytes, ...]
    shown: bytes


class Placed(NamedTuple):
    """A column's new origin. `key`: it is a composed ID, which is to be a primary key."""

    origin: Origin
    key: bool = False


#: Gives a column's new origin, or None to leave it: from its name, the origin it has, and its number among
#: the columns that have none (-1: it has one).
Place = Callable[[bytes, Origin, int], Placed | None]


class Placing:
    """Changes the column definitions at the beginning of one result set, which comes in whole packets."""

    __slots__ = ("_bare", "_left", "_place", "done")

    def __init__(self, place: Place) -> None:
        self._place = place
        self._left = -1
        self._bare = 0  # columns without an origin so far
        self.done = False

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """`data` with the definitions changed, and the length of what was looked at of the original."""
        pieces: list[bytes] = []
        pos = 0
        while pos < len(data) and not self.done:
            stop = pos + 4 + int.from_bytes(data[pos : pos + 3], "little")
            packet = data[pos:stop]
            if self._left > 0:
                packet = frame(self.change(packet[4:]), packet[3])
                self._left -= 1
            elif self._left < 0 and 0 < packet[4] < 0xFD:
                self._left = read_lenenc(packet, 4)[0] or 0
            else:
                self.done = True  # the EOF packet behind them, or no result set
            pieces.append(packet)
            pos = stop
        return b"".join([*pieces, data[pos:]]), pos

    def change(self, payload: bytes) -> bytes:
        """The next column's definition. What is none stays as it is: its reader will say so."""
        names: list[bytes] = []
        pos = 0
        try:
            for _ in range(6):
                name, pos = read_lenenc_bytes(payload, pos)
                names.append(name or b"")
        except ProtocolError:
            return payload
        if len(payload) < pos + _TAIL.size:
            return payload
        was = Origin(names[1], names[2], names[3], names[5])
        bare = not any(was)
        placed = self._place(names[4], was, self._bare if bare else -1)
        self._bare += bare
        if placed is None:
            return payload
        head = (names[0], *placed.origin[:3], names[4], placed.origin.org_name)
        rest = payload[pos:]
        return b"".join(map(lenenc_bytes, head)) + (_as_key(rest, bare=bare) if placed.key else rest)


def _as_key(rest: bytes, *, bare: bool) -> bytes:
    """What stands behind the names of a composed ID, as of a primary key: BIGINT UNSIGNED."""
    size, _, _, type_, flags, _ = _TAIL.unpack(rest[-_TAIL.size :])
    if type_ != ColumnType.LONGLONG:
        return rest
    key = flags & ~int(ColumnFlag.NO_DEFAULT_VALUE)
    if bare or flags & ColumnFlag.PRI_KEY:  # what has come through a temporary table is no key any more
        key = int(_KEY) | flags & ColumnFlag.NOT_NULL
    return rest[: -_TAIL.size] + _TAIL.pack(size, BINARY_COLLATION, _DIGITS, type_, key, 0)


def changed(payloads: Sequence[bytes], place: Place) -> list[bytes]:
    """These definitions, all of one result set, with other origins."""
    placing = Placing(place)
    return [placing.change(payload) for payload in payloads]
