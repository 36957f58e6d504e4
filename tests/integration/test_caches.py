"""Tables with a cache: what is answered from it, and what invalidates it, with real memcached and Redis."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
import redis
import yaml

from config import xa
from config.layout import PINTEREST
from tests.integration.binary import Binary, integer
from tests.integration.fixtures import MakeOwn, shard_of
from tests.integration.own import OwnProxy, log_problems
from tests.integration.raw import MULTI_STATEMENTS, query
from tests.support.caches import LocalCache
from tests.support.demo import Demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until

pytestmark = pytest.mark.either_server

LEASE = 2.0


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, LocalCache]]:
    made = {kind: LocalCache(kind, tmp_path_factory.mktemp(kind)) for kind in ("memcached", "redis")}
    for one in made.values():
        one.start()
    yield made
    for one in made.values():
        one.stop()


def schema_with(demo: Demo, path: Path, tables: dict[str, dict[str, Any]], **fields: Any) -> str:
    """The demo's schema, where these tables have these caches. `fields`: what else they have."""
    document = yaml.safe_load(demo.schema.read_text())
    for name, cache in tables.items():
        document["databases"]["demo"]["tables"][name] |= {"cache": cache, **fields}
    path.write_text(json.dumps(document))
    return str(path)


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


@pytest.fixture(scope="module")
def proxy(
    demo: Demo, stores: dict[str, LocalCache], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OwnProxy]:
    """One for all of these tests, each of which has objects and lists of its own. Pins are hidden by a flag,
    which those have that a test hides.
    """
    folder = tmp_path_factory.mktemp("caches")
    caches = {
        kind: {kind: one.address, "lease": LEASE, "prefix": folder.name} for kind, one in stores.items()
    }
    path = folder / "schema.json"
    schema_with(demo, path, {"pins": caches["memcached"]}, soft_delete="$.active")
    document = json.loads(path.read_text())
    document["databases"]["demo"]["tables"]["board_has_pins"]["cache"] = caches["redis"]
    path.write_text(json.dumps(document))
    settings = {"schema": str(path), "xa": {"resolve_after": "200ms"}}
    with OwnProxy(demo, folder / "proxy", settings) as started:
        for kind in stores:
            Counts(started.connect(), kind).wait_used(1)
        yield started
        started.close_clients()
        started.wait_idle(clients=0)
    problems = log_problems(started.log.read_text(errors="replace"))
    assert not problems, "\n".join(problems)


@pytest.fixture
def pins(proxy: OwnProxy, demo: Demo) -> Iterator[Callable[..., int]]:
    """Makes objects of the test's own: `pins(fits)`, of which `fits(id)` is true."""
    made: list[int] = []
    connection = proxy.connect()

    def make(fits: Callable[[int], bool] = bool) -> int:
        with connection.cursor() as cursor:
            while True:
                cursor.execute("INSERT INTO pins (data) VALUES (%s)", (json.dumps({"n": 0}),))
                made.append(cursor.lastrowid)
                if fits(made[-1]):
                    return made[-1]

    yield make
    connection.close()
    with demo.connect() as plain, plain.cursor() as cursor:
        cursor.execute(f"DELETE FROM pins WHERE id IN ({', '.join(map(str, made))})")


def kept(counts: Counts, reader: Connection, sql: str) -> list[tuple[Any, ...]]:
    """The answer to `sql`, which the cache gives from now on."""
    found = rows(reader, sql)
    wait_until(lambda: counts.of(lambda: rows(reader, sql), "Hits") == 1, "the answer to be kept")
    return found


def test_an_object_is_answered_from_the_cache(proxy: OwnProxy, pins: Callable[..., int]) -> None:
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


def test_what_is_not_there_is_not_kept(proxy: OwnProxy, pins: Callable[..., int]) -> None:
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


def test_every_kind_of_write_invalidates(proxy: OwnProxy, pins: Callable[..., int]) -> None:
    writer, reader = proxy.connect(), proxy.connect()
    counts = Counts(proxy.connect(), "memcached")

    before: dict[str, list[tuple[Any, ...]]] = {}
    later: list[tuple[str, list[str]]] = []

    def check(pin: int, *writes: str) -> None:
        sql = f"SELECT data FROM pins WHERE id = {pin}"
        before[sql] = kept(counts, reader, sql)
        names = {"P": pin, "D": f"db{pin >> 46:05d}", "L": pin & (1 << 36) - 1}
        later.append((sql, [write.format(**names) for write in writes]))

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
    for sql, writes in later:  # the widest last: what they lock is not kept again for a while
        for write in writes:
            rows(writer, write)
        assert rows(reader, sql) != before[sql], writes


