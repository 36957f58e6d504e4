"""Reference tables have the same rows on every host. A host that was named for the first time may have none:
joins there find nothing, and nobody would notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from config.references import Name, any_sql, reference_tables
from config.schema import Schema
from config.topology import Host, Topology
from proxy.backends import Backends
from proxy.backends.collect import Collector
from proxy.backends.own import own_connection
from proxy.errors import ProxyError

_MISSING: Final = frozenset({1049, 1146})
"""Errors for a database, or a table, that is not there."""


async def look_at_references(schema: Schema, topology: Topology, backends: Backends) -> list[tuple[str, str]]:
    """(where, what): the reference tables that have no rows on a host, or are not there, while others have
    some. Hosts that do not answer are left out.
    """
    names = reference_tables(schema, topology)
    if not names or len(topology.hosts) < 2:
        return []
    asked = await asyncio.gather(*(_host(host, names, backends) for host in topology.hosts))
    seen = [(host, found) for host, found in zip(topology.hosts, asked, strict=True) if found is not None]
    problems = []
    for name in names:
        full = next((host for host, found in seen if found[name]), None)
        for host, found in seen if full is not None else ():
            if not found[name]:
                state = "has no rows" if found[name] is False else "is missing"
                text = f"the reference table '{name[1]}' {state}, but has rows on {full}: copy it"
                problems.append((f"database ({name[0]}) on {host}", text))
    return problems


async def _host(host: Host, names: Sequence[Name], backends: Backends) -> dict[Name, bool | None] | None:
    """Which tables have rows there; None for one that is not there, or a host that does not answer."""
    found: dict[Name, bool | None] = {}
    try:
        async with own_connection(backends, host) as conn:
            for name in names:
                reply = await Collector().query(conn, any_sql(name).encode())
                if reply.err is not None and reply.err.code not in _MISSING:
                    return None
                found[name] = None if reply.err is not None else reply.values()[0][0] == b"1"
    except ProxyError:
        return None
    return found
