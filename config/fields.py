"""The types of the settings' fields: texts and numbers as operators write them, checked.

Each is a pydantic type whose messages end up in a `Problem`.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, Strict, ValidationInfo

from config.address import Address, parse_address


def _resolved(path: Path, info: ValidationInfo) -> Path:
    base = info.context.get("base") if info.context else None
    return path if base is None else Path(base, path)


def _address(value: object) -> Address:
    if isinstance(value, Address):
        return value
    if not isinstance(value, str):
        raise ValueError("must be an address like 127.0.0.1:3306 or unix:/run/shardgate.sock")
    return parse_address(value, None, any_port=True)


def _host(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a host's address like 127.0.0.1:3306 or unix:/run/mysqld.sock")
    return str(parse_address(value))


def _network(value: object) -> object:
    if isinstance(value, IPv4Network | IPv6Network):
        return value
    if not isinstance(value, str):
        raise ValueError("must be an address or a network like 10.0.0.0/8")
    try:
        return ip_network(value)
    except ValueError as error:
        raise ValueError(f"must be an address or a network like 10.0.0.0/8: {error}") from None


def _like(pattern: str, message: str) -> AfterValidator:
    """A text that matches `pattern` as a whole, or else `message`."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(message)
        return value

    return AfterValidator(check)


FilePath = Annotated[Path, AfterValidator(_resolved)]
ListenAddress = Annotated[Address, BeforeValidator(_address)]
HostAddress = Annotated[str, BeforeValidator(_host)]
Network = Annotated[IPv4Network | IPv6Network, PlainValidator(_network)]
NodePath = Annotated[str, _like(r"(/[^/\x00]+)+", "must be a node's path like /shardgate/topology")]
NodeName = Annotated[str, _like(r"[^/\x00]+", "must be a name without /")]
ServerVersion = Annotated[
    str, _like(r"[0-9]+\.[0-9]+\.[0-9]+[ -~]{0,40}", "must begin with a version like 8.0.36, at most 40 more")
]
Count = Annotated[int, Strict(), Field(ge=0)]
Positive = Annotated[int, Strict(), Field(ge=1)]
