"""One connection's share of a fan-out."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Protocol

from proxy.backends.connection import BackendConnection
from proxy.engine.diagnostics import opens
from proxy.engine.lease import discard
from proxy.engine.session_sync import sync_packets
from proxy.errors import ProxyError
from proxy.load import Load
from proxy.wire.packets import query_packet
from proxy.wire.rows import HEADER, ResultReader
from rewriter.plans import HostStatement

if TYPE_CHECKING:
    from proxy.backends.settings import Settings
    from proxy.engine.exchange import Exchange


class Fan(Protocol):
    """Whose share it is."""

    client: Exchange
    settings: Settings | None

    def loads(self, run: int) -> Sequence[Load]:
        """What the shards of one of the statements have had to do."""

    def received(self, branch: Branch, data: bytes, ending: int) -> None:
        """Part of a reply; `ending`: the size of the packet at its end that ends the reply, or 0."""

    def branch_done(self, branch: Branch, conn: BackendConnection) -> None:
        """A reply has ended."""

    def branch_lost(self, branch: Branch, conn: BackendConnection, error: ProxyError) -> None:
        """The connection has ended in the middle of a reply."""


class Branch:
    """One connection's share: its statements, run one after another, each a run of the merge."""

    __slots__ = ("conn", "draining", "fan", "host", "index", "loads", "paused", "reader", "run", "statements")

    whole = True
    own = False

    def __init__(self, fan: Fan, index: int, host: str) -> None:
        self.fan = fan
        self.index = index
        self.host = host
        self.statements: list[tuple[int, bytes]] = []  # (number of the run, SQL)
        self.conn: BackendConnection | None = None
        self.reader = ResultReader()
        self.run = 0
        self.loads: Sequence[Load] = ()  # of the shards of the statement at work
        self.paused = False
        self.draining: asyncio.Task[None] | None = None

    @property
    def client(self) -> Exchange:
        """Whose statement it is."""
        return self.fan.client

    def send_next(self) -> None:
        """Send the next statement on the branch's connection."""
        conn, fan, client = self.conn, self.fan, self.fan.client
        assert conn is not None
        session = client.session
        self.run, sql = self.statements.pop(0)
        if self.reader.state != HEADER:
            self.reader = ResultReader()
        conn.begun = client.begun
        if (
            fan.settings is not None
            or conn.settings is not session.settings
            or session.transaction.explicit
            or not session.autocommit
        ):
            packets, count = sync_packets(session, conn, fan.settings)
            conn.send(packets + query_packet(sql), self, count)
        else:
            conn.ask(sql, self)
        self.loads = conn.shards = fan.loads(self.run)

    def leave(self) -> None:
        """Give up what is at work: close the connection, and end the statement on the server."""
        if self.draining is not None:
            self.draining.cancel()
        conn, self.conn = self.conn, None
        assert conn is not None
        discard(self.fan.client, conn)

    def accepts(self, conn: BackendConnection, changed: bool) -> bool:
        return opens(self.fan.client.session, conn)

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        self.fan.received(self, data, conn.scanner.ending)

    def reply_done(self, conn: BackendConnection) -> None:
        self.fan.branch_done(self, conn)

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        self.conn = None
        self.fan.branch_lost(self, conn, error)


def make_branches(
    fan: Fan, statements: Sequence[HostStatement], together: Container[str] | None
) -> list[Branch]:
    """One branch for each statement (where order matters every run must show its next row), but one for each
    of the hosts `together`. None: for each host.
    """
    by_host: dict[str, Branch] = {}
    branches: list[Branch] = []
    for number, statement in enumerate(statements):
        branch = by_host.get(statement.host)
        if branch is None or not (together is None or statement.host in together):
            branch = Branch(fan, len(branches), statement.host)
            by_host[statement.host] = branch
            branches.append(branch)
        branch.statements.append((number, statement.sql))
    return branches


def share_out(branches: Sequence[Branch], statements: Sequence[HostStatement]) -> None:
    """Give the branches other statements, those of a host to its own ones in turn."""
    by_host: dict[str, list[Branch]] = {}
    for branch in branches:
        branch.statements.clear()
        by_host.setdefault(branch.host, []).append(branch)
    for number, statement in enumerate(statements):
        mine = by_host[statement.host]
        mine[number % len(mine)].statements.append((number, statement.sql))
