"""Replies with other sequence numbers and status flags than they were made with.

The replies to a text of several statements are one to the client: their sequence numbers run on, and
MORE_RESULTS_EXISTS stands in all of them but the last. `Renumber` walks the packets of a reply and changes
just that; rows are not read. The bytes may come cut anywhere.
"""

from __future__ import annotations

from . import row_packets
from .constants import MAX_PAYLOAD
from .packets import read_lenenc

_FIRST, _COLUMNS, _COLUMNS_END, _ROWS = range(4)


class Renumber:
    """`start`, then `feed` what belongs to one reply. With `flags`, `last` is then the last one's number."""

    __slots__ = ("_carry", "_columns", "_continued", "_shift", "_skip", "_state", "_wanted", "flags", "last")

    def __init__(self) -> None:
        self.last = 0
        self.start(1)

    def start(self, seq: int, flags: int = 0) -> None:
        """A reply begins. Its first packet gets the number `seq`, and those behind it follow; `flags` are set
        in its OK and EOF packets.
        """
        self.flags = flags
        self._wanted = seq & 0xFF
        self._shift = -1  # what is added to a number; known from the first packet on
        self._state = _FIRST
        self._columns = 0
        self._skip = 0  # bytes of a packet that are still to come
        self._continued = False  # the packet before had 16 MB, so this one is its rest
        self._carry = b""

    def feed(self, data: bytes | bytearray | memoryview) -> bytes:
        """The same bytes, changed; a packet that is not complete enough to be changed comes with the next."""
        if not self._shift and not self.flags:
            return self._untouched(data)
        out = bytearray(self._carry)
        out += data
        self._carry = b""
        pos, end = self._skip, len(out)
        while pos < end:
            if end - pos < 4:
                break
            header = int.from_bytes(out[pos : pos + 4], "little")
            length = header & 0xFFFFFF
            if self._shift < 0:
                self._shift = (self._wanted - (header >> 24)) & 0xFF
                self.last = (self._wanted - 1) & 0xFF
            if self._state == _ROWS and not self._continued:
                rest = self._plain_rows(out, pos)
                if rest > pos:
                    pos = rest
                    continue
            stop = pos + 4 + length
            if not self._continued and self._is_read(out, pos, length, end):
                if stop > end:
                    break
                self._read(out, pos + 4, stop)
            self._continued = length == MAX_PAYLOAD
            self.last = (header >> 24) + self._shift & 0xFF
            out[pos + 3] = self.last
            pos = stop
        if pos < end:
            self._carry = bytes(out[pos:])
            del out[pos:]
            self._skip = 0
        else:
            self._skip = pos - end
        return bytes(out)

    def _plain_rows(self, out: bytearray, pos: int) -> int:
        """Number the whole rows at `pos`, nearly all that passes; the position behind them."""
        stop, rows, header = row_packets.walk_rows(out, pos, MAX_PAYLOAD)
        if rows:
            out[pos:stop], *_ = row_packets.renumber(out[pos:stop], out[pos + 3] + self._shift, MAX_PAYLOAD)
            self.last = (header >> 24) + self._shift & 0xFF
        return stop

    def _untouched(self, data: bytes | bytearray | memoryview) -> bytes:
        """There is nothing to change: rows need not be walked."""
        carry, self._carry = self._carry, b""
        return carry + data

    def _is_read(self, out: bytearray, pos: int, length: int, end: int) -> bool:
        """Whether the packet at `pos` is one of those that are looked into."""
        if self._state == _FIRST or pos + 4 == end or not length:
            return bool(length)
        first = out[pos + 4]
        if self._state == _COLUMNS:
            self._columns -= first != 0xFF
            if not self._columns:
                self._state = _COLUMNS_END
            return False
        return first == 0xFE and length < 9

    def _read(self, out: bytearray, start: int, stop: int) -> None:
        first = out[start]
        if first == 0xFE and self._state != _FIRST:  # EOF
            self._flag(out, start + 3)
            self._state = _ROWS if self._state == _COLUMNS_END else _FIRST
        elif first == 0:
            payload = bytes(out[start:stop])
            pos = read_lenenc(payload, 1)[1]
            pos = read_lenenc(payload, pos)[1]
            self._flag(out, start + pos)
        elif first < 0xFB or first == 0xFC:
            self._columns = read_lenenc(bytes(out[start:stop]), 0)[0] or 0
            self._state = _COLUMNS

    def _flag(self, out: bytearray, at: int) -> None:
        status = int.from_bytes(out[at : at + 2], "little") | self.flags
        out[at : at + 2] = status.to_bytes(2, "little")
