"""From a plan to its execution: one function for each variant of `rewriter.plans`.

This is the middle of the way of a statement: the client's SQL comes in, the rewriter gives a plan and the
literals, and the plan's variant says who runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import choice as choose
from typing import TYPE_CHECKING, Any

from proxy.engine.admission import (
    admit_bound,
    admit_everywhere,
    admit_host,
    admit_plan,
    admit_routine,
    is_free,
    scatter_ceiling,
)
from proxy.engine.cached import from_cache, touch
from proxy.engine.choosing import any_open
from proxy.engine.lease import forget_gone
from proxy.engine.left_behind import effects_on
from proxy.engine.locks import asks_holders, host_of
from proxy.engine.outside_transaction import reject, run_for_nothing, run_outside_transaction
from proxy.engine.own_names import database_at
from proxy.engine.planning import bind_insert, check_length, plan_masked, plan_masked_off_loop, plan_off_loop
from proxy.engine.table_locks import releases_first
from proxy.engine.task import TaskWork
from proxy.engine.transactions import commit_then, commits_first
from proxy.engine.transcode import refuse_rounded
from proxy.errors import ProxyError
from proxy.execute.ddl import run_ddl
from proxy.execute.everywhere import run_everywhere
from proxy.execute.fan.fanout import FanOut
from proxy.execute.files import FileRequest
from proxy.execute.gathering.gather import start_gather
from proxy.execute.maintenance import run_maintenance
from proxy.execute.multi_statement import run_multi_statement
from proxy.execute.read_first import read_first, spreads
from proxy.execute.reorder import reorder
from proxy.execute.sequences import make_ids
from proxy.execute.set_statement import run_set_statement
from proxy.execute.together import alone, write_together
from proxy.execute.writes import run_writes
from proxy.load import Load
from proxy.local import run_builtin
from proxy.local.views import run_views
from proxy.session.values import values_of
from rewriter.plans import (
    Access,
    AnyHost,
    BindError,
    Bound,
    Ddl,
    Everywhere,
    Gather,
    Insert,
    LoadLocal,
    MultiStatement,
    NotSupported,
    OneHost,
    Opened,
    Passthrough,
    Physical,
    Plan,
    ReadThenWrite,
    Reject,
    Reorder,
    SetStatement,
    ShardSelect,
    ShardWrite,
    SystemViews,
    Values,
)
from rewriter.plans.builtins import Builtin
from rewriter.plans.cached import CachedSelect, Touching
from rewriter.plans.maintenance import TableMaintenance
from rewriter.plans.variants import by_variant
from rewriter.route.point import at_point
from rewriter.sql.statements.facts import UNREAD
from rewriter.text.masks import unmask

if TYPE_CHECKING:
    from proxy.engine.exchange import Describe, Exchange


def execute(client: Exchange, sql: bytes, planned: tuple[Plan, Values] | None = None) -> None:
    """Run one COM_QUERY, whose plan is `planned` if it is known. Raises ProxyError before anything was sent;
    later errors go to the client by themselves.
    """
    services = client.services
    session = client.session
    if planned is not None:
        plan, literals = planned
    elif session.unsafe_charset and not sql.isascii():
        if not services.plans_at_once(len(sql)):
            execute_masked(client, sql)
            return
        plan, literals = plan_masked(client, sql, session.env)
    elif len(sql) > client.long_statement:
        execute_long(client, sql)
        return
    else:
        rewriter = client.snapshot.rewriter
        found = rewriter.find(sql, session.env)
        if found is None:
            if not services.plans_at_once(len(sql)):
                execute_long(client, sql)
                return
            found = rewriter.plan(sql, session.env)
        plan, literals = found
    client.plan = plan
    client.kind = plan.kind
    transaction = session.transaction
    if transaction.pins:
        forget_gone(client)
    restricted = session.user.databases is not None or transaction.lost or transaction.pins
    if restricted or plan.access > session.user.role:
        admit_plan(session, plan, sql)
    if plan.implicit_commit and commits_first(client, plan):
        commit_then(client, partial(run_plan, client, plan, literals), judged=False)
        return
    try:  # as `run_plan`
        _EXECUTORS[type(plan)](client, plan, literals)
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None


def run_plan(client: Exchange, plan: Plan, literals: Values) -> None:
    """Run a plan that may run. Raises ProxyError."""
    try:
        _EXECUTORS[type(plan)](client, plan, literals)
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None


def execute_long(client: Exchange, sql: bytes) -> None:
    """Run a COM_QUERY that is to be planned off the loop, as the client's work."""

    async def run() -> None:
        session = client.session
        planned = await plan_off_loop(client, sql, session.env)
        execute(client, sql, (planned.plan, planned.literals))

    check_length(client.services, sql)
    TaskWork(client).start(run())


