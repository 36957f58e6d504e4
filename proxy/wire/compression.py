"""The compressed protocol: a layer of packets of its own around the ordinary ones, zlib or zstd.

A compressed packet is the length of its payload (3 bytes), a sequence number, the payload's length before it
was compressed (3 bytes), and the payload. Length 0 before says that it is not compressed, as short ones are
not. The payloads joined are the ordinary stream: a packet may begin and end anywhere in them.

Source: the "Compression" chapter of MySQL's client/server protocol.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import StrEnum

import zstandard

from .constants import Capability
from .packets import ProtocolError

_HEADER = 7
#: Shorter payloads are sent as they are, as servers do.
_SHORT = 50
#: Bytes of one payload before it is compressed. The format allows 16 MB; nobody waits for less.
_CHUNK = 1 << 20
#: Bytes of a compressed payload that zlib gets at once.
_SLICE = 1 << 16
_ZLIB_LEVEL = 6
#: zstd's levels that are used. Higher ones, which a client may ask for, take ten times as long and more.
_LEVELS = range(1, 7)
#: zstd's window, which a frame's header asks the receiver to allocate. No payload is longer than 16 MB.
_WINDOW = 1 << 25

Codec = Callable[[bytes], bytes]


class Algorithm(StrEnum):
    """What a client and the proxy may agree on."""

    ZLIB = "zlib"
    ZSTD = "zstd"


CAPABILITY = {
    Algorithm.ZLIB: Capability.COMPRESS,
    Algorithm.ZSTD: Capability.ZSTD_COMPRESSION_ALGORITHM,
}


def agreed(capabilities: Capability, offered: tuple[Algorithm, ...]) -> Algorithm | None:
    """What a client with these capabilities uses, of what was offered. zlib goes before zstd, as in MySQL."""
    for algorithm in Algorithm:
        if algorithm in offered and CAPABILITY[algorithm] in capabilities:
            return algorithm
    return None


class Compressor:
    """Makes compressed packets. `level` is zstd's, of which 1 to 6 are used; zlib has its own."""

    def __init__(self, algorithm: Algorithm, level: int = 3) -> None:
        self._compress: Codec
        if algorithm is Algorithm.ZSTD:
            level = min(max(level, _LEVELS[0]), _LEVELS[-1])
            self._compress = zstandard.ZstdCompressor(level=level).compress
        else:
            self._compress = _deflate

    def pack(self, data: bytes | bytearray | memoryview, seq: int) -> tuple[bytes, int]:
        """`data` as compressed packets with numbers from `seq` on; and the number behind the last."""
        pieces: list[bytes] = []
        for start in range(0, len(data), _CHUNK):
            payload = bytes(data[start : start + _CHUNK])
            before = 0
            if len(payload) >= _SHORT:
                small = self._compress(payload)
                if len(small) < len(payload):
                    before, payload = len(payload), small
            header = len(payload) | (seq & 0xFF) << 24 | before << 32
            pieces.append(header.to_bytes(_HEADER, "little"))
            pieces.append(payload)
            seq += 1
        return b"".join(pieces), seq & 0xFF


def _deflate(payload: bytes) -> bytes:
    return zlib.compress(payload, _ZLIB_LEVEL)


