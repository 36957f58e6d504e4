"""Fixtures of the integration and fault tests; their conftest files import them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import Cursor

from tests.integration.own import Document, OwnProxy, log_problems, read_status, wait_idle
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import Connection

#: What a session may change, one of each kind: for tests of what a reset or another user makes of it.
CHANGES = (
    "USE legacy",
    "SET @mine = 5, sql_mode = 'ANSI_QUOTES', time_zone = '+05:00', autocommit = 0",
    "SET NAMES latin1",
    "SET transaction_mode = 'single'",
    "BEGIN",
    "UPDATE legacy.customers SET city = 'Nowhere' WHERE id = 1",
)

Connect = Callable[..., Connection]
MakeRaw = Callable[..., Raw]
MakeOwn = Callable[..., OwnProxy]


@pytest.fixture(autouse=True)
def unharmed(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test on the demo: nobody is connected, no backend connection is used, no bug in the log.

    Whom a failed test has left there is disconnected, so that the next ones do not fail with it.
    """
    if "demo" not in request.fixturenames:
        yield
        return
    demo: Demo = request.getfixturevalue("demo")
    assert not demo.spoilt, demo.spoilt
    log = demo.directory / "proxy.log"
    before = log.stat().st_size
    yield
    try:
        wait_idle(lambda: read_status(demo.status_url), clients=0)
    except AssertionError as error:
        demo.spoilt = f"since {request.node.nodeid}: {error}"
        demo.disconnect_all()
        wait_idle(lambda: read_status(demo.status_url), clients=0)
        demo.spoilt = ""
        raise
    with log.open("rb") as lines:
        lines.seek(before)
        problems = log_problems(lines.read().decode(errors="replace"))
    assert not problems, "\n".join(problems)


@pytest.fixture
def connect(demo: Demo, unharmed: None) -> Iterator[Connect]:
    """`demo.connect`, closed at the end."""
    with ExitStack() as stack:

        def connected(**arguments: Any) -> Connection:
            connection = demo.connect(**arguments)
            stack.callback(lambda: connection.close() if connection.open else None)
            return connection

        yield connected


@pytest.fixture
def raw(demo: Demo, unharmed: None) -> Iterator[MakeRaw]:
    """Raw clients of the demo's proxy, logged in on `demo` unless ``login=False``; closed at the end."""
    with ExitStack() as stack:

        def connected(*, login: bool = True, database: str | None = "demo", **arguments: Any) -> Raw:
            client = stack.enter_context(Raw(demo.host, demo.port, **arguments))
            if login:
                reply = client.login(database=database)
                assert reply.kind == "ok", reply
            return client

        yield connected


@pytest.fixture
def own(demo: Demo, tmp_path: Path) -> Iterator[MakeOwn]:
    """Starts proxies of the test's own on the demo's servers: ``own(settings, topology)``.

    At the end they must be idle, and have nothing in their logs but what `expected` names.
    """
    made: list[tuple[OwnProxy, tuple[str, ...]]] = []
    with ExitStack() as stack:

        def start(
            settings: Mapping[str, Any] | None = None,
            topology: Document | None = None,
            expected: tuple[str, ...] = (),
        ) -> OwnProxy:
            proxy = OwnProxy(demo, tmp_path / f"proxy{len(made)}", settings, topology)
            made.append((stack.enter_context(proxy), expected))
            return proxy

        yield start
        for proxy, _ in made:
            if proxy.proxy.alive:
                proxy.close_clients()
                proxy.wait_idle(clients=0)
    for proxy, expected in made:
        problems = log_problems(proxy.log.read_text(errors="replace"), expected)
        assert not problems, "\n".join(problems)


class Things:
    """Objects and relations of one test in `demo`, made through the proxy and deleted at the end."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.cursor: Cursor = connection.cursor()
        self._deletes: list[tuple[str, int]] = []

    def insert(self, table: str, data: Mapping[str, Any]) -> int:
        """An object; its ID, from the OK packet."""
        self.cursor.execute(f"INSERT INTO {table} (data) VALUES (%s)", (json.dumps(data),))
        id = self.cursor.lastrowid
        self.forget_later(table, "id", id)
        return id

    def map(self, table: str, source: int, target: int, sequence: int | None = None) -> None:
        """A mapping row."""
        names = {
            "user_has_boards": ("user_id", "board_id"),
            "board_has_pins": ("board_id", "pin_id"),
        }[table]
        sequence = sequence if sequence is not None else int(time.time() * 1000) * 10**25
        self.cursor.execute(
            f"INSERT INTO {table} ({names[0]}, {names[1]}, sequence) VALUES (%s, %s, %s)",
            (source, target, sequence),
        )
        self.forget_later(table, names[0], source)

    def forget_later(self, table: str, column: str, id: int) -> None:
        """Delete that row, made by the test itself, at the end."""
        self._deletes.append((f"{table} WHERE {column} = %s", id))

    def clear(self) -> None:
        for what, id in dict.fromkeys(reversed(self._deletes)):
            self.cursor.execute(f"DELETE FROM {what}", (id,))


@pytest.fixture
def things(connect: Connect) -> Iterator[Things]:
    made = Things(connect())
    yield made
    with connect() as connection:  # the test may have spoilt the first one
        made.connection, made.cursor = connection, connection.cursor()
        made.clear()


def shard_of(id: int) -> int:
    return id >> 46


def type_of(id: int) -> int:
    return id >> 36 & 0x3FF


def local_of(id: int) -> int:
    return id & (1 << 36) - 1


def make_id(shard: int, type: int, local: int) -> int:
    return shard << 46 | type << 36 | local


@pytest.fixture
def users(proxy_of_all: OwnProxy) -> Iterator[OwnProxy]:
    """The module's proxy with users of every kind, with nobody connected and no failed log-in remembered."""
    proxy_of_all.connect().close()
    yield proxy_of_all
    proxy_of_all.close_clients()
    proxy_of_all.wait_idle(clients=0)