def execute_masked(client: Exchange, sql: bytes) -> None:
    """Run a COM_QUERY in gbk or its kin that is not very short, as the client's work."""

    async def run() -> None:
        planned = await plan_masked_off_loop(client, sql, client.session.env)
        execute(client, sql, (planned.plan, planned.literals))

    check_length(client.services, sql)
    TaskWork(client).start(run())


def sent(client: Exchange, plan: OneHost, literals: Values) -> bytes:
    """What the one host of a plan gets."""
    if plan.unchanged:
        return client.sql
    sql = plan.template.render(values_of(client.session, plan, literals))
    return unmask(sql) if client.session.unsafe_charset else sql


# -- one function for each variant
# ------------------------------------------------------------------------------------


def _passthrough(client: Exchange, plan: Passthrough, literals: Values) -> None:
    """As `_one_host`. Mostly nothing is to be asked, and the host is known."""
    asks = not plan.unchanged or plan.session_slots or plan.effects is not None
    if asks or client.services.routines.leaving or not is_free(client):
        _one_host(client, plan, literals)
        return
    snapshot = client.snapshot
    host = snapshot.masters.get(plan.keyspaces)
    if host is None:
        host = snapshot.masters[plan.keyspaces] = plan.host(snapshot.topology)
    relay = client.relay
    relay.run(host, client.sql, plan.database, plan.column_metadata, plan.facts)


def _one_host(client: Exchange, plan: Passthrough | Physical, literals: Values) -> None:
    if plan.session_slots and asks_holders(client, plan, lambda: _one_host(client, plan, literals)):
        return
    pinned = client.session.transaction.pins
    host = host_of(client, plan) if pinned else plan.host(client.snapshot.topology)
    again = partial(_one_host, client, plan, literals)
    if pinned and releases_first(client, plan.effects, host, again):
        return
    admit_host(client, plan, host)
    sql = client.sql if plan.unchanged else sent(client, plan, literals)
    if plan.effects is not None and plan.effects.routine:
        admit_routine(client, host, plan, results=client.session.multi_results)
    effects = plan.effects
    if client.services.routines.leaving or (effects is not None and effects.calls):
        effects = effects_on(client, host, plan)
    shard = None
    if plan.names_physical and plan.database is not None:
        shard = client.services.backends.loads.shard(plan.database.encode(), client.snapshot.topology)
    client.relay.run(
        host,
        sql,
        database_at(client, plan) if pinned else plan.database,
        effects=effects,
        literals=literals,
        column_metadata=plan.column_metadata,
        facts=plan.facts,
        shards=() if shard is None else (shard,),
    )


def _load_local(client: Exchange, plan: LoadLocal, literals: Values) -> None:
    session, statement = client.session, plan.statement
    if not session.local_files:
        raise ProxyError(session.env.flavour.local_files_error)
    host = statement.host(client.snapshot.topology)
    admit_host(client, statement, host, write=True)
    sql = sent(client, statement, literals)
    effects = effects_on(client, host, plan)
    client.relay.run(
        host,
        sql,
        statement.database,
        effects=effects,
        literals=literals,
        facts=plan.facts,
        request=FileRequest(client),
    )


