"""A real ZooKeeper for the tests of its source."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.programs import ServerError
from demo.zookeeper import LocalZooKeeper


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalZooKeeper]:
    """One server for all tests; each uses nodes of its own, and one that stops it starts it again."""
    server = LocalZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    try:
        server.start()
    except ServerError as error:
        if "install it" not in str(error):
            raise
        pytest.skip(str(error))
    yield server
    server.stop()
