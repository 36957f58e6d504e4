"""The commands other than COM_QUERY, as a table. What is not in it is answered with 1047 and the connection
goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from proxy.engine.task import TaskWork
from proxy.errors import ProxyError
from proxy.execute.prepared import prepare, statement_commands
from proxy.execute.prepared.bulk import bulk_execute
from proxy.frontend.login import change_user
from proxy.local.fields import field_list
from proxy.local.kill import kill
from proxy.local.reset import reset_connection
from proxy.local.use import use_database
from proxy.local.whole_server import debug, process_info, refresh
from proxy.session.outcome import RESULT_SET, Outcome
from proxy.wire.constants import Command, command_name
from proxy.wire.packets import ProtocolError, eof_packet, frame, read_nul_bytes

if TYPE_CHECKING:
    from .connection import ClientConnection


def run_command(client: ClientConnection, payload: bytes) -> None:
    """Run one command packet. Raises ProxyError or ProtocolError for the client."""
    if not payload:
        raise ProtocolError("an empty packet")
    code = payload[0]
    handler = _COMMANDS.get(code)
    if handler is None:
        raise ProxyError("unknown_command", command=command_name(code))
    handler(client, payload)


def _quit(client: ClientConnection, payload: bytes) -> None:
    client.close()


def _ping(client: ClientConnection, payload: bytes) -> None:
    session = client.session
    if client.services.clients.draining and not session.transaction.open:
        client.close()  # a pool asks whether the connection is good: it is to open another
        return
    client.reply_ok(warnings=session.warning_count if session.env.flavour.commands_keep_warnings else 0)


def _init_db(client: ClientConnection, payload: bytes) -> None:
    codec = client.session.env.codec
    database = _name(payload[1:], codec)
    if database is None or "\0" in database:  # behind which a server would not read
        raise ProxyError("unknown_database", database=payload[1:].decode(codec, "replace"))
    use_database(client, database)


def _field_list(client: ClientConnection, payload: bytes) -> None:
    table, pos = read_nul_bytes(payload, 1)
    pattern = payload[pos:].rstrip(b"\0")
    codec = client.session.env.codec
    name = _name(table, codec)
    if name is None:
        database = client.session.database or ""
        raise ProxyError("unknown_table", database=database, table=table.decode(codec, "replace"))
    TaskWork(client).start(field_list(client, name, pattern, payload))


def _name(data: bytes, codec: str) -> str | None:
    """A database's or table's name in the client's character set; None when it is no text in it."""
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        return None


def _statistics(client: ClientConnection, payload: bytes) -> None:
    """COM_STATISTICS is answered by a bare string."""
    line = client.services.statistics_line(client.session.env.flavour)
    client.write(frame(line.encode(), client.seq + 1))
    client.finish("ok")


def _reset(client: ClientConnection, payload: bytes) -> None:
    reset_connection(client)


def _process_kill(client: ClientConnection, payload: bytes) -> None:
    if len(payload) < 5:
        raise ProtocolError("COM_PROCESS_KILL without a connection id")
    kill(client, int.from_bytes(payload[1:5], "little"), query_only=False)


def _set_option(client: ClientConnection, payload: bytes) -> None:
    """COM_SET_OPTION: several statements in one text, on (0) or off (1). Answered by EOF."""
    option = int.from_bytes(payload[1:3], "little")
    if len(payload) != 3 or option > 1:
        raise ProxyError("unknown_command", command=f"COM_SET_OPTION {payload[1:].hex()}")
    session = client.session
    session.multi_statements = option == 0
    session.apply(Outcome(RESULT_SET))
    client.write(eof_packet(client.seq + 1, session.status()))
    client.finish("ok")


_COMMANDS: dict[int, Callable[[ClientConnection, bytes], None]] = {
    Command.QUIT: _quit,
    Command.INIT_DB: _init_db,
    Command.FIELD_LIST: _field_list,
    Command.REFRESH: refresh,
    Command.STATISTICS: _statistics,
    Command.PROCESS_INFO: process_info,
    Command.PROCESS_KILL: _process_kill,
    Command.DEBUG: debug,
    Command.PING: _ping,
    Command.CHANGE_USER: change_user,
    Command.RESET_CONNECTION: _reset,
    Command.SET_OPTION: _set_option,
    Command.STMT_PREPARE: prepare.prepare,
    Command.STMT_EXECUTE: prepare.execute,
    Command.STMT_SEND_LONG_DATA: statement_commands.send_long_data,
    Command.STMT_CLOSE: statement_commands.close,
    Command.STMT_RESET: statement_commands.reset,
    Command.STMT_FETCH: statement_commands.fetch,
    Command.STMT_BULK_EXECUTE: bulk_execute,
}