def _any_host(client: Exchange, plan: AnyHost, literals: Values) -> None:
    if plan.session_slots and asks_holders(client, plan, lambda: _any_host(client, plan, literals)):
        return
    session = client.session
    held = session.transaction.held
    host = host_of(client, plan)
    again = partial(_any_host, client, plan, literals)
    if session.transaction.pins and releases_first(client, plan.effects, host, again):
        return
    sql = sent(client, plan, literals)
    effects = effects_on(client, host, plan)
    if session.transaction.explicit and host not in held and not (effects is not None and effects.pins):
        # the host does not take part in the transaction yet, and a statement without tables is no reason to
        # open it there
        TaskWork(client).start(run_outside_transaction(client, host, sql, plan.database, effects, literals))
        return
    database = database_at(client, plan) if session.transaction.pins else plan.database
    client.relay.run(host, sql, database, effects=effects, literals=literals, facts=plan.facts)


def _loads(client: Exchange, keyspace: str, shards: Sequence[int]) -> Sequence[Load]:
    """What these shards have had to do, to which the statement at hand is added."""
    return client.services.backends.loads.of(client.snapshot.topology.keyspaces[keyspace], shards)


def _ask_point(client: Exchange, plan: ShardSelect | ShardWrite, values: Values) -> bool:
    """Send a statement that one ID routes, which is the usual case: there is nothing to check or merge."""
    if not is_free(client):
        return False
    point = at_point(plan.point, values, client.snapshot.topology)
    if point is None:
        return False
    relay = client.relay
    relay.ask(point[0], point[2], plan.column_metadata, point[3])
    return True


def _select(client: Exchange, plan: ShardSelect, literals: Values) -> None:
    session = client.session
    values = values_of(session, plan, literals) if plan.session_slots else literals
    if _ask_point(client, plan, values):
        return
    services = client.services
    try:
        bound = plan.bind(values, client.snapshot.topology, choose)
    except NotSupported:
        if plan.gather is None:
            raise
        client.kind = plan.gather.kind
        _gather(client, plan.gather, literals)
        return
    admit_bound(client, plan.keyspace, bound, write=False)
    ceiling = scatter_ceiling(client) if bound.scatter else None
    statements = bound.statements
    if (
        len(statements) == 1
        and bound.merge is None
        and bound.reference is None
        and not bound.warnings
        and ceiling is None
    ):
        host, shards, sql = statements[0]
        client.relay.run(
            host,
            sql,
            column_metadata=plan.column_metadata,
            effects=plan.effects,
            literals=literals,
            shards=_loads(client, plan.keyspace, shards),
        )
        return
    definitions = services.definitions.of(plan, session, values, client.snapshot.topology)
    plain = partial(plan.to_prepare, values, client.snapshot.topology)
    FanOut(client, bound, definitions, ceiling, plan.keyspace, plain).start()


def _cached_select(client: Exchange, plan: CachedSelect, literals: Values) -> None:
    values = values_of(client.session, plan, literals)
    if not from_cache(client, plan, values, partial(_select, client, plan, literals)):
        _select(client, plan, literals)


def _touching(
    execute: Callable[[Exchange, Any, Values], None], client: Exchange, plan: Touching, literals: Values
) -> None:
    """What changes rows that may be in caches, which `execute` runs."""
    values = values_of(client.session, plan, literals)
    touch(client, plan, values, partial(_bound, execute, client, plan, literals))


def _bound(
    execute: Callable[[Exchange, Any, Values], None], client: Exchange, plan: Plan, literals: Values
) -> None:
    try:
        execute(client, plan, literals)
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None


def _gather(client: Exchange, plan: Gather, literals: Values) -> None:
    start_gather(client, plan, values_of(client.session, plan, literals), choose)


def describe(client: Exchange, plan: Gather, values: Values, reply: Describe) -> None:
    """Prepare what would be gathered; see `Exchange.describe`."""
    start_gather(client, plan, values, choose, reply)


def _write(client: Exchange, plan: ShardWrite, literals: Values) -> None:
    values = values_of(client.session, plan, literals)
    if _ask_point(client, plan, values):
        return
    try:
        bound = plan.bind(values, client.snapshot.topology, choose)
    except NotSupported:
        if plan.found is None:
            raise
        _read_write(client, plan.found, literals)
        return
    _run_write(client, plan, bound, values, partial(run_plan, client, plan, literals))


