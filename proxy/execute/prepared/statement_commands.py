"""The commands on a prepared statement besides PREPARE and EXECUTE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.engine.admission import RIGHTS, admit_plan
from proxy.errors import ProxyError
from proxy.session import counters
from proxy.session.outcome import Outcome
from proxy.session.prepared import Statement
from proxy.wire.packets import ProtocolError

from .cursors import end_cursor
from .statements import StatementRequest

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def send_long_data(client: Exchange, payload: bytes) -> None:
    """COM_STMT_SEND_LONG_DATA: no answer; what is wrong with it is told at EXECUTE."""
    session = client.session
    number = int.from_bytes(payload[1:5], "little")
    statement = session.prepared.named(number, session.env.flavour)
    if statement is not None:
        statement.repeat = None
    if statement is not None and len(payload) >= 7:
        parameter = int.from_bytes(payload[5:7], "little")
        size = len(payload) - 7
        if parameter >= statement.parameters:
            statement.problem = statement.problem or "wrong_arguments"
        elif statement.problem:
            pass  # told at EXECUTE, and nothing more is kept
        elif statement.sent_bytes + size > client.services.settings.limits.max_packet:
            statement.forget_sent(session.prepared)
            statement.problem = "long_data_too_large"
        else:
            try:
                session.keep(size)
            except ProxyError as error:
                statement.forget_sent(session.prepared)
                statement.problem = error.kind.name
            else:
                statement.sent.setdefault(parameter, bytearray()).extend(payload[7:])
                statement.sent_bytes += size
                session.prepared.sent += size
    client.unanswered()


def close(client: Exchange, payload: bytes) -> None:
    """COM_STMT_CLOSE: no answer. The servers keep the statement for others."""
    if client.session.counts is not None:
        client.session.counts[counters.CLOSE] += 1
    statement = client.session.prepared.remove(int.from_bytes(payload[1:5], "little"))
    if statement is not None and statement.cursor is not None:
        end_cursor(client, statement)
    client.unanswered()


def reset(client: Exchange, payload: bytes) -> None:
    """COM_STMT_RESET: forget long data, close the cursor."""
    statement = statement_of(client, payload, "mysqld_stmt_reset")
    statement.forget_sent(client.session.prepared)
    if statement.cursor is not None:
        end_cursor(client, statement)
    client.session.apply(Outcome(0))
    client.reply_ok()


def fetch(client: Exchange, payload: bytes) -> None:
    """COM_STMT_FETCH."""
    statement = statement_of(client, payload, "mysqld_stmt_fetch")
    if len(payload) < 9:
        raise ProtocolError("COM_STMT_FETCH is cut short")
    admit_plan(client.session, statement.plan, statement.sql, RIGHTS)
    conn = statement.cursor
    if conn is None or conn.closed:
        raise ProxyError("no_open_cursor", id=statement.id)
    client.sql, client.kind = statement.sql, statement.plan.kind
    client.reading = statement.sql, statement.env
    StatementRequest(client, statement).fetch_rows(conn, payload[5:9])


def statement_of(client: Exchange, payload: bytes, command: str) -> Statement:
    """The statement that a command names. Raises ProxyError."""
    if len(payload) < 5:
        raise ProtocolError("a command without a statement's number")
    number = int.from_bytes(payload[1:5], "little")
    flavour = client.session.env.flavour
    found = client.session.prepared.named(number, flavour)
    if found is None:
        raise ProxyError(
            "unknown_statement",
            id=number,
            command=command if flavour.names_prepared_command else "mysql_stmt_precheck",
        )
    return found
