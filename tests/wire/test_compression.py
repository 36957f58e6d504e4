"""The compressed layer: what goes in comes out, however it is cut, and nothing larger than it says."""

from __future__ import annotations

import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.compression import Algorithm, Compressor, Decompressor, agreed
from proxy.wire.constants import Capability
from proxy.wire.packets import ProtocolError
from tests.wire.streams import cuts

BOTH = pytest.mark.parametrize("algorithm", list(Algorithm))


def packed(payload: bytes, before: int, seq: int = 0) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes((seq,)) + before.to_bytes(3, "little") + payload


def unpacked(algorithm: Algorithm, data: bytes) -> list[tuple[int, bytes]]:
    decompressor = Decompressor(algorithm)
    decompressor.feed(data)
    return list(decompressor.payloads())


@BOTH
@given(
    data=st.data(),
    writes=st.lists(
        st.one_of(
            st.binary(max_size=200), st.builds(bytes.__mul__, st.binary(max_size=3), st.integers(0, 5000))
        )
    ),
    level=st.integers(-5, 30),
)
def test_there_and_back(algorithm: Algorithm, data: st.DataObject, writes: list[bytes], level: int) -> None:
    compressor, decompressor = Compressor(algorithm, level), Decompressor(algorithm)
    seq, stream = 250, b""
    for write in writes:
        out, seq = compressor.pack(write, seq)
        stream += out
    found: list[tuple[int, bytes]] = []
    for piece in data.draw(cuts(stream)) if stream else []:
        decompressor.feed(piece)
        found += decompressor.payloads()
    assert b"".join(payload for _, payload in found) == b"".join(writes)
    assert [number for number, _ in found] == [(250 + index) % 256 for index in range(len(found))]


@BOTH
def test_sizes(algorithm: Algorithm) -> None:
    short, _ = Compressor(algorithm).pack(b"x" * 49, 1)
    assert short == packed(b"x" * 49, 0, 1)
    long, _ = Compressor(algorithm).pack(b"x" * 50, 1)
    assert long[4] == 50
    noise = bytes(zlib.compress(bytes(range(256)), 9))
    assert Compressor(algorithm).pack(noise, 1)[0] == packed(noise, 0, 1)
    huge, seq = Compressor(algorithm).pack(b"x" * (20 << 20), 0)
    assert seq == 20
    assert len(huge) < 1 << 16
    assert b"".join(payload for _, payload in unpacked(algorithm, huge)) == b"x" * (20 << 20)


def test_every_cut() -> None:
    stream = Compressor(Algorithm.ZLIB).pack(b"a" * 60, 0)[0] + packed(b"", 0, 1) + packed(b"bcd", 0, 2)
    for place in range(1, len(stream)):
        decompressor = Decompressor(Algorithm.ZLIB)
        found: list[tuple[int, bytes]] = []
        for piece in (stream[:place], stream[place:]):
            decompressor.feed(piece)
            found += decompressor.payloads()
        assert found == [(0, b"a" * 60), (1, b""), (2, b"bcd")]


def zstd_without_size(payload: bytes) -> bytes:
    engine = zstandard.ZstdCompressor(level=1).compressobj()
    return engine.compress(payload) + engine.flush()


DAMAGED_ZLIB = {
    "a bomb": zlib.compress(b"x" * 1_000_000),
    "too short": zlib.compress(b"x" * 99),
    "cut": zlib.compress(b"x" * 100)[:-3],
    "too long": zlib.compress(b"x" * 100) + b"more",
    "no zlib": b"no zlib at all",
    "empty": b"",
}
DAMAGED_ZSTD = {
    "a bomb": zstandard.compress(b"x" * 1_000_000),
    "a bomb that does not say so": zstd_without_size(b"x" * 1_000_000),
    "too short": zstandard.compress(b"x" * 99),
    "cut": zstd_without_size(b"x" * 300)[:-4],
    "no zstd": b"no zstd",
    "empty": b"",
}


@pytest.mark.parametrize("payload", DAMAGED_ZLIB.values(), ids=DAMAGED_ZLIB)
def test_damaged_zlib(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        unpacked(Algorithm.ZLIB, packed(payload, 100))


@pytest.mark.parametrize("payload", DAMAGED_ZSTD.values(), ids=DAMAGED_ZSTD)
def test_damaged_zstd(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        unpacked(Algorithm.ZSTD, packed(payload, 100))


def test_zstd_without_its_size() -> None:
    assert unpacked(Algorithm.ZSTD, packed(zstd_without_size(b"x" * 100), 100)) == [(0, b"x" * 100)]


def test_what_is_agreed_on() -> None:
    both = Capability.COMPRESS | Capability.ZSTD_COMPRESSION_ALGORITHM
    everything = tuple(Algorithm)
    assert agreed(both, everything) is Algorithm.ZLIB
    assert agreed(both, (Algorithm.ZSTD,)) is Algorithm.ZSTD
    assert agreed(Capability.ZSTD_COMPRESSION_ALGORITHM, everything) is Algorithm.ZSTD
    assert agreed(both, ()) is None
    assert agreed(Capability.LONG_PASSWORD, everything) is None
