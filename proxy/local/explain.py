"""EXPLAIN ROUTE: what would be done with a statement, without doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.errors import told
from proxy.session.values import slot
from proxy.wire.resultset import text_column, text_resultset
from rewriter.explain import explain
from rewriter.plans import Builtin, Values

if TYPE_CHECKING:
    from proxy.session.client import ClientConnection


def explain_route(client: ClientConnection, plan: Builtin, values: Values) -> None:
    services, session = client.services, client.session
    offset = plan.arguments["offset"]
    assert isinstance(offset, int)
    rows = explain(
        services.rewriter,
        client.sql[offset:],
        session.env,
        services.topology,
        lambda name: slot(session, name),
        told,
    )
    columns = [text_column("section"), text_column("detail")]
    client.write(
        text_resultset(columns, rows, session.status(), seq=client.seq + 1, extended=session.extended)
    )
    client.finish("ok")
