"""PROXY headers of both versions: whole, cut anywhere, and everything that is none."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.packets import ProtocolError
from proxy.wire.proxy_header import ProxyHeader, read_proxy_header

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def version2(command: int, family: int, body: bytes) -> bytes:
    return SIGNATURE + struct.pack("!BBH", command, family, len(body)) + body


def addresses(family: int, source: str, target: str, ports: tuple[int, int] = (56324, 3306)) -> bytes:
    return socket.inet_pton(family, source) + socket.inet_pton(family, target) + struct.pack("!HH", *ports)


V4 = addresses(socket.AF_INET, "192.0.2.7", "198.51.100.1")
V6 = addresses(socket.AF_INET6, "2001:db8::7", "2001:db8::1", (1, 65535))

GOOD: dict[str, tuple[bytes, tuple[str, int] | None]] = {
    "1, IPv4": (b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 3306\r\n", ("192.0.2.7", 56324)),
    "1, IPv6": (b"PROXY TCP6 2001:db8::7 2001:db8::1 1 65535\r\n", ("2001:db8::7", 1)),
    "1, unknown": (b"PROXY UNKNOWN\r\n", None),
    "1, unknown with more": (b"PROXY UNKNOWN ffff:f...f:ffff ffff::ffff 65535 65535\r\n", None),
    "2, IPv4": (version2(0x21, 0x11, V4), ("192.0.2.7", 56324)),
    "2, IPv4 with more": (version2(0x21, 0x11, V4 + b"\x03\0\x04abcd"), ("192.0.2.7", 56324)),
    "2, IPv6": (version2(0x21, 0x21, V6), ("2001:db8::7", 1)),
    "2, local": (version2(0x20, 0x00, b""), None),
    "2, local with addresses": (version2(0x20, 0x11, V4), None),
    "2, Unix": (version2(0x21, 0x31, b"\0" * 216), None),
    "2, unspecified": (version2(0x21, 0x00, b""), None),
    "2, long": (version2(0x21, 0x11, V4 + b"x" * 60000), ("192.0.2.7", 56324)),
}


@pytest.mark.parametrize(("data", "source"), GOOD.values(), ids=GOOD)
@pytest.mark.parametrize("behind", [b"", b"\x20\0\0\1more"], ids=["alone", "with more"])
def test_good(data: bytes, source: tuple[str, int] | None, behind: bytes) -> None:
    assert read_proxy_header(data + behind) == ProxyHeader(source, len(data))


@pytest.mark.parametrize("data", [one for one, _ in GOOD.values() if len(one) < 1000])
def test_cut_anywhere(data: bytes) -> None:
    for end in range(len(data)):
        assert read_proxy_header(data[:end]) is None, end


BAD = {
    "a packet": b"\x20\0\0\1",
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "another word": b"PROXIE TCP4",
    "no words": b"PROXY \r\n",
    "one word": b"PROXY TCP4\r\n",
    "UDP": b"PROXY UDP4 192.0.2.7 198.51.100.1 1 2\r\n",
    "the other family": b"PROXY TCP6 192.0.2.7 198.51.100.1 1 2\r\n",
    "a name": b"PROXY TCP4 localhost 198.51.100.1 1 2\r\n",
    "two spaces": b"PROXY TCP4  192.0.2.7 198.51.100.1 1 2\r\n",
    "a large port": b"PROXY TCP4 192.0.2.7 198.51.100.1 65536 2\r\n",
    "a signed port": b"PROXY TCP4 192.0.2.7 198.51.100.1 +1 2\r\n",
    "not ASCII": b"PROXY TCP4 192.0.2.7 198.51.100.1 \xb2 2\r\n",
    "without an end": b"PROXY TCP4 " + b"1" * 97,
    "version 1 in 2": version2(0x11, 0x11, V4),
    "an unknown command": version2(0x22, 0x11, V4),
    "short addresses": version2(0x21, 0x11, V4[:-1]),
    "short IPv6": version2(0x21, 0x21, V4),
    "a broken signature": SIGNATURE[:-1] + b"x",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_bad(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_proxy_header(data)


@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=60).map(lambda data: SIGNATURE + data),
        st.text("TCP46 0123456789.:ab\r\n", max_size=100).map(lambda text: b"PROXY " + text.encode()),
    )
)
def test_garbage_is_refused_or_not_whole(data: bytes) -> None:
    try:
        header = read_proxy_header(data)
    except ProtocolError:
        return
    assert header is None or header.length <= len(data)
