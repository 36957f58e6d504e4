"""A world with one host's pool, checked at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.backends.hosts import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    world.check()
