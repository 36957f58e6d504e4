"""The commands of prepared statements.

A statement that goes whole to one host is prepared and executed there (`statements.StatementRequest`). Any
other is executed as text: its parameters become literals in the plan's slots, it runs as a query would, and
the rows of the answer are made binary (`transcode.BinarySink`). For the definitions that PREPARE gives, a
server is asked about the statement of one shard; what only the proxy can answer is run for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

from proxy.backends.pool import ATTRIBUTES
from proxy.engine.admission import PREPARED, admit_host, admit_plan, admit_routine
from proxy.engine.cached import touch
from proxy.engine.lease import forget_gone
from proxy.engine.left_behind import effects_on
from proxy.engine.locks import asks_holders
from proxy.engine.own_names import database_at
from proxy.engine.planning import (
    Planned,
    check_length,
    first_statement,
    plan_masked,
    plan_masked_off_loop,
    plan_off_loop,
)
from proxy.engine.preparing import is_learnt, learn_again, returns_rounded
from proxy.engine.table_locks import releases_first
from proxy.engine.task import TaskWork
from proxy.engine.transactions import commit_then, commits_first
from proxy.engine.transcode import BinarySink
from proxy.errors import ProxyError
from proxy.session import counters
from proxy.session.prepared import BuiltinRepeat, HostRepeat, Repeat, Statement, weight
from proxy.session.values import parameter
from proxy.wire.binary import Execute, parse_execute
from proxy.wire.bulk import BulkExecute
from proxy.wire.charsets import NOT_ASCII
from proxy.wire.constants import ColumnType
from proxy.wire.packets import ProtocolError
from rewriter.env import Env
from rewriter.plan import Execution
from rewriter.plans import Plan, Values
from rewriter.route.point import at_point
from rewriter.text.many_marks import with_fewer_marks

from .columns import learn_columns, place
from .cursors import end_cursor
from .derived import as_derived
from .once import execute_once
from .parameters import literals_for_effects, malformed, parameter_literals
from .repeat import remember
from .statement_commands import statement_of
from .statements import Sent, StatementRequest, relayed

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_decimal = b"%d".__mod__
_SHORT: Final = 4000
"""Bytes of a text that is planned at once when it stands for a longer one."""


# -- COM_STMT_PREPARE


def prepare(client: Exchange, payload: bytes) -> None:
    """COM_STMT_PREPARE."""
    services, session = client.services, client.session
    sql = client.sql = payload[1:]
    client.kind = "prepare"
    if session.counts is not None:
        session.counts[counters.PREPARE] += 1
    session.prepared.latest = None
    check_length(services, sql)
    limit = services.settings.limits.prepared_statements
    if len(session.prepared.by_id) >= limit:
        raise ProxyError("too_many_statements", limit=limit)
    session.keep(weight(sql))
    env = session.prepared.env(session.env)
    if not planned_at_once(client, sql, env):
        TaskWork(client).start(_prepare_off_loop(client, sql, env))
        return
    plan, found = _planned(client, sql, env)
    if plan.only_first:
        sql = first_statement(sql, env)
        plan, found = _planned(client, sql, env)
    if plan.sanitized is not None:
        sql = client.sql = plan.sanitized
        plan, found = _planned(client, sql, env)
    _prepare(client, sql, env, Planned(plan, found))


async def _prepare_off_loop(client: Exchange, sql: bytes, env: Env) -> None:
    planned = await plan_reading_off_loop(client, sql, env)
    if planned.plan.only_first:
        sql = first_statement(sql, env)
        planned = await plan_reading_off_loop(client, sql, env)
    if planned.plan.sanitized is not None:
        sql = client.sql = planned.plan.sanitized
        planned = await plan_reading_off_loop(client, sql, env)
    _prepare(client, sql, env, planned)


def _prepare(client: Exchange, sql: bytes, env: Env, planned: Planned) -> None:
    """PREPARE a statement whose plan is known."""
    plan, found = planned.plan, planned.literals
    session = client.session
    admit_plan(session, plan, sql, PREPARED)
    generation = client.snapshot.rewriter.generation
    statement = Statement(sql, env, session.settings.system, plan, found, generation, learnt=generation)
    learn_columns(client, statement, planned)


def _masks(sql: bytes, env: Env) -> bool:
    return env.charset in NOT_ASCII and not sql.isascii()


def planned_at_once(client: Exchange, sql: bytes, env: Env) -> bool:
    """Whether the loop may read a statement itself: the plan is in the cache, or made in a moment."""
    services, rewriter = client.services, client.snapshot.rewriter
    if len(sql) <= services.long_statement and not _masks(sql, env) and rewriter.find(sql, env):
        return True
    if _planned_by_fewer_marks(client, sql, env) is not None:
        return True
    return services.plans_at_once(len(sql))


async def plan_reading_off_loop(client: Exchange, sql: bytes, env: Env) -> Planned:
    """The plan of a prepared statement's text, made off the loop."""
    if _masks(sql, env):
        return await plan_masked_off_loop(client, sql, env)
    return await plan_off_loop(client, sql, env)


