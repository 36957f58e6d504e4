"""Logs that real servers have written are read to the statement."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from demo.programs import Program
from proxy.advising.logs import Format
from rewriter.advice.cost import Way
from tests.support.servers import Connection, LocalServer
from tests.support.waiting import wait_until

from .world import TABLES, Read

MANY_LINES = "SELECT *\nFROM users\n\nWHERE id = 1"
ODD = "SELECT name FROM users WHERE name LIKE '\t\t   3 Query\tx; -- no end\n# Time: none'"
STATEMENTS = (
    "INSERT INTO users (email, name) VALUES ('a@b', 'A'), ('c''d\\'e', 'line\nbreak')",
    "SELECT id, email FROM users WHERE id = 2",
    "SELECT id, email FROM users WHERE id = 3",
    MANY_LINES,
    "SELECT * FROM users WHERE email = 'secret@mail'",
    "SELECT COUNT(*), IFNULL(MAX(name), '') FROM users",
    "SELECT * FROM orders WHERE id IN (1, 2, 3)",
    "INSERT INTO orders VALUES (NULL, 1, 2, 'x'), (NULL, 2, 3, 'y')",
    "UPDATE orders SET state = state + 1 WHERE user_id = 7 AND state < 3",
    "SELECT o.id, s.name FROM orders o JOIN states s ON s.id = o.state WHERE o.id = 5",
    ODD,
)
PREPARED = "SELECT * FROM orders WHERE user_id = ?"
EXPECTED = {
    "INSERT INTO users (email, name) VALUES (?, ?)": (1, Way.ONE),
    "SELECT id, email FROM users WHERE id = ?": (2, Way.POINT),
    "SELECT * FROM users WHERE id = ?": (1, Way.POINT),
    "SELECT * FROM users WHERE email = ?": (1, Way.SCATTER),
    "SELECT COUNT(*), IFNULL(MAX(name), ?) FROM users": (1, Way.GATHER),
    "SELECT * FROM orders WHERE id IN (?)": (1, Way.LIST),
    "INSERT INTO orders VALUES (NULL, ?, ?, ?)": (1, Way.ONE),
    "UPDATE orders SET state = state + ? WHERE user_id = ? AND state < ?": (1, Way.REFUSED),
    "SELECT o.id, s.name FROM orders o JOIN states s ON s.id = o.state WHERE o.id = ?": (1, Way.GATHER),
    "SELECT name FROM users WHERE name LIKE ?": (1, Way.SCATTER),
    PREPARED: (1, Way.SCATTER),
}
"""The statements' digests, with the prepared one: how often, and how they would run."""


@pytest.fixture
def shop(servers: list[LocalServer]) -> Connection:
    connection = servers[0].connect()
    with connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS shop")
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("USE shop")
        for sql in TABLES:
            cursor.execute(sql)
    return connection


@pytest.fixture
def logged(servers: list[LocalServer], shop: Connection, tmp_path: Path) -> Callable[[str], Path]:
    """Runs the statements while a log, `general` or `slow_query`, is written; the log."""

    def run(name: str) -> Path:
        log = tmp_path / f"{name}.log"
        switch = "general_log" if name == "general" else "slow_query_log"
        before = f"{name}_log_file"
        with shop.cursor() as cursor:
            cursor.execute(f"SET GLOBAL {before} = '{log}'")
            cursor.execute("SET GLOBAL long_query_time = 0")
            cursor.execute(f"SET GLOBAL {switch} = ON")
            try:
                with servers[0].connect(database="shop") as client, client.cursor() as asking:
                    asking.execute("SET @user = 5")
                    for sql in STATEMENTS:
                        asking.execute(sql)
                    asking.execute("PREPARE p FROM 'SELECT * FROM orders WHERE user_id = ?'")
                    asking.execute("EXECUTE p USING @user")
                    asking.execute("SELECT 'the end'")
                wait_until(lambda: b"the end" in log.read_bytes(), "the log is written")
            finally:
                cursor.execute(f"SET GLOBAL {switch} = OFF")
                cursor.execute("SET GLOBAL long_query_time = 10")
        return log

    return run