def _insert(client: Exchange, plan: Insert, literals: Values) -> None:
    values = values_of(client.session, plan, literals)
    topology = client.snapshot.topology
    long = len(client.sql) > client.services.long_statement
    if long or (plan.timed and plan.wanted_ids(values, topology)):
        TaskWork(client).start(_insert_in_steps(client, plan, values))
        return
    if plan.short is not None and _insert_one(client, plan, values):
        return
    bound = plan.bind(values, topology, any_open(client, plan), spread=spreads(client))
    _run_write(client, plan, bound, values, partial(run_plan, client, plan, literals))


def _insert_one(client: Exchange, plan: Insert, values: Values) -> bool:
    """Send an INSERT of one row, which is the usual case: as `_run_write`, with nothing to check."""
    topology = client.snapshot.topology
    if not is_free(client) or plan.asks or plan.returning:
        return False
    alone = plan.at_one(values, topology, any_open(client, plan))
    if alone is None:
        return False
    load = client.services.backends.loads.shard(alone.database, topology)
    relay, given = client.relay, not alone.generated
    shards = () if load is None else (load,)
    relay.run(
        alone.host, alone.sql, None, plan.column_metadata, UNREAD, shards, None, (), alone.id_offset, given
    )
    return True


async def _insert_in_steps(client: Exchange, plan: Insert, values: Values) -> None:
    """Run an INSERT that needs IDs first, or so long that it is bound off the loop."""
    services = client.services
    topology = client.snapshot.topology
    length, spread, choosing = len(client.sql), spreads(client), any_open(client, plan)
    bind = partial(bind_insert, services, length, plan, values, topology, choosing, spread=spread)
    bound, wanted = await bind({})
    if wanted:  # bound without, so that what cannot run is refused before a number is used up
        admit_bound(client, plan.keyspace, bound, write=True, joins=False)
        ids = await make_ids(services.backends, topology.keyspaces[plan.keyspace], plan.tables[0], wanted)
        bound, _ = await bind(ids)

    def again() -> None:
        steps = partial(TaskWork(client).start, _insert_in_steps(client, plan, values))
        touch(client, plan, values, steps)

    _run_write(client, plan, bound, values, again)


def _run_write(
    client: Exchange, plan: ShardWrite | Insert, bound: Bound, values: Values, again: Callable[[], None]
) -> None:
    """`again` binds it anew and runs it."""
    session = client.session
    admit_bound(client, plan.keyspace, bound, write=True)
    statements = bound.statements
    if not statements:
        session.refuse_in_read_only()
        TaskWork(client).start(run_for_nothing(client, bound, update=plan.updates))
        return
    asks = bool(bound.inserted) and bound.inserted[0].asks
    effects = plan.effects
    if effects is not None and bound.inserted:
        first = bound.inserted[0]
        effects = effects.of_insert(composed=first.id_offset is not None and first.generated)
    if len(statements) == 1 and not asks and (not bound.warnings or plan.returning):
        host, shards, sql = statements[0]
        loads = _loads(client, plan.keyspace, shards)
        if bound.inserted:
            inserted = bound.inserted[0]
            keeps = not inserted.generated
            if effects is not None and keeps and not effects.asks_insert_id:
                effects = effects._replace(insert_id="given")
            client.relay.run(
                host,
                sql,
                id_offset=inserted.id_offset,
                keeps_insert_id=keeps,
                effects=effects,
                column_metadata=plan.column_metadata,
                shards=loads,
            )
        else:
            client.relay.run(host, sql, effects=effects, column_metadata=plan.column_metadata, shards=loads)
        return
    if plan.returning:
        refuse_rounded(client)
    if len(statements) > 1 and alone(client):
        _write_alone(client, plan, bound, values, again)
        return
    work = TaskWork(client)
    column_metadata = plan.column_metadata if plan.returning else None
    work.start(
        run_writes(
            client,
            bound,
            work.conns,
            plan.keyspace,
            returning=plan.returning,
            column_metadata=column_metadata,
            effects=effects,
        )
    )


