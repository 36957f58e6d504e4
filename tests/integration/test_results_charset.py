"""Rows of several shards in each character set of results: order, groups and aggregates are those of one
server, since a column's collation makes them, not the character set that a client gets texts in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from demo.programs import Program
from tests.integration.binary import Binary, Prepared
from tests.integration.own import OwnProxy
from tests.integration.raw import NATIVE, SHA2, Raw
from tests.support.demo import Demo, running_demo

GENERAL = "COLLATE utf8mb4_general_ci"
TABLES: dict[str, Any] = {
    "things": {
        "kind": "object",
        "keyspace": "main",
        "type": 11,
        "columns": {
            "v": f"VARCHAR(40) {GENERAL}",
            "l": "VARCHAR(40) CHARACTER SET latin1",
            "b": "VARCHAR(40) COLLATE utf8mb4_bin",
            "c": "VARBINARY(40)",
            "e": "ENUM('z','é','b') CHARACTER SET utf8mb4",
            "n": "INT",
            "z": "INT(5) ZEROFILL",
            "d": "DECIMAL(10,2)",
            "f": "DOUBLE",
            "t": "TIME",
            "m": "DATETIME",
            "x": "TEXT CHARACTER SET utf8mb4",
        },
    },
    "links": {
        "kind": "mapping",
        "keyspace": "main",
        "from": "a",
        "to": "b",
        "columns": {
            "a": "BIGINT NOT NULL",
            "b": "BIGINT NOT NULL",
            "sequence": "BIGINT",
            "w": f"VARCHAR(20) {GENERAL}",
        },
        "indexes": ["PRIMARY KEY (a, b)"],
    },
    "words": {
        "kind": "hashed",
        "keyspace": "lookup",
        "key": "k",
        "columns": {"k": "VARCHAR(20) PRIMARY KEY", "w": f"VARCHAR(20) {GENERAL}", "n": "INT"},
    },
}
DEFINITIONS = (
    "CREATE TABLE things (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,"
    " v VARCHAR(40) COLLATE utf8mb4_general_ci, l VARCHAR(40) CHARACTER SET latin1,"
    " b VARCHAR(40) COLLATE utf8mb4_bin, c VARBINARY(40), e ENUM('z','é','b') CHARACTER SET utf8mb4, n INT,"
    " z INT(5) ZEROFILL, d DECIMAL(10,2), f DOUBLE, t TIME, m DATETIME, x TEXT CHARACTER SET utf8mb4)",
    f"CREATE TABLE links (a BIGINT NOT NULL, b BIGINT NOT NULL, sequence BIGINT, w VARCHAR(20) {GENERAL},"
    " PRIMARY KEY (a, b))",
    f"CREATE TABLE words (k VARCHAR(20) COLLATE {{nopad}} PRIMARY KEY, w VARCHAR(20) {GENERAL}, n INT)",
)
WORDS = ["abc", "Abd", "ABa", "é", "E", "zoo", "Äpfel", "apfel", "Zebra", "ab", "ab ", "", "日本", "ß", "Ñ"]
WORDS += ["a😀"]


NOPAD = {"mariadb": "utf8mb4_nopad_bin", "mysql9": "utf8mb4_0900_bin"}


def of(shard: int, local: int) -> int:
    return shard << 46 | 11 << 36 | local


def _values(number: int) -> str:
    word = WORDS[number % len(WORDS)]
    latin = word if word.isascii() or word in "éÄpfelßÑ" else "x"
    null = number % 7 == 3
    texts = f"'{word}', '{latin}', '{word}', '{word}', {1 + number % 3}"
    numbers = f"{number * 37 % 23 - 11}, {number}, {number * 1.25 - 9}, {number * 1.5e3 - 7000}"
    times = f"'{number % 24 - 12:02d}:00:00', '2020-01-{1 + number % 28:02d} 00:00:00'"
    if null:
        texts = f"NULL, NULL, NULL, NULL, {1 + number % 3}"
    return f"{of(number % 4, number + 1)}, {texts}, {numbers}, {times}, '{word}{number}'"


IDS = [of(number % 4, number + 1) for number in range(40)]
ROWS = (
    "INSERT INTO things (id, v, l, b, c, e, n, z, d, f, t, m, x) VALUES "
    + ", ".join(f"({_values(number)})" for number in range(40)),
    "INSERT INTO links (a, b, sequence, w) VALUES "
    + ", ".join(f"({IDS[n]}, {IDS[(n * 3 + 1) % 40]}, {n}, '{WORDS[n % len(WORDS)]}')" for n in range(20)),
    "INSERT INTO words (k, w, n) VALUES "
    + ", ".join(f"('{chr(97 + n)}k{n}', '{WORDS[n % len(WORDS)]}', {n})" for n in range(26)),
)
LIST = ", ".join(map(str, IDS[:17]))
QUERIES = [
    "SELECT COUNT(*) FROM things",
    "SELECT COUNT(*), SUM(n), MIN(n), MAX(n), SUM(d), MIN(d), MAX(d) FROM things",
    "SELECT MIN(f), MAX(f), MIN(z), MAX(z) FROM things",
    "SELECT MIN(t), MAX(t), MIN(m), MAX(m) FROM things",
    "SELECT MIN(v), MAX(v), MIN(l), MAX(l), MIN(b), MAX(b), MIN(c), MAX(c) FROM things",
    "SELECT MIN(UPPER(v)), MAX(CONCAT(v, n)), MIN(n + 0.5), MAX(n * 1e0) FROM things",
    "SELECT MIN(v), MAX(w.w) FROM things, words w WHERE w.k = 'ak0'",
    "SELECT v, id FROM things ORDER BY v, id LIMIT 9",
    "SELECT v, id FROM things ORDER BY v DESC, id DESC LIMIT 9",
    "SELECT id, n FROM things ORDER BY v, id",
    "SELECT l, id FROM things ORDER BY l, id LIMIT 3, 12",
    "SELECT b, id FROM things ORDER BY b, id LIMIT 12",
    "SELECT c, id FROM things ORDER BY c, id LIMIT 12",
    "SELECT x, id FROM things ORDER BY x LIMIT 12",
    "SELECT e, id FROM things ORDER BY e, id LIMIT 12",
    "SELECT n, d, f, z, t, m, id FROM things ORDER BY n, id LIMIT 12",
    "SELECT d, id FROM things ORDER BY d DESC, id LIMIT 12",
    "SELECT d + 1, n + 0.5, ROUND(d, 1), n FROM things ORDER BY id LIMIT 12",
    "SELECT f, id FROM things ORDER BY f, id LIMIT 12",
    "SELECT t, id FROM things ORDER BY t, id",
    "SELECT m, id FROM things ORDER BY m, id",
    "SELECT id, z FROM things ORDER BY z",
    "SELECT UPPER(v) AS u, id FROM things ORDER BY u, id LIMIT 12",
    "SELECT n + 1 AS u, id FROM things ORDER BY u, id LIMIT 12",
    "SELECT id FROM things ORDER BY CONCAT(v, 'x'), id LIMIT 12",
    f"SELECT v, z FROM things WHERE id IN ({LIST}) ORDER BY v, id LIMIT 7",
    f"SELECT v, z FROM things WHERE id IN ({LIST}) ORDER BY v, id",
    f"SELECT MIN(v), MAX(v), COUNT(*), SUM(n) FROM things WHERE id IN ({LIST})",
    f"SELECT v, z, n, d, f, t, m FROM things WHERE id IN ({LIST})",
    f"SELECT v FROM things WHERE id = {IDS[3]}",
    "SELECT DISTINCT v FROM things ORDER BY v",
    "SELECT DISTINCT LOWER(v) AS u FROM things ORDER BY u",
    "SELECT v, COUNT(*), SUM(n), MIN(l), MAX(t) FROM things GROUP BY v ORDER BY v",
    "SELECT l, COUNT(*) AS c FROM things GROUP BY l ORDER BY l",
    "SELECT e, COUNT(*), AVG(n) FROM things GROUP BY e ORDER BY e",
    "SELECT GROUP_CONCAT(x ORDER BY x SEPARATOR '|') FROM things",
    "SELECT GROUP_CONCAT(DISTINCT e ORDER BY e) FROM things",
    "SELECT v, COUNT(*) FROM things GROUP BY v HAVING COUNT(*) > 2 ORDER BY v",
    "SELECT COUNT(DISTINCT v), COUNT(DISTINCT b) FROM things",
    "(SELECT v, id FROM things WHERE n < 0) UNION (SELECT w, n FROM words) ORDER BY 1, 2",
    "SELECT k, w FROM words ORDER BY w, k LIMIT 7",
    "SELECT MIN(w), MAX(w), COUNT(*) FROM words",
    "SELECT MIN(HEX(w)), COUNT(*) FROM words GROUP BY w ORDER BY w",
    "SELECT k, w, n FROM words WHERE k IN ('ak0', 'ck2', 'dk3', 'zk25') ORDER BY w LIMIT 3",
    "SELECT t.v, l.w, l.sequence FROM links l JOIN things t ON t.id = l.b ORDER BY l.sequence",
    "SELECT t.v, l.w, l.sequence FROM links l JOIN things t ON t.id = l.a ORDER BY t.v, l.sequence LIMIT 6",
    f"SELECT l.b, l.w, t.v, t.z FROM links l JOIN things t ON t.id = l.b WHERE l.a = {IDS[2]}",
    f"SELECT l.b, t.v, t.z FROM links l LEFT JOIN things t ON t.id = l.b WHERE l.a IN ({LIST}) ORDER BY l.a",
    "SELECT t.v, w.w FROM things t JOIN words w ON t.v = w.w ORDER BY t.v, w.k, t.id LIMIT 20",
    "SELECT v, ROW_NUMBER() OVER (ORDER BY v, id) AS r FROM things ORDER BY r LIMIT 8",
    "SELECT (SELECT MAX(w) FROM words) AS m, v FROM things ORDER BY v, id LIMIT 3",
]
SETS = ["utf8mb4", "binary", "NULL", "latin1", "utf8mb3", "cp1251", "utf16", "utf16le", "ucs2", "utf32"]


@pytest.fixture(scope="module")
def small(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running_demo(program, tmp_path_factory.mktemp("results"), "--shards", "4", "--empty") as running:
        yield running


@pytest.fixture(scope="module")
def proxy(small: Demo, tmp_path_factory: pytest.TempPathFactory, flavour: str) -> Iterator[OwnProxy]:
    statements = [sql.replace("{nopad}", NOPAD[flavour]) for sql in DEFINITIONS + ROWS]
    directory = tmp_path_factory.mktemp("results-schema")
    schema = {"databases": {"demo": {"tables": TABLES}}}
    (directory / "own.json").write_text(json.dumps(schema))
    with OwnProxy(small, directory, {"schema": str(directory / "own.json")}) as running:
        with running.connect() as connection, connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
        with small.direct(0) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE one_server")
            cursor.execute("USE one_server")
            for sql in statements:
                cursor.execute(sql)
        yield running


@pytest.fixture
def pair(proxy: OwnProxy, small: Demo, flavour: str) -> Iterator[tuple[Raw, Raw]]:
    """A client of the proxy, and one of a server that has the same rows by itself."""
    host = small.hosts[0]
    plugin = NATIVE if flavour == "mariadb" else SHA2
    with Raw(host.host, host.port) as one:
        assert one.login(host.user, host.password, "one_server", plugin=plugin).kind == "ok"
        yield proxy.raw(), one


def _set(client: Raw, charset: str) -> None:
    assert client.ask(f"SET character_set_results = {charset}").kind == "ok"


def _answer(client: Raw, sql: str) -> tuple[object, ...]:
    client.heard.clear()
    reply = client.ask(sql)
    assert reply.in_order
    assert reply.sequence[0] == 1
    if reply.kind == "err":
        return ("err", reply.code, reply.message)
    ordered = "ORDER BY" in sql
    rows = reply.rows if ordered else sorted(reply.rows, key=repr)
    return ("rows", [_shape(payload) for _, payload in client.heard[1 : 1 + len(reply.columns)]], rows)


def _shape(definition: bytes) -> tuple[bytes, bytes]:
    """The name in a column's definition, and the collation."""
    at, names = 0, []
    for _ in range(6):
        size = definition[at]
        names.append(definition[at + 1 : at + 1 + size])
        at += 1 + size
    return names[4], definition[at + 1 : at + 3]