@pytest.mark.one_server
def test_a_write_over_hosts_that_takes_long(proxy: OwnProxy, pins: Callable[..., int], demo: Demo) -> None:
    """With transaction_mode = 'xa' it is a transaction of its own, to whose end nothing is kept."""
    made: dict[bool, int] = {}
    while len(made) < 2:
        pin = pins()
        made.setdefault(pin >> 46 < 32, pin)
    here, there = made[True], made[False]
    reader, writer = proxy.connect(), proxy.raw()
    counts = Counts(proxy.connect(), "memcached")
    sql = f"SELECT data FROM pins WHERE id = {here}"
    before = kept(counts, reader, sql)
    assert writer.ask("SET transaction_mode = 'xa'").kind == "ok"
    with demo.direct(1) as server, server.cursor() as cursor:
        cursor.execute("BEGIN")
        table, local = f"db{there >> 46:05d}.pins", there & (1 << 36) - 1
        assert cursor.execute(f"SELECT 1 FROM {table} WHERE local_id = {local} FOR UPDATE") == 1
        changed = "UPDATE pins SET data = JSON_SET(data, '$.n', 1)"
        writer.write(query(f"{changed} WHERE id IN ({here}, {there})"))
        wait_until(lambda: counts.of(lambda: rows(reader, sql), "Hits") == 0, "it is at work")
        until = time.monotonic() + 3 * LEASE
        while time.monotonic() < until:
            assert counts.of(lambda: rows(reader, sql), "Hits") == 0
        assert rows(reader, sql) == before
        server.rollback()
    assert writer.reply().affected == 2
    assert rows(reader, sql) != before


def test_prepared_statements(proxy: OwnProxy, pins: Callable[..., int]) -> None:
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


def test_flush_cache(proxy: OwnProxy, pins: Callable[..., int], demo: Demo) -> None:
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


def test_explain_route(proxy: OwnProxy, pins: Callable[..., int]) -> None:
    connection, pin = proxy.connect(), pins()
    asked = dict(rows(connection, f"EXPLAIN ROUTE SELECT * FROM pins WHERE id = {pin}"))
    assert asked["asked first"].startswith("memcached 127.0.0.1:")
    assert asked["asked first"].endswith(f": {pin}")
    write = dict(rows(connection, f"EXPLAIN ROUTE DELETE FROM pins WHERE id = {pin}"))
    assert write["invalidates"].endswith(f": {pin}")
    assert write["plan"] == "write to shards"


@pytest.fixture
def lists(demo: Demo) -> Iterator[list[int]]:
    """Lists on two hosts, two on a shard of each, of six rows each."""
    made = [PINTEREST.compose(shard=shard, type=2, local=1 << 31 | n) for shard in (3, 40) for n in (1, 2)]
    with demo.connect() as plain:
        for at, one in enumerate(made):
            wanted = ", ".join(f"({one}, {at * 100 + n}, {n * 10 + at})" for n in range(6))
            rows(plain, f"INSERT INTO board_has_pins VALUES {wanted}")
        yield made
        rows(plain, f"DELETE FROM board_has_pins WHERE board_id IN ({', '.join(map(str, made))})")


@pytest.mark.parametrize(
    ("first", "second"), [("LIMIT 3, 7", "LIMIT 3 OFFSET 7"), ("LIMIT 10", "LIMIT 5, 5")]
)
def test_what_the_proxy_makes_of_what_the_servers_give(
    proxy: OwnProxy, demo: Demo, lists: list[int], first: str, second: str
) -> None:
    """Two statements of which the servers get the same text have answers of their own."""
    connection, counts = proxy.connect(), Counts(proxy.connect(), "redis")
    among = f"FROM board_has_pins WHERE board_id IN ({', '.join(map(str, lists))})"
    for limit in (first, second):
        sql = f"SELECT pin_id {among} ORDER BY sequence, pin_id {limit}"
        with demo.connect() as plain:
            expected = rows(plain, sql)
        assert kept(counts, connection, sql) == expected == rows(connection, sql)


