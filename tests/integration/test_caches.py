"""Tables with a cache: what is answered from it, and what invalidates it, with real memcached and Redis."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.support.caches import LocalCache
from tests.support.demo import Demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until

LEASE = 2.0


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, LocalCache]]:
    made = {kind: LocalCache(kind, tmp_path_factory.mktemp(kind)) for kind in ("memcached", "redis")}
    for one in made.values():
        one.start()
    yield made
    for one in made.values():
        one.stop()


def schema_with(demo: Demo, path: Path, tables: dict[str, dict[str, Any]]) -> str:
    """The demo's schema, where these tables have these caches."""
    document = yaml.safe_load(demo.schema.read_text())
    for name, cache in tables.items():
        document["databases"]["demo"]["tables"][name]["cache"] = cache
    path.write_text(json.dumps(document))
    return str(path)


Table = list[dict[str, Any]]


def rows(connection: Connection, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments or None)
        return list(cursor.fetchall())


class Counts:
    """What a proxy's cache of one kind has counted."""

    def __init__(self, connection: Connection, kind: str) -> None:
        self.connection = connection
        self.kind = kind

    def now(self) -> dict[str, Any]:
        with self.connection.cursor() as cursor:
            cursor.execute("SHOW PROXY CACHES LIKE %s", (f"{self.kind}%",))
            names = [column[0] for column in cursor.description]
            (row,) = cursor.fetchall()
        return dict(zip(names, row, strict=True))

    def of(self, run: Callable[[], object], name: str) -> int:
        """How much one of them grows by `run`."""
        before = int(self.now()[name])
        run()
        return int(self.now()[name]) - before

    def wait_used(self, members: int) -> None:
        wait_until(
            lambda: (found := self.now())["Used"] == "yes" and found["Members"] == members, "the cache"
        )


def wait_grown(counts: Counts, name: str, more: int = 1) -> None:
    """Until one of the counts is so much higher."""
    before = int(counts.now()[name])
    wait_until(lambda: int(counts.now()[name]) >= before + more, f"{more} more {name}")


@pytest.fixture
def proxy(demo: Demo, own: MakeOwn, stores: dict[str, LocalCache], tmp_path: Path) -> OwnProxy:
    prefix = tmp_path.name.replace("_", "-")[-40:]
    caches = {kind: {kind: one.address, "lease": LEASE, "prefix": prefix} for kind, one in stores.items()}
    tables = {"pins": caches["memcached"], "board_has_pins": caches["redis"]}
    return own({"schema": schema_with(demo, tmp_path / "schema.json", tables)})


def test_thin(proxy: OwnProxy) -> None:
    connection = proxy.connect()
    memcached = Counts(connection, "memcached")
    memcached.wait_used(1)
    (pin,) = rows(connection, "SELECT pin_id FROM board_has_pins LIMIT 1")[0]
    sql = f"SELECT * FROM pins WHERE id = {pin}"
    first = rows(connection, sql)
    print(first, memcached.now())
    wait_until(lambda: memcached.of(lambda: rows(connection, sql), "Hits"), "a hit")
    assert rows(connection, sql) == first
    print(memcached.now())
    rows(connection, f"UPDATE pins SET data = JSON_SET(data, '$.x', 1) WHERE id = {pin}")
    assert rows(connection, sql) != first
    print(memcached.now(), rows(connection, "SHOW PROXY CACHES"), rows(connection, "EXPLAIN ROUTE " + sql))
