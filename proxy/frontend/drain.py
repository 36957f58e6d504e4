"""Draining: sessions end where their applications notice least.

Most leave by themselves: they close their connections, and open others at a successor. The others are asked
to, gently first, since what a pool does with a connection that has ended depends on when it ends:

- One that has done nothing for a while lies in its pool. Pools look at such a connection before they give
  it out (HikariCP from 500 ms on, many always), find it closed and open another. That is done from the
  beginning, and COM_PING, which is such a look, is answered by the end of the connection. A session whose
  command waits in the socket is not idle. After a delay of the machine no session counts as idle: a client
  that waited for a processor may have looked already, and sends now.
- One that is used all the time ends from half of the time on with the reply that ends a transaction, and
  from three quarters on with any reply outside of one. The end comes with the reply, so that whoever looks
  sees it. Nothing is said besides: an ERR packet that nobody has asked for hides the end from pools that
  look for it, and its code 1053 is none that they take for a lost connection (SQLAlchemy).
"""

from __future__ import annotations

import asyncio
import select
from time import monotonic
from typing import TYPE_CHECKING

from proxy.engine.work import Leaving

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from proxy.engine.clients import Connected
    from proxy.engine.services import Services

#: Seconds without a command after which a session is taken to lie in a pool.
_QUIET = 0.6
#: Sessions that are ended at once: all of them open others.
_AT_ONCE = 50
#: Seconds between two rounds, and the delay of a round from which on the machine counts as busy.
_PAUSE = 0.02
_LATE = 0.1


async def let_leave(services: Services, limit: float, stays: Callable[[], Awaitable[bool]]) -> None:
    """Wait until all clients have left, `limit` seconds at most. `stays`: whether to go on without any."""
    since, before = monotonic(), 0.0  # the first round ends no session
    while (now := monotonic()) < since + limit and (services.clients.connections or await stays()):
        ask_to_leave(services, now, since, limit, before)
        before = now
        await asyncio.sleep(_PAUSE)


def ask_to_leave(services: Services, now: float, since: float, limit: float, before: float) -> None:
    """One round: end the sessions that may end now. In seconds: the drain began at `since` and lasts `limit`
    at most; the round before was at `before`.
    """
    passed = now - since
    quiet = min(_QUIET, limit / 4)
    idle: list[Connected] = []
    for client in list(services.clients.sessions.values()):
        within = client.session.transaction.open
        if client.ready and not within and now - client.begun >= quiet:
            idle.append(client)
        elif passed >= limit * (0.5 if within else 0.75) and not client.leaving:
            client.leaving = Leaving.BETWEEN_TRANSACTIONS
    if now - before < _LATE:
        idle = idle[:_AT_ONCE]
        waiting = _have_sent(idle)
        for client in idle:
            if client.descriptor not in waiting:
                client.close()


def _have_sent(clients: Iterable[Connected]) -> set[int]:
    """The descriptors that can be read from."""
    poll = select.poll()
    for client in clients:
        if client.descriptor >= 0:
            poll.register(client.descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(0)}
