"""A fan-out ended at every stage: by a host, by its client, by a KILL."""

from __future__ import annotations

from typing import Any

import pytest

from rewriter.plans import Merge
from tests.execute.ends import done, strike
from tests.execute.test_fanout import ORDERED, fan, numbers, serve, statement, world
from tests.execute.world import Client, World

__all__ = ["world"]  # a fixture


# -- KILL and the client's end, at every stage
# ----------------------------------------------------------------------------------------------------------


async def connecting(world: World, client: Client) -> None:
    """Some connections are there, one is waited for."""


async def learning(world: World, client: Client) -> None:
    await world.turn()
    assert world.server("h1").log[-1] == b"LIMIT 0"


async def asked(world: World, client: Client) -> None:
    await learning(world, client)
    world.server("h1").one.deliver()
    await world.turn()
    assert world.server("h1").log[-1] == b"Q"


async def some_rows(world: World, client: Client) -> None:
    await asked(world, client)
    for host in ("h1", "h2"):
        started = client.session.transaction.explicit and host == "h2"
        world.server(host).one.deliver_packets(4 + started)


async def one_over(world: World, client: Client) -> None:
    await asked(world, client)
    world.server("h2").one.deliver()
    await world.turn()


async def draining(world: World, client: Client) -> None:
    """h2 has warnings, which are being fetched."""
    serve(world, "h2", (2, 5), warnings=1)
    await one_over(world, client)
    assert world.server("h2").log[-1] == b"SHOW WARNINGS"


async def about_to_drain(world: World, client: Client) -> None:
    """h2 has warnings, and the task that will fetch them has not taken its first step."""
    serve(world, "h2", (2, 5), warnings=1)
    await asked(world, client)
    world.server("h2").one.deliver()
    assert b"SHOW WARNINGS" not in world.server("h2").log


STAGES = [connecting, learning, asked, some_rows, one_over, draining, about_to_drain]


@pytest.mark.parametrize("merge", [None, ORDERED], ids=["any order", "ordered"])
@pytest.mark.parametrize("transaction", [False, True], ids=["", "transaction"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("what", ["leave", "kill", "kill twice", "kill connection", "lose h1", "lose h3"])
async def test_whatever_happens(
    world: World, client: Client, what: str, stage: Any, transaction: bool, merge: Merge | None
) -> None:
    if transaction:
        client.session.transaction.start()
    client.ask(fan("h1", "h2", "h3", merge=merge, reference=statement("h1", b"LIMIT 0", (1,))))
    await stage(world, client)
    await strike(world, client, what)
    if what.startswith("kill ") or what == "kill":
        assert client.answers()[0].err == 1317
    elif what.startswith("lose"):
        lost = 1053 if transaction else 1158
        assert client.answers()[0].err == (lost if stage is not connecting else None)
        assert bool(client.session.transaction.lost) == (transaction and stage is not connecting)
    other = Client(world)
    other.ask(fan("h1", "h2", "h3", merge=ORDERED))
    await done(world, client, other)
    assert numbers(other) == list(range(1, 10))
    if transaction and not client.left:
        client.leave()
        await done(world, client, other)
