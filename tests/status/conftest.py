"""A worker's services without a worker, with clients that have no connection."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import load_topology
from config.schema import Schema
from config.topology import Topology
from config.xa import BranchName
from proxy.backends import Backends
from proxy.backends.connection import BackendConnection
from proxy.backends.host import HostLimits, HostPool
from proxy.backends.settings import LOGIN
from proxy.backends.waiting import NOBODY, Waiter
from proxy.load import bucket_of
from proxy.session.state import Role, Session, User
from proxy.xa.resolver import Found
from rewriter.env import Env
from tests.execute.world import Connection
from tests.support import services as support

FIRST, SECOND, THIRD = "db1.example:3306", "db2.example:3306", "db3.example:3306"

DOCUMENT: dict[str, Any] = {
    "version": 7,
    "default": {"master": FIRST},
    "keyspaces": {
        "main": {
            "layout": "pinterest",
            "database": "db{shard:05d}",
            "ranges": [
                {"range": [0, 1023], "master": FIRST, "slave": "db1b.example:3306"},
                {"range": [1024, 1535], "master": SECOND, "slave": "db2b.example:3306"},
                {"range": [1536, 2047], "master": THIRD, "open": False},
                {"range": [2048, 2559], "master": SECOND, "state": "frozen"},
                {"range": [2560, 3071], "master": THIRD, "state": "read_only"},
                {"range": [3072, 4095], "master": FIRST, "state": "offline", "open": False},
            ],
        },
        "lookup": {
            "hash": "md5",
            "shards": 4096,
            "database": "msdb{shard:05d}",
            "ranges": [
                {"range": [0, 2047], "master": FIRST},
                {"range": [2048, 4095], "master": SECOND},
            ],
        },
        "global": {"master": FIRST},
    },
}


async def no_connection(host: str, owner: HostPool, capability_set: int) -> BackendConnection:
    raise AssertionError("the status page opens no connection")


class Resting:
    """A connection that a session has, with nothing at work."""

    receiver = None


def no_answer(given: object) -> None:
    raise AssertionError("nobody's turn comes")


def make_pool(host: str) -> HostPool:
    limits = HostLimits(100, 1000, 5.0, 3.0, 300.0, 5.0, None)
    return HostPool(host, limits, no_connection, lambda coroutine, name: None, lambda: 0.0)


def make_services(document: dict[str, Any] = DOCUMENT, topology: Topology | None = None) -> Any:
    """A worker's, whose rewriter has planned this and that."""
    made = support.make_services(
        Backends(make_pool),
        schema=Schema(3, {}),
        topology=topology or load_topology(document),
        settings={"backends": {"user": "proxy", "max_connections": 100}, "plan_cache_size": 10_000},
        version="8.4.0",
    )
    rewriter = made.serving.snapshot.rewriter
    for sql in (b"SELECT 1", b"SELECT 1, 2"):
        rewriter.plan(sql, Env())
    rewriter.hits, rewriter.misses, rewriter.differences = 98_765, 123, 2
    return made


def add_client(services: Any, *, ready: bool = True, in_transaction: bool = False) -> None:
    """A client that has logged in."""
    client, number = Connection(services), services.clients.next_id()
    client.begin_session(Session(number, User("u", Role.ADMIN), "127.0.0.1:4711", "8.4.0", {}))
    client.ready = ready
    if in_transaction:
        client.session.transaction.start()
    services.clients.connections.add(client)
    services.clients.sessions[number] = client


@pytest.fixture
def services() -> Any:
    """Three hosts, one of them away, some clients and some statements."""
    made = make_services()
    first, second, third = (made.backends.pool(host) for host in (FIRST, SECOND, THIRD))
    for pool, busy, idle, opening in ((first, 12, 30, 2), (second, 3, 9, 0)):
        pool.version, pool.opened_total = "8.4.0", busy + idle
        pool.state.busy.update({Resting(): "" for _ in range(busy)})
        pool.state.idle[0].extend(range(idle))
        pool.state.opening = opening
    for user in ("app", "app", "app", "other", NOBODY):  # the last one is the proxy's own question
        first.state.waiting.add(Waiter(LOGIN, None, 0, float("inf"), no_answer, no_answer, user))
    third.failures, third.last_error = 17, "Connection refused"
    for number in range(48):
        add_client(made, ready=number % 3 != 0, in_transaction=number % 8 == 0)
    made.clients.connections.add("not logged in")
    made.stats.started_connections = 1203
    made.stats.refused("access_denied")
    for _ in range(95):
        made.stats.observe("single", "ok", 0.0008)
    for _ in range(4):
        made.stats.observe("single", "error", 0.003)
    made.stats.observe("single", "host_unreachable", 30.0)
    for _ in range(20):
        made.stats.observe("scatter", "ok", 0.04)
    made.waiting_room.outcomes.update(ran=5, timeout=1)
    made.resolver.counts.update(committed=3)
    made.resolver.resolved.update(committed=1)
    name = BranchName(b"g", b"1.x", "0" * 16, 1)
    made.resolver.prepared[FIRST, b"g", b"1.x"] = Found(FIRST, name, 0.0)
    made.waiting_room.seconds = 7.5
    made.stats.topology_changes, made.stats.topology_refused = 2, 1
    made.serving.problems.note(
        1146, "shard 3 (db00003) on 10.0.0.1:3306", "Table 'db00003.<b>' doesn't exist"
    )
    made.stats.schema_changes = 4
    made.backends.loads.failed(1690)
    for seconds in (0.001, 0.002, 0.5):
        first.load.add(seconds, 10, bucket_of(seconds))
    first.load.errors, first.load.waits, first.load.waited = 1, 2, 0.25
    made.stats.recent_changes = [
        (1_700_000_000.0, "version 6 in use"),
        (1_700_000_100.0, "version 7 in use"),
        (1_700_000_200.0, "refused: topology.json: keyspaces.main.ranges[1]: overlaps\nand more <b>"),
    ]
    return made
