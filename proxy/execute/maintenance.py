"""ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR TABLE: the servers' rows in the client's names."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from proxy.engine.naming import logical
from proxy.engine.outside_transaction import syntax_error, write_result
from proxy.errors import ProxyError
from proxy.execute.ddl import Answered, place_of, run_ddl
from proxy.session.outcome import Outcome
from proxy.wire.packets import ProtocolError
from proxy.wire.resultset import decode_row, encode_row
from rewriter.plans import Bound
from rewriter.plans.maintenance import NO_TABLE
from rewriter.sql.statements.forms import FoundRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proxy.engine.exchange import Exchange
    from proxy.engine.task import TaskWork
    from rewriter.plans import HostStatement
    from rewriter.plans.maintenance import MaintainedTable, TableMaintenance

Cells = tuple[bytes | None, ...]

_NO_TABLE: Final = re.compile(rf"[\w$]+\.{NO_TABLE}")
_NAMED: Final = 10
"""Shards that are named in one row."""


async def run_maintenance(
    client: Exchange, plan: TableMaintenance, asked: Sequence[tuple[HostStatement, ...]], work: TaskWork
) -> None:
    """Run the statements, and answer with the rows of all tables. `asked`: the statements for each table."""
    if plan.has_unknown:
        error = await syntax_error(client, asked[0][0].host, client.sql)
        if error is not None:
            client.fail(error)
            return
    bound = Bound(tuple(one for statements in asked for one in statements))
    await run_ddl(client, plan, bound, work, partial(_tell, client, plan, asked))


def _tell(
    client: Exchange,
    plan: TableMaintenance,
    asked: Sequence[tuple[HostStatement, ...]],
    answers: list[Answered],
) -> None:
    by_statement = {id(one.statement): one for one in answers}
    rows, notes = [], []
    for table, statements in zip(plan.maintained, asked, strict=True):
        replies = [by_statement[id(one)] for one in statements if id(one) in by_statement]
        rows += _rows(client, table, replies)
        left = replies[0].diagnostics if replies else []
        notes += [replace(row, message=_renamed(client, table, row.message)) for row in left]
    counts = plan.facts.form.found_rows is not FoundRows.KEEP
    write_result(client, answers[0].reply.columns, rows, len(notes), counts=counts)
    client.session.apply(Outcome(diagnostics=notes))


def _rows(client: Exchange, table: MaintainedTable, replies: list[Answered]) -> list[bytes]:
    """The rows of one table, each but once; of what only some shards say, which they are."""
    said: dict[Cells, list[HostStatement]] = {}
    for one in sorted(replies, key=lambda one: (one.statement.shards, one.statement.host)):
        count = len(one.reply.columns)
        for payload in one.reply.rows:
            try:
                cells = decode_row(payload, count)
            except ProtocolError as problem:
                host = one.statement.host
                raise ProxyError("backend_protocol", host=host, reason=str(problem)) from None
            said.setdefault(_shown(client, table, cells), []).append(one.statement)
    rows = []
    for shown, where in said.items():
        *others, text = shown
        if len(where) < len(replies):
            places = ", ".join(map(place_of, where[:_NAMED])) + (" …" if len(where) > _NAMED else "")
            text = f"{places}: ".encode() + (text or b"")
        rows.append(encode_row((*others, text)))
    return rows


def _shown(client: Exchange, table: MaintainedTable, cells: list[bytes | None]) -> Cells:
    """A row in the client's names. The first cell is the table's name, and empty when the row is of none."""
    codec = client.session.results_codec
    shown = list(cells)
    if shown[0]:
        shown[0] = table.place.encode(codec, "replace")
    for place, cell in enumerate(cells[1:], 1):
        text = (cell or b"").decode(codec, "replace")
        renamed = _renamed(client, table, text)
        if renamed != text:
            shown[place] = renamed.encode(codec, "replace")
    return tuple(shown)


def _renamed(client: Exchange, table: MaintainedTable, text: str) -> str:
    """A server's message with the client's name of the table."""
    if table.written:
        text = text.replace(table.written, table.place)
    return _NO_TABLE.sub(lambda _: table.place, logical(client, text, table.database))
