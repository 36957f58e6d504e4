"""`Cluster`: the parts of a demo, brought up step by step, and taken down whatever state they are in."""

from __future__ import annotations

import json
import secrets
import shutil
from pathlib import Path
from typing import Any

from config import xa
from config.backends import Backends
from config.load import load_schema, load_topology
from config.schema import Schema
from config.topology import Host, Topology
from demo.background import complete
from demo.certificates import LocalAuthority
from demo.documents import (
    PROXY_USERS,
    SCHEMA,
    ZOOKEEPER_NODE,
    backends_document,
    settings_document,
    topology_document,
)
from demo.load import legacy, load
from demo.options import DemoOptions
from demo.process import kill_all
from demo.programs import Program, ServerError, find_program, initialise
from demo.proxy import LocalProxy
from demo.ready import ReadyFile
from demo.replication import prepare_master, start_slave, wait_for_slave
from demo.sample import Sample, generate
from demo.servers import LocalServer, hosts_of, start_all
from demo.steps import Counted, Step, Steps
from demo.workspace import Workspace
from demo.zookeeper import LocalZooKeeper
from fleet.accounts import accounts_on, make_accounts
from fleet.create import create


class Cluster:
    """Servers, shards, rows, proxy. Every step raises ServerError or HostError when it cannot be done.

    Call `start` from a thread that lives as long as the cluster: the kernel kills the children when it ends.
    """

    def __init__(self, options: DemoOptions, workspace: Workspace) -> None:
        self.options = options
        self.directory = workspace.path
        self.program: Program = find_program(options.mysqld)
        self.schema: Schema = load_schema(SCHEMA)
        self.topology: Topology
        self.sample: Sample = {}
        self.masters: list[LocalServer] = []
        self.slaves: list[LocalServer] = []
        self.spares: list[LocalServer] = []
        self.zookeeper: LocalZooKeeper | None = None
        self.replaced: dict[str, Any] | None = None  # what another demo had said in the ready file
        self._ready = None if options.ready_file is None else ReadyFile(options.ready_file)
        self._workspace = workspace
        self._backends = backends_document(lambda: secrets.token_hex(12))
        self.proxy = LocalProxy(self.directory, port=options.port, page=not options.no_page)

    @property
    def servers(self) -> list[LocalServer]:
        """Masters, then slaves, then spares."""
        return [*self.masters, *self.slaves, *self.spares]

    def start(self, steps: Steps) -> None:
        """Bring all up, and write the ready file."""
        options = self.options
        pair = " with slaves" if options.slaves else ""
        with steps.step(f"{options.hosts} × {self.program.title}{pair}") as step:
            self._start_servers()
            self._write_documents()
            complete(self._make_accounts())
            complete(self._replicate())
            step.result(", ".join(one.address for one in self.masters))
        with steps.step("databases and tables") as step:
            step.result(complete(self._create(step)))
        if not options.empty:
            with steps.step("sample data") as step:
                step.result(f"{complete(self._load())} rows")
        if options.slaves:
            with steps.step("replication") as step:
                for slave, master in zip(self.slaves, self.masters, strict=True):
                    complete(wait_for_slave(slave, master))
                step.result("the slaves have it all")
        if self.zookeeper is not None:
            with steps.step("ZooKeeper") as step:
                self.zookeeper.wait()
                self.zookeeper.put(ZOOKEEPER_NODE, self._topology_file.read_bytes())
                step.result(f"{self.zookeeper.address}{ZOOKEEPER_NODE}")
        for server in self.servers:
            server.settle()
        with steps.step("proxy") as step:
            self._start_proxy()
            step.result(f"{self.proxy.host}:{self.proxy.port}")
        if self._ready is not None:
            self.replaced = self._ready.write(self.description())

    # --- steps -----------------------------------------------------------------------------------

    def _start_servers(self) -> None:
        options = self.options
        if options.zookeeper:
            self.zookeeper = LocalZooKeeper(self.directory / "zookeeper")
            self.zookeeper.spawn()  # a second of Java, waited for later
        template = self.directory / "template"
        initialise(self.program, template)
        self.masters = [self._server(f"host{n + 1}", n + 1, template) for n in range(options.hosts)]
        if options.slaves:
            self.slaves = [
                self._server(f"host{n + 1}-slave", options.hosts + n + 1, template)
                for n in range(options.hosts)
            ]
        used = len(self.servers)
        self.spares = [self._server(f"spare{n + 1}", used + n + 1, template) for n in range(options.spares)]
        start_all(self.servers)
        for server in self.servers:
            server.hurry()
        shutil.rmtree(template)

    async def _replicate(self) -> None:
        for slave, master in zip(self.slaves, self.masters, strict=False):
            password = secrets.token_hex(12)
            await prepare_master(master, password)
            await start_slave(slave, master, password)

    def _server(self, name: str, server_id: int, template: Path) -> LocalServer:
        server = LocalServer(
            self.program,
            self.directory / name,
            name=name,
            template=template,
            server_id=server_id,
            binlog=self.options.slaves or self.options.spares > 0,
            durable=not self.options.fast,
        )
        if server.socket.parent != server.directory:
            self._workspace.remove_later(server.socket.parent)
        return server

    async def _make_accounts(self) -> None:
        """The servers' accounts of the proxy and of its users' roles. Slaves get their own, and begin with no
        GTID.
        """
        backends = Backends.model_validate(self._backends)
        async with hosts_of(self.servers, logged=False) as hosts:
            for server in self.servers:
                wanted = accounts_on(backends, server.address, distributed=True)
                await make_accounts(hosts, server.address, wanted, self.schema, self.topology)

    async def _create(self, step: Step) -> str:
        async with hosts_of(self.masters) as hosts:
            made = await create(self.schema, self.topology, hosts, Counted(step))
            for server in self.masters:
                await hosts.run(server.address, xa.create_sql())
        if made.problems:
            raise ServerError("\n".join(made.problems))
        return f"{made.databases} databases, {made.tables} tables"

    async def _load(self) -> int:
        self.sample = generate(self.schema, self.topology)
        async with hosts_of(self.masters) as hosts:
            rows = await load(self.schema, self.topology, self.sample, hosts)
            await hosts.run(self.masters[0].address, legacy())
        return rows

    @property
    def _topology_file(self) -> Path:
        return self.directory / "topology.json"

    def _write_documents(self) -> None:
        shutil.copyfile(SCHEMA, self.directory / "schema.yaml")
        slaves: list[Host | None] = [one.address for one in self.slaves]
        pairs = zip((one.address for one in self.masters), slaves or [None] * len(self.masters), strict=True)
        document = topology_document(self.options.shards, list(pairs))
        self._topology_file.write_text(json.dumps(document, indent=2) + "\n")
        self.topology = load_topology(self._topology_file, schema=self.schema)

    def _start_proxy(self) -> None:
        settings = settings_document(
            port=self.proxy.port,
            status_port=self.proxy.status_port,
            workers=self.options.workers,
            backends=self._backends,
            logins={server.address: server.password for server in self.servers},
            zookeeper=self.zookeeper.address if self.zookeeper else None,
            certificate=LocalAuthority(self.directory).issue(),
        )
        self.proxy.configure(settings)
        self.proxy.spawn()
        self._workspace.kill_later(self.proxy.pid)
        self.proxy.wait()

    # --- the ready file --------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """What the ready file says."""
        demo, reader = PROXY_USERS[:2]
        roles = {"master": self.masters, "slave": self.slaves, "spare": self.spares}
        hosts = [
            {
                "name": server.name,
                "host": server.host,
                "port": server.port,
                "socket": str(server.socket),
                "user": server.user,
                "password": server.password,
                "pid": server.pid,
                "role": role,
            }
            for role, servers in roles.items()
            for server in servers
        ]
        return {
            "config": str(self.proxy.settings),
            "proxy": {
                "host": self.proxy.host,
                "port": self.proxy.port,
                "user": demo["name"],
                "password": demo["password"],
                "pid": self.proxy.pid,
            },
            "read_user": {"user": reader["name"], "password": reader["password"]},
            "status_url": self.proxy.status_url,
            "zookeeper": self.zookeeper.address if self.zookeeper else None,
            "topology": ZOOKEEPER_NODE if self.zookeeper else str(self._topology_file),
            "hosts": hosts,
        }

    # --- afterwards ------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop all, in any state. The servers are killed: their data is about to be removed."""
        if self._ready is not None:
            self._ready.remove()
        self.proxy.stop()
        rest = [one.process for one in (*self.servers, self.zookeeper) if one is not None]
        kill_all([process for process in rest if process is not None])
        self.proxy.release()
        for server in self.servers:
            server.forget_socket()
