"""Slaves whose master is dead: what each has received, and that it is applied. HostError."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from config.topology import Host
from fleet import replication
from fleet.core.errors import Failed, HostError
from fleet.core.hosts import Hosts
from fleet.promote import beyond, latest

_LOOK_SECONDS: Final = 0.05
_CONNECT_SECONDS: Final = 2.0
"""For a slave to reach its master, if that is there."""


@dataclass(frozen=True)
class Orphan:
    """A slave whose master is gone. `master`: "" when it replicates from none; `received`: GTIDs of all that
    it has, applied or not; `idle`: it has applied all that can be applied; `error`: of applying.
    """

    master: str
    receives: bool
    received: str
    idle: bool
    error: str


async def orphan(hosts: Hosts, host: Host, positions: bool, *, alone: bool = False) -> Orphan:
    """HostError when it replicates from several, or, unless it may be `alone`, from none."""
    rows = await hosts.records(host, "SHOW ALL SLAVES STATUS" if positions else "SHOW REPLICA STATUS")
    variable = "gtid_current_pos" if positions else "gtid_executed"
    held = replication.gtids(host, (await hosts.query(host, f"SELECT @@GLOBAL.{variable}"))[0][0])
    if alone and not rows:
        return Orphan("", False, held, True, "")
    if len(rows) != 1:
        raise HostError(host, f"replicates from {len(rows) or 'no'} masters")
    (row,) = rows
    new, old = ("Source", "Replica"), ("Master", "Slave")
    master, slave = old if positions else new
    stopped = str(row[f"{slave}_SQL_Running"]) != "Yes"
    error = str(row["Last_SQL_Error"] or ("its SQL thread does not run" if stopped else ""))
    if positions:
        received = latest(held, replication.gtids(host, row["Gtid_IO_Pos"] or ""))
    else:
        retrieved = replication.gtids(host, row["Retrieved_Gtid_Set"])
        both = ",".join(one for one in (held, retrieved) if one)
        received = replication.gtids(
            host, (await hosts.query(host, f"SELECT GTID_SUBTRACT('{both}', '')"))[0][0]
        )
    return Orphan(
        f"{row[f'{master}_Host']}:{row[f'{master}_Port']}",
        str(row[f"{slave}_IO_Running"]) == "Yes",
        received,
        "has read all relay log" in str(row[f"{slave}_SQL_Running_State"]).lower(),
        error,
    )


async def still_receives(hosts: Hosts, host: Host, positions: bool) -> bool:
    """Whether a slave reaches its master: one that has lost it without a word finds out after a minute only,
    so it is let connect anew.
    """
    word = "SLAVE" if positions else "REPLICA"
    if not (await orphan(hosts, host, positions, alone=True)).receives:
        return False
    await hosts.run(host, [f"STOP {word} IO_THREAD", f"START {word} IO_THREAD"])
    deadline = time.monotonic() + _CONNECT_SECONDS
    while not (await orphan(hosts, host, positions)).receives:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
    return True


async def missing(hosts: Hosts, host: Host, received: str, other: str, positions: bool) -> str:
    """What of `other` is not in `received`, as `Orphan` has them; asked on `host`."""
    if positions:
        return ", ".join(beyond(other, received))
    rows = await hosts.query(host, f"SELECT GTID_SUBTRACT('{other}', '{received}')")
    return str(rows[0][0]).replace("\n", "")


async def apply_all(hosts: Hosts, host: Host, positions: bool, seconds: float, *, alone: bool = False) -> str:
    """Receive no more, and apply all that was received: the GTIDs of that. Failed."""
    if (await orphan(hosts, host, positions, alone=alone)).master:
        await hosts.run(host, [f"STOP {'SLAVE' if positions else 'REPLICA'} IO_THREAD"])
    deadline = time.monotonic() + seconds
    while True:
        found = await orphan(hosts, host, positions, alone=alone)
        if not found.master:
            return found.received
        wait = "MASTER_GTID_WAIT" if positions else "WAIT_FOR_EXECUTED_GTID_SET"
        if (
            not found.received
            or (await hosts.query(host, f"SELECT {wait}('{found.received}', 1)"))[0][0] == 0
        ):
            return found.received
        if positions and found.idle:  # the last that it received was cut off
            return await replication.position(hosts, host)
        if found.error or time.monotonic() > deadline:
            raise Failed(f"{host}: has not applied all: {found.error or f'it is behind after {seconds:g} s'}")
