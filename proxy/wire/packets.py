"""Framing: what every packet has in common.

A packet is a 3-byte little-endian length, a sequence number and a payload. A payload of exactly 0xFFFFFF
bytes goes on in the next packet, also when that one is empty. Integers are little-endian; `lenenc` ones carry
their own width.

`PacketReader` turns a client's bytes, cut anywhere, into whole payloads. It holds at most one unfinished
packet and refuses one that is larger than allowed as soon as its length is known. Malformed input raises
`ProtocolError`, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from .constants import MAX_PAYLOAD, Command, Status

_U16 = Struct("<H")
_QUERY = Struct("<IB")
#: COM_QUERY's header and first byte, of the payload's size (less than MAX_PAYLOAD) and 3.
query_head = _QUERY.pack
_U16_U16 = Struct("<HH")
_U64 = Struct("<Q")
FIRST_NUMBER: Final = 1
"""The sequence number of a reply's first packet, when the command was one packet."""
_UNANSWERED: Final = frozenset({Command.STMT_SEND_LONG_DATA, Command.STMT_CLOSE, Command.QUIT})


class ProtocolError(Exception):
    """The peer sent bytes that are not the MySQL protocol. The connection cannot go on."""


class PacketTooLarge(ProtocolError):
    """A packet is larger than `max_packet` allows (MySQL's error 1153)."""


def lenenc(value: int) -> bytes:
    """A length-encoded integer, 1, 3, 4 or 9 bytes."""
    if value < 251:
        return value.to_bytes(1, "little")
    if value < 1 << 16:
        return b"\xfc" + value.to_bytes(2, "little")
    if value < 1 << 24:
        return b"\xfd" + value.to_bytes(3, "little")
    return b"\xfe" + value.to_bytes(8, "little")


def lenenc_bytes(value: bytes) -> bytes:
    """A length-encoded string."""
    return lenenc(len(value)) + value


def read_lenenc(data: bytes, pos: int) -> tuple[int | None, int]:
    """The integer at `pos` and the position behind it; None for NULL (0xFB)."""
    try:
        first = data[pos]
        if first < 251:
            return first, pos + 1
        if first == 0xFB:
            return None, pos + 1
        if first == 0xFC:
            return int(_U16.unpack_from(data, pos + 1)[0]), pos + 3
        if first == 0xFD:
            if pos + 4 > len(data):
                raise ProtocolError("a length-encoded integer is cut short")
            return int.from_bytes(data[pos + 1 : pos + 4], "little"), pos + 4
        if first == 0xFE:
            return int(_U64.unpack_from(data, pos + 1)[0]), pos + 9
    except (IndexError, StructError):
        raise ProtocolError("a length-encoded integer is cut short") from None
    raise ProtocolError("0xff does not begin a length-encoded integer")


def read_lenenc_bytes(data: bytes, pos: int) -> tuple[bytes | None, int]:
    """The string at `pos` and the position behind it; None for NULL."""
    length, pos = read_lenenc(data, pos)
    if length is None:
        return None, pos
    end = pos + length
    if end > len(data):
        raise ProtocolError("a length-encoded string is cut short")
    return bytes(data[pos:end]), end


def read_nul_bytes(data: bytes, pos: int) -> tuple[bytes, int]:
    """The NUL-terminated string at `pos` and the position behind its NUL."""
    end = data.find(b"\0", pos)
    if end < 0:
        raise ProtocolError("a NUL-terminated string has no end")
    return bytes(data[pos:end]), end + 1


def frame(payload: bytes, seq: int = 0) -> bytes:
    """`payload` as one packet, or as several when it has 0xFFFFFF bytes or more."""
    length = len(payload)
    if length < MAX_PAYLOAD:
        return (length | (seq & 0xFF) << 24).to_bytes(4, "little") + payload
    pieces = []
    for start in range(0, length + 1, MAX_PAYLOAD):
        chunk = payload[start : start + MAX_PAYLOAD]
        pieces.append((len(chunk) | (seq & 0xFF) << 24).to_bytes(4, "little"))
        pieces.append(chunk)
        seq += 1
    return b"".join(pieces)


def reply_numbers(packets: bytes) -> list[int]:
    """The sequence number of each reply's first packet to some commands: the one behind the command's last.
    Commands that are not answered have none.
    """
    found: list[int] = []
    pos = 0
    while pos < len(packets):
        command = packets[pos + 4]
        length = MAX_PAYLOAD
        while length == MAX_PAYLOAD and pos < len(packets):
            length = int.from_bytes(packets[pos : pos + 3], "little")
            number = packets[pos + 3] + 1 & 0xFF
            pos += 4 + length
        if command not in _UNANSWERED:
            found.append(number)
    return found


def query_packet(sql: bytes) -> bytes:
    """COM_QUERY as a packet, or as several."""
    size = len(sql) + 1
    if size < MAX_PAYLOAD:
        return _QUERY.pack(size, 3) + sql
    return frame(b"\x03" + sql)


def ok_packet(
    seq: int, status: int, *, affected: int = 0, insert_id: int = 0, warnings: int = 0, info: bytes = b""
) -> bytes:
    """A whole OK packet. `info` is what stands behind the warnings: the message as a length-encoded string,
    or nothing.
    """
    payload = (
        b"\0" + lenenc(affected) + lenenc(insert_id) + _U16.pack(status) + _U16.pack(min(warnings, 0xFFFF))
    )
    return frame(payload + info, seq)


def tracked_ok_packet(seq: int, ok: Ok, state: bytes) -> bytes:
    """An OK packet with session state changes, for a client with CLIENT_SESSION_TRACK."""
    status = ok.status | Status.SESSION_STATE_CHANGED
    info = (ok.info or b"\0") + lenenc_bytes(state)
    return ok_packet(
        seq, status, affected=ok.affected, insert_id=ok.insert_id, warnings=ok.warnings, info=info
    )


