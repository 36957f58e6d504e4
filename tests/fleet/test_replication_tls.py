"""A slave that the tools make reaches its master over TLS where the tools themselves do."""

from __future__ import annotations

import asyncio
from pathlib import Path

from config.backends import Backends
from demo.certificates import LocalAuthority
from demo.programs import Program
from demo.servers import LocalServer, start_all, stop_servers
from fleet import replication, servers
from fleet.core.hosts import Hosts, connector


async def _follows(master: LocalServer, slave: LocalServer, tls: bool) -> bool:
    """Whether the link is encrypted, as the master sees it."""
    document = {"user": "root", "password": "", "tls": {"verify": "none"} if tls else None}
    passwords = {one.address: one.password for one in (master, slave)}
    connect = connector(Backends.model_validate(document), lambda host: ("root", passwords[host]))
    async with Hosts(connect) as hosts:
        login = await servers.replication_account(hosts, master.address)
        if tls:
            await hosts.run(master.address, [f"ALTER USER '{servers.USER}'@'%' REQUIRE SSL"])
        await servers.follow(hosts, slave.address, master.address, *login)
        position = await replication.position(hosts, master.address)
        await replication.wait_until(hosts, slave.address, position, 60.0)
        found = await replication.replica(hosts, slave.address)
        assert found is not None
        assert found.error == ""
        return found.encrypted


def test_the_link_is_as_safe_as_the_tools(program: Program, template: Path, tmp_path: Path) -> None:
    certificate, key = LocalAuthority(tmp_path).issue()
    options = [f"--ssl-cert={certificate}", f"--ssl-key={key}"]
    pair = [
        LocalServer(program, tmp_path / f"s{n}", template=template, server_id=n, binlog=True, options=options)
        for n in (1, 2)
    ]
    start_all(pair)
    try:
        assert asyncio.run(_follows(pair[0], pair[1], tls=True))
    finally:
        stop_servers(pair)
