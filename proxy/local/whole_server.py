"""Commands about a whole server, which the default host carries out: COM_FIELD_LIST of a database that is not
sharded, COM_DEBUG and, on MariaDB (MySQL has them no more), COM_REFRESH and COM_PROCESS_INFO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.engine.lease import borrowed
from proxy.engine.task import TaskWork
from proxy.engine.transactions import commit_then
from proxy.errors import ProxyError
from proxy.session.state import Role
from proxy.wire.constants import Command
from proxy.wire.packets import eof_packet, frame
from proxy.wire.replies import ROWS

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


class Passed(Collector):
    """Keeps the very bytes of a reply that is packets up to an EOF."""

    __slots__ = ("data",)
    state = ROWS

    def __init__(self) -> None:
        super().__init__()
        self.data = b""

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        self.data += data


async def pass_fields(client: Exchange, host: str, database: str, payload: bytes) -> None:
    """COM_FIELD_LIST, by the server: it tells the columns' defaults, too."""
    async with borrowed(client, host, database) as conn:
        reply = Passed()
        await reply.run(conn, frame(payload))
    if reply.err is not None:
        client.fail(reply.err)
        return
    client.write(reply.data)
    client.finish("ok")


def _host(client: Exchange, command: str) -> str:
    """The host that carries a command out. ProxyError when the user may not give it."""
    user, topology = client.session.user, client.snapshot.topology
    if not user.sees_others:
        if user.role is Role.ADMIN:
            raise ProxyError("list_denied", statement=command, user=user.name)
        role = user.role.name.lower()
        raise ProxyError("role_denied", statement=command, user=user.name, role=role, needed="admin")
    return topology.default or topology.hosts[0]


def debug(client: Exchange, payload: bytes) -> None:
    """COM_DEBUG: the server writes its state to its own log. Answered by EOF."""
    TaskWork(client).start(_debug(client, _host(client, "COM_DEBUG")))


async def _debug(client: Exchange, host: str) -> None:
    async with borrowed(client, host) as conn:
        reply = Passed()
        await reply.run(conn, frame(bytes((Command.DEBUG,))))
    if reply.err is not None:
        client.fail(reply.err)
        return
    client.write(eof_packet(client.seq + 1, client.session.status()))
    client.finish("ok")


def refresh(client: Exchange, payload: bytes) -> None:
    """COM_REFRESH: FLUSH by bits. It commits, as FLUSH does."""
    _check_known(client, "COM_REFRESH")
    host = _host(client, "COM_REFRESH")
    commit_then(client, lambda: TaskWork(client).start(_refresh(client, host, payload)))


async def _refresh(client: Exchange, host: str, payload: bytes) -> None:
    async with borrowed(client, host) as conn:
        reply = await Collector().run(conn, frame(payload))
    if reply.err is not None:
        client.fail(reply.err)
        return
    client.reply_ok()


_PROCESS_LIST: Final = b"SHOW PROCESSLIST"


def process_info(client: Exchange, payload: bytes) -> None:
    """COM_PROCESS_INFO: SHOW PROCESSLIST."""
    _check_known(client, "COM_PROCESS_INFO")
    client.query(_PROCESS_LIST)


def _check_known(client: Exchange, command: str) -> None:
    if not client.session.env.flavour.more_commands:
        raise ProxyError("unknown_command", command=command)
