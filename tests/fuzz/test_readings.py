"""Generated texts that the proxy and a server may read differently: nobody gets more than by the server.

Some hundred a server; `make fuzz WHAT=readings` goes on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.readings.judge import judging
from tests.fuzz.readings.routes import Routes
from tests.support.demo import Demo
from tests.support.servers import LocalServer

BATCHES = 24


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the servers, too, may read and write."""
    with tempfile.TemporaryDirectory(prefix="sg-fuzz-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_rights(demo: Demo, flavour: str, open_folder: Path) -> None:
    with judging(demo, open_folder, 1, mariadb=flavour == "mariadb") as judge:
        for number in range(BATCHES):
            judge.batch(number)
    assert not judge.tally.differences, "\n".join(judge.tally.differences)
    assert judge.tally.outcomes["ok / ok"]
    assert any(name.startswith("err 1142 / err") for name in judge.tally.outcomes)


def test_routes(demo: Demo, plain: LocalServer) -> None:
    routes = Routes(demo, plain, 1)
    for number in range(BATCHES):
        routes.batch(number)
    assert not routes.tally.differences, "\n".join(routes.tally.differences)
    assert routes.tally.outcomes["rows / rows"]
