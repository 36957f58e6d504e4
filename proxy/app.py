"""The composition root: the only file that wires everything together.

`Worker` is one process's proxy: it starts the topology source, asks a server for its facts, listens, serves,
and drains.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import structlog

from config.document import ConfigError
from config.schema import Schema
from config.settings import Settings, User
from config.sources import TopologySource, open_source
from config.sources.schema import SchemaFile
from config.topology import Topology

from .backends import Backends
from .backends.connecting import LoginConnector
from .backends.host import HostLimits, HostPool
from .backends.own import own_connection
from .certificates import CertificateStore
from .errors import ProxyError
from .facts import ServerFacts, ask, ask_rest
from .local.kill import end
from .local.processes import processes
from .local.show import sessions
from .peers import Peers
from .services import Services
from .session.client import ClientConnection
from .session.entrance import Entrance
from .status import snapshot
from .status.server import StatusServer
from .tables import PERIOD
from .tasks import Tasks
from .wire.auth import Credential, Form, RsaKey
from .wire.server_auth import Authority, Decoys

log = structlog.get_logger("proxy")

_TICK = 0.25
#: Seconds for which a thread that binds rows may hold up the loop.
_SWITCH = 0.0005


class Worker:
    """One worker process: everything between its listening sockets and the servers."""

    def __init__(
        self,
        settings: Settings,
        schema: Schema,
        sockets: Sequence[socket.socket],
        rsa: RsaKey,
        secret: bytes,
        certificates: CertificateStore,
        number: int = 0,
        peers: Peers | None = None,
        read_again: Callable[[], Settings] | None = None,
    ) -> None:
        """`read_again`: the settings as they are in the file now; raises ConfigError."""
        self.settings = settings
        self.schema = schema
        self.sockets = sockets
        self.number = number
        self.peers = peers
        self.services: Services | None = None
        self.source: TopologySource | None = None
        self.schema_file: SchemaFile | None = None
        self.status: StatusServer | None = None
        self.tasks = Tasks()
        self._authority = Authority(lambda name: None, rsa)
        self._secret = secret
        self._users: Sequence[User] = settings.users
        self._accounts = settings.backends
        self._backends: Backends | None = None
        self._read_again = read_again
        self._certificates = certificates
        self._servers: list[asyncio.Server] = []
        self._stopping = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether statements can be served: a topology, a server that answered, and not draining."""
        return self.services is not None and bool(self._servers) and not self.services.draining

    async def run(self) -> None:
        """Serve until `stop` is called. Raises ConfigError when there is no usable topology at start."""
        ticker: asyncio.Task[None] | None = None
        self._certificates.catch_up()
        users = self._users_of_now()
        try:
            await self._start_status()
            if not self._accounts.accounts and self.number == 0:
                log.warning(
                    "one account for all: only the proxy stands between users and servers",
                    account=self._accounts.user,
                    remedy="name accounts in backends.accounts",
                )
            self.source = open_source(self.settings, self.schema)
            topology = await self.source.start(self._changed, self._refused)
            backends = self._backends = Backends(self._make_pool, self.settings.limits.gathers)
            ticker = self.tasks.spawn(self._tick(backends), "tick")
            facts = await self._learn_facts(backends, topology)
            if facts is None:
                return
            current = self.source.current or topology
            services = Services(
                self.settings,
                self.schema,
                current,
                backends,
                self._authority,
                facts,
                self.tasks,
                self.number,
                self.peers,
                self._certificates.clients,
            )
            services.set_users(users, self._accounts)
            self.services = services
            if self.peers is not None:
                await self._meet(self.peers, services)
            await self._watch_schema(services)
            await self._look_at_tables(services)
            await self._listen(services)
            self.tasks.spawn(self._learn_rest(services), "facts")
            self.tasks.spawn(self._watch_tables(services), "tables")
            await services.planners.warm()
            _settle_memory()
            log.info("serving", version=facts.version, topology=current.version, listen=self.addresses())
            await self._stopping.wait()
            await self._drain(services)
        finally:
            if ticker is not None:
                ticker.cancel()
                with suppress(asyncio.CancelledError):
                    await ticker
            await self._close()

    def stop(self) -> None:
        """Begin to drain; `run` returns when that is done."""
        self._stopping.set()

    def reload(self) -> None:
        """SIGHUP: look at the users, the topology and the certificates again."""
        before, users = self._users, self._users_of_now()
        if self.services is not None:
            self.services.set_users(users, self._accounts)
        if users is not before:
            log.info("users read again", users=len(users))
        self._certificates.reload()
        if self.source is not None:
            self.source.reload()
        if self.schema_file is not None:
            self.schema_file.reload()

    def addresses(self) -> list[str]:
        """Where clients connect."""
        found = []
        for sock in self.sockets:
            name = sock.getsockname()
            found.append(f"unix:{name}" if isinstance(name, str) else f"{name[0]}:{name[1]}")
        return found

    # -- parts
    # ------------------------------------------------------------------------------------------------------

    def _users_of_now(self) -> Sequence[User]:
        """The users in the settings file; those from before when it cannot be used. From now on they, and
        nobody else, may log in.
        """
        if self._read_again is not None:
            try:
                again = self._read_again()
                self._users, self._accounts = again.users, again.backends
            except ConfigError as error:
                log.error("settings refused, the users from before stay", reason=str(error))
        set_users(self._authority, self._users, self._secret)
        return self._users

    async def _meet(self, peers: Peers, services: Services) -> None:
        """Answer the other workers' questions."""
        started = time.time()
        peers.handlers["alive"] = lambda _: True
        peers.handlers["kill"] = lambda request: end(services, **request)
        peers.handlers["processes"] = lambda request: processes(services, **request)
        peers.handlers["lock_holders"] = lambda _: list(services.lock_holders().items())
        peers.handlers["sessions"] = lambda request: sessions(services, **request)
        peers.handlers["tables"] = lambda _: self.tasks.spawn(services.look_at_tables(), "tables") is not None
        peers.handlers["routines"] = lambda request: (
            self.tasks.spawn(services.learn_routines((request["host"],)), "routines") is not None
        )
        peers.handlers["snapshot"] = lambda request: snapshot.take(
            services, ready=self.ready, started=started, now=time.time()
        )
        peers.handlers["renew"] = lambda request: services.renew(
            {name: value.encode("latin-1") for name, value in request["defaults"].items()}
        )
        await peers.start()

    async def _start_status(self) -> None:
        listen = self.settings.status.listen
        if listen is not None and self.number == 0:
            self.status = StatusServer(
                lambda: self.services,
                lambda: self.ready,
                lambda: self.source.status if self.source is not None else "",
                peers=self.peers,
                loaded=lambda: self.source is not None and self.source.current is not None,
            )
            await self.status.start(listen)

    def _make_pool(self, host: str) -> HostPool:
        backends, timeouts = self.settings.backends, self.settings.timeouts
        limits = HostLimits(
            max_connections=backends.max_connections_for(host),
            max_waiting=backends.queue_length,
            wait_timeout=backends.queue_timeout,
            connect_timeout=backends.connect_timeout,
            idle_timeout=backends.idle_timeout,
            health_interval=backends.health_interval,
            statement_timeout=timeouts.statement or None,
            user_share=backends.user_share,
            hang_timeout=backends.hang_timeout or None,
        )
        certificates = self._certificates.of_host(host)
        connector = LoginConnector(self._account_for, backends.connect_timeout, certificates)
        return HostPool(host, limits, connector, self.tasks.spawn, time.monotonic)

    def _account_for(self, host: str, variant: int) -> tuple[str, str]:
        """User and password for a connection to `host`, by what the settings file said last."""
        assert self._backends is not None
        return self._accounts.user_for(host, self._backends.account_of(variant))

    async def _learn_facts(self, backends: Backends, topology: Topology) -> ServerFacts | None:
        """Facts of the first server that answers; tries until one does, or until `stop`."""
        first = True
        while not self._stopping.is_set():
            for host in topology.hosts:
                try:
                    async with own_connection(backends.pool(host)) as conn:
                        return await ask(conn)
                except ProxyError as error:
                    if first:
                        log.warning("no facts from this server", host=host, reason=str(error))
            first = False
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._stopping.wait()
        return None

    async def _learn_rest(self, services: Services) -> None:
        """Facts that are seldom needed."""
        for host in services.topology.hosts:
            try:
                async with own_connection(services.backends.pool(host)) as conn:
                    await ask_rest(conn, services.collations)
                return
            except ProxyError as error:
                log.warning("not all facts from this server", host=host, reason=str(error))

    async def _look_at_tables(self, services: Services) -> None:
        """Those of hosts that do not answer now are looked at later."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.backends.connect_timeout):
                await services.look_at_tables()
                await services.learn_routines()
                await services.look_at_references()

    async def _watch_tables(self, services: Services) -> None:
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(PERIOD):
                    await self._stopping.wait()
                    return
            await self._look_at_tables(services)

    async def _listen(self, services: Services) -> None:
        loop = asyncio.get_running_loop()
        for sock, listener in zip(self.sockets, self.settings.listen, strict=True):
            make: Callable[[], asyncio.Protocol] = partial(ClientConnection, services)
            if listener.proxy_protocol:
                make = partial(Entrance, services, listener.proxy_protocol)
            if sock.family == socket.AF_UNIX:
                server = await loop.create_unix_server(make, sock=sock, backlog=1024)
            else:
                server = await loop.create_server(make, sock=sock, backlog=1024)
            self._servers.append(server)

    async def _tick(self, backends: Backends) -> None:
        while True:
            await asyncio.sleep(_TICK)
            try:
                self._certificates.tick()
                if self.services is not None:
                    self.services.tick()
                else:
                    backends.tick()
            except Exception as error:
                log.error("the clock's work failed", exc_info=error)

    def _changed(self, topology: Topology) -> None:
        if self.services is not None:
            self.services.set_topology(topology)
        if self.schema_file is not None:
            self.schema_file.reload()  # one that was refused may be right now

    async def _watch_schema(self, services: Services) -> None:
        """From now on the schema is what its file says; before it was what it said when the process began."""
        source = SchemaFile(
            self.settings.schema_file,
            lambda: services.topology,
            lambda: {name for user in self._users for name in user.databases},
        )

        def changed(schema: Schema) -> None:
            if self.source is not None:
                self.source.schema = schema
            self.tasks.spawn(services.set_schema(schema), "schema")

        try:
            found = await source.start(changed, services.schema_refused)
        except ConfigError as error:  # it was right a moment ago
            services.schema_refused(str(error))
            self.tasks.spawn(self._watch_schema_again(services), "schema")
            return
        self.schema_file = source
        if self.source is not None:
            self.source.schema = found
        services.begin_with(found)

    async def _watch_schema_again(self, services: Services) -> None:
        await asyncio.sleep(1)
        await self._watch_schema(services)

    def _refused(self, reason: str) -> None:
        if self.services is not None:
            self.services.topology_refused(reason)
        else:
            log.error("topology refused", reason=reason)

    async def _drain(self, services: Services) -> None:
        """Take no new client, let statements and transactions end, then close everybody."""
        services.draining = True
        for server in self._servers:
            server.close()
        if self.status is not None:
            await self.status.step_aside()
        deadline = time.monotonic() + self.settings.timeouts.drain
        log.info("draining", clients=len(services.connections))
        while time.monotonic() < deadline and (services.connections or await self._tells_of_others()):
            for client in list(services.connections):
                if (client.ready and not client.session.transaction.open) or client.session is None:
                    client.close()
            await asyncio.sleep(0.02)
        for client in list(services.connections):
            client.transport.abort()
        log.info("drained")

    async def _tells_of_others(self) -> bool:
        """Whether this process has the status page, which tells of other workers that still drain."""
        return (
            self.status is not None and self.peers is not None and bool(await self.peers.ask_others("alive"))
        )

    async def _close(self) -> None:
        if self.services is not None:
            self.services.backends.close()
            self.services.planners.close()
        if self.peers is not None:
            await self.peers.stop()
        if self.source is not None:
            await self.source.stop()
        if self.schema_file is not None:
            await self.schema_file.stop()
        if self.status is not None:
            await self.status.stop()
        for sock in self.sockets:
            sock.close()


def _settle_memory() -> None:
    """What was made at start stays: the garbage collector need not look at it again and again, nor at every
    700 objects for the rings that the data path does not make.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    sys.setswitchinterval(_SWITCH)


def set_users(authority: Authority, users: Sequence[User], secret: bytes) -> None:
    """Let these users log in. `secret` is for what is made up for unknown names."""
    credentials: dict[str, Credential] = {}
    for user in users:
        if user.secret is not None:
            credentials[user.name] = Credential(Form.PLAIN, user.secret.encode())
        else:
            assert user.password_hash is not None
            credentials[user.name] = Credential.parse(user.password_hash.get_secret_value())
    authority.lookup = credentials.get
    authority.decoys = Decoys(credentials.values(), secret)
    authority.tls_only = frozenset(user.name for user in users if user.require_tls)


def bind_sockets(settings: Settings) -> list[socket.socket]:
    """The listening sockets, bound (port 0 has become a free one). OSError when an address is taken."""
    sockets = []
    for listener in settings.listen:
        address = listener.address
        if address.path is not None:
            path = Path(address.path)
            with suppress(FileNotFoundError):
                if path.is_socket():
                    path.unlink()
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.bind(str(path))
            os.chmod(path, 0o777)
        else:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind((address.host, address.port))
        sock.setblocking(False)
        sockets.append(sock)
    return sockets
