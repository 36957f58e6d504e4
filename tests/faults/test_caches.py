"""Tables with a cache, under writers and readers through two proxies: while all is well, nobody reads what is
old; whatever dies or is cut off, nobody does later than a lease after the write was acknowledged.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import redis

from config.layout import PINTEREST
from tests.faults.conftest import demo_topology
from tests.faults.link import Link
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy, moved, statements_like
from tests.integration.raw import query
from tests.integration.test_caches import Counts, schema_with, stores
from tests.support.cached_rows import CachedRows, Row, list_row, pin_row
from tests.support.caches import LocalCache
from tests.support.demo import Demo
from tests.support.waiting import wait_until

__all__ = ["stores"]

#: What the caches do is the proxy's, whatever server is behind it.
pytestmark = pytest.mark.parametrize("flavour", ["mariadb"], indirect=True, scope="session")

LEASE = 2.0
LATE = 0.5
"""Seconds that a loaded machine may add to a lease: what is measured is the client's time."""
UNUSED = "a cache is not used"

Stores = dict[str, LocalCache]


class Two:
    """Two proxies on the same caches, rows of the test's own, and clients of both."""

    def __init__(self, proxies: list[OwnProxy], rows: list[Row], kind: str) -> None:
        self.proxies = proxies
        self.rows = rows
        self.problems: list[str] = []  # of the clients
        self.counts = [Counts(proxy.connect(), kind) for proxy in proxies]

    def wait_used(self) -> None:
        for counts in self.counts:
            counts.wait_used(len(self.proxies))

    @contextmanager
    def clients(
        self, lease: float = 0.0, *, transactions: bool = False, tolerant: bool = False
    ) -> Iterator[CachedRows]:
        ends = [proxy.connect for proxy in self.proxies]
        with CachedRows(
            self.rows,
            ends * 2,
            ends * 2,
            rest=8.0,
            lease=lease,
            transactions=transactions,
            tolerant=tolerant,
            excused=self.lost_before,
        ) as found:
            self.problems = found.problems
            yield found

    def lost_before(self, late: float, asked: float) -> bool:
        """Whether a proxy had lost the cache within the lease before `asked`: a busy machine may take more
        than the 50 ms for which a write waits for its lock.
        """
        if late > LEASE + LATE:
            return False
        since = datetime.now(UTC) - timedelta(seconds=LEASE + LATE + time.monotonic() - asked)

        def lost() -> bool:
            lines = [line for proxy in self.proxies for line in proxy.logged(UNUSED, 0)]
            return any(datetime.fromisoformat(line["time"]) > since for line in lines)

        with suppress(AssertionError):
            return wait_until(lost, "a line of the log, which a thread writes", 2)
        return False

    def wait_hits(self, more: int = 50) -> None:
        """Until both proxies have answered so many more reads from the cache."""
        before = [int(counts.now()["Hits"]) for counts in self.counts]

        def enough() -> bool:
            now = [int(counts.now()["Hits"]) for counts in self.counts]
            return bool(self.problems) or all(a >= b + more for a, b in zip(now, before, strict=True))

        wait_until(enough, f"{more} more hits")

    def wait_reads(self, found: CachedRows, more: int = 100) -> None:
        before = found.reads
        wait_until(lambda: found.reads > before + more or found.problems, "reads")