def plans_ahead(client: Exchange, statement: Statement, then: Callable[[], None]) -> bool:
    """Whether the statement's plan is out of date and is made off the loop first; `then` goes on."""
    stale = _out_of_date(client, statement)
    if stale is None or statement.ahead is not None:
        return False
    sql, env = statement.sql, replace(stale[0], exact=stale[1])
    if planned_at_once(client, sql, env):
        return False

    async def run() -> None:
        generation = client.snapshot.rewriter.generation
        planned = await plan_reading_off_loop(client, sql, env)
        statement.ahead = generation, env.key, planned.plan, planned.literals
        then()

    TaskWork(client).start(run())
    return True


def _planned_by_fewer_marks(client: Exchange, sql: bytes, env: Env) -> tuple[Plan, Values] | None:
    """The plan of a statement with many parameters, if one host runs it as it is; else None."""
    short = None if _masks(sql, env) else with_fewer_marks(sql, env)
    if short is None or len(short) > _SHORT:
        return None
    plan, found = client.snapshot.rewriter.plan(short, env)
    runs = relayed(plan) and plan.goes_unchanged and not plan.only_first and plan.sanitized is None
    return (plan, found) if runs else None


def _planned(client: Exchange, sql: bytes, env: Env) -> tuple[Plan, Values]:
    if _masks(sql, env):
        return plan_masked(client, sql, env)
    short = _planned_by_fewer_marks(client, sql, env)
    if short is not None:
        return short
    return client.snapshot.rewriter.plan(sql, env)


# -- COM_STMT_EXECUTE


def execute(client: Exchange, payload: bytes) -> None:
    """COM_STMT_EXECUTE."""
    session = client.session
    statement = statement_of(client, payload, "mysqld_stmt_execute")
    statement.repeat = None
    plan = statement.plan
    if _out_of_date(client, statement) is not None:
        if plans_ahead(client, statement, lambda: execute(client, payload)):
            return
        plan = plan_for(client, statement)
    client.sql, client.kind, client.plan = statement.sql, plan.kind, plan
    client.reading = statement.sql, statement.env
    if session.counts is not None:
        session.counts[counters.EXECUTE] += 1
    transaction = session.transaction
    if transaction.pins:
        forget_gone(client)
    restricted = session.user.databases is not None or transaction.lost or transaction.pins
    if restricted or plan.access > session.user.role:
        admit_plan(session, plan, statement.sql)
    if statement.cursor is not None:
        end_cursor(client, statement, keep=True)
    problem, sent = statement.problem, statement.take_sent(session.prepared)
    if problem:
        limit = client.services.settings.limits.session_memory
        raise ProxyError(problem, command="mysqld_stmt_send_long_data", limit=limit)
    try:
        request = parse_execute(payload, statement.parameters, statement.types, client.attributes, sent)
    except ProtocolError as error:
        raise malformed(client, error) from None
    if request.extra.number:
        session.capability_set |= ATTRIBUTES
    if statement.parameters and not (request.types or statement.types):
        # some drivers send no types as long as all parameters are NULL
        if not request.all_null(statement.parameters):
            raise ProxyError("wrong_arguments", command="mysqld_stmt_execute")
        request = request._replace(types=bytes((ColumnType.NULL, 0)) * statement.parameters)
    client.runs_again_by(partial(_run_again, client, statement, request, sent))
    if plan.implicit_commit and commits_first(client, plan):
        commit_then(client, lambda: run(client, statement, request, sent))
    elif plan.learns_columns and not is_learnt(client, statement, request.types or statement.types):
        TaskWork(client).start(_learn_and_run(client, statement, request, sent))
    else:
        run(client, statement, request, sent)
        if not sent:
            remember(client, statement, payload, request, execute)


