"""What distributed transactions need of the hosts: the tables of their decisions on every master, and that
the tools wait for those that are prepared. A branch that is prepared holds its rows, replicas have it, too,
and it can be committed where it is fenced off: nothing may be moved away under it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from config import xa
from config.topology import Host
from config.xa import BranchName
from fleet.core.errors import Failed, HostError
from fleet.core.hosts import Hosts
from fleet.core.steps import Step

PATIENCE: Final = 15.0
"""Seconds that prepared transactions get to be finished by the proxies."""
_LOOK: Final = 0.1
_DENIED: Final = 1401


def steps(found: Mapping[Host, Mapping[str, frozenset[str]]]) -> list[Step]:
    """What makes the tables on hosts that lack some. `found`: the databases of each host and their tables. A
    host with tables and no identity gets that, too: who makes them is asked again by `lacking`.
    """
    return [
        Step(f"xa\t{host}", f"make {xa.DATABASE}", host, tuple(xa.create_sql()))
        for host, databases in found.items()
        if not lacks_nothing(databases)
    ]


def lacks_nothing(databases: Mapping[str, frozenset[str]]) -> bool:
    """Whether a host with these databases and tables has those of the decisions."""
    return databases.get(xa.DATABASE, frozenset()) >= xa.TABLES.keys()


async def used(hosts: Hosts, host: Host) -> bool:
    """Whether there may be distributed transactions on `host`. HostError."""
    return bool(await hosts.query(host, f"SHOW DATABASES LIKE '{xa.DATABASE.replace('_', chr(92) + '_')}'"))


async def prepared(hosts: Hosts, host: Host) -> list[BranchName]:
    """The branches of the proxies' transactions that are prepared on `host`. HostError; Failed when the tools
    may not look.
    """
    found = (BranchName.read(*one) for one in await all_prepared(hosts, host))
    return [name for name in found if name is not None]


async def all_prepared(hosts: Hosts, host: Host) -> list[tuple[int, bytes, bytes]]:
    """The same of everybody's, applications' too: formatID, gtrid and bqual."""
    try:
        rows = await hosts.query(host, "XA RECOVER")
    except HostError as error:
        if error.code != _DENIED:
            raise
        raise Failed(
            f"{host}: what is prepared there cannot be seen ({error}): GRANT XA_RECOVER_ADMIN ON *.* to the "
            "tools' account"
        ) from error
    return [
        (int(format_id), text[: int(length)], text[int(length) :])
        for format_id, length, _, data in rows
        for text in (_bytes(data),)
    ]


def _bytes(data: Any) -> bytes:
    return data if isinstance(data, bytes) else str(data).encode("utf-8", "surrogateescape")


async def finished(hosts: Hosts, host: Host, patience: float = PATIENCE) -> None:
    """Wait until what is prepared on `host` now is committed or rolled back there, which the proxies do.
    Raises Failed, HostError.
    """
    left = {(one.gtrid, one.bqual) for one in await prepared(hosts, host)}
    until = time.monotonic() + patience
    while left:
        if time.monotonic() > until:
            why = "SHOW PROXY TRANSACTIONS on a proxy tells why; docs/operations.md says what to do"
            raise Failed(f"{host}: {told(gtrid for gtrid, _ in left)}. {why}")
        await asyncio.sleep(_LOOK)
        left &= {(one.gtrid, one.bqual) for one in await prepared(hosts, host)}


def told(gtrids: Iterable[bytes]) -> str:
    """For people: what is prepared."""
    names = ", ".join(sorted({one.decode() for one in gtrids}))
    return f"prepared transactions are not finished: {names}"


async def lasting(hosts: Hosts, host: Host) -> str:
    """What is prepared there for longer than a COMMIT takes, as a sentence; "" for nothing. HostError."""
    first = {(one.gtrid, one.bqual) for one in await prepared(hosts, host)}
    if first:
        await asyncio.sleep(1.0)
        first &= {(one.gtrid, one.bqual) for one in await prepared(hosts, host)}
    return told(gtrid for gtrid, _ in first) if first else ""
