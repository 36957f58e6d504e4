"""What the workers of a proxy ask each other, and what one answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from .local.advice import dear_ones
from .local.distributed import transactions
from .local.kill import end
from .local.loads import tell_loads
from .local.processes import processes
from .local.show import sessions
from .status.live import History, own_part
from .status.snapshot import Snapshot
from .tasks import Tasks

if TYPE_CHECKING:
    from .engine.services import Services
    from .engine.serving import Serving
    from .peers import Peers


_LOOKING = 1.5
"""Seconds that a worker may read the tables before it answers the worker that has changed some; a bit less
than the latter waits.
"""


async def _look(serving: Serving, tasks: Tasks) -> bool:
    await asyncio.wait([tasks.spawn(serving.look_at_tables(), "tables")], timeout=_LOOKING)
    return True


def answer_others(
    peers: Peers, services: Services, tasks: Tasks, history: History, told: Callable[[], Snapshot]
) -> None:
    """Answer them from now on. `told` gives this worker's snapshot as the others may have it."""
    peers.handlers["alive"] = lambda _: True
    peers.handlers["kill"] = lambda request: end(services, **request)
    peers.handlers["processes"] = lambda request: processes(services, **request)
    peers.handlers["lock_holders"] = lambda _: list(services.lock_holders().items())
    peers.handlers["sessions"] = lambda request: sessions(services, **request)
    peers.handlers["advice"] = lambda request: dear_ones(services, **request)
    tell_loads(peers, services)
    peers.handlers["live"] = lambda request: own_part(services, history, request["after"])
    peers.handlers["transactions"] = lambda request: transactions(services, **request)
    serving = services.serving
    peers.handlers["tables"] = lambda _: _look(serving, tasks)
    peers.handlers["routines"] = lambda request: (
        tasks.spawn(services.routines.learn(serving.topology, (request["host"],)), "routines") is not None
    )
    peers.handlers["snapshot"] = lambda _: told()
    peers.handlers["renew"] = lambda request: services.renew(
        {name: value.encode("latin-1") for name, value in request["defaults"].items()}
    )
