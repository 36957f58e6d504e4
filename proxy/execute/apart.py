"""Planning long statements in threads of their own: the loop serves the other clients meanwhile.

To cut and read a statement of some megabytes takes up to seconds, and so do the rows of an INSERT. The cache
stays the loop's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from proxy.errors import ProxyError
from rewriter.bound import BindError
from rewriter.env import Env
from rewriter.planner import lift

from .task import TaskWork

if TYPE_CHECKING:
    from config.topology import Topology
    from proxy.services import Services
    from proxy.session.client import ClientConnection
    from rewriter.plans import Bound, Choose, Insert, Plan, Values

_TURNS: Final = 3
"""So often a statement is planned while topology or schema change."""


def check_length(services: Services, sql: bytes) -> None:
    """Refuse a statement that is longer than limits.max_statement."""
    if len(sql) > services.max_statement:
        raise ProxyError("statement_too_long", size=len(sql), limit=services.max_statement)


def execute_long(client: ClientConnection, sql: bytes) -> None:
    """Run a long COM_QUERY as the client's work."""
    check_length(client.services, sql)
    TaskWork(client).start(_execute_long(client, sql))


async def _execute_long(client: ClientConnection, sql: bytes) -> None:
    client.services.execute(client, sql, await plan_apart(client.services, sql, client.session.env))


async def bind_insert(
    services: Services,
    length: int,
    plan: Insert,
    values: Values,
    topology: Topology,
    choose: Choose,
    ids: Mapping[int, Sequence[int]],
    *,
    spread: bool = False,
) -> tuple[Bound, dict[int, int]]:
    """What an INSERT of `length` bytes sends, and how many IDs it wants of each shard. `spread`: as in
    `Insert.bind`. Raises ProxyError.
    """

    def bind() -> tuple[Bound, dict[int, int]]:
        wanted = plan.wanted_ids(values, topology) if plan.timed else {}
        return plan.bind(values, topology, choose, ids, spread=spread), wanted

    try:
        if length <= services.long_statement:
            return bind()
        return await asyncio.get_running_loop().run_in_executor(services.planners, bind)
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None


async def plan_apart(services: Services, sql: bytes, env: Env) -> tuple[Plan, Values]:
    """As `Rewriter.plan`, for a long statement."""
    loop = asyncio.get_running_loop()
    lifted = await loop.run_in_executor(services.planners, lift, sql, env)
    for turn in range(_TURNS):
        rewriter = services.rewriter
        generation = rewriter.generation
        found = rewriter.lookup(lifted, env)
        if found is not None:
            return found
        made = await loop.run_in_executor(services.planners, rewriter.make, lifted, env)
        if rewriter.generation is generation or turn == _TURNS - 1:
            rewriter.keep(lifted, env, made)
            break
    return made.plan, made.literals
