"""A real ZooKeeper, and stores of a topology in both places."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from config.settings import ZooKeeper
from demo.zookeeper import LocalZooKeeper
from fleet.core.store import FileStore, Store
from fleet.core.zookeeper import ZooKeeperStore

MakeStore = Callable[[], Store]
"""Opens the same store anew, as another process would."""

DOCUMENT = {"version": 1, "keyspaces": {"global": {"master": "a:1"}}}


@pytest.fixture(params=["file", "zookeeper"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    """A store of its own, which holds `DOCUMENT`; those that were opened are closed at the end."""
    content = json.dumps(DOCUMENT).encode()
    if request.param == "zookeeper":
        zookeeper: LocalZooKeeper = request.getfixturevalue("zookeeper")
        path = f"/{uuid.uuid4().hex}/topology"
        zookeeper.put(path, content)
        settings = ZooKeeper(
            hosts=zookeeper.address, path=path, session_timeout=2.0, cache_file=tmp_path / "c"
        )
    else:
        file = tmp_path / "topology.json"
        file.write_bytes(content)
    with ExitStack() as stack:

        def make() -> Store:
            store: Store = ZooKeeperStore(settings) if request.param == "zookeeper" else FileStore(file)
            store.open()
            stack.callback(store.close)
            return store

        yield make


@pytest.fixture
def kind(flavour: str) -> str:
    """As the page calls it."""
    return "mariadb" if flavour == "mariadb" else "mysql"
