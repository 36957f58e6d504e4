"""The types of the documents' fields: texts and numbers as operators write them, checked.

Each is a pydantic type whose messages end up in a `Problem`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PlainValidator,
    Strict,
    Tag,
    ValidationInfo,
    model_validator,
)

from config import layout
from config.address import Address, parse_address
from config.document import Spot
from config.model import Model
from config.schema import IDENTIFIER

_NODE = r"(/[^/\x00]+)+"


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


def like(pattern: str, message: str) -> AfterValidator:
    """A text that matches `pattern` as a whole, or else `message`."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(message)
        return value

    return AfterValidator(check)


def check_name(spot: Spot, what: str) -> None:
    """Note when the key of what is at `spot` is no name."""
    if not IDENTIFIER.fullmatch(str(spot.path[-1])):
        spot.refuse(f"a {what}'s name has 1 to 64 letters, digits, _ or $")


def within(low: int, high: int) -> AfterValidator:
    """A number of `low` to `high`, both included."""

    def check(value: int) -> int:
        if not low <= value <= high:
            raise ValueError(f"is {value}: must be {low} to {high}")
        return value

    return AfterValidator(check)


def _zookeeper_hosts(value: object) -> object:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = ",".join(value)
    if not isinstance(value, str):
        return value
    if not value:
        raise ValueError("needs at least one host")
    servers, slash, chroot = value.partition("/")
    for one in servers.split(","):
        parse_address(one.strip(), 2181)
    if "," in chroot:
        raise ValueError("a path (chroot) stands once, after the last host: zk1:2181,zk2:2181/prod")
    if slash and not re.fullmatch(_NODE, slash + chroot):
        raise ValueError(f"{slash + chroot!r} after the hosts must be a node's path like /prod")
    return value


Text = Annotated[str, Field(min_length=1)]
FilePath = Annotated[Path, AfterValidator(_resolved)]
ListenAddress = Annotated[Address, BeforeValidator(_address)]
HostAddress = Annotated[str, BeforeValidator(_host)]
HostName = Annotated[
    str,
    Field(min_length=1, max_length=253),
    like(
        r"[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*",
        "must be a host's name alone, like status.example.com: no scheme, port or path",
    ),
]
Network = Annotated[IPv4Network | IPv6Network, PlainValidator(_network)]
NodePath = Annotated[str, like(_NODE, "must be a node's path like /shardgate/topology")]
NodeName = Annotated[str, like(r"[^/\x00]+", "must be a name without /")]
ZooKeeperUser = Annotated[str, like(r"[^:]{1,80}", "must be a name without :")]
ZooKeeperHosts = Annotated[str, BeforeValidator(_zookeeper_hosts)]
ServerVersion = Annotated[
    str, like(r"[0-9]+\.[0-9]+\.[0-9]+[ -~]{0,40}", "must begin with a version like 8.0.36, at most 40 more")
]
MOST = 10**12
"""Of anything that is counted."""
Flag = Annotated[bool, Strict()]
"""`true` or `false`: 1, 0 and the texts that pydantic would take (`yes`, `"0"`) are mistakes."""
Count = Annotated[int, Strict(), Field(ge=0, le=MOST)]
Positive = Annotated[int, Strict(), Field(ge=1, le=MOST)]
V = TypeVar("V")


def _single(value: object) -> object:
    if isinstance(value, Mapping) and len(value) == 1:
        return value
    raise ValueError("must be a mapping with one entry")


_Listed = Annotated[list[V], Tag("(list)")]
_Mapped = Annotated[dict[str, V], Tag("(mapping)")]
_Single = Annotated[dict[str, V], BeforeValidator(_single)]
Entries = Annotated[
    _Listed[_Single[V]] | _Mapped[V],
    Discriminator(lambda value: "(list)" if isinstance(value, list) else "(mapping)"),
]
"""A mapping in an order that counts, or a list of mappings with one entry each, for tools that sort keys."""
Members = Annotated[
    _Listed[V] | _Mapped[V], Discriminator(lambda value: "(mapping)" if isinstance(value, dict) else "(list)")
]
"""A list, or a mapping whose keys are labels for people."""


class LayoutSettings(Model):
    """A further ID layout: field widths in bits from bit 63 down."""

    fields: Annotated[
        Entries[Annotated[int, Strict(), within(1, 63)]], Field(description="field widths in bits")
    ]
    epoch_ms: Annotated[int, Strict(), Field(ge=0, le=1 << 53)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = layout.layout_problems(self._parts(), self.epoch_ms)
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _parts(self) -> tuple[layout.Field, ...]:
        listed = self.fields if isinstance(self.fields, list) else [self.fields]
        return tuple(layout.Field(name, bits) for one in listed for name, bits in one.items())

    def made(self, name: str) -> layout.Layout:
        """The layout itself."""
        return layout.Layout(name, self._parts(), self.epoch_ms)
