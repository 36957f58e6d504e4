"""Replication of a demo's servers, waited for."""

from __future__ import annotations

import asyncio
from time import monotonic

from fleet import replication
from fleet.core.hosts import Hosts
from tests.support.demo import Demo, DemoHost


async def until_linked(hosts: Hosts, host: DemoHost) -> None:
    """Until both threads of the host's replication run."""
    until = monotonic() + 60
    while (now := await replication.replica(hosts, host.address)) is None or now.problem:
        assert monotonic() < until, now
        await asyncio.sleep(0.05)  # a thread that was started just now is not there at once


def linked(demo: Demo, host: DemoHost) -> None:
    """The same where no loop runs."""

    async def run() -> None:
        async with demo.as_hosts() as hosts:
            await until_linked(hosts, host)

    asyncio.run(run())
