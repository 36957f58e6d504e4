"""MariaDB's COM_STMT_BULK_EXECUTE.

Where one host runs the statement, it runs it with all rows at once. Else it is executed row by row, as the
client could have done, and the replies are made one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from proxy.engine.admission import check_access, refuse_lost
from proxy.engine.sinks import CommandSink
from proxy.engine.transactions import commit_then
from proxy.errors import ProxyError
from proxy.session.outcome import Outcome
from proxy.session.prepared import Statement
from proxy.wire.bulk import BulkExecute, execute_of, parse_bulk, rows_of
from proxy.wire.constants import MariaCapability
from proxy.wire.packets import ProtocolError, frame, ok_packet, parse_ok
from rewriter.plans import Access, Builtin, Ddl

from . import prepare
from .statement_commands import statement_of

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
    check_access(session, plan, statement.sql)
    if session.transaction.lost:
        refuse_lost(session, plan)
    try:
        request = parse_bulk(payload, statement.parameters)
    except ProtocolError:
        raise ProxyError("wrong_arguments", command="mysqld_stmt_bulk_execute") from None
    if statement.parameters and not (request.types or statement.types):
        raise ProxyError("wrong_arguments", command="mysqld_stmt_bulk_execute")
    if not prepare.relayed(plan):
        if plan.access != Access.WRITE or isinstance(plan, Builtin | Ddl):
            raise ProxyError("unpreparable")
        _row_by_row(client, statement, request)
    elif plan.implicit_commit and (session.transaction.held or session.transaction.explicit):
        commit_then(client, lambda: prepare.run(client, statement, request, {}))
    else:
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
    rows = iter(packets)
    first = next(rows)
    _Rows(client, rows)
    prepare.execute(client, first)


class _Rows(CommandSink):
    """Takes in the replies to the rows, runs the next one, and answers once for all."""

    __slots__ = ("_affected", "_data", "_insert_id", "_rows", "_seq", "_warnings")

    def __init__(self, client: Exchange, rows: Iterator[bytes]) -> None:
        super().__init__(client)
        self._rows = rows
        self._data = b""
        self._seq = client.seq
        self._affected = self._insert_id = self._warnings = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._data += data  # an OK or ERR packet: what gives rows is refused

    def answered(self, outcome: str) -> None:
        client = self.client
        data, self._data = self._data, b""
        if outcome != "ok":
            self.below.write(frame(data[4:], self._seq + 1))
            super().answered(outcome)
            return
        if data[4:5] != b"\0":
            error = ProxyError("unpreparable")
            client.seq = self._seq
            self.remove()
            client.write_error(error)
            if self.under is not None:
                self.under.answered(error.kind.name)
            return
        ok = parse_ok(data[4 : 4 + int.from_bytes(data[:3], "little")])
        self._affected += ok.affected
        self._insert_id = self._insert_id or ok.insert_id
        self._warnings += ok.warnings
        following = next(self._rows, None)
        if following is not None:
            client.go_on_with(self._seq, following)
            return
        client.session.apply(Outcome(self._affected, self._insert_id or None))
        ok = ok._replace(affected=self._affected, insert_id=self._insert_id, warnings=self._warnings)
        self.below.write(
            ok_packet(
                self._seq + 1,
                ok.status,
                affected=ok.affected,
                insert_id=ok.insert_id,
                warnings=ok.warnings,
                info=ok.info,
            )
        )
        super().answered(outcome)
