"""Hosts of a topology that have two names.

A proxy that takes one server for two counts its connections twice, opens two transactions where one would
do, and may wait for itself. What a name alone tells (`DB1`, `db1.`, `localhost`) the topology's reader
refuses; that two names resolve to one address only `shardgate check` finds out.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from config.address import parse_address
from config.document import Document, Path, Problem
from config.topology import Host

Resolve = Callable[[str], frozenset[str]]
"""A host's name to its addresses; none when it cannot be resolved."""

PATIENCE: Final = 3.0
"""So many seconds the names have to resolve, all together."""

_FIELDS: Final = ("master", "slave")


@lru_cache(maxsize=10_000)
def same_name(host: Host) -> str:
    """What is alike for the spellings of one host, as far as they tell by themselves."""
    if host.startswith("unix:"):
        return host
    name, _, port = host.rpartition(":")
    name = name.lower().rstrip(".")
    return f"{'127.0.0.1' if name == 'localhost' else name}:{port}"


def resolved(name: str) -> frozenset[str]:
    """The addresses of a host's name, asked of the system."""
    try:
        return frozenset(str(one[4][0]) for one in socket.getaddrinfo(name, None, proto=socket.IPPROTO_TCP))
    except (OSError, UnicodeError):
        return frozenset()


def one_host_twice(document: Document, resolve: Resolve = resolved) -> list[Problem]:
    """The hosts of a topology's document that have an address, and the port, of one named before."""
    first: dict[Host, Path] = {}
    for path, text in named_hosts(document.value):
        try:
            first.setdefault(str(parse_address(text)), path)
        except ValueError:
            continue  # the reader's business
    hosts = [host for host in first if not host.startswith("unix:")]
    addresses = _all_resolved({parse_address(host).host for host in hosts}, resolve)
    problems: list[Problem] = []
    owners: dict[tuple[str, int], Host] = {}
    for host in hosts:
        parsed = parse_address(host)
        for address in sorted(addresses.get(parsed.host, ())):
            other = owners.setdefault((address, parsed.port), host)
            if other != host and same_name(other) != same_name(host):
                message = f"{host} and {other} are one host, {address}: name it in one way"
                problems.append(Problem(document.place(first[host]), message, document.source))
                break
    return problems


def named_hosts(value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every master and slave of a document, with its place."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in _FIELDS and isinstance(inner, str):
                yield (*path, str(key)), inner
            else:
                yield from named_hosts(inner, (*path, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from named_hosts(inner, (*path, index))


def _all_resolved(names: set[str], resolve: Resolve) -> dict[str, frozenset[str]]:
    """The addresses of all names that resolve in time: those of a dead name server are not waited for."""
    found: dict[str, frozenset[str]] = {}

    def ask(name: str) -> None:
        found[name] = resolve(name)

    threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in sorted(names)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    return dict(found)