def execute_again(client: Exchange, packet: bytes) -> bool:
    """COM_STMT_EXECUTE, a whole packet with its header, from a client that is `ready`. Mostly nothing has
    changed since the statement was executed last but the values: then it is run, and its way is that of the
    same statement by a literal. False: something has, and nothing was done.
    """
    session = client.session
    statement = session.prepared.by_id.get(int.from_bytes(packet[5:9], "little"))
    repeat = None if statement is None else statement.repeat
    snapshot = client.services.serving.snapshot
    if (
        statement is None
        or repeat is None
        or packet[9 : repeat.begin] != repeat.head
        or snapshot.rewriter.generation is not repeat.generation
        or not snapshot.all_serving
        or session.env is not repeat.env
        or session.user is not repeat.user
        or session.transaction_mode != "multi"
        or session.transaction.lost
        or session.counts is not None
        or session.tracks_replies
    ):
        return False
    if isinstance(repeat, HostRepeat):
        return _run_on_host_again(client, statement, repeat, packet)
    if isinstance(repeat, BuiltinRepeat):
        return _run_builtin_again(client, statement, repeat, packet)
    return _run_point_again(client, statement, repeat, packet)


def _run_on_host_again(client: Exchange, statement: Statement, repeat: HostRepeat, packet: bytes) -> bool:
    on_host = client.session.prepared.on_host
    if on_host is None or statement.sent or statement.problem or statement.cursor is not None:
        return False
    try:
        return on_host.run(statement, repeat, packet)
    except Exception as error:
        client.met(error)
        return True


def _run_point_again(client: Exchange, statement: Statement, repeat: Repeat, packet: bytes) -> bool:
    if len(packet) != repeat.size:
        return False
    plan, snapshot = repeat.plan, client.services.serving.snapshot
    given = map(_decimal, repeat.values.unpack_from(packet, repeat.begin))
    point = at_point(plan.point, (*statement.literals, *given), snapshot.topology)
    if point is None:
        return False
    _begin_again(client, statement, plan, packet)
    try:
        client.relay.ask(point[0], point[2], plan.column_metadata, point[3], statement)
    except Exception as error:
        client.met(error)
    return True


def _run_builtin_again(client: Exchange, statement: Statement, repeat: BuiltinRepeat, packet: bytes) -> bool:
    if len(packet) != repeat.begin or client.session.transaction.pins:
        return False
    plan = repeat.plan
    _begin_again(client, statement, plan, packet)
    client.reading = statement.sql, statement.env
    try:
        client.run_plan(plan, statement.literals)
    except Exception as error:
        client.met(error)
    return True


def _begin_again(client: Exchange, statement: Statement, plan: Plan, packet: bytes) -> None:
    client.ready, client.seq, client.snapshot = False, 0, client.services.serving.snapshot
    client.begun = monotonic()
    client.sql, client.kind, client.plan = statement.sql, plan.kind, plan
    client.again, client.below = partial(execute, client, packet[4:]), None


def _run_again(client: Exchange, statement: Statement, request: Execute, sent: dict[int, bytes]) -> None:
    """`run` by the topology of now."""
    if plans_ahead(client, statement, lambda: _run_again(client, statement, request, sent)):
        return
    plan = plan_for(client, statement)
    client.sql, client.kind, client.plan = statement.sql, plan.kind, plan
    client.reading = statement.sql, statement.env
    if plan.learns_columns and not is_learnt(client, statement, request.types or statement.types):
        TaskWork(client).start(_learn_and_run(client, statement, request, sent))
    else:
        run(client, statement, request, sent)


async def _learn_and_run(
    client: Exchange, statement: Statement, request: Execute, sent: dict[int, bytes]
) -> None:
    """Run a statement whose tables may have changed, or whose parameters have other types."""
    before, types = statement.exact, request.types or statement.types
    given = parameter_literals(client, statement, request, sent) if statement.by_types else ()
    await learn_again(client, statement, types, given)
    if statement.exact != before:
        if planned_at_once(client, statement.sql, statement.reading):
            statement.plan, statement.literals = _planned(client, statement.sql, statement.reading)
        else:
            planned = await plan_reading_off_loop(client, statement.sql, statement.reading)
            statement.plan, statement.literals = planned.plan, planned.literals
    run(client, statement, request, sent)


def _out_of_date(client: Exchange, statement: Statement) -> tuple[Env, str] | None:
    """What a statement is to be planned for now (settings, and `Statement.exact`); None when its plan will
    do. Text is read under the settings of now: only the database is that of PREPARE.
    """
    session, env, exact = client.session, statement.env, statement.exact
    current = statement.generation is client.snapshot.rewriter.generation
    if not current:
        exact = ""  # until it is learnt again
    elif exact and statement.plan.rounds_columns:
        current = False
    if not relayed(statement.plan):
        now = session.prepared.env(session.env)
        if now.database != env.database:
            now = replace(now, database=env.database)
        if now is not env and now.key != env.key:
            env, current = now, False
    return None if current else (env, exact)


