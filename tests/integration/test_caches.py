"""Tables with a cache: what is answered from it, and what invalidates it, with real memcached and Redis."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
import yaml

from config.layout import PINTEREST
from tests.integration.binary import Binary, integer
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


@pytest.fixture
def proxy(demo: Demo, own: MakeOwn, stores: dict[str, LocalCache], tmp_path: Path) -> OwnProxy:
    prefix = tmp_path.name.replace("_", "-")[-40:]
    caches = {kind: {kind: one.address, "lease": LEASE, "prefix": prefix} for kind, one in stores.items()}
    tables = {"pins": caches["memcached"], "board_has_pins": caches["redis"]}
    started = own({"schema": schema_with(demo, tmp_path / "schema.json", tables)})
    Counts(started.connect(), "memcached").wait_used(1)
    Counts(started.connect(), "redis").wait_used(1)
    return started


@pytest.fixture
def pins(proxy: OwnProxy, demo: Demo) -> Iterator[Callable[[], int]]:
    """Makes objects of the test's own."""
    made: list[int] = []
    connection = proxy.connect()

    def make() -> int:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO pins (data) VALUES (%s)", (json.dumps({"n": 0}),))
            made.append(cursor.lastrowid)
        return made[-1]

    yield make
    with demo.connect() as plain, plain.cursor() as cursor:
        cursor.execute(f"DELETE FROM pins WHERE id IN ({', '.join(map(str, made))})")


def kept(counts: Counts, reader: Connection, sql: str) -> list[tuple[Any, ...]]:
    """The answer to `sql`, which the cache gives from now on."""
    found = rows(reader, sql)
    wait_until(lambda: counts.of(lambda: rows(reader, sql), "Hits") == 1, "the answer to be kept")
    return found


def test_an_object_is_answered_from_the_cache(proxy: OwnProxy, pins: Callable[[], int]) -> None:
    """The same bytes and counts as from the server; not within a transaction, nor with other settings."""
    connection, pin = proxy.connect(), pins()
    counts = Counts(proxy.connect(), "memcached")
    sql = f"SELECT id, data, ts FROM pins WHERE id = {pin}"
    first = kept(counts, connection, sql)
    assert rows(connection, sql) == first
    assert rows(connection, "SELECT FOUND_ROWS(), ROW_COUNT(), @@warning_count") == [(1, -1, 0)]
    raw = proxy.raw()
    wait_until(lambda: counts.of(lambda: raw.ask(sql.encode()), "Hits") == 1, "a hit of another session's")
    assert raw.ask(sql.encode()).rows == raw.ask(sql.replace("id,", "id ,", 1).encode()).rows
    for setting in ("BEGIN", "SET autocommit = 0"):
        rows(connection, setting)
        assert counts.of(lambda: rows(connection, sql), "Hits") == 0
        rows(connection, "ROLLBACK")
    rows(connection, "SET autocommit = 1, time_zone = '+05:00'")
    other = rows(connection, sql)
    assert other[0][2] != first[0][2]
    rows(connection, "SET time_zone = DEFAULT")
    assert rows(connection, sql) == first


def test_what_is_not_there_is_not_kept(proxy: OwnProxy, pins: Callable[[], int]) -> None:
    """An ID without a row may be given at any time, and nobody would invalidate it."""
    connection, pin = proxy.connect(), pins()
    counts = Counts(proxy.connect(), "memcached")
    sql = f"SELECT id FROM pins WHERE id = {pin + 1_000_000}"
    puts = counts.of(lambda: [rows(connection, sql) for _ in range(3)], "Puts")
    assert (puts, counts.of(lambda: rows(connection, sql), "Hits")) == (0, 0)
    kept(counts, connection, f"SELECT id FROM pins WHERE id IN ({pin}, {pins()})")


def test_a_list_is_answered_from_the_cache(proxy: OwnProxy, demo: Demo) -> None:
    connection, board = proxy.connect(), PINTEREST.compose(shard=11, type=2, local=1 << 31)
    counts = Counts(proxy.connect(), "redis")
    sql = f"SELECT pin_id FROM board_has_pins WHERE board_id = {board} ORDER BY sequence"
    try:
        assert kept(counts, connection, sql) == []  # a list without rows, too
        rows(connection, f"INSERT INTO board_has_pins (board_id, pin_id) VALUES ({board}, 1), ({board}, 2)")
        assert rows(connection, sql) == [(1,), (2,)]
        assert kept(counts, connection, sql) == [(1,), (2,)]
        rows(connection, f"CALL reorder_board_pin({board}, 2, NULL, 1)")
        order = rows(connection, sql)
        rows(connection, f"DELETE FROM board_has_pins WHERE board_id = {board} AND pin_id = 1")
        assert rows(connection, sql) == [(2,)] != order
    finally:
        with demo.connect() as plain:
            rows(plain, f"DELETE FROM board_has_pins WHERE board_id = {board}")


