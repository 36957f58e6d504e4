"""SHOW STATUS: a server answers, but of TLS, compression and the session's statements it knows only its
connection with the proxy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from proxy.engine.aside import run_aside
from proxy.engine.sinks import CommandSink
from proxy.engine.task import TaskWork
from proxy.engine.watch import count_statements
from proxy.session.counters import COUNTERS
from proxy.session.values import values_of
from proxy.wire.packets import ProtocolError, frame
from proxy.wire.resultset import decode_row, encode_row
from rewriter.plans import Builtin, OneHost, Values
from rewriter.splice import Template

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def show_status(client: Exchange, plan: Builtin, values: Values) -> None:
    """Ask a server, best one that the session uses, with the client's TLS and compression in its answer."""
    text = plan.arguments["text"]
    assert isinstance(text, Template)
    topology, transaction = client.snapshot.topology, client.session.transaction
    host = next(iter(transaction.held), None) or topology.default or topology.hosts[0]
    cipher = client.transport.get_extra_info("cipher")
    name, version = (cipher[0], cipher[1]) if cipher else ("", "")
    told = {b"ssl_cipher": name.encode(), b"ssl_version": version.encode()}
    compression = client.transport.get_extra_info("compression")
    if compression:
        algorithm, level = compression
        told |= {
            b"compression": b"ON",
            b"compression_algorithm": algorithm.encode(),
            b"compression_level": b"%d" % (level if algorithm == "zstd" else 6),
        }
    sql = text.render(values)
    told |= _counted(client)
    _Replaced(client, told)
    if transaction.explicit and not transaction.held:
        TaskWork(client).start(run_aside(client, host, sql))
    else:
        client.relay.run(host, sql)


def _counted(client: Exchange) -> dict[bytes, bytes]:
    """What a server counts of its connections with the proxy: the proxy's clients, and the session's
    statements from its first such question on.
    """
    services = client.services
    told = {b"uptime": b"%d" % services.stats.uptime}
    if services.peers is None or services.peers.count == 1:
        prepared = sum(len(one.session.prepared.by_id) for one in services.clients.sessions.values())
        told[b"threads_connected"] = b"%d" % len(services.clients.sessions)
        told[b"prepared_stmt_count"] = b"%d" % prepared
    counts = count_statements(client)
    return told | {name: b"%d" % counts[name] for name in COUNTERS}


_OWN_VARIABLES = re.compile(rb"ssl|insert|identity|pseudo|%|where", re.IGNORECASE)


def show_variables(client: Exchange, plan: Builtin, values: Values) -> None:
    """As the server has them for the session's connection, but for those that are about the client's own."""
    assert isinstance(plan.home, OneHost)
    sql = plan.home.template.render(values_of(client.session, plan.home, values))
    if b"'" not in sql or _OWN_VARIABLES.search(sql):
        _Replaced(client, _own_variables(client))
    client.run_plan(plan.home, values)


def _own_variables(client: Exchange) -> dict[bytes, bytes]:
    session = client.session
    id = b"%d" % session.last_insert_id
    return {
        b"have_ssl": b"YES" if session.tls else b"DISABLED",
        b"last_insert_id": id,
        b"identity": id,
        b"pseudo_thread_id": b"%d" % session.id,
    }


class _Replaced(CommandSink):
    """Replaces the values of some rows of a reply with two columns, a name and its value."""

    __slots__ = ("_data", "_values")

    def __init__(self, client: Exchange, values: Mapping[bytes, bytes]) -> None:
        super().__init__(client)
        self._data = b""
        self._values = values

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self._data += data  # some 50 KB at most

    def answered(self, outcome: str) -> None:
        self.below.write(b"".join(map(self._packet, self._packets())))
        super().answered(outcome)

    def _packets(self) -> Iterator[bytes]:
        """What was written, packet by packet: it ends with one."""
        pos = 0
        while pos < len(self._data):
            end = pos + 4 + int.from_bytes(self._data[pos : pos + 3], "little")
            yield self._data[pos:end]
            pos = end

    def _packet(self, packet: bytes) -> bytes:
        """A row that is meant, with its new value; any other packet as it is."""
        try:
            name, _ = decode_row(packet[4:], 2)
        except (ProtocolError, ValueError):
            return packet
        value = self._values.get((name or b"").lower())
        return packet if value is None else frame(encode_row((name, value)), packet[3])