def plan_for(client: Exchange, statement: Statement) -> Plan:
    """The statement's plan, made anew when it is out of date. Raises ProxyError."""
    stale = _out_of_date(client, statement)
    if stale is not None:
        was, ahead = statement.plan, statement.ahead
        statement.env, statement.exact = stale
        statement.ahead, statement.generation = None, client.snapshot.rewriter.generation
        if ahead is not None and ahead[1] == statement.reading.key:
            statement.generation, _, statement.plan, statement.literals = ahead
        else:
            statement.plan, statement.literals = _planned(client, statement.sql, statement.reading)
        if statement.plan.sanitized is not None:  # under another sql_mode than before
            reason = "You have an error in your SQL syntax: the prepared text means something else by now"
            raise ProxyError("syntax_error", reason=reason)
        if relayed(was) != relayed(statement.plan):
            statement.settings = client.session.settings.system
    return statement.plan


def _check_reading(now: Env, statement: Statement) -> None:
    """MySQL reads a text again when a table of it has changed, then as it reads statements now. Raises
    ProxyError for one that it might read otherwise than when it was prepared.
    """
    then, sql = statement.env, statement.sql
    if (
        (now.charset != then.charset and not sql.isascii())
        or (now.no_backslash_escapes is not then.no_backslash_escapes and b"\\" in sql)
        or (now.ansi_quotes is not then.ansi_quotes and b'"' in sql)
    ):
        raise ProxyError("needs_reprepare")


def run(
    client: Exchange,
    statement: Statement,
    request: Execute | BulkExecute,
    sent: dict[int, bytes],
    *,
    touched: bool = False,
) -> None:
    """Execute `statement`, for which the transaction is as it must be. A bulk one: only if `relayed`.
    `touched`: what it may change is not answered from caches any more.
    """
    plan = statement.plan
    session = client.session
    if relayed(plan):
        if plan.invalidates and not touched:
            again = partial(run, client, statement, request, sent, touched=True)
            touch(client, plan, statement.literals, again)
            return
        changed = session.settings.system is not statement.settings
        if changed and not session.env.flavour.prepared_text_is_kept:
            _check_reading(session.env, statement)
        if plan.session_slots and asks_holders(
            client, plan, lambda: run(client, statement, request, sent, touched=True)
        ):
            return
        host, text = place(client, statement, plan)
        again = partial(run, client, statement, request, sent, touched=True)
        if session.transaction.pins and releases_first(client, plan.effects, host, again):
            return
        if not plan.at_any_host:
            admit_host(client, plan, host)
        execution = StatementRequest(client, statement)
        effects = effects_on(client, host, plan)
        if effects is not None and effects.routine:
            admit_routine(client, host, plan, results=True)
        pins = effects is not None and bool(effects.pins)
        if plan.at_any_host and session.transaction.explicit and not pins:
            # a statement without tables is no reason to open the transaction on a host
            execution.aside = not session.transaction.held
        if effects is not None and isinstance(request, BulkExecute):
            effects = effects.of_rows()
        literals = literals_for_effects(client, statement, request, sent)
        sql = Sent(text, database_at(client, plan), effects, literals)
        execution.execute(host, sql, request, sent)
        return
    assert isinstance(request, Execute)
    if plan.answers_ok and not (statement.parameters or statement.text_warnings):
        client.run_plan(plan, statement.literals)  # there are no rows to be made binary
        return
    statement.types = request.types or statement.types
    session.prepared.values = parameter_literals(client, statement, request, sent)
    if statement.derived and plan.learns_columns:
        session.prepared.values = as_derived(session.prepared.values, statement.derived, statement.types)
    exact = bool(statement.exact) or returns_rounded(client, plan, statement.sql)
    BinarySink(client, statement, exact=exact)
    if exact:
        execute_once(client, statement)
    if plan.executed_as is not Execution.AS_TEXT:
        client.run_plan(plan, statement.literals)
        return
    if statement.places is None:
        raise ProxyError("unpreparable")  # MariaDB's blocks, which are cut where they should not be
    values = [parameter(session, name) for _, name in statement.places.places]
    client.sql = statement.places.fill(values)
    client.reading = client.sql, statement.env
    env = replace(statement.env, parameters=False)
    if not planned_at_once(client, client.sql, env):
        TaskWork(client).start(_run_off_loop(client, env))
        return
    client.run_plan(*client.snapshot.rewriter.plan(client.sql, env))


async def _run_off_loop(client: Exchange, env: Env) -> None:
    planned = await plan_off_loop(client, client.sql, env)
    client.run_plan(planned.plan, planned.literals)
