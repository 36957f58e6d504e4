"""A proxy without sockets: real sessions and pools, servers of a few lines, every byte delivered by hand.

A `Server` understands what the proxy sends by itself (transactions, savepoints, SET, KILL, RESET …) and keeps
what was written, committed or not; everything else is answered by its `script`. A client's commands and a
server's replies wait until somebody delivers them, in any order and in any pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import chain, count
from typing import Any, cast

from proxy.backends import Backends
from proxy.backends.connection import BackendConnection
from proxy.backends.host import HostLimits, HostPool
from proxy.backends.pool import FOUND_ROWS
from proxy.backends.settings import LOGIN, LOGIN_STATEMENT
from proxy.engine.exchange import Describe
from proxy.engine.relay import Relay
from proxy.errors import ProxyError
from proxy.frontend.connection import ClientConnection
from proxy.session.state import Role, Session, User
from proxy.wire.constants import Status
from proxy.wire.packets import PacketReader, frame
from proxy.wire.resultset import encode_row
from rewriter.plans import Gather, Plan, Values
from tests.backends.fakes import FakeTransport
from tests.support.services import make_services
from tests.support.waiting import turns
from tests.wire.streams import (
    Err,
    Ok,
    Reading,
    Result,
    Rows,
    cut_packets,
    definitions,
    err_packet,
    read_reply,
    reply_packets,
)

IN_TRANS, AUTOCOMMIT = int(Status.IN_TRANS), int(Status.AUTOCOMMIT)
KILLED = Err(1317, "Query execution was interrupted")

LIMITS = HostLimits(
    max_connections=3, max_waiting=10, wait_timeout=10.0, connect_timeout=5.0, idle_timeout=60.0,
    statement_timeout=None, health_interval=3600.0,
)  # fmt: skip

Script = Callable[["ServerConn", bytes], list[Result]]


RESET = (b"RESET", LOGIN_STATEMENT, b"SET ROLE DEFAULT")
"""What a connection is sent before others get it, when nobody knows what it has."""


class ServerConn:
    """The server's side of one connection. `out` waits to be delivered."""

    def __init__(self, server: Server, conn: BackendConnection) -> None:
        self.server = server
        self.conn = conn
        self.transport = FakeTransport()
        conn.transport = self.transport
        self.out = b""
        self.log: list[bytes] = []
        self.autocommit = True
        self.in_trans = False
        self.written: list[bytes] = []  # by the open transaction
        self.savepoints: dict[bytes, int] = {}
        self.warnings: list[tuple[str, int, str]] = []
        self._left = 0  # bytes still to come of the packet at hand
        self._last = 0  # length of the last reply
        self._reader = PacketReader(1 << 24)

    @property
    def gone(self) -> bool:
        return self.conn.closed

    def hear(self) -> None:
        """Read what the proxy has written, and answer it."""
        for _, payload in self._reader.feed(self.transport.take() or b""):
            name = {0x0E: b"PING", 0x1F: b"RESET", 0x02: b"USE " + payload[1:]}.get(payload[0], payload[1:])
            self.log.append(name)
            results = self.answer(name)
            flags = AUTOCOMMIT * self.autocommit | IN_TRANS * self.in_trans
            for result in results:
                if not isinstance(result, Err):
                    result.status = flags
            reply = b"".join(reply_packets(results))
            self.out += reply
            self._last = len(reply)

    def answer(self, sql: bytes) -> list[Result]:
        if sql in self.server.refused:
            return [self.server.refused[sql]]
        word, _, rest = sql.partition(b" ")
        if word == b"START":
            self.end(commit=True)
            self.in_trans = True
        elif (
            word == b"COMMIT"
            or sql.removesuffix(b" AND NO CHAIN NO RELEASE") == b"ROLLBACK"
            or word == b"RESET"
        ):
            self.end(commit=word == b"COMMIT")
            self.autocommit = self.autocommit or word == b"RESET"
        elif sql.startswith(b"SET ") and b"autocommit=" in sql:
            self.autocommit = b"autocommit=1" in sql or b"autocommit=DEFAULT" in sql
        elif word == b"SET" and b"`autocommit` = " in sql:
            self.autocommit = b"`autocommit` = 1" in sql
        elif word == b"SAVEPOINT":
            self.savepoints[rest] = len(self.written)
        elif sql.startswith(b"ROLLBACK TO SAVEPOINT "):
            name = rest.removeprefix(b"TO SAVEPOINT ")
            if name not in self.savepoints:
                return [Err(1305, f"SAVEPOINT {name!r} does not exist")]
            del self.written[self.savepoints[name] :]
        elif word == b"KILL":
            return self.server.kill(rest)
        elif sql == b"SHOW WARNINGS":
            return [Rows([encode_row(row) for row in self.warnings], 3, definitions=definitions(3))]
        elif word not in (b"PING", b"USE", b"SET", b"RELEASE"):
            return self.server.run(self, sql)
        return [Ok()]

    def write(self, what: bytes) -> None:
        """A statement has changed something."""
        if self.in_trans or not self.autocommit:
            self.in_trans = True
            self.written.append(what)
        else:
            self.server.committed.append(what)

    def end(self, *, commit: bool) -> None:
        if commit:
            self.server.committed += self.written
        self.written = []
        self.savepoints = {}
        self.in_trans = False

    def deadlock(self) -> list[Result]:
        """The server rolls the transaction back by itself."""
        self.end(commit=False)
        return [Err(1213, "Deadlock found")]

    def deliver(self, size: int | None = None) -> bytes:
        """Give some bytes of what waits to the proxy."""
        data = self.out[:size]
        pos = 0
        while pos < len(data):
            if not self._left:
                self._left = 4 + int.from_bytes(self.out[pos : pos + 3], "little")
            step = min(self._left, len(data) - pos)
            self._left -= step
            pos += step
        self.out = self.out[len(data) :]
        if data and not self.gone:
            self.conn.data_received(data)
        return data

    def deliver_packets(self, number: int) -> None:
        """Give whole packets."""
        size = self._left
        for _ in range(number):
            size += 4 + int.from_bytes(self.out[size : size + 3], "little")
        self.deliver(size)

    def interrupt(self) -> None:
        """KILL QUERY: an ERR packet takes the place of the rows that have not begun to leave."""
        begun = max(self._left, len(self.out) - self._last)
        rest = self.out[begun:]
        if rest and not self.log[-1].startswith(b"WRITE"):
            error = err_packet(rest[3], KILLED.code, "70100", KILLED.text)
            self.out = self.out[:begun] + error
            self._last = len(error)

    def lose(self) -> None:
        """The connection breaks; the server rolls back."""
        self.end(commit=False)
        self.out = b""
        self.conn.connection_lost(None)


