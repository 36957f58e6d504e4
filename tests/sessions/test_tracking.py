"""Session tracking: what OK packets tell of a session's changes, beside a server's own."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from tests.integration.raw import (
    INIT_DB,
    LOCAL_FILES,
    PING,
    RESET_CONNECTION,
    STMT_PREPARE,
    Raw,
    command,
    query,
)
from tests.integration.raw import packet as framed
from tests.integration.replies import is_eof, lenenc, text
from tests.support.demo import Demo
from tests.support.servers import LocalServer

SESSION_TRACK = 1 << 23
STMT_EXECUTE = 23
CHANGED = 0x4000

#: Statements; (command, argument) for commands. "{default}" stands for the variables tracked by default.
SCRIPT: tuple[str | tuple[int, bytes], ...] = (
    "SET NAMES utf8mb4",
    "SET NAMES latin1 COLLATE latin1_bin",
    "SET character_set_results = NULL",
    "SET autocommit = 1",
    "SET autocommit = 0",
    "SET SESSION sql_mode = 'ANSI'",
    "SET time_zone = '+01:00', autocommit = 1",
    "SET time_zone = DEFAULT",
    "SET CHARACTER SET utf8mb4",
    "SET NAMES utf8mb4",
    "SET @a = 1",
    "SET @a = 1 + 1",
    "USE scripts",
    "USE nothing_of_that_name",
    (INIT_DB, b"scripts"),
    (PING, b""),
    "SET SESSION session_track_state_change = ON",
    "SET @a = 1",
    "SET NAMES utf8mb4",
    "SET sql_mode = ''",
    "USE scripts",
    "CREATE TEMPORARY TABLE tmp (a INT)",
    "CREATE TABLE t (id INT PRIMARY KEY)",
    "INSERT INTO t VALUES (1)",
    "PREPARE s FROM 'SELECT 1'",
    "DEALLOCATE PREPARE s",
    "SET TRANSACTION READ ONLY",
    "BEGIN",
    "COMMIT",
    "DROP TEMPORARY TABLE tmp",
    *("CREATE DATABASE leaving", "USE leaving", "DROP DATABASE leaving", "USE scripts"),
    "SET SESSION session_track_state_change = OFF",
    *("CREATE DATABASE leaving", "USE leaving", "DROP DATABASE leaving", "USE scripts"),
    *("CREATE DATABASE leaving", "DROP DATABASE leaving"),
    "SET @a = 1",
    "SET SESSION session_track_system_variables = 'sql_mode,lock_wait_timeout,sql_safe_updates'",
    "SET sql_mode = 'ANSI', lock_wait_timeout = 20, sql_safe_updates = 1, wait_timeout = 1000",
    "SET sql_mode = '', sql_safe_updates = OFF",
    "SET autocommit = 1",
    "SET SESSION session_track_system_variables = ''",
    "SET NAMES utf8mb4",
    "SET session_track_system_variables = CONCAT(@@global.session_track_system_variables,"
    " ',auto_increment_increment')",
    "SET auto_increment_increment = 3",
    "SET NAMES utf8mb4",
    "SET SESSION session_track_schema = OFF",
    "USE scripts",
    "SET SESSION session_track_schema = ON, session_track_transaction_info = 'STATE'",
    "BEGIN",
    "INSERT INTO t VALUES (2)",
    "COMMIT",
    "INSERT INTO t VALUES (3)",
    "SET autocommit = 0",
    "INSERT INTO t VALUES (4)",
    "ROLLBACK",
    "SET autocommit = 1",
    "SET SESSION session_track_transaction_info = 'CHARACTERISTICS'",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "START TRANSACTION READ ONLY",
    "COMMIT",
    "START TRANSACTION READ WRITE",
    "INSERT INTO t VALUES (6)",
    "SAVEPOINT a",
    "ROLLBACK AND CHAIN",
    "COMMIT",
    "START TRANSACTION",
    "ROLLBACK",
    "BEGIN",
    "UPDATE t SET id = id + 100",
    "DELETE FROM t WHERE id = 1",
    "COMMIT AND CHAIN",
    "CREATE TABLE t2 (id INT PRIMARY KEY)",
    "DROP TABLE t2",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    "COMMIT",
    "START TRANSACTION READ WRITE, WITH CONSISTENT SNAPSHOT",
    "COMMIT",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET TRANSACTION READ ONLY",
    "BEGIN",
    "SELECT 1 INTO @x",
    "COMMIT",
    "SET autocommit = 0",
    "SET @y = (SELECT MAX(id) FROM t)",
    "COMMIT",
    "SET autocommit = 1",
    "SET session_track_system_variables = 'collation_connection,character_set_results'",
    "SET collation_connection = utf8mb4_general_ci",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    (RESET_CONNECTION, b""),
    "SET NAMES utf8mb4",
)  # fmt: skip


class Tracking(Raw):
    """Remembers the last packet."""

    last = b""

    def packet(self, sequence: list[int] | None = None) -> bytes:
        self.last = super().packet(sequence)
        return self.last

    def told(self, what: str | tuple[int, bytes]) -> object:
        """The changes that the reply's OK packet tells of, or the error."""
        reply = self.ask(what) if isinstance(what, str) else self.do(*what)
        return changes(self.last) if reply.kind == "ok" else (reply.kind, reply.code)


