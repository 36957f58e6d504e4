"""Addresses of servers and listeners, as written in documents.

    db1.example:3306    127.0.0.1:3306    [::1]:3306    unix:/run/mysqld/mysqld.sock

The port may be left out where a default exists; `str(address)` is the one spelling that the rest of
the program uses to name a host.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

MYSQL_PORT: Final = 3306

_NAME: Final = re.compile(r"(?!-)[0-9A-Za-z_.-]{1,253}\Z")


@dataclass(frozen=True, slots=True)
class Address:
    """A TCP address (`host`, `port`) or, when `path` is set, a Unix socket."""

    host: str = ""
    port: int = 0
    path: str | None = None

    @property
    def is_unix(self) -> bool:
        """Whether this is a Unix socket."""
        return self.path is not None

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@lru_cache(maxsize=10_000)  # ranges name their hosts again and again
def parse_address(text: str, default_port: int | None = MYSQL_PORT, *, any_port: bool = False) -> Address:
    """The address in `text`. `any_port` admits port 0, which a listener takes for "a free one".

    Raises ValueError, saying what is wrong.
    """
    if text.startswith("unix:"):
        path = text[5:]
        if not path.startswith("/") or "\0" in path:
            raise ValueError(f"bad address {text!r}: a socket is written unix:/path")
        if len(path.encode()) > 107:
            raise ValueError(f"bad address {text!r}: a socket's path has at most 107 bytes")
        return Address(path=path)
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(f"bad address {text!r}: an IPv6 address is written [address]:port")
        try:
            host = str(ipaddress.IPv6Address(host))
        except ValueError as error:
            raise ValueError(f"bad address {text!r}: {error}") from error
    else:
        host, colon, rest = text.partition(":")
        rest = colon + rest
        if ":" in rest[1:]:
            raise ValueError(f"bad address {text!r}: an IPv6 address is written [address]:port")
        if not _NAME.match(host):
            raise ValueError(f"bad address {text!r}: must be host:port or unix:/path")
    if not rest and default_port is None:
        raise ValueError(f"bad address {text!r}: the port is missing")
    port = rest[1:] if rest else str(default_port)
    if not re.fullmatch(r"[0-9]{1,5}", port) or not (0 if any_port else 1) <= int(port) <= 65535:
        raise ValueError(f"bad address {text!r}: {port!r} is not a port")
    return Address(host, int(port))


@lru_cache(maxsize=100_000)  # as parse_address
def spelt(text: str) -> str:
    """A server's address in the one spelling that names it. Raises ValueError."""
    return str(parse_address(text))
