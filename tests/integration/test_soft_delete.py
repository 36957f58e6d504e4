"""Tables with `soft_delete`: reads answer as one server with nothing but the rows whose flag is not false."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from demo.programs import Program
from tests.integration import binary as b
from tests.integration.binary import Binary
from tests.integration.own import OwnProxy
from tests.support.cases import cases_in
from tests.support.demo import Demo, running_demo

pytestmark = pytest.mark.either_server

Connection = pymysql.connections.Connection

FLAG = {"columns": {"owner": "BIGINT", "n": "INT", "data": "LONGTEXT", "active": "BOOLEAN"}}
TABLES: dict[str, Any] = {
    "items": {
        "kind": "object",
        "keyspace": "main",
        "type": 21,
        "columns": {"owner": "BIGINT", "n": "INT", "data": "JSON", "active": "BOOLEAN"},
        "soft_delete": "$.active",
    },
    "texts": {
        "kind": "object",
        "keyspace": "main",
        "type": 22,
        **FLAG,
        "soft_delete": 'data:$."it\'s "[0]."ä"',
    },
    "owners": {"kind": "object", "keyspace": "main", "type": 23, **FLAG, "soft_delete": "active"},
    "links": {
        "kind": "mapping",
        "keyspace": "main",
        "from": "a",
        "to": "b",
        "orderable": True,
        "columns": {
            "a": "BIGINT NOT NULL",
            "b": "BIGINT NOT NULL",
            "sequence": "DECIMAL(38,0)",
            "active": "INT",
        },
        "indexes": ["PRIMARY KEY (a, b)", "KEY (a, sequence, b)"],
        "soft_delete": "active",
    },
    "words": {
        "kind": "hashed",
        "keyspace": "lookup",
        "key": "k",
        "columns": {"k": "VARCHAR(20) PRIMARY KEY", "v": "INT", "on_": "TINYINT UNSIGNED"},
        "soft_delete": "on_",
    },
    "shots": {
        "kind": "timed",
        "keyspace": "media",
        "shard_key": "user_id",
        "columns": {"id": "BIGINT UNSIGNED PRIMARY KEY", "user_id": "BIGINT", "data": "JSON"},
        "soft_delete": "$.active",
    },
}
COLLATION = {"mariadb": "utf8mb4_nopad_bin", "mysql9": "utf8mb4_0900_bin"}
STORED = (
    "id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, owner BIGINT, n INT, data {data}, active BOOLEAN"
)
DEFINITIONS = (
    f"CREATE TABLE items ({STORED.format(data='JSON')})",
    f"CREATE TABLE texts ({STORED.format(data='LONGTEXT')})",
    f"CREATE TABLE owners ({STORED.format(data='LONGTEXT')})",
    "CREATE TABLE links (a BIGINT NOT NULL, b BIGINT NOT NULL, sequence DECIMAL(38,0), active INT,"
    " PRIMARY KEY (a, b), KEY (a, sequence, b))",
    "CREATE TABLE words (k VARCHAR(20) COLLATE {collation} PRIMARY KEY, v INT, on_ TINYINT UNSIGNED)",
    "CREATE TABLE shots (id BIGINT UNSIGNED PRIMARY KEY, user_id BIGINT, data JSON)",
)
TYPES = {"items": 21, "texts": 22, "owners": 23}
SHARDS = 4


def of(table: str, shard: int, local: int) -> int:
    return shard << 46 | TYPES[table] << 36 | local


ITEM_FLAGS = (
    ('{"active": false, "c": "x"}', False),
    ('{"active": true}', True),
    ('{"c": 5}', True),
    ('{"active": null}', True),
    ('{"active": 0}', False),
    ('{"active": 1}', True),
    ('{"active": "false"}', True),
    ('{"active": {"active": false}}', True),
    (None, True),
    ("[false]", True),
)
TEXT_FLAGS = (
    ('{"it\'s ": [{"ä": false}]}', False),
    ('{"it\'s ": [{"ä": true}]}', True),
    ('{"it\'s ": [true, {"ä": false}]}', True),
    ("", True),
    ("{ no JSON, false", True),
    (None, True),
)
NUMBER_FLAGS = ((0, False), (1, True), (None, True), (7, True))

Rows = dict[str, list[tuple[tuple[Any, ...], bool]]]


def sample() -> Rows:
    """The rows of each table, and whether reads see them."""
    owners = [of("owners", shard, local) for shard in range(SHARDS) for local in (1, 2, 3)]
    found: Rows = {table: [] for table in TABLES}
    for number, owner in enumerate(owners):
        flag, seen = NUMBER_FLAGS[number % 4]
        found["owners"].append(((owner, None, number, "{}", flag), seen))
        for local, (data, seen) in enumerate(ITEM_FLAGS, 1):
            item = of("items", (number + local) % SHARDS, 100 * number + local)
            found["items"].append(((item, owner, local % 4, data, local % 2), seen))
            flag, seen = NUMBER_FLAGS[(number + local) % 4]
            if number not in (5, 6):
                found["links"].append(((owner, item, 1000 * local, flag), seen))
        for local, (data, seen) in enumerate(TEXT_FLAGS, 1):
            text = of("texts", owner >> 46, 100 * number + local)
            found["texts"].append(((text, owner, local % 3, data, None), seen))
    for number in range(20):
        flag, seen = NUMBER_FLAGS[number % 4]
        found["words"].append(((f"w{number}", number % 5, flag), seen))
        data, seen = ITEM_FLAGS[number % 10]
        shot = 1 << 50 | (number % SHARDS) << 10 | number
        found["shots"].append(((shot, 4 * (number // 4) + number % SHARDS, data), seen))
    return found


@pytest.fixture(scope="module")
def small(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    options = ("--shards", str(SHARDS), "--empty", "--no-page")
    with running_demo(program, tmp_path_factory.mktemp("soft"), *options) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(small: Demo, tmp_path_factory: pytest.TempPathFactory, flavour: str) -> Iterator[OwnProxy]:
    directory = tmp_path_factory.mktemp("soft-delete")
    (directory / "own.json").write_text(json.dumps({"databases": {"demo": {"tables": TABLES}}}))
    topology = json.loads((small.directory / "topology.json").read_text())
    with OwnProxy(small, directory, {"schema": str(directory / "own.json")}, topology) as running:
        with running.connect() as connection:
            for sql in DEFINITIONS:
                rows(connection, sql.format(collation=COLLATION[flavour]))
            fill(connection, sample(), hidden=True)
        yield running


@pytest.fixture
def client(proxy: OwnProxy) -> Iterator[Connection]:
    with proxy.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def one(small: Demo, flavour: str) -> Iterator[Connection]:
    """One server with two databases: `seen_rows` has the rows that reads see, `all_rows` all."""
    with small.direct(0) as connection:
        for database in ("all_rows", "seen_rows"):
            rows(connection, f"CREATE DATABASE {database}")
            connection.select_db(database)
            for sql in DEFINITIONS:
                rows(connection, sql.format(collation=COLLATION[flavour]))
            fill(connection, sample(), hidden=database == "all_rows")
        yield connection


def fill(connection: Connection, found: Rows, *, hidden: bool) -> None:
    for table, listed in found.items():
        wanted = [row for row, seen in listed if seen or hidden]
        marks = ", ".join(["%s"] * len(wanted[0]))
        names = {"links": "a, b, sequence, active", "words": "k, v, on_", "shots": "id, user_id, data"}
        columns = names.get(table, "id, owner, n, data, active")
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", wanted)


def rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def answer(connection: Connection, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns' names and the rows, which are sorted unless the statement orders them."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        names = [one[0] for one in cursor.description or ()]
        found = list(cursor.fetchall())
    return names, found if "ORDER BY" in sql else sorted(found, key=repr)


CASES: list[str] = cases_in(Path(__file__).with_name("soft_delete.yaml"))


def expanded(sql: str) -> str:
    owner = [str(of("owners", number // 3, number % 3 + 1)) for number in range(12)]
    item = [row[0] for row, _ in sample()["items"]]
    for number in range(12):
        sql = sql.replace(f"<owner {number}>", owner[number])
    for number in range(40):
        sql = sql.replace(f"<item {number}>", str(item[number]))
    return sql


@pytest.mark.parametrize("sql", CASES)
def test_reads(client: Connection, one: Connection, sql: str) -> None:
    """Each as by one server with the rows that are seen; with the hint by one with all."""
    text = expanded(sql)
    one.select_db("seen_rows")
    expected = answer(one, text)
    assert answer(client, text) == expected
    one.select_db("all_rows")
    every = answer(one, text)
    first, _, rest = text.partition("SELECT ")
    assert answer(client, f"{first}SELECT /*+ with_deleted */ {rest}") == every
    rows(client, "SET with_deleted = 1")
    assert answer(client, text) == every
    rows(client, "SET with_deleted = DEFAULT")
    assert answer(client, text) == expected
    assert every != expected, "the case says nothing"


def failure(connection: Connection, sql: str) -> str:
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connection, sql)
    return str(caught.value.args[1])


def test_what_is_hidden_can_be_written(client: Connection, proxy: OwnProxy) -> None:
    """UPDATE and DELETE see all rows, and so does whatever else keeps keys."""
    first, second, owner = of("items", 1, 9001), of("items", 2, 9002), of("owners", 0, 9003)
    try:
        for item in (first, second):
            rows(client, f"INSERT INTO items (id, owner, n, data) VALUES ({item}, {owner}, 70, '{{}}')")
        rows(client, f"INSERT INTO owners (id, n, active) VALUES ({owner}, 70, 0)")
        hide = "UPDATE items SET data = JSON_SET(data, '$.active', CAST('false' AS JSON))"
        hide = "UPDATE items SET data = '{\"active\": false}'" if mariadb(client) else hide
        assert written(client, f"{hide} WHERE id IN ({first}, {second})") == 2
        mine = f"SELECT id FROM items WHERE id IN ({first}, {second})"
        assert rows(client, mine) == []
        assert "Duplicate" in failure(client, f"INSERT INTO items (id, data) VALUES ({first}, '{{}}')")
        # by a SELECT that the proxy makes of it, whose subquery reads another table on other shards
        from_owners = f"owner IN (SELECT id FROM owners WHERE n = 70 AND id = {owner})"
        found = f"UPDATE items SET n = 71 WHERE {from_owners} AND id IN ({first}, {second})"
        assert ("plan", "read by a SELECT, then written") in rows(client, f"EXPLAIN ROUTE {found}")
        assert written(client, found) == 2
        assert written(client, f"UPDATE items SET data = '{{}}' WHERE id = {second}") == 1
        assert rows(client, mine) == [(second,)]
        assert written(client, f"DELETE FROM items WHERE id IN ({first}, {second})") == 2
        seen = "SELECT /*+ with_deleted */ COUNT(*) FROM items WHERE n > 69"
        assert rows(client, seen) == [(0,)]
    finally:
        rows(client, f"DELETE FROM items WHERE id IN ({first}, {second})")
        rows(client, f"DELETE FROM owners WHERE id = {owner}")


def written(connection: Connection, sql: str) -> int:
    with connection.cursor() as cursor:
        return cursor.execute(sql)


def mariadb(connection: Connection) -> bool:
    return "MariaDB" in str(rows(connection, "SELECT VERSION()"))


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("INSERT INTO words (k, v) SELECT CONCAT('new', k), 99 FROM words WHERE v < 9", 15),
        ("INSERT /*+ with_deleted */ INTO words (k, v) SELECT CONCAT('new', k), 99 FROM words", 20),
        ("INSERT INTO words (k, v) SELECT /*+ with_deleted */ CONCAT('new', k), 99 FROM words", 20),
        ("REPLACE INTO words (k, v) WITH w AS (SELECT k FROM words) SELECT CONCAT('new', k), 99 FROM w", 15),
    ],
)
def test_rows_for_an_insert_are_read(client: Connection, sql: str, count: int) -> None:
    try:
        assert written(client, sql) == count
    finally:
        rows(client, "DELETE /*+ scatter */ FROM words WHERE v = 99")


@pytest.mark.parametrize(("hint", "count"), [("", 9), ("/*+ with_deleted */", 12)])
def test_a_value_is_read(client: Connection, hint: str, count: int) -> None:
    try:
        rows(client, f"INSERT {hint} INTO words (k, v) VALUES ('x', (SELECT COUNT(*) FROM owners))")
        assert rows(client, "SELECT v FROM words WHERE k = 'x'") == [(count,)]
    finally:
        rows(client, "DELETE FROM words WHERE k = 'x'")


def test_prepared(proxy: OwnProxy) -> None:
    """Also where the server prepares it, and where rows are gathered. What holds is what holds at EXECUTE."""
    owner = of("owners", 0, 2)
    cases = (
        ("SELECT COUNT(*) FROM items WHERE owner = ?", owner, 8, 10),
        ("SELECT COUNT(*) FROM owners WHERE id = ?", of("owners", 0, 1), 0, 1),
        ("SELECT COUNT(DISTINCT b) FROM links WHERE a = ?", owner, 8, 10),
        ("SELECT COUNT(*) FROM (SELECT n FROM items UNION ALL SELECT ?) x", 100, 97, 121),
    )
    with proxy.raw() as raw:
        client = Binary(raw)
        for sql, parameter, seen, every in cases:
            statements = []
            for shown in (0, 1, 0):
                assert raw.ask(f"SET with_deleted = {shown}").kind == "ok"
                statements.append(client.statement(sql))
                for statement in statements:
                    found = client.execute(statement.id, [b.integer(parameter)])
                    expected = every if shown else seen
                    assert struct.unpack("<q", found.rows[0][2:]) == (expected,), sql


def test_a_list_is_reordered_with_its_hidden_rows(client: Connection) -> None:
    """A hidden row keeps its place, and may be moved."""
    owner = of("owners", 3, 9000)
    values = ", ".join(f"({owner}, {n}, {10**30 - n * 10**25}, {n != 2})" for n in (1, 2, 3, 4))
    try:
        rows(client, f"INSERT INTO links (a, b, sequence, active) VALUES {values}")
        rows(client, f"CALL reorder_a_b({owner}, 4, 1, 2)")
        order = f"FROM links WHERE a = {owner} ORDER BY sequence DESC"
        assert rows(client, f"SELECT /*+ with_deleted */ b {order}") == [(1,), (4,), (2,), (3,)]
        rows(client, f"CALL reorder_a_b({owner}, 2, NULL, 1)")
        assert rows(client, f"SELECT /*+ with_deleted */ b {order}") == [(2,), (1,), (4,), (3,)]
        assert rows(client, f"SELECT b {order}") == [(1,), (4,), (3,)]
    finally:
        rows(client, f"DELETE FROM links WHERE a = {owner}")


def test_routing_is_the_same(client: Connection) -> None:
    """The condition narrows nothing, and EXPLAIN ROUTE shows it."""
    item = sample()["items"][0][0][0]
    for where in (f"WHERE id = {item}", f"WHERE id IN ({item}, {item + 1}) OR id = 5", "WHERE n = 3", ""):
        told = rows(client, f"EXPLAIN ROUTE SELECT id FROM items {where}")
        every = rows(client, f"EXPLAIN ROUTE SELECT /*+ with_deleted */ id FROM items {where}")
        same = ("routing", "shards", "narrowed by", "would narrow", "scatter", "id", "hosts")
        assert [row for row in told if row[0] in same] == [row for row in every if row[0] in same]
        assert any("JSON_VALID(`items`.`data`)" in row[1] for row in told)
        assert not any("JSON_VALID" in row[1] for row in every)
        assert ("hides", "items: rows whose data:$.active is false (/*+ with_deleted */ shows them)") in told
        assert not any(row[0] == "hides" for row in every)


def test_the_shards_themselves_hide_nothing(client: Connection) -> None:
    """A physical database is read as written."""
    item = sample()["items"][0][0][0]
    shard, local = item >> 46, item & (1 << 36) - 1
    assert rows(client, f"SELECT local_id FROM db{shard:05d}.items WHERE local_id = {local}") == [(local,)]
    rows(client, f"USE db{shard:05d}")
    assert rows(client, f"SELECT local_id FROM items WHERE local_id = {local}") == [(local,)]


def test_what_cannot_be_filtered_is_refused(client: Connection) -> None:
    """Never silently unfiltered: by hand on one shard, where no copies of the rows are read."""
    sql = "SELECT /*+ shard(0) */ l.a FROM owners o LEFT JOIN links l USING (active)"
    assert "whose flag is false are hidden" in failure(client, sql)
    assert rows(client, sql.replace("shard(0)", "shard(0) with_deleted"))
    for other in ("HANDLER items OPEN", "CHECKSUM TABLE items", "DO (SELECT COUNT(*) FROM items)"):
        assert failure(client, other)


def test_the_variable_is_the_sessions(proxy: OwnProxy) -> None:
    with proxy.connect() as connection:
        rows(connection, "SET with_deleted = ON, sql_mode = 'ANSI_QUOTES'")
        assert rows(connection, "SELECT COUNT(*) FROM owners") == [(12,)]
        rows(connection, "SET with_deleted = 0")
        assert rows(connection, 'SELECT COUNT(*) AS "n" FROM owners') == [(9,)]
        assert "with_deleted" in failure(connection, "SET with_deleted = 'perhaps'")
