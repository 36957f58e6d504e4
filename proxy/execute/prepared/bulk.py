"""MariaDB's COM_STMT_BULK_EXECUTE.

Where one host runs the statement, it runs it with all rows at once. Else it is executed row by row, as the
client could have done, and the replies are made one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from proxy.engine.admission import admit_plan
from proxy.engine.result import ResultSink
from proxy.engine.run import Steps, run_by
from proxy.engine.transactions import commit_then
from proxy.errors import ProxyError
from proxy.session.outcome import Outcome
from proxy.session.prepared import Statement
from proxy.wire.bulk import BulkExecute, execute_of, parse_bulk, rows_of
from proxy.wire.constants import MariaCapability
from proxy.wire.packets import ProtocolError, parse_ok
from rewriter.plan import Execution
from rewriter.plans import Access

from . import prepare
from .statement_commands import statement_of
from .statements import relayed

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def bulk_execute(client: Exchange, payload: bytes) -> None:
    """COM_STMT_BULK_EXECUTE."""
    session = client.session
    agreed = session.introduction is not None and session.introduction.extended
    if not agreed or not agreed & MariaCapability.STMT_BULK_OPERATIONS:
        raise ProxyError("unknown_command", command="COM_STMT_BULK_EXECUTE")
    statement = statement_of(client, payload, "mysqld_stmt_bulk_execute")
    if prepare.plans_ahead(client, statement, lambda: bulk_execute(client, payload)):
        return
    plan = prepare.plan_for(client, statement)
    client.sql, client.kind, client.plan = statement.sql, plan.kind, plan
    client.reading = statement.sql, statement.env
    admit_plan(session, plan, statement.sql)
    try:
        request = parse_bulk(payload, statement.parameters)
    except ProtocolError:
        raise ProxyError("wrong_arguments", command="mysqld_stmt_bulk_execute") from None
    if statement.parameters and not (request.types or statement.types):
        raise ProxyError("wrong_arguments", command="mysqld_stmt_bulk_execute")
    if not relayed(plan):
        if plan.access != Access.WRITE or plan.executed_as is not Execution.WITH_VALUES:
            raise ProxyError("unpreparable")
        _row_by_row(client, statement, request)
        return
    client.runs_again_by(partial(_run_again, client, statement, request))
    if plan.implicit_commit and (session.transaction.held or session.transaction.explicit):
        commit_then(client, lambda: prepare.run(client, statement, request, {}))
    else:
        prepare.run(client, statement, request, {})


def _run_again(client: Exchange, statement: Statement, request: BulkExecute) -> None:
    """What one host runs, by the topology of now."""
    if not relayed(prepare.plan_for(client, statement)):
        raise ProxyError("needs_reprepare")
    prepare.run(client, statement, request, {})


def _row_by_row(client: Exchange, statement: Statement, request: BulkExecute) -> None:
    types = request.types or statement.types
    packets = []
    try:
        for row in rows_of(request, types, statement.parameters):
            one = execute_of(row, types)
            if one is None:
                raise ProxyError(
                    "not_supported_yet",
                    what="COM_STMT_BULK_EXECUTE",
                    reason="a parameter is DEFAULT or IGNORE",
                    alternative="Write DEFAULT into the statement.",
                )
            packets.append(one.packet(statement.id, types, statement.parameters))
    except ProtocolError:
        raise ProxyError("wrong_arguments", command="mysqld_stmt_bulk_execute") from None
    if not packets:
        raise ProxyError("unpreparable")
    Steps(client).start(_run_rows(client, packets))


async def _run_rows(client: Exchange, packets: list[bytes]) -> None:
    """Execute one row after another, and answer once for all."""
    affected = insert_id = warnings = 0
    info = b""
    for packet in packets:
        done = await run_by(client, partial(prepare.execute, client, packet), _Row(client))
        affected += done.ok.affected
        insert_id = insert_id or done.ok.insert_id
        warnings += done.ok.warnings
        info = done.ok.info
    client.session.apply(Outcome(affected, insert_id or None))
    client.reply_ok(affected=affected, insert_id=insert_id, warnings=warnings, info=info)


class _Row(ResultSink):
    """The OK packet of one row."""

    __slots__ = ("ok",)

    def columns(self, definitions: list[bytes]) -> None:
        raise ProxyError("unpreparable")

    def end(self, payload: bytes) -> None:
        if payload[:1] == b"\0":
            self.ok = parse_ok(payload)
