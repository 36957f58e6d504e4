"""A worker's services without a worker: a real topology, real counters and real pools, and clients that are
only what the status page looks at.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from config.load import load_topology
from config.settings import Limits
from config.topology import Topology
from proxy.backends import Backends
from proxy.backends.connection import BackendConnection
from proxy.backends.host import HostLimits, HostPool
from proxy.engine.clients import Clients
from proxy.engine.problems import ShardProblems
from proxy.stats import Stats

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


async def no_connection(host: str, owner: HostPool, variant: int) -> BackendConnection:
    raise AssertionError("the status page opens no connection")


def make_pool(host: str) -> HostPool:
    limits = HostLimits(100, 1000, 5.0, 3.0, 300.0, 5.0, None)
    return HostPool(host, limits, no_connection, lambda coroutine, name: None, lambda: 0.0)


def make_services(document: dict[str, Any] = DOCUMENT, topology: Topology | None = None) -> Any:
    """Services as the room sees them."""
    topology = topology or load_topology(document)
    return SimpleNamespace(
        backends=Backends(make_pool),
        stats=Stats(),
        clients=Clients(Limits(), 10_000),
        serving=SimpleNamespace(
            topology=topology,
            schema=SimpleNamespace(version=3),
            problems=ShardProblems(),
            snapshot=SimpleNamespace(
                rewriter=SimpleNamespace(
                    entries=42, hits=98_765, misses=123, differences=2, kept=lambda only: iter(())
                )
            ),
        ),
        server_version="8.4.0",
        settings=SimpleNamespace(
            limits=SimpleNamespace(max_connections=10_000),
            backends=SimpleNamespace(max_connections_for=lambda host: 100),
            plan_cache_size=10_000,
        ),
    )


def add_client(services: Any, *, ready: bool = True, in_transaction: bool = False) -> None:
    """A client that has logged in."""
    transaction = SimpleNamespace(open=in_transaction)
    client = SimpleNamespace(ready=ready, session=SimpleNamespace(transaction=transaction))
    services.clients.connections.add(id(client))
    services.clients.sessions[len(services.clients.sessions) + 1] = client


@pytest.fixture
def services() -> Any:
    """Three hosts, one of them away, some clients and some statements."""
    made = make_services()
    first, second, third = (made.backends.pool(host) for host in (FIRST, SECOND, THIRD))
    for pool, busy, idle, opening in ((first, 12, 30, 2), (second, 3, 9, 0)):
        pool.version, pool.opened_total = "8.4.0", busy + idle
        pool.state.busy.update(dict.fromkeys(range(busy), ""))
        pool.state.idle[0].extend(range(idle))
        pool.state.opening = opening
    for _ in range(4):
        first.state.waiting.add(SimpleNamespace(user=""))
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
    made.stats.topology_changes, made.stats.topology_refused = 2, 1
    made.serving.problems.note(
        1146, "shard 3 (db00003) on 10.0.0.1:3306", "Table 'db00003.<b>' doesn't exist"
    )
    made.stats.schema_changes = 4
    made.stats.recent_changes = [
        (1_700_000_000.0, "version 6 in use"),
        (1_700_000_100.0, "version 7 in use"),
        (1_700_000_200.0, "refused: topology.json: keyspaces.main.ranges[1]: overlaps\nand more <b>"),
    ]
    return made