def test_several_statements(proxy: OwnProxy, pins: Callable[..., int]) -> None:
    """An answer from the cache says whether another one follows, whatever followed when it was kept."""
    counts, pin = Counts(proxy.connect(), "memcached"), pins()
    sql = f"SELECT data FROM pins WHERE id = {pin}"
    several = proxy.connect(client_flag=MULTI_STATEMENTS)

    def ask(text: str) -> list[list[tuple[Any, ...]]]:
        with several.cursor() as cursor:
            cursor.execute(text)
            found = [list(cursor.fetchall())]
            while cursor.nextset():
                found.append(list(cursor.fetchall()))
        return found

    first = ask(f"{sql}; SELECT 5")
    wait_until(lambda: counts.of(lambda: ask(f"{sql}; {sql}; SELECT 5"), "Hits") > 0, "a hit")
    assert ask(f"{sql}; SELECT 5") == first
    assert ask(sql) == first[:1]
    assert kept(counts, several, sql) == first[0]
    assert ask(f"{sql}; SELECT 5") == first


def test_hidden_rows(proxy: OwnProxy, pins: Callable[..., int]) -> None:
    """A read without the hint never gets what one with it has filled, and the other way round."""
    counts, pin, other = Counts(proxy.connect(), "memcached"), pins(), pins()
    plain, all_ = proxy.connect(), proxy.connect()
    rows(all_, "SET with_deleted = 1")
    sql = f"SELECT data FROM pins WHERE id IN ({pin}, {other})"
    hint = sql.replace("SELECT", "SELECT /*+ with_deleted */")
    assert len(kept(counts, plain, sql)) == 2 == len(kept(counts, all_, sql))
    for flag, seen in (("false", 1), ("true", 2), ("false", 1)):
        rows(plain, f"UPDATE pins SET data = JSON_SET(data, '$.active', {flag}) WHERE id = {pin}")
        for _ in range(2):
            assert len(rows(plain, sql)) == seen
            assert len(rows(all_, sql)) == 2 == len(rows(plain, hint))
    assert len(kept(counts, all_, sql)) == 2
    assert (len(rows(plain, sql)), len(rows(plain, hint))) == (1, 2)
    rows(all_, "SET with_deleted = 0")
    assert len(rows(all_, sql)) == 1


def test_a_row_that_is_made_with_its_id(proxy: OwnProxy, pins: Callable[..., int]) -> None:
    """INSERT of an object invalidates nothing, so nothing may be kept that it changes."""
    connection, counts, pin = proxy.connect(), Counts(proxy.connect(), "memcached"), pins()
    missing = pin + 54321
    sql = f"SELECT id FROM pins WHERE id IN ({pin}, {missing}) GROUP BY id WITH ROLLUP"
    for _ in range(3):
        assert rows(connection, sql) == [(pin,), (None,)]
    puts = counts.of(lambda: rows(connection, sql), "Puts")
    rows(connection, f"INSERT INTO pins (id, data) VALUES ({missing}, '{{}}')")
    assert (rows(connection, sql), puts) == ([(pin,), (missing,), (None,)], 0)
    rows(connection, f"DELETE FROM pins WHERE id = {missing}")


def test_a_function_that_writes(proxy: OwnProxy, demo: Demo, pins: Callable[..., int]) -> None:
    """Nobody sees what it changes: every cached table is taken for changed, also when SET calls it."""
    counts, pin = Counts(proxy.connect(), "memcached"), pins(lambda id: shard_of(id) < 32)
    client, sql = proxy.connect(database="legacy"), f"SELECT data FROM demo.pins WHERE id = {pin}"
    with demo.direct(0) as server:
        rows(
            server,
            "CREATE FUNCTION legacy.bump() RETURNS INT MODIFIES SQL DATA BEGIN UPDATE"
            f" db{shard_of(pin):05d}.pins SET data = JSON_SET(data, '$.n', 1)"
            f" WHERE local_id = {pin & (1 << 36) - 1}; RETURN 1; END",
        )
        try:
            before = kept(counts, client, sql)
            rows(client, "SET @x = bump()")
            assert rows(client, sql) != before
        finally:
            rows(server, "DROP FUNCTION legacy.bump")


