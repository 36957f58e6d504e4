"""Reference tables, whose rows are the same on every host: which host has not got them yet.

A host that is new has no copy. An empty one would be worse than none: joins on that host would find no rows
and say nothing. So `create` makes none where others have rows, and says how the rows get there.
"""

from __future__ import annotations

from collections.abc import Mapping

from config.references import MISSING, Name
from config.topology import Host


def without_rows(name: Name, rows: Mapping[Host, int]) -> dict[Host, str]:
    """What is wrong on the hosts that lack all rows while others have some. `rows`: how many each has, any
    positive number will do.
    """
    full = next((host for host, count in rows.items() if count > 0), None)
    if full is None:
        return {}
    found = {}
    for host, count in rows.items():
        if count <= 0:
            state = "is missing" if count == MISSING else "has no rows"
            found[host] = f"{shown(name)} {state}, but has rows on {full}. {how_to_copy(name, full, host)}"
    return found


def differing(name: Name, rows: Mapping[Host, int]) -> dict[Host, str]:
    """What is wrong on the hosts that have other numbers of rows than the first that has most."""
    most = max(rows.values(), default=0)
    full = next((host for host, count in rows.items() if count == most), "")
    return {
        host: f"{shown(name)} "
        + (f"has {count} rows" if count >= 0 else "is missing")
        + (f", but has {most} on {full}. {how_to_copy(name, full, host)}" if most > 0 else "")
        for host, count in rows.items()
        if count != most
    }


def shown(name: Name) -> str:
    return f"{name[0]}.{name[1]}"


def how_to_copy(name: Name, source: Host, target: Host) -> str:
    """What the operator is to do."""
    dump = f"mysqldump {_client(source)} {name[0]} {name[1]} | mysql {_client(target)} {name[0]}"
    return (
        "A reference table has the same rows on every host, or joins lose rows there. "
        f"Copy it while nobody writes it: {dump}"
    )


def _client(host: Host) -> str:
    """The options of the command line clients for an address."""
    if host.startswith("unix:"):
        return f"--socket={host.removeprefix('unix:')}"
    name, _, port = host.rpartition(":")
    return f"--host={name.strip('[]')} --port={port}"
