"""Dumps of the logical view, by the servers' own programs, restored on one server and through a proxy."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest

from demo.programs import Program
from tests.conftest import StartDemo
from tests.integration.fixtures import Connect
from tests.support.demo import Demo
from tests.support.servers import Connection, LocalServer

OPTIONS = {
    "snapshot": ["--single-transaction", "--routines", "--triggers", "--events"],
    "locks": ["--lock-tables", "--no-tablespaces", "--complete-insert"],
    "bare": ["--skip-opt", "--quick", "--extended-insert", "--hex-blob"],
}


@pytest.fixture(scope="module")
def tools(program: Program, flavour: str) -> tuple[str, str]:
    """The dump program and the CLI of the flavour."""
    if flavour == "mariadb":
        return str(shutil.which("mariadb-dump")), str(shutil.which("mariadb"))
    return str(program.path.parent / "mysqldump"), str(program.path.parent / "mysql")


def address(demo: Demo) -> list[str]:
    return [f"--host={demo.host}", f"--port={demo.port}", "--user=demo", "--password=demo", "--protocol=tcp"]


def dump(tool: str, demo: Demo, *options: str) -> bytes:
    done = subprocess.run([tool, *address(demo), *options], capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    assert b"Error" not in done.stderr, done.stderr.decode()
    return done.stdout


def feed(tool: str, arguments: list[str], sql: bytes) -> None:
    arguments = ["--default-character-set=utf8mb4", *arguments]  # --skip-opt names none in the dump
    done = subprocess.run([tool, *arguments], input=sql, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()


def rows(connection: Connection, database: str, table: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT * FROM {database}.{table}")
        return sorted(cursor.fetchall())


def tables(connection: Connection, database: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW TABLES FROM {database}")
        return [row[0] for row in cursor.fetchall()]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("database", ["demo", "legacy"])
def test_restored_on_one_server(
    demo: Demo, connect: Connect, plain: LocalServer, tools: tuple[str, str], database: str, options: str
) -> None:
    """Its tables and rows are those that the proxy shows."""
    sql = dump(tools[0], demo, *OPTIONS[options], database)
    through = connect(database=database)
    with plain.connect(charset="utf8mb4") as direct, direct.cursor() as cursor:
        cursor.execute("CREATE DATABASE restored CHARACTER SET utf8mb4")
        try:
            account = [f"--socket={plain.socket}", f"--user={plain.user}", f"--password={plain.password}"]
            feed(tools[1], [*account, "restored"], sql)
            names = tables(through, database)
            assert tables(direct, "restored") == names
            for name in names:
                assert rows(direct, "restored", name) == rows(through, database, name), name
        finally:
            cursor.execute("DROP DATABASE restored")


def test_with_its_database(demo: Demo, tools: tuple[str, str]) -> None:
    """--databases names the logical database, and nothing physical is in a dump."""
    sql = dump(tools[0], demo, "--single-transaction", "--no-data", "--databases", "demo")
    assert b"`demo`" in sql
    assert b"CREATE TABLE `pins`" in sql
    assert b"local_id" not in sql
    assert b"db00000" not in sql


def test_restored_through_a_proxy(start_demo: StartDemo, tools: tuple[str, str]) -> None:
    """Every row of a sharded table goes to its shard by its own id; the tables are dropped and made anew."""
    filled, empty = start_demo("--shards", "4"), start_demo("--shards", "4", "--empty")
    sql = dump(tools[0], filled, "demo")
    assert b"DROP TABLE IF EXISTS `pins`" in sql
    feed(tools[1], [*address(empty), "demo"], sql)
    with filled.connect() as through, empty.connect() as other:
        for name in tables(through, "demo"):
            assert rows(other, "demo", name) == rows(through, "demo", name), name
