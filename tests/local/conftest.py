"""A world without sockets that has a topology and a schema, and a client in it."""

from __future__ import annotations

import pytest

from tests.execute.world import Client, World
from tests.local.places import place


@pytest.fixture
def world() -> World:
    return place()


@pytest.fixture
def client(world: World) -> Client:
    return Client(world)
