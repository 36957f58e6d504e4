"""What an EXECUTE of a statement that one ID routes tells of the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.session.prepared import Repeat
from proxy.session.values import are_parameters
from proxy.wire.binary import Execute, integers
from rewriter.plans.sharded import repeats

from .derived import keeps_integers

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import Statement


def remember(client: Exchange, statement: Statement, payload: bytes, request: Execute) -> None:
    """The statement was executed as text, by this packet: keep what holds for the next one, if that may take
    the short way.
    """
    plan, session = statement.plan, client.session
    if not repeats(plan) or plan.point is None or plan.column_metadata is None:
        return
    read = integers(statement.types)
    if (
        read is None
        or len(request.values) != read.size
        or any(request.nulls)
        or request.extra.number
        or statement.exact
        or not keeps_integers(statement.derived)
        or len(plan.session_slots) != statement.parameters
        or not are_parameters(plan.session_slots)
        or session.user.databases is not None
    ):
        return
    end = len(payload) - read.size
    statement.repeat = Repeat(
        plan,
        client.snapshot.rewriter.generation,
        session.env,
        session.user,
        payload[5:end],
        4 + end,
        4 + len(payload),
        read,
    )