def _write_alone(
    client: Exchange, plan: ShardWrite | Insert, bound: Bound, values: Values, again: Callable[[], None]
) -> None:
    """The same, in a transaction of its own, by which caches know it. It is bound anew if it has waited and
    the topology is another one.
    """
    snapshot = client.snapshot

    def start() -> None:
        if client.snapshot is snapshot:
            touch(client, plan, values, partial(_run_write, client, plan, bound, values, again))
        else:
            again()

    write_together(client, start)


def _views(client: Exchange, plan: SystemViews, literals: Values) -> None:
    values = values_of(client.session, plan, literals)
    if plan.writes:
        admit_host(client, plan, plan.host(client.snapshot.topology))
    work = TaskWork(client)
    work.start(run_views(client, work, plan, literals, values))


def _everywhere(client: Exchange, plan: Everywhere, literals: Values) -> None:
    bound = plan.bind(values_of(client.session, plan, literals), client.snapshot.topology, choose)
    admit_everywhere(client, bound)
    if len(bound.statements) > 1 and alone(client):
        write_together(client, partial(run_plan, client, plan, literals))
        return
    work = TaskWork(client)
    work.start(run_everywhere(client, bound, work.conns, effects=plan.effects))


def _read_write(client: Exchange, plan: ReadThenWrite, literals: Values) -> None:
    values = values_of(client.session, plan, literals)
    writing = client.writing
    if writing is not None and plan.changes:
        reason = "its rows cannot be named so that every host would change the same ones"
        raise ProxyError("not_supported_yet", what="this write", reason=reason, alternative="")
    if writing is not None and writing.fills_in:  # it would ask for the answer, and so on
        reason = "a value that names its row's shard is none that a column holds as it is"
        raise ProxyError("not_supported_yet", what="this write", reason=reason, alternative="")
    client.session.refuse_in_read_only()
    read_first(client, plan, values)


def _reorder(client: Exchange, plan: Reorder, literals: Values) -> None:
    client.session.refuse_in_read_only()
    reorder(client, plan, values_of(client.session, plan, literals))


def _ddl(client: Exchange, plan: Ddl, literals: Values) -> None:
    bound = plan.bind(values_of(client.session, plan, literals), client.snapshot.topology, choose)
    admit_bound(client, plan.keyspace, bound, write=True, joins=False)
    work = TaskWork(client)
    work.start(run_ddl(client, plan, bound, work))


def _maintain(client: Exchange, plan: TableMaintenance, literals: Values) -> None:
    values = values_of(client.session, plan, literals)
    asked = plan.for_each(values, client.snapshot.topology)
    write = plan.access > Access.READ
    for table, statements in zip(plan.maintained, asked, strict=True):
        admit_bound(client, table.sharded_keyspace, Bound(statements), write=write, joins=False)
    work = TaskWork(client)
    work.start(run_maintenance(client, plan, asked, work))


def _builtin(client: Exchange, plan: Builtin, literals: Values) -> None:
    run_builtin(client, plan, values_of(client.session, plan, literals))


def _multi_statement(client: Exchange, plan: MultiStatement, literals: Values) -> None:
    run_multi_statement(client, client.sql, plan.comments)


def _opened(client: Exchange, plan: Opened, literals: Values) -> None:
    client.sql = plan.text
    execute(client, plan.text)


_EXECUTORS: dict[type[Plan], Callable[[Exchange, Any, Values], None]] = by_variant(
    {
        Passthrough: _passthrough,
        Physical: _one_host,
        AnyHost: _any_host,
        SystemViews: _views,
        ShardSelect: _select,
        CachedSelect: _cached_select,
        Gather: _gather,
        ShardWrite: _write,
        Insert: _insert,
        Everywhere: _everywhere,
        Ddl: _ddl,
        TableMaintenance: _maintain,
        ReadThenWrite: _read_write,
        Reorder: _reorder,
        Builtin: _builtin,
        LoadLocal: _load_local,
        Reject: reject,
        Opened: _opened,
        SetStatement: run_set_statement,
        MultiStatement: _multi_statement,
    }
)
_EXECUTORS |= {
    variant: partial(_touching, _EXECUTORS[variant]) for variant in _EXECUTORS if variant.invalidates
}