@pytest.mark.parametrize("charset", SETS)
def test_rows_of_all_shards_are_those_of_one_server(pair: tuple[Raw, Raw], charset: str) -> None:
    client, one = pair
    for each in pair:
        _set(each, charset)
    for sql in QUERIES:
        for _ in range(2):  # the second time column definitions are known
            assert _answer(client, sql) == _answer(one, sql), sql


@pytest.mark.parametrize("charset", SETS)
def test_prepared_statements_have_the_rows_of_one_server(pair: tuple[Raw, Raw], charset: str) -> None:
    for each in pair:
        _set(each, charset)
    client, one = map(Binary, pair)
    for sql in QUERIES:
        assert _executed(client, sql) == _executed(one, sql), sql


def _executed(client: Binary, sql: str) -> list[object]:
    statement = client.prepare(sql)
    assert isinstance(statement, Prepared), (sql, statement)
    found: list[object] = []
    for _ in range(2):
        answer = client.execute(statement.id)
        rows = answer.rows if "ORDER BY" in sql else sorted(answer.rows)
        found.append((answer.kind, list(map(_shape, answer.definitions)), rows))
    client.close(statement.id)
    return found


WRITES = [
    "UPDATE /*+ scatter */ things t, links l SET t.v = l.w, t.n = l.sequence, t.d = l.sequence + 0.25,"
    " t.c = l.w WHERE t.id = l.b",
    "UPDATE /*+ scatter */ things t, links l SET t.b = l.w, t.m = '2020-02-02' WHERE t.id = l.b AND t.z < 6",
    "INSERT INTO words (k, w, n) SELECT CONCAT('new', z), v, n FROM things WHERE z < 9",
    "INSERT INTO words (k, w, n) SELECT CONCAT('ne', z, 'é'), x, d FROM things WHERE z > 30",
]


@pytest.mark.parametrize("charset", ["utf8mb4", "binary", "latin1", "utf16", "NULL"])
def test_what_a_write_reads_keeps_all_letters(pair: tuple[Raw, Raw], charset: str) -> None:
    """Whatever the client's own results would show of it."""
    kept = (
        "SELECT id, HEX(v), n, d, HEX(c), HEX(b), m FROM things ORDER BY id",
        "SELECT HEX(k), HEX(w), n FROM words ORDER BY k",
    )
    client, one = pair
    before = [client.ask(sql).rows for sql in kept]
    try:
        for each in pair:
            _set(each, charset)
        for sql in WRITES:
            mine, theirs = (each.ask(sql) for each in pair)
            assert (mine.kind, mine.affected) == (theirs.kind, theirs.affected), sql
        for each in pair:
            _set(each, "utf8mb4")
        for sql in kept:
            assert client.ask(sql).rows == one.ask(sql).rows
            assert client.ask(sql).rows not in before
    finally:
        for each in pair:
            _set(each, "utf8mb4")
            for table in ("things", "links", "words"):
                each.ask(f"DELETE /*+ scatter */ FROM {table}")
            for sql in ROWS:
                each.ask(sql)
        assert [client.ask(sql).rows for sql in kept] == before
