"""Fixtures with real servers, each once a session for MariaDB and once for MySQL 9.

    flavour   "mariadb" or "mysql9": a test that uses it, or any of the following, runs on both
    servers   two bare servers            plain   one server with the demo's logical tables and rows
    demo      a running demo cluster      start_demo   starts further ones, with options

Tests that change the rows of `demo` or `plain` put them back, or use rows of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from demo.programs import Program
from demo.servers import LocalServer, start_all, stop_servers
from tests.support.demo import Demo, running_demo
from tests.support.plain import fill_plain
from tests.support.programs import FLAVOURS, need_program
from tests.support.template import template_of

# The programs that tests start, hundreds of them, shall not compile all modules anew: half of their start
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile(
    "shardgate",
    deadline=None,
    derandomize="CI" in os.environ,  # a failure there must be of the change that is tried
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("shardgate")

StartDemo = Callable[..., Demo]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses `flavour` needs servers. When tests run side by side, those of one flavour share them."""
    for item in items:
        if "flavour" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.integration)
            callspec = getattr(item, "callspec", None)
            if callspec is not None:
                item.add_marker(pytest.mark.xdist_group(callspec.params["flavour"]))


@pytest.fixture(scope="session", params=FLAVOURS)
def flavour(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    need_program(name)
    return name


@pytest.fixture(scope="session")
def program(flavour: str) -> Program:
    """The server's program."""
    return need_program(flavour)


@pytest.fixture(scope="session")
def template(program: Program) -> Path:
    """An initialised data directory to copy."""
    return template_of(program)


@pytest.fixture(scope="session")
def servers(
    program: Program, template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[LocalServer]]:
    """Two bare servers."""
    folder = tmp_path_factory.mktemp("servers")
    made = [
        LocalServer(program, folder / f"bare{n}", name=f"bare{n}", template=template, server_id=n)
        for n in (1, 2)
    ]
    start_all(made)
    yield made
    stop_servers(made)


@pytest.fixture(scope="session")
def plain(
    program: Program, template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalServer]:
    """One server that holds the logical rows of `demo` in databases of the same names."""
    folder = tmp_path_factory.mktemp("plain")
    with LocalServer(program, folder, name="plain", template=template) as server:
        fill_plain(server.connect())
        yield server


@pytest.fixture(scope="session")
def demo(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo cluster with two hosts, 64 shards and the sample rows."""
    with running_demo(program, tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def start_demo(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartDemo]:
    """Call with options of ``shardgate demo``: a demo of the test's own, stopped after it."""
    with ExitStack() as stack:
        yield lambda *options: stack.enter_context(
            running_demo(program, tmp_path_factory.mktemp("own"), *options)
        )
