"""What the proxy believes of how a server reads a statement's text: never a guess."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import Connect, MakeOwn, MakeRaw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

RESULTS = ("NULL", "binary", "utf16", "ucs2", "utf32", "latin1", "utf16le")


@pytest.mark.parametrize("results", RESULTS)
def test_modes_whatever_results_are(raw: MakeRaw, results: str) -> None:
    """sql_mode is known though its value comes in a character set that nobody reads."""
    client = raw(database="legacy")
    client.ask(f"SET character_set_results = {results}")
    for mode, sql, value in (
        ("NO_BACKSLASH_ESCAPES", r"SELECT HEX('\'), 1 -- '", 2),
        ("ANSI_QUOTES", 'SELECT HEX(`a"b`), "c" FROM (SELECT 1 AS `a"b`, 2 AS "c") AS t', 2),
        ("PIPES_AS_CONCAT", "SELECT 1 || 2, 3", 2),
    ):
        reply = client.ask(f"SET sql_mode = '{mode}'")
        assert reply.kind == "ok", reply
        assert len(client.ask(sql).rows[0]) == value
    client.ask("SET character_set_results = utf8mb4")
    assert client.ask("SELECT @@sql_mode").value == b"PIPES_AS_CONCAT"


@pytest.mark.parametrize("results", RESULTS)
def test_parameters_are_stored_as_given(connect: Connect, results: str) -> None:
    """Drivers double the backslashes of parameters unless the status flags say that these escape nothing."""
    connection = connect(database="demo")
    cursor = connection.cursor()
    cursor.execute(f"SET character_set_results = {results}")
    cursor.execute("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
    assert connection.server_status & 0x200  # type: ignore[attr-defined]


@pytest.mark.parametrize("names", ["binary", "utf8mb4"])
def test_precedence_of_not(connect: Connect, names: str) -> None:
    """HIGH_NOT_PRECEDENCE is noticed, too."""
    cursor = connect(database="demo").cursor()
    cursor.execute(f"SET NAMES {names}")
    found = []
    for mode in ("", "HIGH_NOT_PRECEDENCE"):
        cursor.execute(f"SET sql_mode = '{mode}'")
        for bound in (0, 1):
            cursor.execute(f"SELECT COUNT(*) FROM pins WHERE NOT id < {bound} OR id = 68719476756")
            found.append(int(cursor.fetchone()[0]))  # type: ignore[index]
    assert found == [found[0], found[0], 1, found[0]]
    assert found[0] > 1


def test_a_set_in_a_prepared_text(raw: MakeRaw, demo: Demo, flavour: str) -> None:
    """EXECUTE sets how the statements that follow are read, as on a server."""
    client = raw(database="legacy")
    client.ask("BEGIN")
    client.ask("SELECT * FROM customers LIMIT 1")
    client.ask("PREPARE p FROM 'SET sql_mode = ''NO_BACKSLASH_ESCAPES'''")
    assert client.ask("EXECUTE p").kind == "ok"
    assert client.ask(r"SELECT 'a\', @@sql_mode").rows == [(b"a\\", b"NO_BACKSLASH_ESCAPES")]
    assert client.ask("SET sql_mode = ''").kind == "ok"
    assert client.ask(r"SELECT 'a\'b', 1").rows == [(b"a'b", b"1")]
    if flavour == "mariadb":
        assert client.ask("EXECUTE IMMEDIATE 'SET NAMES gbk, sql_mode = ''ANSI_QUOTES'''").kind == "ok"
        assert client.ask("SELECT @@character_set_client, @@sql_mode").rows == [(b"gbk", b"ANSI_QUOTES")]
        assert client.ask('SELECT "a"').code == 1054
        assert client.ask("SET NAMES utf8mb4, sql_mode = ''").kind == "ok"
        reply = client.ask("BEGIN NOT ATOMIC SET sql_mode = 'ANSI_QUOTES'; END")
        assert reply.kind == "ok"
        assert client.ask('SELECT "a"').rows == [(b"a",)]  # MariaDB gives sql_mode back at the end of a block
    client.ask("DEALLOCATE PREPARE p")
    client.ask("ROLLBACK")


@pytest.mark.parametrize("mode", ["ORACLE", "MSSQL"])
def test_modes_that_nobody_can_read(raw: MakeRaw, flavour: str, mode: str) -> None:
    """MariaDB's Oracle mode has another grammar, and MSSQL quotes names in brackets: refused, and nothing has
    changed.
    """
    client = raw(database="legacy")
    before = client.ask("SELECT @@sql_mode").value
    reply = client.ask(f"SET sql_mode = '{mode}'")
    assert reply.code == 1231
    assert client.ask("SELECT @@sql_mode").value == before
    assert client.ask("SELECT '1' || '0'").value == b"1"
    assert client.ask("SELECT 1 AS [ ' ], 2 AS [ ' ]").kind == "err"


def test_a_variable_by_a_letter_that_a_server_takes_for_another(raw: MakeRaw) -> None:
    """MySQL finds sql_mode by `ſql_mode`: the mode would change, and only the server would know."""
    for database in ("legacy", "demo"):
        client = raw(database=database)
        before = client.ask("SELECT @@sql_mode").value
        for name in ("ſql_mode", "@@ſql_mode", "SESSION ſql_mode", "`ſql_mode`"):
            for value in ("'NO_BACKSLASH_ESCAPES'", "'ANSI_QUOTES'"):
                reply = client.ask(f"SET {name} = {value}")
                assert reply.kind == "err", name
        assert client.ask("SET ſql_log_bin = 0").code == 1193
        assert client.ask("SELECT @@sql_mode").value == before


def test_hosts_that_differ(demo: Demo, own: MakeOwn) -> None:
    """A host with another sql_mode of its own reads statements as the others do."""
    with demo.direct(1) as direct, direct.cursor() as cursor:
        cursor.execute("SELECT @@global.sql_mode")
        before = cursor.fetchone()[0]  # type: ignore[index]
        cursor.execute("SET GLOBAL sql_mode = CONCAT(@@global.sql_mode, ',ANSI_QUOTES,NO_BACKSLASH_ESCAPES')")
        try:
            client = own().raw()
            for host in client.ask("SHOW SHARDS").rows[:1]:
                assert host
            for shard in range(0, 64, 21):
                found = client.ask(f'SELECT /*+ shard({shard}) */ "it\\\'s", @@sql_mode FROM pins LIMIT 1')
                assert found.rows == [] or found.rows[0][0] == b"it's"
            for sql in ("SET sql_mode = DEFAULT", "SELECT 1"):
                assert client.ask(sql).kind in ("ok", "rows")
        finally:
            cursor.execute("SET GLOBAL sql_mode = %s", (before,))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT data + 0 FROM pins ORDER BY data + 0, id",
        "SELECT SUM(data + 0) FROM pins",
        "SELECT data, COUNT(*), SUM(data + 0) FROM pins GROUP BY data",
        "SELECT data + 0 FROM pins UNION ALL SELECT data + 1 FROM boards",
        "SELECT p.data + 0 FROM board_has_pins m JOIN pins p ON p.id = m.pin_id ORDER BY p.data + 0",
    ],
)
def test_no_rows_wherever_they_begin(raw: MakeRaw, plain: LocalServer, text: str, flavour: str) -> None:
    """Nothing is read, so nothing is warned of; but MySQL itself reads a row for LIMIT 0 OFFSET 1."""
    client = raw()
    with plain.connect(database="demo") as there, there.cursor() as cursor:
        for limit in ("LIMIT 0", "LIMIT 0 OFFSET 1", "LIMIT 3, 0"):
            reply = client.ask(f"{text} {limit}")
            assert cursor.execute(f"{text} {limit}") == 0
            assert (reply.kind, reply.rows) == ("rows", []), limit
            if flavour == "mariadb" or limit == "LIMIT 0":
                cursor.execute("SELECT @@warning_count")
                assert cursor.fetchone() == (reply.warnings,), limit
