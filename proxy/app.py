"""The composition root: the only file that wires everything together.

`Worker` is one process's proxy: it starts the topology source, asks a server for its facts, listens, serves,
and drains.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import cast

import structlog

from config.checks import fit_problems
from config.document import ConfigError
from config.restart import needing_restart
from config.schema import Schema
from config.settings import Listener, Settings
from config.sources import TopologySource, open_source
from config.sources.schema import SchemaFile, SchemaNode, open_schema
from config.topology import Topology
from proxy.catalog.facts import ServerFacts, ask, ask_rest
from proxy.catalog.tables import PERIOD
from proxy.engine.services import Services
from proxy.frontend.drain import let_leave
from proxy.frontend.entrance import Entrance
from proxy.frontend.idle import look_at_idle
from proxy.frontend.rights import follow_users, set_users
from proxy.frontend.traced import client_for
from rewriter.tree.start import load

from . import memory, open_files
from .backends import Backends
from .backends.connecting import LoginConnector
from .backends.host import HostLimits, HostPool
from .backends.own import own_connection
from .certificates import CertificateStore
from .compiled import COMPILED
from .errors import ProxyError, told_to_operators
from .in_use import Agreement, InUse
from .kept import Past
from .listening import Door, serve_clients
from .logs import tell_lost
from .peers import Peers
from .questions import answer_others
from .shared import Shared
from .status import snapshot
from .status.apart import Apart, Away
from .status.keeping import Keeper
from .status.live import History
from .taken import ALONE, StatusPlace
from .tasks import Tasks
from .wire.auth import RsaKey
from .wire.server_auth import Authority

log = structlog.get_logger("proxy")

_TICK = 0.25
_TRIES = 10


class Worker:
    """One worker process: everything between its listening sockets and the servers."""

    def __init__(
        self,
        settings: Settings,
        schema: Schema | None,
        doors: Sequence[Door],
        rsa: RsaKey,
        secret: bytes,
        certificates: CertificateStore,
        number: int = 0,
        peers: Peers | None = None,
        read_again: Callable[[], Settings] | None = None,
        shared: Shared | None = None,
        past: Past | None = None,
        place: StatusPlace = ALONE,
    ) -> None:
        """`schema`: None where it is in ZooKeeper, and was not looked at. `read_again`: the settings as they
        are in the file now; raises ConfigError. `shared`: what the other workers serve; `past`: what was
        before this one, None when it is the first. `place`: with whom the status address may be shared.
        """
        self.settings = settings
        self.schema = schema
        self.doors = doors
        self.number = number
        self.peers = peers
        self.services: Services | None = None
        self.source: TopologySource | None = None
        self.schema_source: SchemaFile | SchemaNode | None = None
        self.status: Apart | None = None
        self.tasks = Tasks()
        self._history = History()
        self._authority = Authority(lambda name: None, rsa)
        self._secret = secret
        self._agreement = Agreement(shared, self._take)
        self._past = past or Past(time.time())
        self._keeper = Keeper(peers, self._past)
        self._place = place
        self._settings_due = False
        self._trouble = ""  # why no server could be asked, at the start
        self._early: list[Callable[[Services], None]] = []
        self._backends: Backends | None = None
        self._read_again = read_again
        self._certificates = certificates
        self._servers: list[asyncio.Server] = []
        self._stopping = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether statements can be served: a topology, a server that answered, and not draining."""
        return self.services is not None and bool(self._servers) and not self.services.clients.draining

    async def run(self) -> None:
        """Serve until `stop` is called. Raises ConfigError when there is no usable topology at start."""
        ticker: asyncio.Task[None] | None = None
        self._certificates.catch_up()
        try:
            await self._start_status()
            in_use = await self._agree()
            self._let_in(in_use)
            if not in_use.accounts.accounts and self.number == 0:
                log.warning(
                    "one account for all: only the proxy stands between users and servers",
                    account=in_use.accounts.user,
                    remedy="name accounts in backends.accounts",
                )
            backends = self._backends = Backends(self._make_pool, self.settings.limits.gathers)
            ticker = self.tasks.spawn(self._tick(backends), "tick")
            facts = await self._learn_facts(backends)
            if facts is None:
                return
            if not facts.autocommit:
                log.warning(
                    "sessions begin with autocommit off",
                    reason="it is off on the server that was asked first",
                    remedy="SET GLOBAL autocommit = 1 through the proxy, unless that is meant",
                )
            services = self._serve_with(facts, backends)
            if self.peers is not None:
                await self._meet(self.peers, services)
            await self._look_at_tables(services)
            await services.resolver.ready(self.settings.backends.connect_timeout)
            await services.caches.begin(services.serving.schema)
            second = load()
            if second.why_not and self.number == 0:
                log.warning(
                    "statements are read by one reader only: fewer find their shards", reason=second.why_not
                )
            await self._listen(services)
            self.tasks.spawn(self._learn_rest(services), "facts")
            self.tasks.spawn(self._watch_tables(services), "tables")
            memory.settle()
            version = services.serving.topology.version
            log.info(
                "serving",
                version=facts.version,
                topology=version,
                listen=self.addresses(),
                compiled=COMPILED,
            )
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
        self._read_settings()
        self._certificates.reload()
        if self.source is not None:
            self.source.reload()
        if self.schema_source is not None:
            self.schema_source.reload()

    def addresses(self) -> list[str]:
        """Where clients connect."""
        found = []
        for _, sock in self.doors:
            name = sock.getsockname()
            found.append(f"unix:{name}" if isinstance(name, str) else f"{name[0]}:{name[1]}")
        return list(dict.fromkeys(found))

    # -- parts
    # ------------------------------------------------------------------------------------------------------

    async def _agree(self) -> InUse:
        """What to serve: what the other workers do, or the documents as they are now. Raises ConfigError."""
        resumed = self._agreement.resume()
        schema = self.schema if resumed is None else resumed.schema
        zookeeper = self.settings.topology.zookeeper
        name = zookeeper.name if zookeeper is not None else None
        if name is not None and self.settings.workers > 1:
            name = f"{name}-{self.number}"
        details = {"listen": self.addresses(), "worker": self.number}
        self.source = open_source(self.settings, schema, name, details)
        self.schema_source = open_schema(
            self.settings, self.source, self._map_in_use, self._databases_in_use, schema
        )
        if resumed is not None:
            self.source.resume(resumed.topology)
            self.schema_source.digests[resumed.schema] = resumed.schema_digest
            self.schema_source.resume(resumed.schema)
        self.source.in_use = self._followed
        await self.source.start(self._topology_read, self._topology_refused)
        found = await self.schema_source.start(self._schema_read, self._schema_refused)
        digest = self.schema_source.digests.get(found, "")
        topology = self.source.current
        assert topology is not None
        settings = self.settings
        state = InUse(topology, found, digest, settings.users, settings.backends)
        in_use = self._agreement.begin(state)
        self._follow_sources(in_use)
        self.source.serving(in_use.topology, in_use.schema_digest)
        return in_use

    def _serve_with(self, facts: ServerFacts, backends: Backends) -> Services:
        """What is in use becomes what is served."""
        in_use = self._in_use()
        in_use.topology.warm()
        services = self.services = Services(
            self.settings,
            in_use.schema,
            in_use.topology,
            backends,
            self._authority,
            facts,
            self.tasks,
            self.number,
            self.peers,
            self._certificates.clients,
        )
        if services.clients.most < self.settings.limits.max_connections and self.number == 0:
            log.warning(
                "too few open files allowed: fewer clients than limits.max_connections are served",
                clients=services.clients.most,
                open_files=open_files.limit(),
                remedy="raise the limit of open files (ulimit -n, LimitNOFILE)",
            )
        services.stats.workers_replaced, services.stats.started = self._past.replaced, self._past.started
        self._keeper.begin(services)
        services.set_users(in_use.users, in_use.accounts)
        for what in self._early:
            what(services)
        return services

    def _in_use(self) -> InUse:
        current = self._agreement.current
        assert current is not None
        return current

    def _followed(self) -> Topology | None:
        """The topology that all serve by now; None before all is agreed on."""
        self._agreement.follow()
        current = self._agreement.current
        return None if current is None else current.topology

    def _map_in_use(self) -> Topology:
        """Before all is agreed on, what the source gave."""
        current = self._agreement.current
        found = self.source.current if current is None and self.source is not None else None
        return self._in_use().topology if found is None else found

    def _databases_in_use(self) -> set[str]:
        users = (self._agreement.current or self.settings).users
        return {name for user in users for name in user.databases}

    def _let_in(self, in_use: InUse) -> None:
        """From now on these users, and nobody else, may log in."""
        set_users(self._authority, in_use.users, self._secret)

    def _read_settings(self) -> None:
        """The users and accounts in the settings file; those from before when it cannot be used."""
        if self._read_again is None:
            return
        if self._agreement.current is None:
            self._settings_due = True  # when there is something in use
            return
        try:
            again = self._read_again()
        except ConfigError as error:
            reason = str(error)
            self._when_serving(lambda services: services.serving.settings_refused(reason))
            return
        self._settings_due = not self._use_settings(again)
        if self._settings_due:
            return
        log.info("users read again", users=len(again.users))
        waiting = needing_restart(self.settings, again)
        if waiting and self.number == 0:
            log.warning(
                "changed settings are not in use: only users and accounts are read again",
                settings=waiting,
                remedy="restart the proxy",
            )

    def _use_settings(self, again: Settings) -> bool:
        """False when another worker is at it."""
        for _ in range(_TRIES):
            in_use = self._in_use()
            if (in_use.users, in_use.accounts) == (again.users, again.backends):
                return True
            if self._agreement.propose(users=again.users, accounts=again.backends):
                return True
        return False

    def _when_serving(self, what: Callable[[Services], None]) -> None:
        """Do it now, or as soon as there are services."""
        if self.services is not None:
            what(self.services)
        else:
            self._early.append(what)

    def _take(self, before: InUse, after: InUse) -> None:
        """Something else is in use, by this worker's doing or another's."""
        self._follow_sources(after)
        services = self.services
        other_users = (after.users, after.accounts) != (before.users, before.accounts)
        other_schema = after.schema_digest != before.schema_digest
        if other_users:
            self._let_in(after)
        if services is not None:
            if other_users:
                services.set_users(after.users, after.accounts)
                follow_users(services)
            if after.map != before.map:
                schema = after.schema if other_schema else None
                services.set_topology(after.topology, schema, partial(self._serves, after))
                return
            if other_schema:
                self.tasks.spawn(self._serve_schema(services, after), "schema")
                after = before  # until then
        self._serves(after)

    async def _serve_schema(self, services: Services, wanted: InUse) -> None:
        await services.serving.set_schema(wanted.schema)
        if (in_use := self._in_use()).schema_digest == wanted.schema_digest:
            self._serves(in_use)

    def _serves(self, in_use: InUse) -> None:
        if self.source is not None:
            self.source.serving(in_use.topology, in_use.schema_digest)

    def _follow_sources(self, in_use: InUse) -> None:
        """Tell the sources what is in use. One that has been refused may be right now."""
        source, file = self.source, self.schema_source
        assert source is not None
        assert file is not None
        other_schema = source.schema is not in_use.schema
        source.schema = in_use.schema
        if source.current is not in_use.topology:
            source.adopt(in_use.topology)
        elif other_schema:
            source.again()
        if file.current is not in_use.schema:
            file.digests[in_use.schema] = in_use.schema_digest
            file.adopt(in_use.schema)
        else:
            file.again()

    def _topology_read(self, topology: Topology) -> None:
        """The source has accepted a topology: so shall all, unless something else has changed meanwhile."""
        in_use = self._agreement.current
        if in_use is None or (topology.version, topology.digest) == in_use.map:
            return
        assert self.source is not None
        if fit_problems(in_use.schema, topology) or not self._agreement.propose(topology=topology):
            self.source.adopt(self._in_use().topology)

    def _schema_read(self, schema: Schema) -> None:
        """The same for a schema."""
        in_use = self._agreement.current
        assert self.schema_source is not None
        digest = self.schema_source.digests.get(schema, "")
        if in_use is None or digest == in_use.schema_digest:
            return
        propose = self._agreement.propose
        if fit_problems(schema, in_use.topology) or not propose(schema=schema, schema_digest=digest):
            self.schema_source.adopt(self._in_use().schema)

    async def _meet(self, peers: Peers, services: Services) -> None:
        """Answer the other workers' questions."""

        def told() -> snapshot.Snapshot:
            started = self._keeper.started
            taken = snapshot.take(services, ready=self.ready, started=started, now=time.time())
            return self._keeper.whole(taken, services)

        answer_others(peers, services, self.tasks, self._history, told)
        await peers.start()

    async def _start_status(self) -> None:
        listen = self.settings.status.listen
        if listen is not None and self.number == 0:
            from .status.server import StatusServer  # with aiohttp and Prometheus' client: 9 MB

            server = StatusServer(
                lambda: self.services,
                lambda: self.ready,
                lambda: self.source.status if self.source is not None else "",
                peers=self.peers,
                loaded=lambda: self.source is not None and self.source.current is not None,
                trouble=lambda: self._trouble,
                history=self._history,
                home=Away(asyncio.get_running_loop()),
                names=self.settings.status.names,
                keeper=self._keeper,
                place=self._place,
            )
            self.status = Apart(server)
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
        timeout, comment = backends.connect_timeout, backends.comment
        traced = self.settings.tracing is not None
        connector = LoginConnector(self._account_for, timeout, certificates, comment=comment, traced=traced)
        return HostPool(host, limits, connector, self.tasks.spawn, time.monotonic)

    def _account_for(self, host: str, capability_set: int) -> tuple[str, str]:
        """User and password for a connection to `host`, by what the settings file said last."""
        assert self._backends is not None
        return self._in_use().accounts.user_for(host, self._backends.account_of(capability_set))

    async def _learn_facts(self, backends: Backends) -> ServerFacts | None:
        """Facts of the first server that answers; tries until one does, or until `stop`."""
        first = True
        while not self._stopping.is_set():
            for host in self._in_use().topology.hosts:
                try:
                    async with own_connection(backends, host) as conn:
                        return await ask(conn)
                except ProxyError as error:
                    self._trouble = told_to_operators(error)
                    if first:
                        log.warning(
                            "a server cannot be asked for its version and settings",
                            host=host,
                            reason=self._trouble,
                        )
            first = False
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._stopping.wait()
        return None

    async def _learn_rest(self, services: Services) -> None:
        """Facts that are seldom needed."""
        for host in services.serving.topology.hosts:
            try:
                async with own_connection(services.backends, host) as conn:
                    await ask_rest(conn, services.collations)
                return
            except ProxyError as error:
                log.warning("not all facts from this server", host=host, reason=told_to_operators(error))

    async def _look_at_tables(self, services: Services) -> None:
        """Those of hosts that do not answer now are looked at later."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.backends.connect_timeout):
                await services.serving.look_at_tables()
                await services.routines.learn(services.serving.topology)
                await services.serving.look_at_references()

    async def _watch_tables(self, services: Services) -> None:
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(PERIOD):
                    await self._stopping.wait()
                    return
            await self._look_at_tables(services)

    async def _listen(self, services: Services) -> None:
        for listener, sock in self.doors:
            self._servers.append(await serve_clients(_maker(services, listener), sock))

    async def _stop_listening(self, services: Services) -> None:
        """Who waits at a door is let in: where no successor shares the socket, its end would cut them off."""
        let_in = []
        for (listener, sock), server in zip(self.doors, self._servers, strict=True):
            with suppress(OSError):
                while True:
                    let_in.append((listener, sock.accept()[0]))
            server.close()
        loop = asyncio.get_running_loop()
        for listener, sock in let_in:
            sock.setblocking(False)
            with suppress(OSError):
                await loop.connect_accepted_socket(_maker(services, listener), sock)

    async def _tick(self, backends: Backends) -> None:
        while True:
            await asyncio.sleep(_TICK)
            try:
                tell_lost()
                self._agreement.follow()
                if self._settings_due:
                    self._read_settings()
                self._certificates.tick()
                if self.services is not None:
                    self.services.tick()
                    self._history.tick(self.services)
                    look_at_idle(self.services, time.monotonic())
                else:
                    backends.tick()
                self._keeper.tick(self.services)
            except Exception as error:
                log.error("the clock's work failed", exc_info=error)

    def _topology_refused(self, reason: str) -> None:
        if self.services is None:  # it may be why nothing is served
            in_use = self._agreement.current
            version = None if in_use is None else in_use.topology.version
            event = "topology refused" if in_use is None else "topology refused, the old one stays"
            log.error(event, version=version, reason=reason)
        told = self.services is None
        self._when_serving(lambda services: services.serving.topology_refused(reason, told=told))

    def _schema_refused(self, reason: str) -> None:
        self._when_serving(lambda services: services.serving.schema_refused(reason))

    async def _drain(self, services: Services) -> None:
        """Take no new client, let the others leave, then close everybody."""
        services.clients.draining = True
        await self._stop_listening(services)
        if self.status is not None:
            await self.status.step_aside()
        log.info("draining", clients=len(services.clients.connections))
        await let_leave(services, self.settings.timeouts.drain, self._tells_of_others)
        left = list(services.clients.sessions.values())
        if left:
            log.warning(
                "drained: the time is over, clients were cut off",
                clients=len(left),
                statements=sum(not client.ready for client in left),
                transactions=sum(client.session.transaction.open for client in left),
                setting="timeouts.drain",
            )
        else:
            log.info("drained")
        for client in list(services.clients.connections):
            client.transport.abort()

    async def _tells_of_others(self) -> bool:
        """Whether this process has the status page, which tells of other workers that still drain."""
        return (
            self.status is not None and self.peers is not None and bool(await self.peers.ask_others("alive"))
        )

    async def _close(self) -> None:
        if self.services is not None:
            self.services.keep()
            await self.services.close()
        if self.peers is not None:
            await self.peers.stop()
        if self.schema_source is not None:
            await self.schema_source.stop()
        if self.source is not None:
            await self.source.stop()
        if self.status is not None:
            await self.status.stop()
        for _, sock in self.doors:
            sock.close()


def _maker(services: Services, listener: Listener) -> Callable[[], asyncio.Protocol]:
    """Makes a protocol for each connection that comes in."""
    if listener.proxy_protocol:
        return partial(Entrance, services, listener.proxy_protocol)
    return cast("Callable[[], asyncio.Protocol]", partial(client_for, services))
