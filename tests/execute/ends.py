"""How tests in a world end: what becomes of a statement at work, and what must be true after it."""

from __future__ import annotations

from proxy.engine.work import Leaving
from tests.execute.world import Client, World


async def done(world: World, *clients: Client) -> None:
    """Everything is delivered, and nothing left over."""
    await world.quiet()
    world.check(*clients)


async def strike(world: World, client: Client, what: str) -> None:
    """The client's statement meets `what`: "leave", "lose h1" (or another host), "kill", "kill twice" or
    "kill connection".
    """
    if what == "leave":
        client.leave()
    elif what.startswith("lose"):
        for one in world.server(what.split()[1]).live:
            one.lose()
    else:
        if what == "kill connection":
            client.conn.leaving = Leaving.NOW
        work = client.conn.work
        assert work is not None
        work.kill_query()
        if what == "kill twice" and client.conn.work is not None:
            work.kill_query()
    await world.quiet()
    if what == "kill connection":
        assert not client.transport.open
        client.leave()
    await done(world, client)