@pytest.fixture(params=["memcached", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def two(demo: Demo, own: MakeOwn, stores: Stores, kind: str, tmp_path: Path) -> Iterator[Callable[..., Two]]:
    """`two(addresses, expected)`: proxies with these addresses of the cache."""
    board = PINTEREST.compose(shard=7, type=2, local=(1 << 30) + 1)
    boards = range(board, board + 20)
    with demo.connect() as connection, connection.cursor() as cursor:
        pins = []
        for _ in range(20):
            cursor.execute("INSERT INTO pins (data) VALUES (%s)", (json.dumps({"n": 0}),))
            pins.append(cursor.lastrowid)

        def start(addresses: list[str] | None = None, expected: tuple[str, ...] = ()) -> Two:
            prefix = f"{kind}-{tmp_path.name}"[-40:].replace("[", ".").replace("]", ".")
            proxies = []
            for n, address in enumerate(addresses or [stores[kind].address] * 2):
                cache = {kind: address, "lease": LEASE, "prefix": prefix}
                path = tmp_path / f"schema{n}.json"
                schema = schema_with(demo, path, {"pins": cache, "board_has_pins": cache})
                settings = {"schema": schema, "timeouts": {"drain": "3s"}}
                proxies.append(own(settings, expected=expected))
            return Two(proxies, [*map(pin_row, pins), *map(list_row, boards)], kind)

        try:
            yield start
        finally:
            cursor.execute(f"DELETE FROM pins WHERE id IN ({', '.join(map(str, pins))})")
            cursor.execute(f"DELETE FROM board_has_pins WHERE board_id BETWEEN {board} AND {boards[-1]}")


@pytest.mark.parametrize(("kind", "transactions"), [("memcached", False), ("redis", True)], indirect=["kind"])
def test_nobody_reads_what_is_old(two: Callable[..., Two], transactions: bool) -> None:
    both = two()
    both.wait_used()
    with both.clients(transactions=transactions):
        both.wait_hits(500)


def test_killed_and_started_again(two: Callable[..., Two], stores: Stores, kind: str) -> None:
    both = two(expected=(UNUSED,))
    both.wait_used()
    with both.clients() as found:
        both.wait_hits()
        stores[kind].kill()
        both.wait_reads(found, 300)
        stores[kind].start()
        both.wait_used()
        both.wait_hits(200)


def test_stopped(two: Callable[..., Two], stores: Stores, kind: str) -> None:
    both = two(expected=(UNUSED,))
    both.wait_used()
    with both.clients() as found:
        both.wait_hits()
        stores[kind].pause()
        both.wait_reads(found, 300)
        stores[kind].resume()
        both.wait_used()
        both.wait_hits(200)


def test_one_proxy_is_cut_off(two: Callable[..., Two], stores: Stores, kind: str) -> None:
    """What it writes the other one must not tell of old for longer than a lease; then that asks no more."""
    with Link("127.0.0.1", stores[kind].port) as link:
        both = two([link.address, stores[kind].address], expected=(UNUSED,))
        both.wait_used()
        with both.clients(LEASE + LATE) as found:
            both.wait_hits()
            link.stall()
            wait_until(lambda: both.counts[1].now()["Used"] == "no", "the other proxy to see it")
            both.wait_reads(found, 300)
            link.pass_on()
            both.wait_used()
            both.wait_hits(200)


@pytest.mark.parametrize("kind", ["memcached"], indirect=True)
def test_a_proxy_is_killed(two: Callable[..., Two]) -> None:
    """The other asks no more. (How it is sure one day that nothing of the dead one's can come, is tried in
    tests/execute/test_cache_server.py: that takes a minute.)
    """
    both = two(expected=(UNUSED,))
    both.wait_used()
    with both.clients(LEASE + LATE, tolerant=True) as found:
        both.wait_hits()
        both.proxies[0].signal(signal.SIGKILL)
        wait_until(lambda: both.counts[1].now()["Used"] == "no", "the other proxy to see it")
        both.wait_reads(found, 300)


@pytest.fixture
def link(demo: Demo) -> Iterator[Link]:
    """Leads to the first server."""
    with Link(demo.masters[0].host, demo.masters[0].port) as made:
        yield made


def changes(now: Callable[[], int], before: int, sign: int) -> bool:
    """Whether it has grown, or (`sign` -1) fallen."""
    return (now() - before) * sign > 0


def test_a_write_of_which_nobody_knows(
    demo: Demo, stores: Stores, link: Link, own: MakeOwn, tmp_path: Path
) -> None:
    """Its answer was lost while it waited for a row: it may be done much later, and stays locked."""
    board = PINTEREST.compose(shard=9, type=2, local=(1 << 30) + 1)
    cache = {"redis": stores["redis"].address, "lease": LEASE, "prefix": "unknown"}
    schema = schema_with(demo, tmp_path / "schema.json", {"board_has_pins": cache})
    topology = moved(demo_topology(demo), {demo.masters[0].address: link.address})
    proxy = own({"schema": schema, "timeouts": {"buffer": 0}}, topology)
    Counts(proxy.connect(), "redis").wait_used(1)
    store = redis.Redis("127.0.0.1", stores["redis"].port)
    key = f"unknown:g:demo.board_has_pins:{board}"

    def left() -> int:
        return int(store.pttl(key))

    with demo.direct(0) as server, demo.direct(0) as other, server.cursor() as cursor:
        cursor.execute(f"INSERT INTO db00009.board_has_pins VALUES ({board}, 1, 1)")
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT * FROM db00009.board_has_pins WHERE board_id = {board} FOR UPDATE")
        client = proxy.raw()
        client.write(query(f"UPDATE board_has_pins SET sequence = 2 WHERE board_id = {board}"))
        (thread,) = wait_until(lambda: statements_like(other, "UPDATE%board_has_pins%"), "it waits")
        link.reset()
        assert client.reply().code == 1158
        for _ in range(3):
            before = left()
            wait_until(partial(changes, left, before, -1), "time to pass", 60)
            wait_until(partial(changes, left, left(), 1), "the lock to be put again", 60)
        with other.cursor() as killer:
            killer.execute(f"KILL {thread}")
        cursor.execute("ROLLBACK")
        cursor.execute(f"DELETE FROM db00009.board_has_pins WHERE board_id = {board}")
    store.close()


@pytest.mark.parametrize("kind", ["redis"], indirect=True)
def test_a_proxy_that_stops_is_not_waited_for(two: Callable[..., Two]) -> None:
    both = two()
    both.wait_used()
    with both.clients(tolerant=True) as found:
        both.wait_hits()
        both.counts[0].connection.close()  # an idle client is waited for
        both.proxies[0].signal(signal.SIGTERM)
        both.counts[1].wait_used(1)  # without a line in its log that says otherwise
        both.wait_reads(found)