class Server:
    """One host."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.down = False
        self.conns: list[ServerConn] = []
        self.committed: list[bytes] = []
        self.kills: list[bytes] = []
        self.refused: dict[bytes, Err] = {}
        self.script: Script = lambda conn, sql: [Ok(1)]

    def run(self, conn: ServerConn, sql: bytes) -> list[Result]:
        results = self.script(conn, sql)
        if sql.startswith(b"WRITE") and not isinstance(results[-1], Err):
            conn.write(sql)
        return results

    def kill(self, what: bytes) -> list[Result]:
        self.kills.append(what)
        thread = int(what.split()[-1])
        target = next((one for one in self.conns if one.conn.thread_id == thread and not one.gone), None)
        if target is None:
            return [Err(1094, "Unknown thread id")]
        if b"QUERY" not in what:
            target.lose()
        elif target.out:
            target.interrupt()
        return [Ok()]

    @property
    def live(self) -> list[ServerConn]:
        return [one for one in self.conns if not one.gone]

    @property
    def one(self) -> ServerConn:
        """The connection that was opened last and is still open."""
        return self.live[-1]

    @property
    def log(self) -> list[bytes]:
        """Everything this host was asked, but for the log-in's settings."""
        return [sql for one in self.conns for sql in one.log]


class Connection(ClientConnection):
    """Leaves what it is for to the world's services."""

    def __init__(self, services: Any) -> None:
        super().__init__(services)
        self.own: Any = services
        self.relay = Relay(self)

    def connected(self) -> None:
        self.own.client_connected(self)

    def execute(self, sql: bytes) -> None:
        self.own.execute(self, sql)

    def command(self, payload: bytes) -> None:
        self.own.command(self, payload)

    def execute_again(self, packet: bytes) -> bool:
        return bool(self.own.execute_again(self, packet))

    def run_plan(self, plan: Plan, values: Values) -> None:
        self.own.run_plan(self, plan, values)

    def describe(self, plan: Gather, values: Values, reply: Describe) -> None:
        self.own.describe(self, plan, values, reply)


