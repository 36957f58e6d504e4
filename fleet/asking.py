"""What `shardgate check --connect` asks as the account of the fleet tools: does it get in, and do the slaves
replicate, which the proxy's own account may not see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from config.settings import FleetSettings, Settings
from config.topology import Host, Topology
from fleet.accounts import HIDDEN
from fleet.core.errors import HostError
from fleet.core.hosts import Hosts, connector
from fleet.faults import Fault, pairs
from fleet.grants import quoted_account
from fleet.rights import Finding
from fleet.verify import hosts_of
from fleet.verifying import slave_faults

_DENIED = 1045
_SQL = ("SET ", "START ")
"""What remedies begin with that are statements."""


def ask(settings: Settings, topology: Topology, hosts: Sequence[Host]) -> dict[Host, list[Finding]]:
    """What is wrong, of the `hosts` that can be reached. ValueError when the settings name no account, or its
    password cannot be read.
    """
    fleet = settings.fleet
    if fleet is None:
        raise ValueError("the settings name no account for it: `fleet`")
    for host in hosts_of(topology):
        fleet.login(host)
    return asyncio.run(_ask(settings, fleet, topology, hosts))


async def _ask(
    settings: Settings, fleet: FleetSettings, topology: Topology, hosts: Sequence[Host]
) -> dict[Host, list[Finding]]:
    masters: Mapping[Host, list[Host]] = {
        host: [master for slave, master in pairs(topology) if slave == host] for host in hosts
    }

    async def of(host: Host, connected: Hosts) -> list[Finding]:
        try:
            await connected.query(host, "DO 0")
        except HostError as error:
            return [_not_in(fleet, host, error)]
        found = [await slave_faults(connected, host, master) for master in masters[host]]
        return [_finding(one) for faults in found for one in faults]

    async with Hosts(connector(settings.backends, fleet.login)) as connected:
        answers = await asyncio.gather(*(of(host, connected) for host in hosts))
    return dict(zip(hosts, answers, strict=True))


def _finding(fault: Fault) -> Finding:
    if fault.remedy.startswith(_SQL):
        return Finding(fault.text, (fault.remedy,))
    return Finding(f"{fault.text}: {fault.remedy}")


def _not_in(fleet: FleetSettings, host: Host, error: HostError) -> Finding:
    user = fleet.login(host)[0]
    text = f"{user}, the account of the fleet tools, {error}"
    if error.code != _DENIED:
        return Finding(text)
    name = quoted_account(user)
    return Finding(
        f"{text}. It is not there, or its password is another one",
        (
            f"CREATE USER IF NOT EXISTS {name} IDENTIFIED BY '{HIDDEN}'",
            f"ALTER USER {name} IDENTIFIED BY '{HIDDEN}'",
            f"GRANT ALL PRIVILEGES ON *.* TO {name} WITH GRANT OPTION",
        ),
    )
