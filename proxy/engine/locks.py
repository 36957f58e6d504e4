"""Locks of GET_LOCK: all on one host, and their holders in any worker process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from proxy.engine.task import TaskWork
from rewriter.plans import AnyHost, Plan
from rewriter.route.values import LOCK_HOLDERS

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def host_of(client: Exchange, plan: AnyHost) -> str:
    """Best one that the session uses already; but locks are all on the default host."""
    held = client.session.transaction.held
    if held and not (plan.effects is not None and plan.effects.locks):
        return next(iter(held))
    return plan.host(client.snapshot.topology)


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