class Decompressor:
    """Reads compressed packets, cut anywhere. It holds at most one that is not complete: 16 MB. What is
    complete is expanded as far as it is asked for, never beyond the length it states.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self._expanding: type[_Expanding] = _Unzstd if algorithm is Algorithm.ZSTD else _Inflate
        self._chunks: list[bytes] = []  # what came behind `_data`
        self._data = b""  # read up to `_pos`
        self._pos = 0
        self.held = 0
        self._need = _HEADER
        self._open: _Expanding | None = None  # of the packet that is given piece by piece

    def feed(self, data: bytes) -> None:
        """More bytes of the peer's."""
        self._chunks.append(data)
        self.held += len(data)

    def drop(self) -> None:
        """Nothing of what has come in is of use any more."""
        self._chunks, self._data, self._pos, self.held = [], b"", 0, 0
        self._need, self._open = _HEADER, None

    def take(self, most: int = 1 << 24) -> tuple[int | None, bytes] | None:
        """The next piece, of at most `most` bytes: with the sequence number of its packet, or None when the
        packet is the last piece's. None when there is no complete packet. Raises ProtocolError; of a packet
        that is damaged behind its beginning pieces may have been given.
        """
        if self._open is not None:
            return None, self._piece(self._open, most)
        if self.held < self._need:
            return None
        if len(self._data) - self._pos < self._need:
            self._join()
        data, pos = self._data, self._pos
        end = pos + _HEADER + int.from_bytes(data[pos : pos + 3], "little")
        if end > len(data):
            self._need = end - pos
            if self.held < self._need:
                return None
            self._join()
            data, pos, end = self._data, 0, end - pos
        before = int.from_bytes(data[pos + 4 : pos + 7], "little")
        payload = data[pos + _HEADER : end]
        self.held -= end - pos
        self._pos, self._need = end, _HEADER
        if end == len(data):
            self._data, self._pos = b"", 0
        if not before and len(payload) <= most:
            return data[pos + 3], payload
        self._open = (self._expanding if before else _Plain)(payload, before)
        return data[pos + 3], self._piece(self._open, most)

    def payloads(self) -> Iterator[tuple[int, bytes]]:
        """Sequence number and bytes of each packet that is complete. Raises ProtocolError."""
        while (found := self.take()) is not None:
            seq, piece = found
            pieces = [piece]
            while self._open is not None:
                pieces.append(self._piece(self._open, _CHUNK))
            assert seq is not None
            yield seq, b"".join(pieces)

    def _join(self) -> None:
        self._data = b"".join([self._data[self._pos :], *self._chunks])
        self._pos, self._chunks = 0, []

    def _piece(self, opened: _Expanding, most: int) -> bytes:
        piece = opened.read(most)
        if opened.over:
            self._open = None
        return piece


class _Expanding(ABC):
    """A packet's payload, of which `size` bytes are to come."""

    def __init__(self, payload: bytes, size: int) -> None:
        self.size = size
        self.over = False

    def read(self, most: int) -> bytes:
        """The next bytes, `most` at most; the last ones when it is `over` then. Raises ProtocolError."""
        try:
            piece = self._read(min(most, self.size))
            self.size -= len(piece)
            self.over = self.size == 0
            ended = not self.over or self._ended()
        except (zlib.error, zstandard.ZstdError) as error:
            raise ProtocolError(f"a compressed packet is damaged ({error})") from None
        if not piece or not ended:
            raise ProtocolError("a compressed packet has another length than it says")
        return piece

    @abstractmethod
    def _read(self, most: int) -> bytes:
        """The next bytes, `most` at most."""

    @abstractmethod
    def _ended(self) -> bool:
        """Whether nothing is left, all of it having been read."""


class _Inflate(_Expanding):
    def __init__(self, payload: bytes, size: int) -> None:
        super().__init__(payload, size)
        self._engine = zlib.decompressobj()
        self._payload = payload
        self._pos = 0
        self._tail = b""  # zlib copies what it has not read, so it gets no more than a slice

    def _read(self, most: int) -> bytes:
        piece = b""
        while not piece and not self._engine.eof and (self._tail or self._pos < len(self._payload)):
            if not self._tail:
                self._tail = self._payload[self._pos : self._pos + _SLICE]
                self._pos += _SLICE
            piece = self._engine.decompress(self._tail, most)
            self._tail = self._engine.unconsumed_tail
        return piece

    def _ended(self) -> bool:
        more = self._read(1)
        behind = self._engine.unused_data or self._pos < len(self._payload)
        return not more and self._engine.eof and not behind


class _Unzstd(_Expanding):
    def __init__(self, payload: bytes, size: int) -> None:
        super().__init__(payload, size)
        self._reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(payload)

    def _read(self, most: int) -> bytes:
        return self._reader.read(most)

    def _ended(self) -> bool:
        return not self._reader.read(1)


class _Plain(_Expanding):
    """Was not compressed, but is long."""

    def __init__(self, payload: bytes, size: int) -> None:
        super().__init__(payload, len(payload))
        self._rest = memoryview(payload)

    def _read(self, most: int) -> bytes:
        piece, self._rest = bytes(self._rest[:most]), self._rest[most:]
        return piece

    def _ended(self) -> bool:
        return True