class Client:
    """A client and its session."""

    def __init__(self, world: World, found_rows: bool = False) -> None:
        self.world = world
        services: Any = world.services
        self.conn = Connection(services)
        self.transport = FakeTransport()
        self.conn.transport = self.transport
        user = User("u", Role.ADMIN)
        self.session = Session(next(world.numbers), user, "127.0.0.1:4711", "9.7.0", {"autocommit": b"1"})
        self.session.settings = LOGIN
        self.session.capability_set = FOUND_ROWS if found_rows else 0
        self.session.refresh_env()
        self.conn.begin_session(self.session)
        self.conn.ready = True
        services.clients.sessions[self.session.id] = self.conn
        self.asked = 0
        self.plans: list[Callable[[ClientConnection], None]] = []
        world.clients[self.conn] = self
        self.left = False
        self._read = b""

    def autocommit(self, on: bool) -> None:
        self.session.settings = self.session.settings.with_values({"autocommit": b"%d" % on})
        self.session.refresh_env()

    def ask(self, run: Callable[[ClientConnection], None]) -> None:
        """Send a COM_QUERY; `run` is what the proxy makes of it."""
        self.asked += 1
        self.plans.append(run)
        self.conn.data_received(frame(b"\x03SELECT"))

    def send(self, sql: bytes) -> None:
        """Send a COM_QUERY for whatever `services.execute` is."""
        self.asked += 1
        self.conn.data_received(frame(b"\x03" + sql))

    def leave(self) -> None:
        self.left = True
        self.transport.abort()
        self.conn.connection_lost(None)

    def answers(self) -> list[Reading]:
        """The replies so far, as the client reads them."""
        self._read += self.transport.take()
        found, rest = [], self._read
        while rest:
            reading = read_reply(rest)
            if reading.end < 0:
                break
            numbers = [number for _, number, _ in cut_packets(rest[: reading.end])]
            assert numbers == [(1 + index) & 0xFF for index in range(len(numbers))]
            found.append(reading)
            rest = rest[reading.end :]
        return found

    @property
    def unread(self) -> bytes:
        """What is left behind the last whole reply."""
        self._read += self.transport.take()
        rest = self._read
        for reading in self.answers():
            rest = rest[reading.end :]
        return rest

    @property
    def last(self) -> Reading:
        return self.answers()[-1]


