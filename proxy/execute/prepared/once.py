"""Statements whose values as text would be rounded: prepared and executed for this one time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.backends.connection import BackendConnection
from proxy.engine.tracked import TrackedRelay, is_told
from proxy.engine.transcode import BinarySink
from proxy.wire.binary import Execute
from rewriter.route.origins import Origins

from .statements import StatementRelay

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import Statement


class OnceRelay(StatementRelay):
    """In the place of a client's relay while a statement is bound whose text would be rounded (FLOAT): what
    goes whole to one host is prepared and executed there.
    """

    __slots__ = ("original",)

    def __init__(self, client: Exchange, statement: Statement) -> None:
        super().__init__(client, statement)
        self.original = client.relay
        client.relay = self

    def ask(self, host: str, sql: bytes, origins: Origins | None, shard: bytes) -> None:
        del shard
        self.run(host, sql, origins=origins)

    def _take(self, host: str, conn: BackendConnection | None) -> None:
        sink = self.client.sink
        if isinstance(sink, BinarySink):
            sink.remove()  # the rows come binary
        self.client.relay = self.original
        self.once = True
        self.request = Execute(0, 0, b"", b"", b"")
        self.key = (self.sql, self.database, self.client.session.settings.system, b"")
        super()._take(host, conn)


class TrackedOnceRelay(OnceRelay, TrackedRelay):
    """That of a session that wants to be told of its transactions."""

    __slots__ = ()


def once_relay(client: Exchange, statement: Statement) -> OnceRelay:
    """Put a relay for one execution in the place of the client's."""
    return (TrackedOnceRelay if is_told(client) else OnceRelay)(client, statement)
