"""SHOW STATUS: a server answers, but of TLS, compression and the session's statements it knows only its
connection with the proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from proxy.engine.observe import count_statements
from proxy.engine.outside_transaction import run_outside_transaction
from proxy.engine.result import Rewritten
from proxy.engine.task import TaskWork
from proxy.session.counters import COUNTERS
from proxy.wire.packets import ProtocolError
from proxy.wire.resultset import decode_row, encode_row
from rewriter.plans import Values, is_one_host
from rewriter.plans.builtins import ShowStatus, ShowVariables

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def show_status(client: Exchange, plan: ShowStatus, values: Values) -> None:
    """Ask a server, best one that the session uses, with the client's TLS and compression in its answer."""
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
    sql = plan.text.render(values)
    told |= _counted(client)
    _Replaced(client, told)
    if transaction.explicit and not transaction.held:
        TaskWork(client).start(run_outside_transaction(client, host, sql))
    else:
        client.relay.run(host, sql, facts=plan.facts)


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


def show_variables(client: Exchange, plan: ShowVariables, values: Values) -> None:
    """As the server has them for the session's connection, but for those that are about the client's own."""
    assert is_one_host(plan.home)
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


class _Replaced(Rewritten):
    """Replaces the values of some rows of a reply with two columns, a name and its value."""

    __slots__ = ("_values",)

    def __init__(self, client: Exchange, values: Mapping[bytes, bytes]) -> None:
        super().__init__(client)
        self._values = values

    def row(self, payload: bytes) -> bytes:
        try:
            name, _ = decode_row(payload, 2)
        except ProtocolError:
            return payload
        value = self._values.get((name or b"").lower())
        return payload if value is None else encode_row((name, value))
