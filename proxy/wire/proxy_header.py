"""The PROXY protocol, versions 1 and 2: what a load balancer says of its client before the client's bytes.

    PROXY TCP4 192.0.2.7 198.51.100.1 56324 3306\\r\\n                    version 1, at most 107 bytes
    12 bytes of signature, version and command, family, length, addresses    version 2

Source: HAProxy's "The PROXY protocol". Whoever expects a header must not guess whether there is one.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from struct import Struct

from .packets import ProtocolError

_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_V1 = b"PROXY "
_LONGEST_V1 = 107
_V2_HEAD = Struct("!BBH")  # version and command, family and protocol, length
_LOCAL, _PROXY = 0x20, 0x21
_TCP4, _TCP6 = 0x11, 0x21
_PORT = re.compile(r"0|[1-9][0-9]{0,4}")


@dataclass(frozen=True, slots=True)
class ProxyHeader:
    """A whole header of `length` bytes. `source` is the client's address and port, None when the connection's
    own stand: the balancer's own checks (LOCAL), or a client without an internet address.
    """

    source: tuple[str, int] | None
    length: int


def read_proxy_header(data: bytes) -> ProxyHeader | None:
    """The header that `data` begins with; None while it is not whole. ProtocolError for anything else."""
    if data[: len(_SIGNATURE)] == _SIGNATURE[: len(data)]:
        return _version2(data)
    if data[: len(_V1)] == _V1[: len(data)]:
        return _version1(data)
    raise ProtocolError("no PROXY header")


def _version1(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, _LONGEST_V1)
    if end < 0:
        if len(data) >= _LONGEST_V1:
            raise ProtocolError("a PROXY header without an end")
        return None
    words = data[:end].decode("latin-1").split(" ")
    if words[1] == "UNKNOWN":
        return ProxyHeader(None, end + 2)
    if len(words) != 6 or words[1] not in ("TCP4", "TCP6"):
        raise ProtocolError("a PROXY header of an unknown form")
    kind = ipaddress.IPv4Address if words[1] == "TCP4" else ipaddress.IPv6Address
    try:
        source, _ = kind(words[2]), kind(words[3])
    except ValueError:
        raise ProtocolError("a PROXY header with a bad address") from None
    if not all(_PORT.fullmatch(port) and int(port) < 1 << 16 for port in words[4:]):
        raise ProtocolError("a PROXY header with a bad port")
    return ProxyHeader((str(source), int(words[4])), end + 2)


def _version2(data: bytes) -> ProxyHeader | None:
    start = len(_SIGNATURE) + _V2_HEAD.size
    if len(data) < start:
        return None
    command, family, size = _V2_HEAD.unpack_from(data, len(_SIGNATURE))
    if command not in (_LOCAL, _PROXY):
        raise ProtocolError("a PROXY header of an unknown version or command")
    if len(data) < start + size:
        return None
    source: tuple[str, int] | None = None
    if command == _PROXY and family in (_TCP4, _TCP6):
        width = 4 if family == _TCP4 else 16
        if size < 2 * width + 4:
            raise ProtocolError("a PROXY header that is too short for its addresses")
        address = ipaddress.ip_address(data[start : start + width])
        source = str(address), int.from_bytes(data[start + 2 * width : start + 2 * width + 2], "big")
    return ProxyHeader(source, start + size)
