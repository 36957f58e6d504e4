"""Fixtures with real servers, each once a session for MariaDB and once for MySQL 9.

    flavour   "mariadb" or "mysql9": a test that uses it, or any of the following, runs on both
    servers   two bare servers            plain   one server with the demo's logical tables and rows
    demo      a running demo cluster      start_demo   starts further ones, with options
    zookeeper a ZooKeeper

Tests that change the rows of `demo` or `plain` put them back, or use rows of their own.
"""

from __future__ import annotations

import functools
import gc
import os
import re
import ssl
import sys
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import packaging.version  # in good time: collecting tests/packaging puts another `packaging` in its place
import pymysql
import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from demo.programs import Program
from demo.servers import start_all, stop_servers
from demo.workspace import Workspace
from demo.zookeeper import LocalZooKeeper
from tests.support.compiler import outdated
from tests.support.demo import Demo, running_demo
from tests.support.plain import fill_plain
from tests.support.programs import FLAVOURS, need_program, program_of, started_zookeeper
from tests.support.servers import LocalServer
from tests.support.template import VARIABLE, template_of

assert packaging.version is not None

# The programs that tests start, hundreds of them, shall not compile all modules anew: half of their start
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_Connection: Any = pymysql.connections.Connection
_make_context: Callable[[object, Any], ssl.SSLContext] = _Connection._create_ssl_ctx
_shared_contexts: list[ssl.SSLContext] = []


def _context_of(connection: object, options: Any) -> ssl.SSLContext:
    """PyMySQL makes a TLS context for each connection, reading all of the system's certificates: 50 ms of CPU
    time. Those that ask for nothing special share one.
    """
    if options:
        return _make_context(connection, options)
    if not _shared_contexts:
        _shared_contexts.append(_make_context(connection, {}))
    return _shared_contexts[0]


_Connection._create_ssl_ctx = _context_of

# CliRunner makes the tree of all commands anew for each: as much CPU time as many of them take
typer.testing.__dict__["_get_command"] = functools.cache(typer.main.get_command)

settings.register_profile(
    "shardgate",
    deadline=None,
    derandomize="CI" in os.environ,  # a failure there must be of the change that is tried
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("shardgate")

StartDemo = Callable[..., Demo]


def pytest_configure(config: pytest.Config) -> None:
    """What the processes of a run share (tests/support/template.py): workers inherit it. It goes with the
    run, also with one that is killed.
    """
    old = outdated()  # tests of what was compiled of other sources would tell nothing
    if old:
        raise pytest.UsageError(f"{', '.join(old)} changed after being compiled; run: make setup")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        workspace = Workspace(None)
        os.environ[VARIABLE] = str(workspace.__enter__().path)
        config.add_cleanup(functools.partial(workspace.__exit__, None, None, None))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests and hundreds of modules stay to the end: nothing to look for garbage in."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-servers", action="store_true", help="tests marked one_server run on each server")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever uses `flavour` needs servers; one of them, if it is marked `one_server` or `either_server`.
    Side by side, the longest shares begin first.
    """
    here = [name for name in FLAVOURS if program_of(name) is not None] or list(FLAVOURS[:1])
    left_out = []
    for item in items:
        if "flavour" not in getattr(item, "fixturenames", ()):
            continue
        item.add_marker(pytest.mark.integration)
        if config.getoption("all_servers"):
            continue
        if item.get_closest_marker("one_server"):
            wanted = here[0]
        elif item.get_closest_marker("either_server"):
            wanted = either(item.nodeid, here)
        else:
            continue
        assert isinstance(item, pytest.Function)
        if item.callspec.params["flavour"] != wanted:
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        without = set(left_out)
        items[:] = [item for item in items if item not in without]
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: turn(item.nodeid))


def either(nodeid: str, servers: Sequence[str]) -> str:
    """Which of the servers a test runs on that holds for each alike: the same one always, by its name; in
    `CLUSTERS` by its file's, as tests go on there with what the one before them has left.
    """
    file = nodeid.partition("::")[0]
    name = file if file.split("/")[1] in CLUSTERS else FLAVOUR.sub("", nodeid)
    return servers[zlib.crc32(name.encode()) % len(servers)]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """What fails is told at once: a run that is cut off has said it."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        crash = getattr(report.longrepr, "reprcrash", None)
        print(f"\n{report.nodeid} [{report.when}]: {crash.message if crash else report.longrepr}"[:2000])


FLAVOUR = re.compile(rf"[\[-]({'|'.join(FLAVOURS)})(?=[-\]])")
"""In a test's name."""

CLUSTERS = ("drivers", "examples", "faults", "fleet", "soak")
"""Folders of tests that mostly wait for clusters of their own: beside those that keep the shared servers
busy, and in shares of about the same time.
"""
HALVES = {"faults": "test_n", "integration": "test_m"}
"""Folders that are two shares each, and where the second begins: the run is as long as its longest share."""
LONGEST = frozenset(
    f"tests/{name}.py"
    for name in (
        "execute/test_two_forms",
        "packaging/test_wheel",
        "planning/test_planning",
        "rewriter/test_two_readers",
        "rewriter/test_words",
    )
)
"""Files whose tests take so long that the run would end with one of them alone, were it among the last."""


class ByFlavour(LoadScopeScheduling):  # type: ignore[misc]
    """Side by side: tests of one flavour share a process, and its servers, but for those of `CLUSTERS`, which
    have others, and of `HALVES`, which take long; so do the other tests of one file, and those of the files
    beside the folders, which all read the whole code.
    """

    def _split_scope(self, nodeid: str) -> str:
        return shared_by(nodeid)


def shared_by(nodeid: str) -> str:
    """The flavour, a share of its tests, or the file whose tests share a process with this one."""
    flavour = FLAVOUR.search(nodeid)
    if flavour is None:
        file = nodeid.partition("::")[0]
        return file if file.count("/") > 1 else "tests/"
    _, folder, file = nodeid.partition("::")[0].split("/")
    if folder in HALVES:
        half = "second" if file >= HALVES[folder] else "first"
        return f"{flavour[1]}, {half} half of {folder}"
    return f"{flavour[1]}, {folder}" if folder in CLUSTERS else flavour[1]


ORDER = (
    "mariadb, second half of faults",
    "mariadb, first half of faults",
    "mariadb, first half of integration",
    "mariadb, second half of integration",
    "mysql9, first half of integration",
    "mysql9, second half of integration",
    "mysql9, fleet",
    "mysql9",
    "mariadb",
    "mariadb, fleet",
    "the longest files",
    "mysql9, first half of faults",
    "mysql9, second half of faults",
)
"""In which shares begin; what is not here comes last, files of fast tests at the very end.

Half of the time of `CLUSTERS` is spent waiting. Beside others that calculate, two or three of them keep two
cores busy; four do not. Those that take longest begin first.
"""


def turn(nodeid: str) -> int:
    """When the share of a test begins."""
    share = shared_by(nodeid)
    name = "the longest files" if share in LONGEST else share
    return ORDER.index(name) if name in ORDER else len(ORDER) + ("/" in share)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFlavour:
    config.option.loadscopereorder = False  # by the number of tests: the longest have few
    return ByFlavour(config, log)


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


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalZooKeeper]:
    """One server for all tests, with a port for TLS beside the plain one. Each test uses nodes of its own,
    and one that stops it starts it again.
    """
    server = started_zookeeper(tmp_path_factory.mktemp("zookeeper"))
    yield server
    server.stop()