def test_every_kind_of_write_invalidates(proxy: OwnProxy, pins: Callable[[], int]) -> None:
    writer, reader = proxy.connect(), proxy.connect()
    counts = Counts(proxy.connect(), "memcached")

    def check(pin: int, *writes: str) -> None:
        sql = f"SELECT data FROM pins WHERE id = {pin}"
        before = kept(counts, reader, sql)
        for write in writes:
            rows(writer, write.format(P=pin, D=f"db{pin >> 46:05d}", L=pin & (1 << 36) - 1))
        assert rows(reader, sql) != before, writes

    changed = "SET data = JSON_SET(data, '$.n', 1)"
    check(pins(), f"UPDATE pins {changed} WHERE id = {{P}}")
    check(pins(), f"UPDATE pins {changed} WHERE id IN ({{P}}, {pins()})")
    check(pins(), "BEGIN", f"UPDATE pins {changed} WHERE id = {{P}}", "COMMIT")
    check(pins(), "SET autocommit = 0", f"UPDATE pins {changed} WHERE id = {{P}}", "SET autocommit = 1")
    check(pins(), "DELETE FROM pins WHERE id = {P}")
    check(pins(), f"UPDATE pins {changed} WHERE id BETWEEN {{P}} AND {{P}}")
    check(pins(), f"UPDATE {{D}}.pins {changed} WHERE local_id = {{L}}")
    check(pins(), "REPLACE INTO pins (id, data) VALUES ({P}, '{{\"n\": 1}}')")
    check(pins(), f"UPDATE /*+ scatter */ pins {changed} WHERE JSON_EXTRACT(data, '$.n') = 0 AND id > 0")


def test_prepared_statements(proxy: OwnProxy, pins: Callable[[], int]) -> None:
    """What runs as text is answered from the cache; a write that a server has prepared invalidates."""
    pin = pins()
    counts = Counts(proxy.connect(), "memcached")
    client = Binary(proxy.raw())
    read = client.statement(b"SELECT data FROM pins WHERE id = ?")
    first = client.execute(read.id, [integer(pin)]).rows

    def hit() -> bool:
        found: list[object] = []
        hits = counts.of(lambda: found.append(client.execute(read.id, [integer(pin)]).rows), "Hits")
        assert found == [first]
        return hits == 1

    wait_until(hit, "a hit")
    text = f"UPDATE db{pin >> 46:05d}.pins SET data = JSON_SET(data, '$.n', ?) WHERE local_id = ?"
    write = client.statement(text.encode())
    client.execute(write.id, [integer(5), integer(pin & (1 << 36) - 1)])
    assert client.execute(read.id, [integer(pin)]).rows != first


def test_flush_cache(proxy: OwnProxy, pins: Callable[[], int], demo: Demo) -> None:
    """What was written past the proxy is seen when the operator says so."""
    connection, pin, other = proxy.connect(), pins(), pins()
    counts = Counts(proxy.connect(), "memcached")
    sql = "SELECT data FROM pins WHERE id = {}"
    before = [kept(counts, connection, sql.format(one)) for one in (pin, other)]
    with demo.connect() as past:  # another proxy, which knows of no cache
        for one in (pin, other):
            rows(past, f"UPDATE pins SET data = JSON_SET(data, '$.n', 7) WHERE id = {one}")
    assert [rows(connection, sql.format(one)) for one in (pin, other)] == before
    rows(connection, f"FLUSH CACHE FOR pins {pin}")
    assert rows(connection, sql.format(pin)) != before[0]
    assert rows(connection, sql.format(other)) == before[1]
    rows(connection, "FLUSH CACHE FOR demo.pins")
    assert rows(connection, sql.format(other)) != before[1]
    with pytest.raises(pymysql.MySQLError, match="names no cache"):
        rows(connection, "FLUSH CACHE FOR boards")
    with pytest.raises(pymysql.MySQLError, match="takes IDs"):
        rows(connection, "FLUSH CACHE FOR pins 'x'")
    reader = proxy.connect(**demo.ready["read_user"])
    with pytest.raises(pymysql.MySQLError, match="role"):
        rows(reader, "FLUSH CACHE FOR pins")


def test_explain_route(proxy: OwnProxy, pins: Callable[[], int]) -> None:
    connection, pin = proxy.connect(), pins()
    asked = dict(rows(connection, f"EXPLAIN ROUTE SELECT * FROM pins WHERE id = {pin}"))
    assert asked["asked first"].startswith("memcached 127.0.0.1:")
    assert asked["asked first"].endswith(f": {pin}")
    write = dict(rows(connection, f"EXPLAIN ROUTE DELETE FROM pins WHERE id = {pin}"))
    assert write["invalidates"].endswith(f": {pin}")
    assert write["plan"] == "write to shards"


def test_metrics_and_page(proxy: OwnProxy, pins: Callable[[], int]) -> None:
    connection, pin = proxy.connect(), pins()
    counts = Counts(proxy.connect(), "memcached")
    kept(counts, connection, f"SELECT data FROM pins WHERE id = {pin}")
    name = counts.now()["Cache"]
    assert proxy.metric(f'shardgate_cache_used{{cache="{name}"}}') == 1
    assert proxy.metric(f'shardgate_cache_reads_total{{cache="{name}",outcome="hit"}}') >= 1


def test_each_worker_is_a_member(
    demo: Demo, own: MakeOwn, stores: dict[str, LocalCache], tmp_path: Path
) -> None:
    cache = {"redis": stores["redis"].address, "lease": LEASE, "prefix": tmp_path.name[-20:]}
    schema = schema_with(demo, tmp_path / "schema.json", {"pins": cache})
    proxy = own({"schema": schema, "workers": 2})
    Counts(proxy.connect(), "redis").wait_used(2)
