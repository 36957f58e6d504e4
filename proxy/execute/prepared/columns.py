"""PREPARE of a statement whose plan is known: the definitions of its parameters and columns.

A statement that goes whole to one host is prepared there. Any other will be executed as text. For its columns
a server prepares the statement of one shard. What only the proxy can answer is run for its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from proxy.engine.locks import host_of
from proxy.engine.outside_transaction import refuse_unpreparable, reject
from proxy.engine.planning import Planned
from proxy.engine.preparing import learn_exact
from proxy.engine.run import Steps, run_by
from proxy.engine.transcode import Shown, prepare_reply
from proxy.errors import ProxyError
from proxy.session.prepared import Statement
from proxy.session.values import values_of
from rewriter.plan import Plan, Reject, Values
from rewriter.plans import (
    BindError,
    Builtin,
    Ddl,
    Everywhere,
    Gather,
    Insert,
    LoadLocal,
    MultiStatement,
    OneHost,
    Opened,
    ReadThenWrite,
    Reorder,
    SetStatement,
    Sharded,
    SystemViews,
    is_one_host,
)
from rewriter.plans.variants import by_variant
from rewriter.sql.statements.forms import Kind
from rewriter.text.masks import can_mask, unmask

from .derived import derived_types
from .statements import StatementRequest

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_DIAGNOSTICS: Final = frozenset({"@@warning_count", "@@error_count"})

_Places = Sequence[tuple[int, str]]
"""Where a text has its parameters, and the slots of their values."""


def learn_columns(client: Exchange, statement: Statement, planned: Planned) -> None:
    """Prepare a statement and answer the client. Raises ProxyError."""
    plan = statement.plan
    if not statement.env.flavour.prepares_diagnostics and _shows_diagnostics(plan):
        raise ProxyError("unpreparable")
    _PREPARE[plan.__class__](client, StatementRequest(client, statement), plan, planned)


def _shows_diagnostics(plan: Plan) -> bool:
    """Whether it shows what the statement before has left, which MySQL prepares nothing of."""
    counts = _DIAGNOSTICS.intersection(plan.session_slots)
    return bool(counts) or plan.shows_diagnostics


def _unpreparable(client: Exchange, asked: StatementRequest, plan: Plan, planned: Planned) -> None:
    raise ProxyError("unpreparable")


def _in_parts(client: Exchange, asked: StatementRequest, plan: Plan, planned: Planned) -> None:
    asked.learn(client.snapshot.topology.hosts[0], asked.statement.sql, None)  # it will refuse them


def _on_its_host(client: Exchange, asked: StatementRequest, plan: OneHost, planned: Planned) -> None:
    host, text = place(client, asked.statement, plan)
    asked.prepare(host, text, plan.database)


def _refused(client: Exchange, asked: StatementRequest, plan: Reject, planned: Planned) -> None:
    if plan.facts.form.kind is Kind.LOCK and plan.error != "no_database":  # some servers do not prepare it
        refuse_unpreparable(client, plan, asked.statement.sql)
    else:
        reject(client, plan, planned.literals)


def _as_text(
    describe: Callable[[Exchange, StatementRequest, Any, _Places], None],
    client: Exchange,
    asked: StatementRequest,
    plan: Plan,
    planned: Planned,
) -> None:
    """PREPARE a statement that will be executed as text, of whose columns `describe` learns."""
    statement = asked.statement
    rewriter = client.snapshot.rewriter
    statement.places = planned.parameters or rewriter.parameters(statement.sql, statement.env)
    statement.parameters = len(statement.places.places)
    client.session.prepared.values = (b"?",) * statement.parameters
    try:
        describe(client, asked, plan, statement.places.places)
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None


def _by_server(client: Exchange, asked: StatementRequest, plan: Plan, places: _Places) -> None:
    values = values_of(client.session, plan, asked.statement.literals)
    prepared = plan.to_prepare(values, client.snapshot.topology)
    assert prepared is not None
    asked.learn(prepared.host, prepared.sql, None)


def _views(client: Exchange, asked: StatementRequest, plan: SystemViews, places: _Places) -> None:
    if plan.writes:
        _without_columns(client, asked, plan, places)
        return
    client.session.prepared.values = tuple([b"0" if "L" in slot else b"NULL" for _, slot in places])
    _show(client, asked.statement)


def _gathered(client: Exchange, asked: StatementRequest, plan: Gather, places: _Places) -> None:
    statement = asked.statement
    values = values_of(client.session, plan, statement.literals)
    client.describe(plan, values, partial(_reply, client, statement))


def _without_columns(client: Exchange, asked: StatementRequest, plan: Plan, places: _Places) -> None:
    client.transport.write(_reply(client, asked.statement, (), []))
    client.finish("ok")


def _of_inner(client: Exchange, asked: StatementRequest, plan: SetStatement, places: _Places) -> None:
    """The columns of the statement behind SET STATEMENT … FOR, if one server knows them."""
    statement = asked.statement
    sql = plan.inner.render(statement.literals)
    inner, literals = client.snapshot.rewriter.plan(sql, statement.env)
    if inner.refusal is not None:
        reject(client, inner.refusal, literals)
        return
    values = values_of(client.session, inner, literals)
    prepared = inner.to_prepare(values, client.snapshot.topology)
    host = inner.runs_at
    if prepared is not None:
        asked.learn(prepared.host, prepared.sql, None)
    elif host is not None and is_one_host(host):
        asked.learn(host_of(client, host), host.template.render(values), host.database)
    else:
        _OF_INNER[inner.__class__](client, statement, inner, values)


def _no_columns(client: Exchange, statement: Statement, inner: Plan, values: Values) -> None:
    client.transport.write(_reply(client, statement, (), []))
    client.finish("ok")


def _gathered_columns(client: Exchange, statement: Statement, inner: Gather, values: Values) -> None:
    client.describe(inner, values, partial(_reply, client, statement))


_OF_INNER: Mapping[type[Plan], Callable[[Exchange, Statement, Any, Values], None]] = by_variant(
    {Gather: _gathered_columns, Plan: _no_columns}
)


def _builtin(client: Exchange, asked: StatementRequest, plan: Builtin, places: _Places) -> None:
    """A statement that shows something is run for its columns; whether another one can be prepared, a server
    knows.
    """
    statement, session = asked.statement, client.session
    if not plan.runs_for_columns:
        topology = client.snapshot.topology
        asked.own = True
        asked.learn(next(iter(session.transaction.held), None) or topology.hosts[0], statement.sql, None)
    elif statement.parameters:
        client.transport.write(_reply(client, statement, (), []))
        client.finish("ok")
    else:
        _show(client, statement)


def _show(client: Exchange, statement: Statement) -> None:
    """Run a statement for its columns."""
    Steps(client).start(_run_for_columns(client, statement))


async def _run_for_columns(client: Exchange, statement: Statement) -> None:
    start = partial(client.run_plan, statement.plan, statement.literals)
    found = await run_by(client, start, Shown(client))
    client.transport.write(_reply(client, statement, (), found.definitions))
    client.finish("ok")


def _reply(
    client: Exchange,
    statement: Statement,
    parameters: Sequence[bytes],
    columns: list[bytes],
    warnings: int = 0,
) -> bytes:
    session = client.session
    statement.text_warnings = warnings
    if statement.plan.learns_columns:
        learn_exact(statement, columns)
        statement.derived = derived_types(parameters) if session.env.flavour.derives_types else ()
    session.prepared.add(statement)
    status = session.status()
    return prepare_reply(
        statement.id,
        client.seq + 1,
        status,
        statement.parameters,
        parameters,
        columns,
        extended=session.extended,
    )


def place(client: Exchange, statement: Statement, plan: OneHost) -> tuple[str, bytes]:
    """The host of a statement, and its text there. Raises ProxyError."""
    session = client.session
    try:
        host = host_of(client, plan)
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None
    if plan.unchanged:
        return host, statement.sql
    text = plan.template.render(values_of(session, plan, statement.literals))
    return host, unmask(text) if can_mask(statement.env.charset) else text


_PREPARE: Mapping[type[Plan], Callable[[Exchange, StatementRequest, Any, Planned], None]] = by_variant(
    {
        OneHost: _on_its_host,
        SystemViews: partial(_as_text, _views),
        LoadLocal: _unpreparable,
        Sharded: partial(_as_text, _by_server),
        Insert: partial(_as_text, _by_server),
        Everywhere: partial(_as_text, _by_server),
        Ddl: partial(_as_text, _by_server),
        Gather: partial(_as_text, _gathered),
        ReadThenWrite: partial(_as_text, _without_columns),
        Reorder: partial(_as_text, _without_columns),
        Builtin: partial(_as_text, _builtin),
        Opened: partial(_as_text, _without_columns),
        SetStatement: partial(_as_text, _of_inner),
        MultiStatement: _in_parts,
        Reject: _refused,
    }
)
"""How each variant is prepared."""
