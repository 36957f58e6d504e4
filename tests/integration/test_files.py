"""LOAD DATA LOCAL INFILE on single tables, with real servers, drivers and a raw client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from tests.integration import raw as wire
from tests.integration.fixtures import Connect, MakeRaw
from tests.integration.raw import LOCAL_FILES, MULTI_STATEMENTS, Raw, Reply, packet, query
from tests.support.demo import Demo
from tests.support.waiting import wait_until

LOAD = "LOAD DATA LOCAL INFILE 'anything' INTO TABLE loaded"


@pytest.fixture(scope="module", autouse=True)
def allowed(demo: Demo) -> None:
    """MySQL's servers have local_infile off."""
    with demo.direct() as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL local_infile = 1")


@pytest.fixture(autouse=True)
def table(demo: Demo, allowed: None) -> Iterator[None]:
    with demo.direct(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE loaded (a INT PRIMARY KEY, b LONGTEXT)")
        yield
        cursor.execute("DROP TABLE loaded")


def sender(raw: MakeRaw, flags: int = LOCAL_FILES) -> Raw:
    client = raw(login=False)
    assert client.login(database="legacy", flags=flags).kind == "ok"
    return client


def load(client: Raw, *file: bytes, sql: str = LOAD) -> Reply:
    """Send a file when the server asks for it."""
    client.write(query(sql))
    sequence: list[int] = []
    assert client.packet(sequence) == b"\xfbanything"
    seq = sequence[-1] + 1
    for piece in (*file, b""):
        client.write(packet(piece, seq))
        seq += 1 + len(piece) // wire.FULL
    reply = client.reply()
    assert reply.sequence == [seq % 256]
    return reply


def test_a_drivers_file(connect: Connect, tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{number}\tthe row {number} {'x' * 100}\n" for number in range(40_000)))
    with connect(database="legacy", local_infile=True) as connection, connection.cursor() as cursor:
        assert cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE loaded") == 40_000
        cursor.execute("SELECT COUNT(*), SUM(a), SUM(LENGTH(b)) FROM loaded")
        length = sum(len(f"the row {n} ") + 100 for n in range(40_000))
        assert cursor.fetchone() == (40_000, 799_980_000, length)
        path.write_text("1\tagain\n50000\tnew\n")
        assert (
            cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE loaded (a, @c) SET b = UPPER(@c)")
            == 1
        )
        cursor.execute("SHOW WARNINGS")
        assert [row[1] for row in cursor.fetchall()] == [1062]
        cursor.execute("SELECT b FROM loaded WHERE a = 50000")
        assert cursor.fetchall() == (("NEW",),)
        with pytest.raises(pymysql.err.OperationalError, match="1017"):  # PyMySQL's: it has no such file
            cursor.execute(f"LOAD DATA LOCAL INFILE '{path}.missing' INTO TABLE loaded")
        cursor.execute("SELECT 1")


def test_a_single_table_of_a_sharded_database(connect: Connect, demo: Demo, tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("loaded-name\t241294492511762325\n")
    with connect(local_infile=True) as connection, connection.cursor() as cursor:
        assert (
            cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE usernames (username, user_id)") == 1
        )
        assert cursor.execute("DELETE FROM usernames WHERE username = 'loaded-name'") == 1
        for table in ("pins", "demo.board_has_pins"):
            with pytest.raises(pymysql.err.NotSupportedError, match=r"1235.*LOAD DATA"):
                cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {table}")
        with pytest.raises(pymysql.err.ProgrammingError, match="1146"):
            cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE legacy.nothing_there")
    with demo.reader(local_infile=True) as reader, reader.cursor() as cursor:
        for local in ("LOCAL ", ""):
            with pytest.raises(pymysql.err.OperationalError, match="1142"):
                cursor.execute(f"LOAD DATA {local}INFILE '{path}' INTO TABLE usernames")


def test_a_client_that_did_not_allow_it(raw: MakeRaw, demo: Demo) -> None:
    client = sender(raw, 0)
    with Raw(demo.hosts[0].socket, 0) as direct:
        assert direct.login(demo.hosts[0].user, demo.hosts[0].password, "legacy").kind == "ok"
        assert client.ask(LOAD) == direct.ask(LOAD)
    assert client.ping().kind == "ok"


def test_files_of_all_sizes(raw: MakeRaw) -> None:
    client = sender(raw)
    assert load(client).affected == 0
    assert load(client, b"1\ta\n2", b"\tb\n").affected == 2
    huge = b"3\t" + b"x" * 17_000_000 + b"\n"
    assert load(client, huge).affected == 1
    assert load(client, *(b"%d\tsmall\n" % number for number in range(10, 1000))).affected == 990
    assert client.ask("SELECT COUNT(*), MAX(LENGTH(b)) FROM loaded").rows == [(b"993", b"17000000")]
    client.write(query("BEGIN"))
    assert client.reply().kind == "ok"
    assert load(client, b"4\tc\n").status & wire.IN_TRANS
    assert client.ask("ROLLBACK").kind == "ok"
    assert client.ask("SELECT 1 FROM loaded WHERE a = 4").rows == []


def test_among_other_statements(raw: MakeRaw) -> None:
    client = sender(raw, LOCAL_FILES | MULTI_STATEMENTS)
    client.write(query(f"SELECT 1; {LOAD}; SELECT COUNT(*) FROM loaded"))
    assert client.reply().value == b"1"
    sequence: list[int] = []
    assert client.packet(sequence) == b"\xfbanything"
    client.write(packet(b"1\ta\n", sequence[0] + 1) + packet(b"", sequence[0] + 2))
    first, second = client.replies()
    assert (first.affected, first.sequence) == (1, [sequence[0] + 3])
    assert second.value == b"1"
    assert second.sequence[0] == sequence[0] + 4


def test_a_trigger_stops_it(raw: MakeRaw, demo: Demo) -> None:
    client = sender(raw)
    trigger = (
        "CREATE TRIGGER stops BEFORE INSERT ON loaded FOR EACH ROW"
        " IF NEW.a = 5 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'five'; END IF"
    )
    assert client.ask(trigger).kind == "ok"
    rows = [b"%d\t%s\n" % (number, b"x" * 1000) for number in range(3000)]
    assert load(client, *rows).message == "five"
    assert client.ask("SELECT COUNT(*) FROM loaded").kind == "rows"


def test_the_client_vanishes(raw: MakeRaw, demo: Demo) -> None:
    client = sender(raw)
    client.write(query(LOAD))
    client.packet()
    client.write(packet(b"1\ta\n2\tb\n", 2))
    client.reset()
    with demo.direct(database="legacy") as connection, connection.cursor() as cursor:

        def nobody() -> bool:
            cursor.execute("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'LOAD%'")
            row = cursor.fetchone()
            return row == (0,)

        wait_until(nobody, "the server has given up the file")


def test_a_killed_server_connection(raw: MakeRaw, demo: Demo) -> None:
    client = sender(raw)
    client.write(query(LOAD))
    client.packet()
    with demo.direct() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'LOAD%'")
        (row,) = cursor.fetchall()
        cursor.execute(f"KILL {row[0]}")
    client.write(packet(b"1\ta\n", 2) + packet(b"", 3))
    reply = client.reply()
    assert reply.code in (1158, 1317, 1927), reply
    assert reply.sequence in ([2], [4])  # MySQL tells it before the file's end
    assert client.ask("SELECT 1").value == b"1"


@pytest.mark.parametrize("database", ["demo", None, "legacy"])
def test_the_files_character_set(connect: Connect, raw: MakeRaw, database: str | None) -> None:
    """It is never that of what happens to be the connection's current database."""
    with connect(database="information_schema") as other, other.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM information_schema.engines")  # where that is utf8mb3
    client = raw(login=False)
    assert client.login(database=database, flags=LOCAL_FILES).kind == "ok"
    assert client.ask("SET NAMES utf8mb4").kind == "ok"
    sql = "LOAD DATA LOCAL INFILE 'anything' INTO TABLE legacy.loaded"
    assert load(client, "1\t\U0001f600\n".encode(), sql=sql).warnings == 0
    assert client.ask("SELECT HEX(b) FROM legacy.loaded").value == b"F09F9880"
    sql = "LOAD DATA LOCAL INFILE 'anything' INTO TABLE demo.usernames"
    try:
        assert load(client, "\U0001f600 x\t7\n".encode(), sql=sql).warnings == 0
        found = client.ask("SELECT HEX(username) FROM demo.usernames WHERE user_id = 7")
        assert found.value == b"F09F98802078"
    finally:
        client.ask("DELETE FROM demo.usernames WHERE user_id = 7")
