"""What an EXECUTE tells of the next one, of a statement that one ID routes or that goes whole to one host."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from proxy.session.prepared import BuiltinRepeat, HostRepeat, Repeat
from proxy.session.values import are_parameters
from proxy.wire.binary import Execute, integer_places, integers
from rewriter.plans import OneHost
from rewriter.plans.sharded import repeats

from .columns import place
from .derived import keeps_integers
from .on_host import HostExecute
from .statements import relayed

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import Statement


def remember(
    client: Exchange,
    statement: Statement,
    payload: bytes,
    request: Execute,
    execute: Callable[[Exchange, bytes], None],
) -> None:
    """The statement was executed by this packet: keep what holds for the next one, if that may take the short
    way. `execute`: the general one.
    """
    plan, session = statement.plan, client.session
    if plan.answers_ok:
        if not (statement.parameters or statement.text_warnings or request.extra.number):
            env, user, size = session.env, session.user, len(payload)
            generation = client.snapshot.rewriter.generation
            statement.repeat = BuiltinRepeat(plan, generation, env, user, payload[5:], 4 + size)
        return
    if relayed(plan):
        statement.repeat = _on_host(client, statement, plan, payload, request)
        if session.prepared.on_host is None and statement.repeat is not None:
            session.prepared.on_host = HostExecute(client, execute)
        return
    if not repeats(plan) or plan.point is None or plan.column_metadata is None:
        return
    read = integers(statement.types)
    if (
        read is None
        or len(request.values) != read.size
        or any(request.nulls)
        or request.extra.number
        or statement.exact
        or statement.text_warnings
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


def _on_host(
    client: Exchange, statement: Statement, plan: OneHost, payload: bytes, request: Execute
) -> HostRepeat | None:
    session, snapshot = client.session, client.snapshot
    if (
        plan.at_any_host
        or not (plan.effects is None or plan.effects.only_compares_insert_id)
        or plan.invalidates
        or plan.implicit_commit
        or plan.session_slots
        or plan.learns_columns
        or plan.rounds_columns
        or request.flags
        or request.extra.number
        or client.attributes
        or statement.exact
        or session.user.databases is not None
        or session.settings is not session.settings.base
        or session.settings.system is not statement.settings
    ):
        return None
    host, sql = place(client, statement, plan)
    end = len(payload) - len(request.values)
    made = request.packet(0, statement.types, statement.parameters)
    owner = statement if statement.private else statement.types
    return HostRepeat(
        plan,
        snapshot.rewriter.generation,
        session.env,
        session.user,
        payload[5:end],
        4 + end,
        session.settings,
        snapshot.topology,
        host,
        sql,
        plan.database,
        (sql, plan.database, statement.settings, owner),
        made[5 : len(made) - len(request.values)],
        (statement.sql, statement.env),
        () if plan.effects is None else integer_places(request.nulls, statement.types),
    )
