"""Whether the addresses at which the proxy listens are different ones. Ports are shared (SO_REUSEPORT), so
two of the same would both be opened, and clients would reach either at random.

It reads the settings as they were written, so that these errors are listed along with all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from config.address import Address, parse_address
from config.document import Path as Place
from config.document import dotted
from config.settings import Settings, StatusSettings

_LISTEN: Final = str(Settings.model_fields["listen"].default[0].address)
_STATUS: Final = str(StatusSettings.model_fields["listen"].default)
_WILDCARDS: Final = ("0.0.0.0", "::")


def address_problems(value: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Places and messages. What is no address others report."""
    seen: list[tuple[str, Address]] = []
    for place, name, text in _listeners(value):
        try:
            address = parse_address(text, None, any_port=True)
        except ValueError:
            continue
        for other, before in seen:
            # [::] beside 0.0.0.0 is how clients of both kinds are let in
            both = other.startswith("listen") and name.startswith("listen")
            if _overlap(before, address) and not (both and {before.host, address.host} == set(_WILDCARDS)):
                message = f"{address} is at the same port as {before} of {other}"
                if before == address:
                    message = f"{address} is that of {other} already"
                yield place, f"{message}: each needs an address of its own"
                break
        seen.append((name, address))


def _listeners(value: Mapping[str, Any]) -> Iterator[tuple[Place, str, str]]:
    """Place, name and text of each address; the default's place is where the other one is."""
    listen = value.get("listen", _LISTEN)
    many = listen if isinstance(listen, list) else [listen]
    for index, one in enumerate(many):
        place: Place = ("listen", index) if isinstance(listen, list) else ("listen",)
        if isinstance(one, Mapping):
            place, one = (*place, "address"), one.get("address")
        if isinstance(one, str):
            yield place, dotted(place), one
    status = value.get("status")
    own = status.get("listen", _STATUS) if isinstance(status, Mapping) else _STATUS
    if isinstance(own, str):
        given = isinstance(status, Mapping) and "listen" in status
        yield ("status", "listen") if given else ("listen",), "status.listen", own


def _overlap(one: Address, other: Address) -> bool:
    """Whether a client of the one could reach the other. [::] takes clients of IPv4, too."""
    if one.path is not None or other.path is not None:
        return one.path == other.path
    if one.port != other.port or not one.port:
        return False
    hosts = {_host(one), _host(other)}
    return len(hosts) == 1 or "::" in hosts or ("0.0.0.0" in hosts and not any(":" in host for host in hosts))


def _host(address: Address) -> str:
    host = address.host.lower()
    return "127.0.0.1" if host == "localhost" else host
