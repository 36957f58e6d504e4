from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.faults.cluster import Faulty
from tests.faults.link import Link
from tests.integration.fixtures import MakeOwn, connect, own, raw, things, unharmed
from tests.integration.own import moved
from tests.support.demo import Demo

__all__ = ["connect", "own", "raw", "things", "unharmed"]


@pytest.fixture
def faulty(demo: Demo, own: MakeOwn) -> Iterator[Any]:
    """Starts a proxy of the test's own that reaches the demo's servers over links that can fail."""
    with ExitStack() as stack:

        def start(settings: dict[str, Any] | None = None, expected: tuple[str, ...] = ()) -> Faulty:
            links = [stack.enter_context(Link(one.host, one.port)) for one in demo.masters]
            addresses = {one.address: link.address for one, link in zip(demo.masters, links, strict=True)}
            base: dict[str, Any] = {
                "backends": {"connect_timeout": "3s", "queue_timeout": "4s"},
                "timeouts": {"buffer": 0},  # a host that is lost is told at once
            }
            for name, value in (settings or {}).items():
                base[name] = {**base.get(name, {}), **value}
            proxy = own(base, moved(demo_topology(demo), addresses), expected)
            return Faulty(demo, proxy, links)

        yield start
        # the proxies are stopped by `own`, before the links go


def demo_topology(demo: Demo) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((demo.directory / "topology.json").read_text())
    return document
