"""Statements that the proxy prepares on a server for itself: for rows that are binary from the start, and for
the columns of a statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector, ServerError
from proxy.backends.connection import BackendConnection
from proxy.backends.reworded import AttributedConnection
from proxy.backends.statements import ServerStatements, close_packet
from proxy.engine.lease import borrowed
from proxy.engine.session_sync import preparing
from proxy.engine.transcode import definitions, depends_on_types, exact_of
from proxy.errors import ProxyError
from proxy.session.values import values_of
from proxy.wire.binary import Execute
from proxy.wire.packets import Err, frame
from proxy.wire.replies import PREPARED
from rewriter.plan import Values
from rewriter.plans import BindError, HostStatement, Plan
from rewriter.sql.statements.facts import StatementFacts

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import Statement
    from proxy.session.state import Session

_PLAIN: Final = Execute(0, 0, b"", b"", b"")
_UNKNOWN: Final = "1"
_TOO_MANY_PREPARED: Final = 1461
"""The server's own limit: nothing is wrong with the statement."""


class Preparation(Collector):
    """Collects the reply to one COM_STMT_PREPARE. After `run`: `err`, or `reply`."""

    __slots__ = ("reply",)
    state = PREPARED

    def __init__(self) -> None:
        super().__init__()
        self.reply = b""

    @property
    def number(self) -> int:
        """The server's number of the statement."""
        return int.from_bytes(self.reply[5:9], "little")

    @property
    def parameters(self) -> int:
        """The number of its parameters."""
        return int.from_bytes(self.reply[11:13], "little")

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        self.reply += data


async def preparation(
    session: Session,
    conn: BackendConnection,
    sql: bytes,
    facts: StatementFacts | None,
    packets: bytes = b"",
    sync_packets: int = 0,
) -> Preparation:
    """Prepare `sql`, a statement with these facts, behind `packets`. Raises ServerError."""
    reply = Preparation()
    preparing(session, conn, facts)
    await reply.run(conn, packets + frame(b"\x16" + sql), sync_packets)
    if reply.err is not None:
        raise ServerError(reply.err)
    return reply


async def execution(
    session: Session,
    conn: BackendConnection,
    sql: bytes,
    facts: StatementFacts | None,
    packets: bytes,
    sync_packets: int,
) -> bytes:
    """Prepare `sql`, which has no parameters, behind `packets`: what executes and closes it. Raises
    ServerError.
    """
    reply = await preparation(session, conn, sql, facts, packets, sync_packets)
    packed = _PLAIN.attributed if isinstance(conn, AttributedConnection) else _PLAIN.packet
    return frame(packed(reply.number, b"", 0)) + close_packet(reply.number)


async def columns_of(
    session: Session, conn: BackendConnection, sql: bytes, facts: StatementFacts | None
) -> tuple[list[bytes], list[bytes]]:
    """The definitions of a statement's parameters and columns. Raises ServerError."""
    reply = await preparation(session, conn, sql, facts)
    if conn.statements is None:
        conn.statements = ServerStatements()
    conn.statements.leaving += close_packet(reply.number)
    return definitions(reply.reply)


async def unresolved(client: Exchange, asked: HostStatement) -> Err | None:
    """The error that a server finds in a statement without running it: in its syntax or its names."""
    async with borrowed(client, asked.host) as conn:
        try:
            reply = await preparation(client.session, conn, asked.sql, known_facts(client))
        except ServerError as error:
            return None if error.err.code == _TOO_MANY_PREPARED else error.err
        conn.transport.write(close_packet(reply.number))
        if not reply.parameters:
            return None
        # a `?` is an error of syntax in a statement that the client has not prepared
        return (await Collector().query(conn, b"EXPLAIN " + asked.sql)).err


def known_facts(client: Exchange) -> StatementFacts | None:
    """The facts of the current statement; None while it has no plan."""
    return None if client.plan is None else client.plan.facts


def returns_rounded(client: Exchange, plan: Plan, sql: bytes) -> bool:
    """Whether a write's RETURNING may show columns whose text is rounded. (MariaDB tells nothing of them when
    it prepares.)
    """
    if not plan.has_returning:
        return False
    shown = client.snapshot.rewriter.names(sql, client.session.env, "RETURNING")
    databases = client.snapshot.schema.databases
    for place in plan.sharded_tables:
        database, _, name = place.partition(".")
        for column in databases[database].tables[name].columns:
            if column.type.rounded and not shown.isdisjoint(("*", column.name.lower())):
                return True
    return False


def learn_exact(statement: Statement, columns: Sequence[bytes]) -> None:
    """Note which columns of a statement's result are rounded as text, from the definitions of PREPARE."""
    statement.exact = exact_of(columns)
    if statement.parameters and not statement.env.flavour.derives_types:
        statement.by_types = depends_on_types(columns)


def is_learnt(client: Exchange, statement: Statement, types: bytes) -> bool:
    """Whether the rounded columns of the statement's result are known for parameters of `types`."""
    if statement.learnt is not client.snapshot.rewriter.generation:
        return False
    return not statement.by_types or statement.exact_types == types


async def learn_again(client: Exchange, statement: Statement, types: bytes, given: Values) -> None:
    """Learn which columns of a statement's result are rounded as text, when tables may have changed since it
    was prepared, or its parameters have other types: `given` are their literals. What the server says against
    the statement, it will say again when it is executed.
    """
    session, plan = client.session, statement.plan
    statement.learnt = client.snapshot.rewriter.generation
    if not plan.binds:
        statement.exact = _UNKNOWN
        return
    session.prepared.values = given if statement.by_types else (b"?",) * statement.parameters
    try:
        asked = plan.to_prepare(values_of(session, plan, statement.literals), client.snapshot.topology)
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None
    assert asked is not None
    try:
        async with borrowed(client, asked.host) as conn:
            statement.exact = exact_of((await columns_of(session, conn, asked.sql, plan.facts))[1])
    except ServerError:
        return
    statement.exact_types = types
