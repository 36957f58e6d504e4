"""The same with aiomysql and the command line client of each server."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import aiomysql
import pytest

from demo.programs import Program
from tests.integration.fixtures import Things, shard_of
from tests.support.demo import Demo
from tests.support.waiting import wait_until


async def test_aiomysql(demo: Demo, things: Things, unharmed: None) -> None:
    async with aiomysql.create_pool(
        host=demo.host, port=demo.port, user="demo", password="demo", db="demo", minsize=2, maxsize=5
    ) as pool:

        async def work(number: int) -> tuple[int, str]:
            async with pool.acquire() as connection, connection.cursor() as cursor:
                await connection.begin()
                await cursor.execute("INSERT INTO users (data) VALUES (%s)", (json.dumps({"n": number}),))
                id = cursor.lastrowid
                things.forget_later("users", "id", id)
                await cursor.execute("SELECT JSON_EXTRACT(data, '$.n') FROM users WHERE id = %s", (id,))
                (value,) = await cursor.fetchone()
                await connection.commit()
                await cursor.execute("SELECT id FROM users WHERE id = %s", (id,))
                assert await cursor.fetchall() == ((id,),)
                return id, value

        found = await asyncio.gather(*(work(number) for number in range(20)))
        assert [int(value) for _, value in found] == list(range(20))
        assert len({id for id, _ in found}) == 20
        pool.close()
        await pool.wait_closed()


class Cli:
    """The server's own command line client."""

    def __init__(self, demo: Demo, program: Program) -> None:
        self.demo = demo
        near = Path(program.path).parent
        names = ("mariadb", "mysql") if program.flavour.value == "mariadb" else ("mysql",)
        places = [str(near / name) for name in names] + [shutil.which(name) or "" for name in names]
        # MySQL 9 has its local commands only when asked, and RSA for a password that is not cached
        self.mariadb = program.flavour.value == "mariadb"
        self.options = [] if self.mariadb else ["--commands", "--get-server-public-key"]
        self.without_tls = ["--skip-ssl"] if self.mariadb else ["--ssl-mode=DISABLED"]
        self.path = next(place for place in places if place and os.access(place, os.X_OK))

    def command(self, *options: str) -> list[str]:
        demo = self.demo
        return [
            self.path, "--no-defaults", "-h", demo.host, "-P", str(demo.port), "-udemo", "-pdemo",
            *self.options,
            *options,
        ]  # fmt: skip

    def run(self, sql: str, *options: str, database: str = "demo") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command(*options), database],
            input=sql,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def ask(self, sql: str, *options: str) -> list[str]:
        """The lines of the rows."""
        done = self.run(sql, "-N", "-B", *options)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@pytest.fixture
def cli(demo: Demo, program: Program, unharmed: None) -> Cli:
    return Cli(demo, program)


def test_a_session_at_the_prompt(cli: Cli, things: Things) -> None:
    lines = cli.ask(
        """
        SELECT COUNT(*) FROM users;
        INSERT INTO users (data) VALUES ('{"name": "Grace"}');
        SELECT LAST_INSERT_ID();
        SELECT JSON_UNQUOTE(JSON_EXTRACT(data, '$.name')) FROM users WHERE id = LAST_INSERT_ID();
        SHOW TABLES LIKE 'pins';
        USE legacy;
        SELECT DATABASE();
        USE db00003;
        SELECT DATABASE();
        """
    )
    id = int(lines[1])
    things.forget_later("users", "id", id)
    assert shard_of(id) < 64
    assert lines[2:] == ["Grace", "pins", "legacy", "db00003"]
    assert int(lines[0]) >= 300


def test_status_and_completion(cli: Cli) -> None:
    """`status` asks what only a session knows; completion (-A off) asks COM_FIELD_LIST for every table."""
    done = cli.run("status;\nSELECT 1;\n", "--auto-rehash", "-t")
    assert done.returncode == 0, done.stderr
    assert "Current database:\tdemo" in done.stdout
    assert "demo@" in done.stdout
    assert "utf8mb4" in done.stdout


def test_errors_and_warnings(cli: Cli) -> None:
    done = cli.run("SELECT * FROM nothing_like_it;\nSELECT 1 + 1;\nSELEKT;\n", "-f", "-N", "-B")
    assert "ERROR 1146 (42S02)" in done.stderr
    assert "ERROR 1064 (42000)" in done.stderr
    assert done.stdout.split() == ["2"]
    warned = cli.run("SELECT id FROM pins WHERE id = 7;\n", "--show-warnings", "-t")
    assert warned.returncode == 0
    assert "Warning (Code 1105)" in warned.stdout, warned.stdout


def test_interrupt(cli: Cli) -> None:
    """Ctrl-C: a second connection and KILL QUERY; the client's own connection goes on."""
    session = subprocess.Popen(
        [*cli.command("-N", "-B", "-n", "-f"), "demo"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert session.stdin is not None
    session.stdin.write("SELECT SLEEP(30) AS pause;\nSELECT 'still here';\n")
    session.stdin.flush()
    with cli.demo.connect() as other, other.cursor() as cursor:

        def at_work() -> bool:
            cursor.execute("SHOW FULL PROCESSLIST")
            return any("SLEEP(30)" in str(row[7]) for row in cursor.fetchall())

        wait_until(at_work, "the statement at work")
    session.send_signal(signal.SIGINT)
    output, _ = session.communicate(timeout=25)
    assert "still here" in output, output


def test_wrong_password(cli: Cli) -> None:
    done = subprocess.run(
        [*cli.command(), "-pwrong", "demo"],
        input="SELECT 1;",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert "ERROR 1045 (28000)" in done.stderr
