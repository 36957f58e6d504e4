"""A result set taken apart packet by packet, for what has to be merged or read.

`ResultReader` takes a reply's bytes in blocks that end at packet ends. It keeps the column definitions and
gives the rest on as *row blocks*: the packets of whole rows, headers included, nothing else. `split_rows` and
`renumber` walk such a block.
"""

from __future__ import annotations

from struct import Struct

from . import row_packets
from .constants import MAX_PAYLOAD
from .packets import read_lenenc

_U32 = Struct("<I")

HEADER, DEFINITIONS, DEFINITIONS_END, ROWS, ENDED = range(5)


class ResultReader:
    """Reads one reply. `columns` are definition payloads, `opening` is the EOF packet's behind them; after
    the end `ended` is true (OK and ERR end it at once), and `last` is the payload of the packet that was the
    end, unless `feed` was told its size.

    Of a multi-result reply only the first result set's rows are given on. A row of 16 MB and more is held
    until its last packet is there.
    """

    __slots__ = ("_count", "_held", "begins", "columns", "ended", "last", "opening", "state")

    def __init__(self) -> None:
        self.state = HEADER
        self.columns: list[bytes] = []
        self.ended = False
        self.opening = self.last = b""
        self.begins = 0  # where the first rows were, if the first bytes given had all that is before them
        self._count = 0
        self._held: list[bytes] = []  # the first packets of a row that goes on

    @property
    def rows_begun(self) -> bool:
        """All column definitions are there."""
        return self.state >= ROWS and bool(self._count)

    def expect_rows(self, columns: list[bytes]) -> bool:
        """What is given next stands behind these definitions, which were read before; False when it cannot,
        since something was given already.
        """
        if self.state != HEADER:
            return False
        self.state, self.columns, self._count = ROWS, columns, len(columns)
        return True

    def end(self, last: bytes) -> None:
        """The payload of the packet that ends the reply was met elsewhere."""
        self.state, self.ended, self.last = ENDED, True, last

    def feed(self, data: bytes, ending: int = -1) -> bytes:
        """The row block in `data`, which ends at a packet's end.

        `ending`, when known, is the size of the packet in it that ends the reply, 0 when the reply goes on:
        then the rows need not be walked for it.
        """
        if ending >= 0 and self.state == ROWS and not self._held and len(data) < MAX_PAYLOAD:
            if not ending:
                return data
            self.state = ENDED
            self.ended = True
            return data[:-ending]
        first, start = self.state == HEADER, 0
        if self.state != ROWS:
            start = self._header(data)
            if self.state == ENDED:
                return b""
            if first and self.state == ROWS:
                self.begins = start
        joined = bool(self._held)
        pos, end = start, len(data)
        if not joined:
            pos = row_packets.walk_rows(data, start, MAX_PAYLOAD)[0]
        whole = pos
        while pos < end:
            length = _U32.unpack_from(data, pos)[0] & 0xFFFFFF
            if joined or length == MAX_PAYLOAD:
                joined = length == MAX_PAYLOAD
            elif (length < 9 and data[pos + 4] == 0xFE) or data[pos + 4] == 0xFF:
                self.state = ENDED
                self.ended = True
                self.last = data[pos + 4 : pos + 4 + length]
                break
            pos += 4 + length
            if not joined:
                whole = pos
        block = data[start:whole] if start or whole < end else data
        if self._held and block:
            block = b"".join([*self._held, block])
            self._held = []
        if joined:
            self._held.append(data[whole:])
        return block

    def _header(self, data: bytes) -> int:
        """Read what comes before the rows; returns where they begin."""
        pos, end = 0, len(data)
        while pos < end and self.state < ROWS:
            length = _U32.unpack_from(data, pos)[0] & 0xFFFFFF
            payload = data[pos + 4 : pos + 4 + length]
            pos += 4 + length
            if payload[:1] == b"\xff" or (self.state == HEADER and payload[:1] == b"\0"):
                self.state = ENDED
                self.ended = True
                self.last = payload
                self._count = 0
            elif self.state == HEADER:
                self._count = read_lenenc(payload, 0)[0] or 0
                self.state = DEFINITIONS
            elif self.state == DEFINITIONS:
                self.columns.append(payload)
                if len(self.columns) == self._count:
                    self.state = DEFINITIONS_END
            else:
                self.opening = payload
                self.state = ROWS
        return pos


def split_rows(block: bytes) -> list[bytes]:
    """The payloads of a row block of whole rows; those of 16 MB and more are put together."""
    rows, pos = row_packets.split_rows(block, 0, MAX_PAYLOAD)
    while pos < len(block):
        row, pos = first_row(block, pos)
        rows.append(row)
        more, pos = row_packets.split_rows(block, pos, MAX_PAYLOAD)
        rows += more
    return rows


def first_row(block: bytes, pos: int) -> tuple[bytes, int]:
    """The payload of the row at `pos`, put together when it has 16 MB and more; the position behind it."""
    parts: list[bytes] = []
    length = MAX_PAYLOAD
    while length == MAX_PAYLOAD and pos < len(block):
        length = _U32.unpack_from(block, pos)[0] & 0xFFFFFF
        parts.append(block[pos + 4 : pos + 4 + length])
        pos += 4 + length
    return b"".join(parts), pos


def renumber(block: bytes, seq: int) -> tuple[bytes, int, int]:
    """A row block with its packets numbered from `seq`; the number behind the last; how many rows.

    Raises ValueError when it ends within a packet.
    """
    return row_packets.renumber(block, seq, MAX_PAYLOAD)
