"""Planning off the loop, in processes of their own: the loop serves the other clients meanwhile.

To cut and read a statement of some megabytes takes up to seconds, and a join of many tables does, however
short its text. So what is not in the cache is planned here unless it is very short. The cache stays the
loop's business. The rows of a long INSERT are bound in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, NamedTuple, assert_never

from proxy.errors import ProxyError
from rewriter.bound import BindError
from rewriter.env import Env
from rewriter.plan import Unmasked
from rewriter.planner import not_plain
from rewriter.plans import (
    Plan,
    Values,
)
from rewriter.splice import Template
from rewriter.text.masks import ESCAPE, can_mask, mask, unmask
from rewriter.text.split import first_of

if TYPE_CHECKING:
    from config.topology import Topology
    from proxy.engine.exchange import Exchange
    from proxy.engine.services import Services
    from rewriter.planner import Parameters
    from rewriter.plans import Bound, Choose, Insert


def check_length(services: Services, sql: bytes) -> None:
    """Refuse a statement that is longer than limits.max_statement."""
    if len(sql) > services.max_statement:
        raise ProxyError("statement_too_long", size=len(sql), limit=services.max_statement)


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
        return await asyncio.get_running_loop().run_in_executor(services.binders, bind)
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None


async def plan_for(client: Exchange, sql: bytes, env: Env) -> tuple[Plan, Values]:
    """As `Rewriter.plan`, for a statement that the proxy has made of a client's. Raises ProxyError."""
    services = client.services
    found = client.snapshot.rewriter.find(sql, env) if len(sql) <= services.long_statement else None
    if found is None and services.plans_at_once(len(sql)):
        found = client.snapshot.rewriter.plan(sql, env)
    if found is None:
        planned = await plan_off_loop(client, sql, env)
        found = planned.plan, planned.literals
    return found


class Planned(NamedTuple):
    """A plan that was made off the loop. `parameters`: of a prepared statement's text. `within`: of one that
    was masked, whether all masked characters are in literals.
    """

    plan: Plan
    literals: Values
    parameters: Parameters | None = None
    within: bool = True


async def plan_off_loop(client: Exchange, sql: bytes, env: Env, *, masked: bool = False) -> Planned:
    """As `Rewriter.plan`, off the loop, when it is the turn of the client's user; `masked`: with the
    characters of its set masked. Raises ProxyError.
    """
    rewriter = client.snapshot.rewriter
    planners, user = client.services.planners, client.session.user.name
    answer = await planners.plan(user, sql, env, rewriter, masked=masked)
    lifted, made = answer.lifted, answer.made
    assert lifted is not None
    assert made is not None
    found = rewriter.lookup(lifted, env)
    if found is None:
        rewriter.keep(lifted, env, made)
        found = made.plan, made.literals
    return Planned(*found, answer.parameters, answer.unmasked)


def plan_masked(client: Exchange, sql: bytes, env: Env) -> tuple[Plan, Values]:
    """The plan of a statement in gbk or its kin, read with its characters masked: `sent` gives its own bytes
    back. Raises ProxyError unless one host runs it as it is.
    """
    check_length(client.services, sql)
    if not can_mask(env.charset):
        raise ProxyError("charset_refused", charset=env.charset)
    odd = not_plain(sql, env, raw=True)
    if odd is not None:
        return odd, (b"",)
    readable = masked(sql, env)
    plan, literals = client.snapshot.rewriter.plan(readable, env)
    in_literals = readable.count(ESCAPE) == sum(literal.count(ESCAPE) for literal in literals)
    return _unmasked(plan, literals, in_literals, env)


async def plan_masked_off_loop(client: Exchange, sql: bytes, env: Env) -> Planned:
    """As `plan_masked`, for a statement that is not very short."""
    check_length(client.services, sql)
    if not can_mask(env.charset):
        raise ProxyError("charset_refused", charset=env.charset)
    planned = await plan_off_loop(client, sql, env, masked=True)
    plan, literals = _unmasked(planned.plan, planned.literals, planned.within, env)
    return planned._replace(plan=plan, literals=literals, parameters=None)


def _unmasked(plan: Plan, literals: Values, in_literals: bool, env: Env) -> tuple[Plan, Values]:
    match plan.unmasked:
        case Unmasked.WHOLE:
            return plan, literals
        case Unmasked.LITERALS if in_literals or not _has_masked(plan):
            return plan, tuple(unmask(literal) for literal in literals)
        case Unmasked.LITERALS | Unmasked.REFUSED:
            raise ProxyError("charset_refused", charset=env.charset)
    assert_never(plan.unmasked)


def _has_masked(value: object) -> bool:
    """Whether masked characters are in a text that a plan, or a part of it, hands on. Names are Unicode."""
    if isinstance(value, bytes):
        return ESCAPE in value
    if isinstance(value, Template):
        return any(map(_has_masked, value.parts))
    if isinstance(value, tuple):
        return any(map(_has_masked, value))
    if is_dataclass(value):
        return any(_has_masked(getattr(value, one.name)) for one in fields(value))
    return False


def masked(text: bytes, env: Env) -> bytes:
    """A text in gbk or its kin as it is read."""
    return mask(text, env.charset, env.no_backslash_escapes, ansi_quotes=env.ansi_quotes)


def first_statement(text: bytes, env: Env) -> bytes:
    """The first statement of a text, without what stands behind it."""
    if can_mask(env.charset):
        return unmask(first_of(masked(text, env), env))
    return first_of(text, env)
