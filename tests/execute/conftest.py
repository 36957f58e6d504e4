"""A world without sockets, and a client in it."""

from __future__ import annotations

import pytest

from tests.execute.world import Client, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    return Client(world)