class World:
    """Everything together."""

    def __init__(self, limits: HostLimits = LIMITS, **parts: Any) -> None:
        """`parts`: see `make_services`."""
        self.limits = limits
        self.now = 0.0
        self.numbers = count(1)
        self.servers: dict[str, Server] = {}
        self.tasks: list[asyncio.Task[None]] = []
        self.clients: dict[ClientConnection, Client] = {}
        self.backends = Backends(self._make_pool)
        tasks: Any = self
        self.services = cast("Any", make_services(self.backends, tasks=tasks, **parts))
        self.set_limits(max_packet=1 << 24, scatter_bytes=0)
        self.services.pads = {b"x_ci": b"\0 "}
        self.services.waiting_room.limit = 0  # what fails is told at once
        self.services.execute_again = lambda client, packet: False
        self.services.execute = lambda client, sql: self.clients[client].plans.pop(0)(client)

    def set_limits(self, **limits: int) -> None:
        """Those of the settings."""
        settings = self.services.settings
        changed = settings.limits.model_copy(update=limits)
        self.services.settings = settings.model_copy(update={"limits": changed})

    def plan_with(self, rewriter: Any) -> None:
        """Statements are planned by `rewriter` from now on."""
        self.services.serving.snapshot = replace(self.services.serving.snapshot, rewriter=rewriter)

    def server(self, name: str) -> Server:
        return self.servers.setdefault(name, Server(self, name))

    def _make_pool(self, host: str) -> HostPool:
        return HostPool(host, self.limits, self._connect, self.spawn, lambda: self.now)

    async def _connect(self, host: str, owner: HostPool, capability_set: int) -> BackendConnection:
        server = self.server(host)
        await turns()
        if server.down:
            raise ProxyError("host_unreachable", host=host, reason="down")
        conn = BackendConnection(host, owner)
        conn.settings = LOGIN
        conn.scanner.status = AUTOCOMMIT
        conn.capability_set = capability_set
        conn.thread_id = next(self.numbers)
        server.conns.append(ServerConn(server, conn))
        return conn

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self.tasks.append(task)
        return task

    # -- time
    # ------------------------------------------------------------------------------------------------------

    async def turn(self) -> None:
        """Let tasks go on, and servers hear what was written."""
        for _ in range(8):
            await turns()
            for one in self.everywhere():
                one.hear()

    def everywhere(self) -> list[ServerConn]:
        """All open connections. What a closed one had not committed is rolled back."""
        everything = [one for server in self.servers.values() for one in server.conns]
        for one in everything:
            if one.gone:
                one.end(commit=False)
        return [one for one in everything if not one.gone]

    async def quiet(self) -> None:
        """Deliver everything, until nothing is left to do."""
        for _ in range(200):
            await self.turn()
            waiting = [one for one in self.everywhere() if one.out and one.transport.reading]
            if not waiting:
                return
            for one in waiting:
                one.deliver()
        raise AssertionError("it never ends")

    def check(self, *clients: Client) -> None:
        """Nothing is left over: every connection is idle, held by one session or closed; all have answers."""
        for task in self.tasks:
            assert task.done(), f"still running: {task.get_name()}"
            if not task.cancelled():
                task.result()
        held = [
            conn for client in clients for conn in client.session.transaction.held.values() if not client.left
        ]
        assert len(held) == len(set(map(id, held)))
        for pool in self.backends.pools:
            idle = list(chain(*pool.state.idle))
            assert len(idle) == len(set(map(id, idle)))
            assert not any(
                conn.closed or conn.receiver or conn.in_transaction or conn.pinned for conn in idle
            )
            assert {id(conn) for conn in pool.state.busy} <= {id(conn) for conn in held}
            assert all(waiter.cancelled for waiter in pool.state.waiting)
        for one in self.everywhere():
            assert one.transport.reading, "left paused"
            assert one.in_trans == one.conn.in_transaction, one.log
        for client in clients:
            if not client.left and client.transport.open:
                assert len(client.answers()) == client.asked
                assert client.unread == b""
                assert client.conn.ready
                assert client.conn.work is None


def rows(*values: object, columns: int = 1, warnings: int = 0) -> Rows:
    """A result set of text; every column has the row's value."""
    payloads = [encode_row([value] * columns) for value in values]
    return Rows(payloads, columns, warnings, definitions=definitions(columns))
