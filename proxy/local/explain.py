"""EXPLAIN ROUTE: what would be done with a statement, without doing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proxy.engine.task import TaskWork
from proxy.errors import error_lines
from proxy.session.values import slot
from proxy.wire.resultset import text_column, text_resultset
from rewriter.explain import explain
from rewriter.plans import Values
from rewriter.plans.builtins import ExplainRoute

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def explain_route(client: Exchange, plan: ExplainRoute, values: Values) -> None:
    services, session = client.services, client.session
    sql = client.sql[plan.offset :]
    if not services.plans_at_once(len(sql)):
        TaskWork(client).start(_explain_off_loop(client, sql))
        return
    snapshot = client.snapshot
    rows = explain(
        snapshot.rewriter, sql, session.env, snapshot.topology, lambda name: slot(session, name), error_lines
    )
    _answer(client, rows)


async def _explain_off_loop(client: Exchange, sql: bytes) -> None:
    services, session = client.services, client.session
    cached = len(sql) <= services.long_statement and client.snapshot.rewriter.cached(sql, session.env)
    rewriter = client.snapshot.rewriter
    rows = await services.planners.explain(
        session.user.name, sql, session.env, rewriter, lambda name: slot(session, name), cached=cached
    )
    _answer(client, rows)


def _answer(client: Exchange, rows: Sequence[tuple[str, str]]) -> None:
    session = client.session
    columns = [text_column("section"), text_column("detail")]
    client.write(
        text_resultset(columns, rows, session.status(), seq=client.seq + 1, extended=session.extended)
    )
    client.finish("ok")