def changes(packet: bytes) -> list[tuple[int, ...]] | list[tuple[object, ...]]:
    """The session state of an OK packet: kind, and its texts."""
    _, pos = lenenc(packet, 1)
    _, pos = lenenc(packet, pos)
    status = struct.unpack_from("<H", packet, pos)[0]
    if not status & CHANGED:
        return []
    _, pos = text(packet, pos + 4)
    state, pos = text(packet, pos)
    assert pos == len(packet)
    found: list[tuple[object, ...]] = []
    at = 0
    while at < len(state or b""):
        assert state is not None
        kind = state[at]
        data, at = text(state, at + 1)
        assert data is not None
        parts: list[object] = [data]
        if kind != 2:
            parts, pos = [], 0
            while pos < len(data):
                part, pos = text(data, pos)
                parts.append((part or b"").decode())
        found.append((kind, *parts))
    return sorted(found, key=str)


@pytest.fixture
def both(demo: Demo, plain: LocalServer, unharmed: None) -> Iterator[tuple[Tracking, Tracking]]:
    """A client of the proxy and one of a server, with session tracking, in an empty database."""
    for connection in (demo.connect(), plain.connect()):
        with connection, connection.cursor() as cursor:
            cursor.execute("DROP DATABASE IF EXISTS scripts")
            cursor.execute("CREATE DATABASE scripts")
    through, direct = Tracking(demo.host, demo.port), Tracking("127.0.0.1", plain.port)
    with through, direct:
        for client, user, password in (
            (through, "demo", "demo"),
            (direct, plain.user, plain.password),
        ):
            assert client.login(user, password, "scripts", flags=SESSION_TRACK | LOCAL_FILES).kind == "ok"
            assert changes(client.last) == [(1, "scripts")]
        yield through, direct


#: Where a server says a little more or less: that nothing has changed, or what it did not say before.
ODD = {
    "mariadb": {"SET SESSION session_track_schema = ON, session_track_transaction_info = 'STATE'"},
    "mysql9": {"BEGIN", "COMMIT", "SET SESSION session_track_state_change = ON"},
}


def test_changes_are_told_as_a_server_tells_them(both: tuple[Tracking, Tracking], flavour: str) -> None:
    through, direct = both
    differences = []
    for number, what in enumerate(SCRIPT):
        expected, got = direct.told(what), through.told(what)
        odd = what in ODD[flavour] and (number < 40 or "session_track" in str(what))
        if expected != got and not odd:
            differences.append(f"{what}\n    direct  {expected}\n    through {got}")
    assert not differences, "\n" + "\n".join(differences)


def test_who_did_not_ask_is_told_nothing(demo: Demo, unharmed: None) -> None:
    with Tracking(demo.host, demo.port) as client:
        assert client.login(database="legacy").kind == "ok"
        for what in (
            "SET NAMES utf8mb4",
            "USE demo",
            "SET session_track_transaction_info = 'STATE'",
            "BEGIN",
        ):
            reply = client.ask(what)
            assert (reply.kind, reply.status & CHANGED, reply.info) == ("ok", 0, "")


def test_sharded_transactions_are_told_of_too(demo: Demo, unharmed: None) -> None:
    with Tracking(demo.host, demo.port) as client:
        assert client.login(database="demo", flags=SESSION_TRACK).kind == "ok"
        client.ask("SET session_track_transaction_info = 'CHARACTERISTICS'")
        assert client.told("BEGIN") == [(4, "START TRANSACTION;"), (5, "T_______")]
        id = (client.ask("SELECT id FROM users LIMIT 1").value or b"").decode()
        assert client.told(f"UPDATE users SET data = data WHERE id = {id}") == [(5, "T_R_W_S_")]
        assert client.told("ROLLBACK") == [(4, ""), (5, "________")]


def load(client: Tracking, content: bytes) -> object:
    """LOAD DATA LOCAL: what its OK tells."""
    client.write(query("LOAD DATA LOCAL INFILE 'any' INTO TABLE t"))
    assert client.packet()[:1] == b"\xfb"
    client.write(framed(content, 2) + framed(b"", 3))
    assert client.reply().kind == "ok"
    return changes(client.last)


def execute(client: Tracking, sql: str) -> object:
    """Prepare and execute: what the OK tells, or the number of columns."""
    client.write(command(STMT_PREPARE, sql.encode()))
    told = client.packet()
    number, columns = told[1:5], int.from_bytes(told[5:7], "little")
    for _ in range(columns + bool(columns)):
        client.packet()
    client.write(command(STMT_EXECUTE, number + b"\0\x01\0\0\0"))
    if columns:
        left = 2  # EOF packets
        while left:
            left -= is_eof(client.packet())
        return columns
    assert client.packet()[:1] == b"\0"
    return changes(client.last)


def test_executed_statements_and_files_are_told_of_too(
    demo: Demo, plain: LocalServer, both: tuple[Tracking, Tracking]
) -> None:
    for connection in (demo.direct(), plain.connect()):
        with connection, connection.cursor() as cursor:
            cursor.execute("SET GLOBAL local_infile = 1")
    found = []
    for client in both:
        client.sock.settimeout(20)
        for sql in (
            "CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB",
            "SET SESSION session_track_transaction_info = 'STATE'",
            "SET autocommit = 0",
        ):
            assert client.ask(sql).kind == "ok"
        steps = [execute(client, "INSERT INTO t VALUES (1)"), execute(client, "SELECT * FROM t")]
        steps += [execute(client, "UPDATE t SET id = 2"), execute(client, "COMMIT")]
        steps += [load(client, b"7\n8\n"), execute(client, "DELETE FROM t"), client.told("ROLLBACK")]
        found.append(steps)
    assert found[0] == found[1]
    assert found[0][0] == [(5, "I___W___")] or found[0][0]
