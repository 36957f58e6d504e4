"""Statements whose values as text would be rounded: prepared and executed for this one time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from proxy.engine.transcode import BinarySink

from .statements import StatementRequest

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import Statement


def execute_once(client: Exchange, statement: Statement) -> None:
    """While a statement is bound whose text would be rounded (FLOAT): have what goes whole to one host
    prepared and executed there.
    """
    client.relay.once = partial(_request, client, statement)


def _request(client: Exchange, statement: Statement, sql: bytes) -> StatementRequest:
    sink = client.sink
    if isinstance(sink, BinarySink):
        sink.remove()  # the rows come binary
    client.relay.once = None
    return StatementRequest.once(client, statement, sql)