def eof_packet(seq: int, status: int, warnings: int = 0) -> bytes:
    """A whole EOF packet, 9 bytes."""
    return b"\x05\0\0" + bytes((seq & 0xFF, 0xFE)) + _U16.pack(min(warnings, 0xFFFF)) + _U16.pack(status)


def err_packet(seq: int, code: int, sqlstate: str, message: str | bytes) -> bytes:
    """A whole ERR packet. A message longer than MySQL's 512 bytes is kept: clients read it whole."""
    text = message.encode("utf-8", "replace") if isinstance(message, str) else message
    return frame(b"\xff" + _U16.pack(code) + b"#" + sqlstate.encode("ascii") + text, seq)


class Ok(NamedTuple):
    """What an OK packet says."""

    affected: int
    insert_id: int
    status: int
    warnings: int
    info: bytes


@dataclass(frozen=True, slots=True)
class Err:
    """What an ERR packet says. `sqlstate` is HY000 where the server gave none. `host`: whose it is, where
    that was noted. `own`: the server's words, where the message has others. `fenced`: the database that
    takes no writes, which is why the statement was refused.
    """

    code: int
    sqlstate: str
    message: bytes
    host: str = ""
    own: bytes = b""
    fenced: str = ""

    def text(self, codec: str = "utf-8") -> str:
        """The message; `codec`: that of the character set of results, in which servers send it."""
        return self.message.decode(codec, "replace")


def parse_ok(payload: bytes) -> Ok:
    if len(payload) > 2 and payload[1] < 251 > payload[2]:
        affected, insert_id, pos = payload[1], payload[2], 3
    else:
        affected, insert_id, pos = _large_numbers(payload)
    try:
        status, warnings = _U16_U16.unpack_from(payload, pos)
    except StructError:
        raise ProtocolError("an OK packet is cut short") from None
    return Ok(affected, insert_id, status, warnings, bytes(payload[pos + 4 :]))


def _large_numbers(payload: bytes) -> tuple[int, int, int]:
    """Affected rows and insert id of an OK packet, and the position behind them."""
    affected, pos = read_lenenc(payload, 1)
    insert_id, pos = read_lenenc(payload, pos)
    return affected or 0, insert_id or 0, pos


def parse_err(payload: bytes) -> Err:
    if len(payload) < 3:
        raise ProtocolError("an ERR packet is cut short")
    code = _U16.unpack_from(payload, 1)[0]
    if payload[3:4] == b"#" and len(payload) >= 9:
        return Err(code, payload[4:9].decode("ascii", "replace"), bytes(payload[9:]))
    return Err(code, "HY000", bytes(payload[3:]))


class PacketReader:
    """A client's bytes in, whole payloads out.

    `take` returns the next payload that is complete, with the sequence number of its *last* physical packet
    (the reply's first packet has the next one); what follows it is not looked at before the next call. A
    payload above `limit` bytes raises `PacketTooLarge`; the sequence number to answer with is then
    `reader.seq`.
    """

    __slots__ = ("_chunks", "_data", "_need", "_parts", "_pos", "_size", "limit", "pending", "seq")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.seq = 0
        self._data = b""  # read up to `_pos`
        self._pos = 0
        self._chunks: list[bytes] | None = None  # what came behind `_data`; joined when a packet is complete
        self._need = 4  # how many bytes must be there before another look is worth while
        self._parts: tuple[bytes, ...] = ()  # 16 MB pieces of one payload
        self._size = 0
        self.pending = 0  # bytes held, of packets not taken or not complete

    def put(self, data: bytes) -> None:
        """More bytes."""
        if self._chunks is None:  # which is so while a client is silent
            self._chunks = [data]
        else:
            self._chunks.append(data)
        self.pending += len(data)

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """`put`, and all payloads that are complete now."""
        self.put(data)
        found = []
        while (one := self.take()) is not None:
            found.append(one)
        return found

    def feed_one(self, data: bytes) -> tuple[int, bytes] | None:
        """Like `feed`, but the first payload only; what follows it waits for the next call, or for `rest`."""
        self.put(data)
        return self.take()

    def rest(self) -> bytes:
        """The bytes that have not been looked at, which are then the caller's."""
        data = b"".join([self._data[self._pos :], *(self._chunks or ())])
        self._data, self._pos, self._chunks, self._need = b"", 0, None, 4
        self.pending = self._size
        return data

    def take(self) -> tuple[int, bytes] | None:
        """The next payload, if it is complete."""
        while self.pending - self._size >= self._need:
            if len(self._data) - self._pos < self._need:
                self._data = b"".join([self._data[self._pos :], *(self._chunks or ())])
                self._pos, self._chunks = 0, None
            pos = self._pos
            header = int.from_bytes(self._data[pos : pos + 4], "little")
            length = header & 0xFFFFFF
            if self._size + length > self.limit:
                self.seq = header >> 24
                raise PacketTooLarge(f"a packet of more than {self.limit} bytes")
            stop = pos + 4 + length
            if stop > len(self._data):
                self._need = 4 + length
                continue
            payload = self._data[pos + 4 : stop]
            self._pos, self._need = stop, 4
            if stop == len(self._data):
                self._data, self._pos = b"", 0
            if length == MAX_PAYLOAD:
                self._parts += (payload,)
                self._size += length
                self.pending -= 4
                continue
            self.pending -= 4 + length + self._size
            if self._parts:
                payload = b"".join((*self._parts, payload))
                self._parts, self._size = (), 0
            return header >> 24, payload
        return None
