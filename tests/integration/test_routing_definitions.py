"""Definitions never give a routing column a type or collation under which rows would be left out: one server
takes each of them, and the proxy refuses it or finds every row afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from demo.programs import Program
from tests.integration.own import OwnProxy
from tests.support.demo import Demo, running_demo

Connection = pymysql.connections.Connection

TABLES: dict[str, Any] = {
    "codes": {
        "kind": "hashed",
        "keyspace": "lookup",
        "key": "c",
        "columns": {"c": "VARCHAR(20) PRIMARY KEY", "n": "INT"},
    },
    "tokens": {
        "kind": "hashed",
        "keyspace": "lookup",
        "key": "t",
        "columns": {"t": "VARBINARY(16) PRIMARY KEY", "n": "INT"},
    },
    "numbers": {
        "kind": "hashed",
        "keyspace": "lookup",
        "key": "n",
        "columns": {"n": "INT PRIMARY KEY", "v": "INT"},
        "unique": "per_shard",
    },
    "links": {"kind": "mapping", "keyspace": "main", "from": "a", "to": "b", "unique": "per_shard"},
    "owned": {
        "kind": "object",
        "keyspace": "main",
        "type": 21,
        "colocate": {"column": "owner", "strict": True},
        "columns": {"owner": "BIGINT", "n": "INT"},
    },
    "clicks": {
        "kind": "timed",
        "keyspace": "media",
        "shard_key": "u",
        "columns": {"u": "INT NOT NULL", "n": "INT"},
        "unique": "per_shard",
    },
}
COLLATION = {"mariadb": "utf8mb4_nopad_bin", "mysql9": "utf8mb4_0900_bin"}
SOUND = (
    "CREATE TABLE codes (c VARCHAR(20) COLLATE {collation} PRIMARY KEY, n INT) CHARSET utf8mb4",
    "CREATE TABLE tokens (t VARBINARY(16) PRIMARY KEY, n INT)",
    "CREATE TABLE numbers (n INT PRIMARY KEY, v INT)",
    "CREATE TABLE links (a BIGINT, b BIGINT, sequence DECIMAL(38,0), KEY (a, sequence, b))",
    "CREATE TABLE owned (id BIGINT PRIMARY KEY, owner BIGINT, n INT)",
    "CREATE TABLE clicks (id BIGINT UNSIGNED PRIMARY KEY, u INT NOT NULL, n INT)",
)
UNSOUND = (
    "CREATE TABLE codes (c VARCHAR(20) PRIMARY KEY, n INT)",
    "CREATE TABLE codes (c VARCHAR(20) PRIMARY KEY, n VARCHAR(9) COLLATE {collation})",
    "CREATE TABLE codes (c VARCHAR(20) CHARACTER SET latin1 PRIMARY KEY, n INT) COLLATE {collation}",
    "CREATE TABLE codes (c VARCHAR(10) COLLATE {collation} PRIMARY KEY, n INT)",
    "CREATE TABLE codes (c CHAR(20) COLLATE {collation} PRIMARY KEY, n INT)",
    "CREATE TABLE codes (n INT, c VARCHAR(20) COLLATE {collation} AS (CONCAT('x', n)) STORED)",
    "CREATE TABLE codes (c VARCHAR(20) COLLATE {collation}, n INT) SELECT 'w' AS c",
    "CREATE TABLE codes (c VARCHAR(20) COLLATE {collation}, n INT) AS WITH w AS (SELECT 1) SELECT 'w' AS c",
    "CREATE TABLE codes LIKE made",
    "CREATE TABLE codes SELECT 'w' AS c, 1 AS n",
    "CREATE TABLE tokens (t VARCHAR(16) PRIMARY KEY, n INT)",
    "CREATE TABLE tokens (t VARCHAR(16) COLLATE {collation} PRIMARY KEY, n INT)",
    "CREATE TABLE tokens (t VARBINARY(8) PRIMARY KEY, n INT)",
    "CREATE TABLE numbers (n VARCHAR(10) PRIMARY KEY, v INT)",
    "CREATE TABLE numbers (n DECIMAL(10,2) PRIMARY KEY, v INT)",
    "CREATE TABLE numbers (n DOUBLE PRIMARY KEY, v INT)",
    "CREATE TABLE numbers (n INT AUTO_INCREMENT PRIMARY KEY, v INT)",
    "CREATE TABLE numbers (n INT AS (v + 1) STORED, v INT, KEY (n))",
    "CREATE TABLE links (a VARCHAR(20), b BIGINT, sequence DECIMAL(38,0))",
    "CREATE TABLE links (a BIGINT, b DOUBLE, sequence DECIMAL(38,0))",
    "CREATE TABLE owned (id BIGINT PRIMARY KEY, owner DOUBLE, n INT)",
    "CREATE TABLE owned (id BIGINT PRIMARY KEY, owner BIGINT DEFAULT 70368744177664, n INT)",
    "CREATE TABLE owned (id BIGINT PRIMARY KEY, owner BIGINT AS (n + 1), n INT)",
    "CREATE TABLE clicks (id VARCHAR(20) PRIMARY KEY, u INT NOT NULL, n INT)",
    "CREATE TABLE clicks (id BIGINT UNSIGNED PRIMARY KEY, u VARCHAR(9) NOT NULL, n INT)",
)
#: Behind the sound ones.
ALTERED = (
    "ALTER TABLE codes CONVERT TO CHARACTER SET utf8mb4",
    "ALTER TABLE codes CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "ALTER TABLE codes ADD x INT, CONVERT TO CHARACTER SET latin1",
    "ALTER TABLE codes MODIFY c VARCHAR(20) NOT NULL",
    "ALTER TABLE codes CHANGE c c VARCHAR(20) COLLATE utf8mb4_general_ci",
    "ALTER TABLE codes ALTER c SET DEFAULT 'x'",
    "ALTER TABLE owned ALTER COLUMN owner SET DEFAULT 5",
    "ALTER TABLE owned DROP owner, ADD owner BIGINT NOT NULL",
    "RENAME TABLE made TO codes",
    "ALTER TABLE made RENAME TO codes",
    "ALTER TABLE made RENAME codes",
    "RENAME TABLE passing.made TO codes",
    "ALTER TABLE passing.made RENAME TO codes",
)
#: Behind the sound ones, too: no routing column becomes another one.
HARMLESS = (
    "ALTER TABLE codes CONVERT TO CHARACTER SET utf8mb4 COLLATE {collation}",
    "ALTER TABLE codes DEFAULT CHARACTER SET latin1",
    "ALTER TABLE codes ADD x VARCHAR(5), ALTER n SET DEFAULT 4",
    "ALTER TABLE tokens CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "ALTER TABLE numbers CONVERT TO CHARACTER SET latin1",
)


@pytest.fixture(scope="module")
def small(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running_demo(program, tmp_path_factory.mktemp("routing"), "--shards", "4", "--empty") as running:
        yield running


@pytest.fixture
def client(small: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    directory = tmp_path_factory.mktemp("own-schema")
    databases = {
        "demo": {"tables": TABLES, "others": {"keyspace": "own"}},
        "passing": {"keyspace": "passing"},
    }
    (directory / "own.json").write_text(json.dumps({"databases": databases}))
    topology = json.loads((small.directory / "topology.json").read_text())
    for name, database in (("own", "own_tables"), ("passing", "passing")):
        topology["keyspaces"][name] = {**topology["keyspaces"]["global"], "database": database}
    with small.direct(0) as server, server.cursor() as cursor:
        for database in ("own_tables", "passing", "one_server"):
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {database}")
    proxy = OwnProxy(small, directory, {"schema": str(directory / "own.json")}, topology)
    with proxy, proxy.connect(autocommit=True) as connection:
        made(connection)
        yield connection
        for name in (*TABLES, "made", "passing.made"):
            run(connection, f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def one(small: Demo) -> Iterator[Connection]:
    """One server, which takes all definitions."""
    with small.direct(0) as connection:
        run(connection, "DROP DATABASE IF EXISTS one_server")
        run(connection, "CREATE DATABASE one_server")
        connection.autocommit(True)
        connection.select_db("one_server")
        yield connection


def run(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def code(connection: Connection, sql: str) -> int:
    """The number of the error; 0 without one."""
    try:
        run(connection, sql)
    except pymysql.MySQLError as error:
        return int(error.args[0])
    return 0


def made(connection: Connection) -> None:
    run(connection, "DROP TABLE IF EXISTS made")
    run(connection, "CREATE TABLE made (c VARCHAR(20) PRIMARY KEY, n INT)")


def test_a_type_or_collation_that_would_leave_rows_out_is_not_created(
    client: Connection, one: Connection, flavour: str
) -> None:
    run(client, "DROP TABLE IF EXISTS passing.made")
    made(one)
    found = {}
    for text in UNSOUND:
        sql = text.format(collation=COLLATION[flavour])
        codes = code(one, sql), code(client, sql)
        if codes != (0, 1235):
            found[text] = codes
        table = sql.split()[2]
        run(one, f"DROP TABLE IF EXISTS {table}")
        run(client, f"DROP TABLE IF EXISTS {table}")
    assert found == {}


def test_a_type_or_collation_that_would_leave_rows_out_is_not_given_later(
    client: Connection, one: Connection, flavour: str
) -> None:
    run(client, "CREATE TABLE passing.made (c VARCHAR(20) PRIMARY KEY, n INT)")
    for text in SOUND:
        run(client, text.format(collation=COLLATION[flavour]))
    run(client, "INSERT INTO codes VALUES ('w1', 1), ('w2', 2), ('w3', 3)")
    found = {}
    for text in ALTERED:
        caught = code(client, text.format(collation=COLLATION[flavour]))
        if caught == 0:
            found[text] = caught
    assert found == {}
    assert code(client, ALTERED[0]) == code(client, ALTERED[3]) == 1235
    assert code(client, "INSERT INTO codes VALUES ('W1', 5)") == 0, "another key than w1"
    assert run(client, "SELECT n FROM codes WHERE c = 'W1'") == [(5,)]


def test_after_harmless_definitions_rows_are_found_as_on_one_server(
    client: Connection, one: Connection, flavour: str
) -> None:
    for connection in (client, one):
        for text in (*SOUND, *HARMLESS):
            run(connection, text.format(collation=COLLATION[flavour]))
    for sql in (
        "INSERT INTO codes (c, n) VALUES ('w1', 1), ('W1', 2), ('w1 ', 3)",
        "INSERT INTO tokens (t, n) VALUES ('w1', 1), ('W1', 2), ('w1 ', 3)",
        "UPDATE codes SET n = 7 WHERE c = 'W1'",
        "DELETE FROM tokens WHERE t = 'w1'",
        "INSERT INTO codes (c, n) VALUES ('w1', 5)",
    ):
        assert code(client, sql) == code(one, sql), sql
    for sql in (
        "SELECT c, n FROM codes ORDER BY n",
        "SELECT n FROM codes WHERE c = 'w1'",
        "SELECT t, n FROM tokens ORDER BY n",
        "SELECT n FROM tokens WHERE t = 'W1'",
    ):
        assert run(client, sql) == run(one, sql), sql


def test_a_strict_column_is_added_when_rows_that_are_there_have_none(client: Connection) -> None:
    with pytest.raises(pymysql.MySQLError, match="missing"):
        run(client, "CREATE TABLE owned (id BIGINT PRIMARY KEY, n INT)")
    run(client, "CREATE TABLE owned (id BIGINT PRIMARY KEY, owner BIGINT, n INT)")
    for sql in ("ADD owner DOUBLE", "ADD COLUMN owner BIGINT DEFAULT 5", "ADD (owner BIGINT NOT NULL)"):
        with pytest.raises(pymysql.MySQLError, match="says on which shard"):
            run(client, f"ALTER TABLE owned {sql}")
    assert code(client, "ALTER TABLE owned ADD owner BIGINT") == 1060, "the server's: it is there"