def test_columns_of_now(proxy: OwnProxy, lists: list[int]) -> None:
    """Answers with the columns of before are given to nobody, nor to a statement that was prepared then."""
    counts, client = Counts(proxy.connect(), "redis"), proxy.connect()
    sql = f"SELECT * FROM board_has_pins WHERE board_id = {lists[0]} LIMIT 1"
    (before,) = kept(counts, client, sql)
    binary = Binary(proxy.raw())
    read = binary.statement(sql.encode())
    first = binary.execute(read.id)
    rows(client, "ALTER TABLE board_has_pins ADD COLUMN more INT DEFAULT 5")
    try:
        assert rows(client, sql) == [(*before, 5)]
        found = binary.execute(read.id)
        assert len(found.definitions) == len(first.definitions) + 1 == 4
    finally:
        rows(client, "ALTER TABLE board_has_pins DROP COLUMN more")
    assert rows(client, sql) == [before]


def test_a_branch_that_is_committed_later(proxy: OwnProxy, demo: Demo, pins: Callable[..., int]) -> None:
    """What a distributed transaction has left is finished by whoever finds it, who does not know its rows."""
    counts, client = Counts(proxy.connect(), "memcached"), proxy.connect()
    pin = pins(lambda id: shard_of(id) >= 32)
    sql, server = f"SELECT data FROM pins WHERE id = {pin}", demo.direct(1)
    with demo.direct(0) as first:
        ((identity,),) = rows(first, f"SELECT id FROM {xa.DATABASE}.{xa.IDENTITY}")
        gtrid = xa.new_gtrid(identity if isinstance(identity, str) else identity.decode(), 1)
        name = xa.literal(gtrid, xa.new_bqual(server.thread_id(), demo.masters[0].address)).decode()
        rows(server, f"XA START {name}")
        change = "SET data = JSON_SET(data, '$.n', 1)"
        rows(server, f"UPDATE db{shard_of(pin):05d}.pins {change} WHERE local_id = {pin & (1 << 36) - 1}")
        rows(server, f"XA END {name}")
        rows(
            first,
            f"INSERT INTO {xa.DATABASE}.{xa.DECISIONS} (gtrid, committed, hosts) VALUES (%s, 1, '')",
            gtrid,
        )
        before = kept(counts, client, sql)
        rows(server, f"XA PREPARE {name}")
        server.close()
        with demo.direct(1) as now:
            wait_until(lambda: not rows(now, "XA RECOVER"), "the branch to be finished")
    wait_until(lambda: rows(client, sql) != before, "the row as it is", LEASE)


def keys_of(store: redis.Redis, pattern: str) -> list[bytes]:
    return [bytes(one) for one in store.keys(pattern)]  # type: ignore[arg-type]


def value_of(store: redis.Redis, key: bytes) -> bytes:
    return bytes(store.get(key) or b"")  # type: ignore[arg-type]


@pytest.mark.parametrize("flavour", ["mariadb"], indirect=True, scope="session")
def test_rubbish_in_the_cache(proxy: OwnProxy, stores: dict[str, LocalCache], lists: list[int]) -> None:
    """What is no answer of the proxy's is given to nobody, and nobody waits for it."""
    counts, client = Counts(proxy.connect(), "redis"), proxy.connect()
    sql = f"SELECT pin_id AS of_rubbish FROM board_has_pins WHERE board_id = {lists[0]} ORDER BY sequence"
    expected = kept(counts, client, sql)
    store = redis.Redis("127.0.0.1", stores["redis"].port)
    prefix = next(key for key in keys_of(store, "caches*:epoch")).partition(b":")[0].decode()
    (answer,) = [key for key in keys_of(store, f"{prefix}:a:*") if b"of_rubbish" in value_of(store, key)]
    whole = value_of(store, answer)
    for changed in (
        whole[:-1],
        whole + b"x",
        whole[:-20] + b"x" * 20,
        b"",
        whole[: whole.rindex(b"\x03def") - 30] + b"z" * 40,
    ):
        store.set(answer, changed)
        assert rows(client, sql) == expected
        wait_until(lambda: store.get(answer) == whole, "the answer to be kept again")
    for key in keys_of(store, f"{prefix}:*"):
        for value in (b"", b"\xff" * 16, b"9" * 40, b" ".join([b"x y"] * 1000)):
            store.set(key, value)
            assert rows(client, sql) == expected
    store.delete(answer)
    store.lpush(answer, b"a list")
    assert rows(client, sql) == expected
    store.delete(answer)
    counts.wait_used(1)
    assert kept(counts, client, sql) == expected
    store.close()


def test_metrics_and_page(proxy: OwnProxy, pins: Callable[..., int]) -> None:
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
