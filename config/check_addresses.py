"""Whether the addresses at which the proxy listens are different ones. Ports are shared (SO_REUSEPORT), so
two of the same would both be opened, and clients would reach either at random. And whether none of them is
a host of the topology: the proxy would connect to itself, for each connection once more.

It reads the settings as they were written, so that these errors are listed along with all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from config.address import Address, parse_address, spelt
from config.document import Document, Problem, dotted
from config.document import Path as Place
from config.hosts import named_hosts
from config.settings import Settings, StatusSettings
from config.topology import Topology

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


Own = list[tuple[str, Address]]
"""The names of settings and the addresses at which a proxy listens."""


def written_addresses(value: Mapping[str, Any]) -> Own:
    """Those of the settings as they were written, as far as they are right."""
    own: Own = []
    for _, name, text in _listeners(value):
        with suppress(ValueError):
            own.append((name, parse_address(text, None, any_port=True)))
    return own


def own_addresses(settings: Settings) -> Own:
    """Those of settings that are read."""
    own = [(f"listen[{index}]", one.address) for index, one in enumerate(settings.listen)]
    return own + ([("status.listen", settings.status.listen)] if settings.status.listen else [])


def itself_problems(own: Own, topology: Topology, document: Document) -> list[Problem]:
    """The hosts of `topology`, read from `document`, that are certainly addresses of the proxy itself. Each
    is told once, where it is first named.
    """
    found: dict[str, str] = {}
    for host in (*topology.hosts, *topology.slaves):
        address = parse_address(host)
        names = (name for name, listener in own if _reached(listener, address))
        if (name := next(names, None)) is not None:
            found[host] = name
    problems = []
    for place, text in named_hosts(document.value) if found else ():
        try:
            host = spelt(text)
        except ValueError:
            continue  # the reader's business
        if (name := found.pop(host, None)) is not None:
            message = f"{host} is the proxy's own address ({name} in the settings): name the server's"
            problems.append(Problem(document.place(place), message, document.source))
    return problems


def _reached(listener: Address, host: Address) -> bool:
    """Whether who connects to `host` from here gets to `listener`, whatever a name server says."""
    if listener.path is not None or host.path is not None:
        return listener.path == host.path
    if listener.port != host.port:  # as with port 0, since no host has that
        return False
    here, there = _host(listener), _host(host)
    if there in _WILDCARDS:  # to connect to, they are the loopback addresses
        there = "127.0.0.1" if there == "0.0.0.0" else "::1"
    if here == there:
        return True
    loopback = re.fullmatch(r"127\.[0-9]+\.[0-9]+\.[0-9]+", there) is not None
    return (loopback and here in _WILDCARDS) or (there == "::1" and here == "::")


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
    host = address.host.lower().rstrip(".")
    return "127.0.0.1" if host == "localhost" else host
