"""SET STATEMENT … FOR a statement that several servers may run.

A server is the judge of the variables: it is asked for the values that they have in such a statement, which
sets nothing on its connection. These are settings of the session until the inner statement, which runs in the
ordinary way, is answered. So all servers that it reaches have them, and no later statement has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from proxy.backends.collect import Collector
from proxy.engine.lease import borrowed
from proxy.engine.outside_transaction import syntax_error
from proxy.engine.planning import plan_off_loop
from proxy.engine.read_back import query_of, values_in
from proxy.engine.sinks import CommandSink
from proxy.engine.task import TaskWork
from proxy.engine.transactions import commit_then, commits_first
from proxy.session.values import parameter
from proxy.wire.constants import SYNTAX_ERROR
from proxy.wire.packets import Err, query_packet
from rewriter.plan import Execution

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from rewriter.env import Env
    from rewriter.plan import Values
    from rewriter.plans import SetStatement


def run_set_statement(client: Exchange, plan: SetStatement, literals: Values) -> None:
    """Run the inner statement of `plan` under its settings."""
    TaskWork(client).start(_run(client, plan, literals))


async def _run(client: Exchange, plan: SetStatement, literals: Values) -> None:
    found = await _judged(client, plan, plan.assignments.render(literals))
    if isinstance(found, Err):
        client.fail(found)
        return
    env = client.prepared_env
    _Settings(client, found)
    run = partial(_inner, client, plan.inner.render(literals), env)
    client.runs_again_by(run)
    run()


async def _judged(client: Exchange, plan: SetStatement, assignments: bytes) -> dict[str, bytes] | Err:
    """The values of the variables as SQL, or the error of a server that does not take them."""
    topology = client.snapshot.topology
    held = next(iter(client.session.transaction.held), None)
    host = held or topology.default or topology.hosts[0]
    names = [f"@@session.{name}" for name in plan.variables]
    query = b"SET STATEMENT " + assignments + b" FOR " + query_of(names)
    async with borrowed(client, host) as conn:
        reply = await Collector(own=False).run(conn, query_packet(query))
    if reply.err is not None:
        own = await syntax_error(client, host, client.sql) if reply.err.code == SYNTAX_ERROR else None
        return own or reply.err
    values = values_in(reply, names)
    return {name.removeprefix("@@session."): value for name, value in values.items()}


def _inner(client: Exchange, sql: bytes, env: Env | None) -> None:
    """Run the inner statement; with `env`, as a prepared one, which is read as when it was prepared."""
    client.sql = sql
    if env is None:
        client.execute(sql)
    else:
        TaskWork(client).start(_prepared(client, sql, env))


async def _prepared(client: Exchange, sql: bytes, env: Env) -> None:
    planned = await plan_off_loop(client, sql, env)
    if planned.plan.executed_as is not Execution.WITH_VALUES:
        places = client.snapshot.rewriter.parameters(sql, env)
        client.sql = places.fill([parameter(client.session, name) for _, name in places.places])
        planned = await plan_off_loop(client, client.sql, replace(env, parameters=False))
    plan, literals = planned.plan, planned.literals
    if plan.implicit_commit and commits_first(client, plan):
        commit_then(client, lambda: client.run_plan(plan, literals), judged=False)
    else:
        client.run_plan(plan, literals)


class _Settings(CommandSink):
    """Gives the session some settings until the command is answered."""

    __slots__ = ("before",)

    def __init__(self, client: Exchange, values: Mapping[str, bytes]) -> None:
        super().__init__(client)
        session = client.session
        self.before = {name: session.settings.values.get(name) for name in values}
        session.settings = session.settings.with_values(values)

    def remove(self) -> None:
        super().remove()
        session = self.client.session
        kept = {name: value for name, value in self.before.items() if value is not None}
        session.settings = session.settings.without(self.before).with_values(kept)