def ways(read: Read) -> dict[str, tuple[int, Way]]:
    kinds = read.kinds
    return {text: (kinds[text].count, kinds[text].cost.way) for text in EXPECTED if text in kinds}


def test_the_general_log(logged: Callable[[str], Path]) -> None:
    log = logged("general")
    read = Read(log)
    assert read.format is Format.GENERAL
    assert ways(read) == EXPECTED
    assert read.kinds["SELECT * FROM users WHERE id = ?"].database == "shop"
    assert read.notes.version
    assert read.size == log.stat().st_size
    assert set(read.notes.skipped) == {"PREPARE, EXECUTE and DEALLOCATE by SQL"}


def test_the_slow_log(logged: Callable[[str], Path]) -> None:
    read = Read(logged("slow_query"))
    assert read.format is Format.SLOW
    assert ways(read) == EXPECTED
    by_id = read.kinds["SELECT id, email FROM users WHERE id = ?"]
    assert (by_id.timed, by_id.sent, by_id.examined) == (2, 1, 1)  # there are two users
    assert 0 < by_id.seconds < 10
    assert read.kinds["SELECT * FROM users WHERE email = ?"].database == "shop"


def test_digests(program: Program, template: Path, tmp_path: Path) -> None:
    """Exported as TSV and as CSV, with samples where the server keeps them, and without."""
    options = ["--performance-schema=ON"]
    folder = tmp_path / "server"
    with LocalServer(program, folder, name="digests", template=template, options=options) as server:
        names, rows = digests_of(server)
    for name, write in (("digests.tsv", tsv), ("digests.csv", comma_separated)):
        log = tmp_path / name
        log.write_text(write(names, rows))
        read = Read(log)
        assert read.format is Format.DIGEST
        by_id = next(one for one in read.kinds.values() if one.cost.way is Way.POINT and one.count == 2)
        assert by_id.timed == 2
        assert 0 < by_id.seconds < 10
        assert by_id.database == "shop"
        assert not read.notes.skipped
        if "QUERY_SAMPLE_TEXT" in names:
            assert {text: pair for text, pair in EXPECTED.items() if text != PREPARED} == ways(read)
    log.write_text(tsv(*without_samples(names, rows)))
    read = Read(log)
    expected = [way for text, (_, way) in EXPECTED.items() if text != PREPARED]
    mine = [one for one in read.kinds.values() if not one.digest.startswith(("CREATE", "USE"))]
    assert sorted(one.cost.way for one in mine if one.cost.way is not Way.PROXY) == sorted(expected)


def digests_of(server: LocalServer) -> tuple[list[str], list[list[str | None]]]:
    """What the server says of the statements, after they were run."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("USE shop")
        for sql in (*TABLES, *STATEMENTS):
            cursor.execute(sql)
        cursor.execute(
            "SELECT * FROM performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME = 'shop'"
        )
        names = [column[0] for column in cursor.description or ()]
        return names, [[None if cell is None else str(cell) for cell in row] for row in cursor.fetchall()]


def without_samples(
    names: list[str], rows: list[list[str | None]]
) -> tuple[list[str], list[list[str | None]]]:
    kept = [at for at, name in enumerate(names) if not name.startswith("QUERY_SAMPLE")]
    return [names[at] for at in kept], [[row[at] for at in kept] for row in rows]


def tsv(names: list[str], rows: list[list[str | None]]) -> str:
    """As `mysql -B` prints it."""

    def cell(text: str | None) -> str:
        if text is None:
            return "NULL"
        return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")

    lines: list[list[str | None]] = [list(names), *rows]
    return "\n".join("\t".join(map(cell, line)) for line in lines) + "\n"


def comma_separated(names: list[str], rows: list[list[str | None]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([["NULL" if cell is None else cell for cell in row] for row in rows])
    return out.getvalue()
