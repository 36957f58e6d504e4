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
from tests.support.waiting import wait_until


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


class _TrustedBy:
    """The tools trust `ca`, slaves their master by `trusted`."""

    def __init__(self, master: LocalServer, slave: LocalServer, ca: Path, trusted: Path) -> None:
        self.master, self.slave = master.address, slave.address
        passwords = {one.address: one.password for one in (master, slave)}
        tls = {"ca": str(ca), "replication_ca": str(trusted)}
        self.backends = Backends.model_validate({"user": "root", "password": "", "tls": tls})
        self.connect = connector(self.backends, lambda host: ("root", passwords[host]))

    def hosts(self) -> Hosts:
        return Hosts(self.connect, tls_for=self.backends.tls_for)

    async def follow(self) -> None:
        async with self.hosts() as hosts:
            login = await servers.replication_account(hosts, self.master)
            await servers.follow(hosts, self.slave, self.master, *login)

    async def refusal(self) -> str:
        async with self.hosts() as hosts:
            found = await replication.replica(hosts, self.slave)
            return "" if found is None else found.error

    async def arrives(self) -> None:
        await self.follow()
        async with self.hosts() as hosts:
            position = await replication.position(hosts, self.master)
            await replication.wait_until(hosts, self.slave, position, 60.0)
            word = (await replication.flavour(hosts, self.slave)).replica_word
            (row,) = await hosts.records(self.slave, f"SHOW {word} STATUS")
            assert [row[one] for one in row if one.endswith("SSL_Verify_Server_Cert")] == ["Yes"]


def test_the_link_is_as_safe_as_the_tools(program: Program, template: Path, tmp_path: Path) -> None:
    """And verified, where the settings name the file for that."""
    authority = LocalAuthority(tmp_path)
    certificate, key = authority.issue()
    options = [f"--ssl-cert={certificate}", f"--ssl-key={key}"]
    pair = [
        LocalServer(program, tmp_path / f"s{n}", template=template, server_id=n, binlog=True, options=options)
        for n in (1, 2)
    ]
    start_all(pair)
    master, slave = pair
    try:
        assert asyncio.run(_follows(master, slave, tls=True))
        (tmp_path / "other").mkdir()
        other = _TrustedBy(master, slave, authority.ca, LocalAuthority(tmp_path / "other").ca)
        asyncio.run(other.follow())
        refused = wait_until(lambda: asyncio.run(other.refusal()), "it is refused", 60)
        assert any(one in refused for one in ("certificate", "SSL", "TLS")), refused
        asyncio.run(_TrustedBy(master, slave, authority.ca, authority.ca).arrives())
    finally:
        stop_servers(pair)
