"""A schema of its own on a demo's servers: keys, strict colocation, assignments that are none, tables that it
does not name; compared with one server where that can be.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.constants import FLAG

from demo.programs import Program
from tests.integration.own import OwnProxy
from tests.support.cases import cases_in
from tests.support.demo import Demo, running_demo

Connection = pymysql.connections.Connection

ALBUM: dict[str, Any] = {"column": "album_id", "strict": True}
TABLES: dict[str, Any] = {
    "albums": {"kind": "object", "keyspace": "main", "type": 11},
    "photos2": {
        "kind": "object",
        "keyspace": "main",
        "type": 12,
        "colocate": ALBUM,
        "columns": {"album_id": "BIGINT UNSIGNED", "n": "INT"},
    },
    "links": {
        "kind": "mapping",
        "keyspace": "main",
        "from": "a",
        "to": "b",
        "columns": {"a": "BIGINT NOT NULL", "b": "BIGINT NOT NULL", "sequence": "BIGINT", "n": "INT"},
        "indexes": ["PRIMARY KEY (a, b)"],
    },
    "words": {
        "kind": "hashed",
        "keyspace": "lookup",
        "key": "k",
        "columns": {"k": "VARCHAR(20) PRIMARY KEY", "v": "INT"},
    },
    "upserted": {
        "kind": "mapping",
        "keyspace": "main",
        "from": "a",
        "to": "b",
        "columns": {"a": "BIGINT NOT NULL", "b": "BIGINT NOT NULL", "sequence": "BIGINT", "n": "INT"},
        "indexes": ["PRIMARY KEY (a, b)"],
        "unique": "per_shard",
    },
    "numbered": {
        "kind": "mapping",
        "keyspace": "main",
        "from": "a",
        "to": "b",
        "columns": {"a": "BIGINT NOT NULL", "b": "BIGINT NOT NULL", "sequence": "BIGINT", "n": "INT"},
        "indexes": ["PRIMARY KEY (a, b)", "UNIQUE KEY (n)"],
        "unique": {"n": "per_shard"},
    },
    "slugs": {
        "kind": "object",
        "keyspace": "main",
        "type": 13,
        "columns": {"n": "INT UNIQUE", "v": "INT"},
        "unique": {"n": "per_shard"},
    },
    "named": {"kind": "single", "keyspace": "own", "columns": {"a": "INT PRIMARY KEY", "b": "INT"}},
}
COLLATION = {"mariadb": "utf8mb4_nopad_bin", "mysql9": "utf8mb4_0900_bin"}


@pytest.fixture(scope="module")
def small(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running_demo(program, tmp_path_factory.mktemp("keys"), "--shards", "4", "--empty") as running:
        yield running


@pytest.fixture(scope="module")
def proxy(small: Demo, tmp_path_factory: pytest.TempPathFactory, flavour: str) -> Iterator[OwnProxy]:
    """With the tables made through it."""
    directory = tmp_path_factory.mktemp("own-schema")
    schema = {"databases": {"demo": {"tables": TABLES, "others": {"keyspace": "own"}}}}
    (directory / "own.json").write_text(json.dumps(schema))
    topology = json.loads((small.directory / "topology.json").read_text())
    topology["keyspaces"]["own"] = {**topology["keyspaces"]["global"], "database": "own_tables"}
    with small.direct(0) as server, server.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS own_tables")
    with OwnProxy(small, directory, {"schema": str(directory / "own.json")}, topology) as running:
        with running.connect() as connection:
            for sql in DEFINITIONS:
                rows(connection, sql.format(collation=COLLATION[flavour]))
        yield running


@pytest.fixture
def client(proxy: OwnProxy) -> Iterator[Connection]:
    with proxy.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def one(small: Demo, flavour: str) -> Iterator[Connection]:
    """One server with the same tables, where `id` is a column."""
    with small.direct(0) as connection:
        rows(connection, "CREATE DATABASE one_server")
        connection.select_db("one_server")
        for sql in DEFINITIONS:
            rows(connection, sql.format(collation=COLLATION[flavour]))
        yield connection


def rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def outcome(connection: Connection, sql: str) -> int | tuple[Any, ...]:
    """How many rows a statement has changed, or its error."""
    try:
        with connection.cursor() as cursor:
            return cursor.execute(sql)
    except pymysql.MySQLError as error:
        return error.args


def of(type_: int, shard: int, local: int) -> int:
    return shard << 46 | type_ << 36 | local


DEFINITIONS = (
    "CREATE TABLE albums (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, data JSON, PRIMARY KEY (id))",
    "CREATE TABLE photos2 (id BIGINT UNSIGNED PRIMARY KEY, album_id BIGINT UNSIGNED, n INT, KEY (album_id))",
    "CREATE TABLE links (a BIGINT NOT NULL, b BIGINT NOT NULL, sequence BIGINT, n INT, PRIMARY KEY (a, b))",
    "CREATE TABLE upserted (a BIGINT, b BIGINT, sequence BIGINT, n INT, PRIMARY KEY (a, b))",
    "CREATE TABLE numbered (a BIGINT, b BIGINT, sequence BIGINT, n INT, PRIMARY KEY (a, b), UNIQUE KEY (n))",
    "CREATE TABLE slugs (id BIGINT UNSIGNED PRIMARY KEY, n INT UNIQUE, v INT)",
    "CREATE TABLE words (k VARCHAR(20) COLLATE {collation} PRIMARY KEY, v INT)",
    "CREATE TABLE named (a INT PRIMARY KEY, b INT)",
)

WRITES = cases_in(Path(__file__).with_name("own_schema.yaml"))


def test_assignments_that_are_none_count_as_on_one_server(
    client: Connection, one: Connection, flavour: str
) -> None:
    client.autocommit(True)
    one.autocommit(True)
    for sql in WRITES["upserts"] + (WRITES["aliased"] if flavour == "mysql9" else []):
        text = sql.format(album=of(11, 2, 7))
        assert outcome(client, text) == outcome(one, text), text
        for table in ("links", "words"):
            found = f"SELECT * FROM {table} ORDER BY 1, 2"
            assert rows(client, found) == rows(one, found), text
        assert rows(client, "SELECT id, data FROM albums") == rows(one, "SELECT id, data FROM albums"), text


def test_the_new_row_s_value_for_a_routing_column_with_keys_of_each_shard(
    client: Connection, one: Connection, flavour: str
) -> None:
    """The row may get another value, but one of the same shard."""
    client.autocommit(True)
    one.autocommit(True)
    for sql in WRITES["per_shard"] + (WRITES["per_shard_aliased"] if flavour == "mysql9" else []):
        text = sql.format(first=of(13, 2, 7), second=of(13, 2, 8), third=of(13, 2, 9))
        assert outcome(client, text) == outcome(one, text), text
        for table in ("upserted", "numbered", "slugs"):
            found = f"SELECT * FROM {table} ORDER BY 1, 2"
            assert sorted(rows(client, found)) == sorted(rows(one, found)), text


def test_a_value_that_the_new_row_does_not_have_is_refused_with_keys_of_each_shard(
    client: Connection,
) -> None:
    for sql in (
        "INSERT INTO upserted (a, b) VALUES (5, 1) ON DUPLICATE KEY UPDATE a = 6",
        "INSERT INTO numbered (a, b, n) VALUES (5, 1, 3) ON DUPLICATE KEY UPDATE a = b",
        "INSERT INTO numbered (a, b, n) VALUES (5, 1, 3) ON DUPLICATE KEY UPDATE a = VALUES(b)",
        "INSERT INTO numbered (a, b, n) VALUES (5, 1, 3), (6, 1, 4) ON DUPLICATE KEY UPDATE a = 5",
        "INSERT /*+ shard(1) */ INTO numbered (a, n) VALUES (5, 3) ON DUPLICATE KEY UPDATE a = VALUES(a)",
        f"INSERT INTO slugs (id, n) VALUES ({of(13, 2, 7)}, 3) ON DUPLICATE KEY UPDATE id = {of(13, 2, 7)}",
    ):
        with pytest.raises(pymysql.MySQLError, match="a row does not move"):
            rows(client, sql)


def test_what_may_change_the_routing_column_is_refused(client: Connection) -> None:
    for sql in (
        "UPDATE links SET a = 6 WHERE a = 5",
        "UPDATE links SET a = b WHERE a = 5",
        "INSERT INTO links (a, b) VALUES (5, 1) ON DUPLICATE KEY UPDATE a = 6",
        "UPDATE words SET k = 'X' WHERE k = 'x'",
    ):
        with pytest.raises(pymysql.MySQLError, match="a row does not move"):
            rows(client, sql)


def test_a_gathered_column_of_a_composite_key_is_one_of_the_primary_key(
    client: Connection, one: Connection
) -> None:
    found = []
    for connection in (client, one):
        rows(connection, "REPLACE INTO links (a, b) VALUES (31, 1), (31, 2), (32, 1)")
        rows(connection, "REPLACE INTO words VALUES ('gathered', 1)")
        told = []
        for sql in (
            "SELECT l.a, w.k FROM links l JOIN words w ON w.v = l.b WHERE w.k = 'gathered' ORDER BY 1",
            "SELECT l.b FROM links l, words w WHERE w.v = l.b + 1 AND w.k = 'gathered'",
            "SELECT l.n FROM links l, words w WHERE w.v = l.a - 31 AND w.k = 'gathered'",
            "SELECT x.b, x.b + 1 FROM links x, links y WHERE x.b = y.a - 30 ORDER BY 1",
        ):
            with connection.cursor() as cursor:
                cursor.execute(sql)
                flags = [
                    field.flags & (FLAG.PRI_KEY | FLAG.NOT_NULL) for field in vars(cursor)["_result"].fields
                ]
                told.append((sql, flags, cursor.fetchall()))
        rows(connection, "DELETE FROM links WHERE a IN (31, 32)")
        rows(connection, "DELETE FROM words WHERE k = 'gathered'")
        found.append(told)
    assert found[0] == found[1]


def test_keys_that_cannot_hold_are_refused(client: Connection) -> None:
    for sql, code in (
        ("ALTER TABLE photos2 ADD UNIQUE KEY (n)", 1503),
        ("CREATE UNIQUE INDEX by_b ON links (b)", 1503),
        ("ALTER TABLE links ADD COLUMN c INT AUTO_INCREMENT, ADD KEY (c)", 1075),
        ("ALTER TABLE photos2 ADD CONSTRAINT f FOREIGN KEY (album_id) REFERENCES albums (id)", 1506),
        ("CREATE TABLE tags (id INT PRIMARY KEY, photo BIGINT REFERENCES photos2 (id))", 1506),
    ):
        with pytest.raises(pymysql.MySQLError) as caught:
            rows(client, sql)
        assert caught.value.args[0] == code
        assert "local_id" not in caught.value.args[1]
        assert len(caught.value.args[1]) < 512, "a server's longest message"
    rows(client, "ALTER TABLE photos2 ADD UNIQUE KEY by_album (album_id, n)")
    rows(client, "ALTER TABLE photos2 DROP KEY by_album")


def test_create_table_counts_by_itself(client: Connection) -> None:
    with client.cursor() as cursor:
        cursor.execute("INSERT INTO photos2 (n) VALUES (1)")
        first = cursor.lastrowid
        cursor.execute("INSERT INTO photos2 (n) VALUES (2)")
        assert first >> 36 & 1023 == 12
        assert cursor.lastrowid not in (0, first)
        cursor.execute("DELETE FROM photos2 WHERE id IN (%s, %s)", (first, cursor.lastrowid))


def test_a_variable_that_a_row_has_set(client: Connection) -> None:
    """It is an unsigned number: places and finds rows as one that SET gave."""
    album = of(11, 3, 7)
    rows(client, f"INSERT IGNORE INTO albums (id, data) VALUES ({album}, '1')")
    rows(client, f"SELECT id INTO @album FROM albums WHERE id = {album}")
    rows(client, "INSERT INTO photos2 (album_id, n) VALUES (@album, 77)")
    ((id, where),) = rows(client, "SELECT id, album_id FROM photos2 WHERE album_id = @album")
    assert (id >> 46, where) == (3, album)
    explained = dict(rows(client, "EXPLAIN ROUTE SELECT n FROM photos2 WHERE album_id = @album"))
    assert explained["narrowed by"] == "photos2: album_id = @album"
    rows(client, "DELETE FROM photos2 WHERE album_id = @album")


def test_strict_colocation(client: Connection, small: Demo) -> None:
    """Rows lie with their album, whichever way they came; conditions on it find them on one shard."""
    albums = [of(11, shard, 1) for shard in range(4)]
    with client.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO photos2 (album_id, n) VALUES (%s, %s)", [(one, n) for one in albums for n in (1, 2)]
        )
        cursor.execute("INSERT INTO photos2 (n) VALUES (3)")
        cursor.execute(
            "REPLACE INTO photos2 (id, album_id, n) VALUES (%s, %s, 4)", (of(12, 2, 500), albums[2])
        )
        cursor.execute("INSERT INTO photos2 (album_id, n) SELECT album_id, 5 FROM photos2 WHERE n = 1")
    for album in albums:
        expected = 4 if album == albums[2] else 3
        assert rows(client, f"SELECT COUNT(*) FROM photos2 WHERE album_id = {album}") == [(expected,)]
    listed = ", ".join(map(str, albums[:2]))
    assert rows(client, f"SELECT COUNT(*) FROM photos2 WHERE album_id IN ({listed})") == [(6,)]
    assert rows(client, "SELECT n FROM photos2 WHERE album_id IS NULL") == [(3,)]
    grouped = "SELECT album_id, COUNT(*) FROM photos2 GROUP BY album_id ORDER BY 1"
    assert rows(client, grouped) == [(None, 1), *((one, 4 if one == albums[2] else 3) for one in albums)]
    joined = "SELECT p.n FROM albums a JOIN photos2 p ON p.album_id = a.id WHERE a.id = {} ORDER BY p.n"
    rows(client, f"INSERT IGNORE INTO albums (id, data) VALUES ({albums[1]}, '1')")
    assert rows(client, joined.format(albums[1])) == [(1,), (2,), (5,)]
    for sql in (
        f"INSERT INTO photos2 (id, album_id) VALUES ({of(12, 1, 9)}, {albums[2]})",
        f"UPDATE photos2 SET album_id = {albums[3]} WHERE album_id = {albums[2]}",
        f"UPDATE photos2 SET album_id = n WHERE album_id = {albums[2]}",
        f"INSERT INTO photos2 (id, album_id) VALUES ({of(12, 2, 500)}, {albums[2]})"
        f" ON DUPLICATE KEY UPDATE album_id = {albums[1]}",
    ):
        with pytest.raises(pymysql.MySQLError, match="lies on the shard of its 'album_id'"):
            rows(client, sql)
    assert outcome(client, f"UPDATE photos2 SET album_id = {of(11, 2, 2)} WHERE album_id = {albums[2]}") == 4
    misplaced = 0
    for index in range(len(small.masters)):
        with small.direct(index) as server:
            for (name,) in rows(server, "SHOW DATABASES LIKE 'db0%'"):
                where = f"album_id IS NOT NULL AND album_id >> 46 & 0xffff <> {int(name[2:])}"
                misplaced += rows(server, f"SELECT COUNT(*) FROM {name}.photos2 WHERE {where}")[0][0]
    assert misplaced == 0


def test_tables_that_the_schema_does_not_name(client: Connection, proxy: OwnProxy) -> None:
    """As a migration tool makes, reads, changes and drops them."""

    def shown() -> list[str]:
        return [name for (name,) in rows(client, "SHOW TABLES")]

    rows(
        client,
        "CREATE TABLE django_migrations"
        " (id BIGINT AUTO_INCREMENT PRIMARY KEY, app VARCHAR(255) UNIQUE, n INT)",
    )
    assert "django_migrations" in shown()
    assert rows(client, "SHOW COLUMNS FROM django_migrations")[1][:2] == ("app", "varchar(255)")
    assert "AUTO_INCREMENT" in rows(client, "SHOW CREATE TABLE django_migrations")[0][1]
    known = (
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'demo' AND table_name = '{}'"
    )
    assert {name for (name,) in rows(client, known.format("django_migrations"))} == {"id", "app", "n"}
    client.begin()
    with client.cursor() as cursor:
        cursor.execute("INSERT INTO django_migrations (app, n) VALUES (%s, 3), ('b', 2)", ("a",))
        assert cursor.lastrowid == 1
    assert rows(client, "SELECT app FROM django_migrations d WHERE d.n = 3") == [("a",)]
    client.rollback()
    assert rows(client, "SELECT COUNT(*) FROM django_migrations") == [(0,)]
    rows(client, "INSERT INTO django_migrations (app, n) VALUES ('a', 77)")
    rows(client, f"INSERT INTO photos2 (id, album_id, n) VALUES ({of(12, 3, 900)}, NULL, 77)")
    joined = "SELECT p.id, d.app FROM photos2 p JOIN django_migrations d ON d.n = p.n WHERE p.n = 77"
    assert rows(client, joined) == [(of(12, 3, 900), "a")]
    rows(client, "ALTER TABLE django_migrations ADD COLUMN applied DATETIME, ADD KEY (n)")
    assert "applied" in {name for (name,) in rows(client, known.format("django_migrations"))}
    rows(
        client,
        "CREATE TABLE child (a INT PRIMARY KEY, b BIGINT, FOREIGN KEY (b) REFERENCES django_migrations (id))",
    )
    rows(client, "DROP TABLE child")
    rows(client, "RENAME TABLE django_migrations TO alembic_version")
    assert "alembic_version" in shown()
    assert "django_migrations" not in shown()
    rows(client, "ALTER TABLE alembic_version RENAME TO flyway_schema_history")
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(client, "SELECT * FROM alembic_version")
    assert caught.value.args == (1146, "Table 'demo.alembic_version' doesn't exist")
    rows(client, "CREATE TABLE knex_migrations LIKE flyway_schema_history")
    rows(client, "TRUNCATE TABLE flyway_schema_history")
    rows(client, "DROP TABLE IF EXISTS knex_migrations, flyway_schema_history")
    assert set(shown()) == set(TABLES)


@pytest.mark.either_server
def test_orms(proxy: OwnProxy) -> None:
    """Django's migrations and saves, SQLAlchemy's upserts: written without a word of shards."""
    command = [sys.executable, "-m", "tests.integration.orms", str(proxy.proxy.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "django": {
            "migrated": True,
            "updated": True,
            "together": True,
            "of_album": [2],
            "joined": {"x": 1},
            "saved": True,
            "words": [["dj", 9], ["dk", 3]],
            "foreign_key": [1506, True],
        },
        "sqlalchemy": {"counts": [1, 1], "read": 4, "version": ["abc"]},
    }
