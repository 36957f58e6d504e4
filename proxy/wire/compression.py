"""The compressed protocol: a layer of packets of its own around the ordinary ones, zlib or zstd.

A compressed packet is the length of its payload (3 bytes), a sequence number, the payload's length before it
was compressed (3 bytes), and the payload. Length 0 before says that it is not compressed, as short ones are
not. The payloads joined are the ordinary stream: a packet may begin and end anywhere in them.

Source: the "Compression" chapter of MySQL's client/server protocol.
"""

from __future__ import annotations

import zlib
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
_ZLIB_LEVEL = 6
_LEVELS = range(1, 23)
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
    """Makes compressed packets. `level` is zstd's, 1 to 22; zlib has its own."""

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
    """Reads compressed packets, cut anywhere. It holds at most one that is not complete: 16 MB."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._expand = _unzstd if algorithm is Algorithm.ZSTD else _inflate
        self._chunks: list[bytes] = []
        self._held = 0
        self._need = _HEADER

    def feed(self, data: bytes) -> None:
        """More bytes of the peer's."""
        self._chunks.append(data)
        self._held += len(data)

    def payloads(self) -> Iterator[tuple[int, bytes]]:
        """Sequence number and bytes of each packet that is complete. Leave it and ask again as you like: a
        payload is expanded when its turn comes. Raises ProtocolError.
        """
        while self._held >= self._need:
            data = b"".join(self._chunks) if len(self._chunks) > 1 else self._chunks[0]
            length = int.from_bytes(data[:3], "little")
            end = _HEADER + length
            if len(data) < end:
                self._chunks, self._need = [data], end
                return
            before = int.from_bytes(data[4:7], "little")
            payload = data[_HEADER:end]
            self._chunks, self._held, self._need = [data[end:]], len(data) - end, _HEADER
            yield data[3], self._expand(payload, before) if before else payload


def _inflate(payload: bytes, size: int) -> bytes:
    """Never more than `size` bytes are made. Raises ProtocolError unless it is just these."""
    engine = zlib.decompressobj()
    try:
        found = engine.decompress(payload, size + 1)
    except zlib.error as error:
        raise ProtocolError(f"a compressed packet is damaged ({error})") from None
    if len(found) != size or not engine.eof or engine.unused_data:
        raise ProtocolError("a compressed packet has another length than it says")
    return found


def _unzstd(payload: bytes, size: int) -> bytes:
    """As `_inflate`."""
    try:
        with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(payload) as reader:
            found = reader.read(size + 1)
    except zstandard.ZstdError as error:
        raise ProtocolError(f"a compressed packet is damaged ({error})") from None
    if len(found) != size:
        raise ProtocolError("a compressed packet has another length than it says")
    return found
