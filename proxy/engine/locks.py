"""Locks of GET_LOCK: all on one host, and their holders in any worker process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from proxy.engine.own_names import holder_of
from proxy.engine.task import TaskWork
from rewriter.plan import Access
from rewriter.plans import OneHost, Plan
from rewriter.route.values import LOCK_HOLDERS

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def host_of(client: Exchange, plan: OneHost) -> str:
    """The host of the statement. For one that any host may run it is best one that the session uses already;
    but locks are all on the default host. While that is away another one answers what changes nothing, as a
    pool's `SELECT 1`: most shards may be well. What the session has opened under a name is used where it is.
    Raises BindError.
    """
    holder = holder_of(client, plan) if client.session.transaction.pins else None
    if holder is not None:
        return holder
    if not plan.at_any_host:
        return plan.host(client.snapshot.topology)
    held, topology = client.session.transaction.held, client.snapshot.topology
    if held and not (plan.effects is not None and plan.effects.locks):
        return next(iter(held))
    host, backends = plan.host(topology), client.services.backends
    leaves = plan.effects is not None or plan.database is not None or plan.access > Access.READ
    if leaves or backends.up(host):
        return host
    return next((one for one in topology.hosts if backends.up(one)), host)


def asks_holders(client: Exchange, plan: Plan, go_on: Callable[[], None]) -> bool:
    """Whether the other workers must be asked first: then `go_on`, which sends the statement, is called when
    they have answered.
    """
    peers = client.services.peers
    if LOCK_HOLDERS not in plan.session_slots or peers is None or peers.count == 1:
        return False
    if client.session.holders_elsewhere is not None:
        return False
    TaskWork(client).start(_ask(client, go_on))
    return True


async def _ask(client: Exchange, go_on: Callable[[], None]) -> None:
    peers = client.services.peers
    assert peers is not None
    answers = await peers.ask_others("lock_holders")
    client.session.holders_elsewhere = {thread: id for answer in answers for thread, id in answer}
    try:
        go_on()
    finally:
        client.session.holders_elsewhere = None
