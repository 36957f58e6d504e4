"""`shardgate fleet changes` on a demo: rows by their logical names, each told of once, whatever moves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from demo.programs import Program
from proxy.cli import app
from tests.fleet.moving import Moving
from tests.support.demo import Demo, running_demo

Change = dict[str, Any]


class Reader:
    """The command, with positions of its own."""

    def __init__(self, demo: Demo, file: Path) -> None:
        self.demo, self.file = demo, file

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit status, what is printed, and what is told."""
        words = ["fleet", "changes", "--once", "--positions", str(self.file), *arguments]
        done = CliRunner().invoke(app, [*words, "--config", str(self.demo.settings)])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout, done.stderr

    def read(self, *arguments: str) -> list[Change]:
        """The changes since the last time."""
        status, printed, told = self.run(*arguments)
        assert status == 0, told
        return [json.loads(line) for line in printed.splitlines()]


@pytest.fixture(scope="module")
def cluster(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    options = ("--slaves", "--spares", "2", "--shards", "8")
    with running_demo(program, tmp_path_factory.mktemp("binlog"), *options) as demo:
        yield demo


def test_rows_have_their_logical_names(cluster: Demo, tmp_path: Path) -> None:
    reader = Reader(cluster, tmp_path / "positions")
    assert reader.read() == []
    with cluster.connect() as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO boards (id, data) VALUES (MAKE_ID(2, 2, 900), '{\"user_id\": 1}')")
        board = 2 << 46 | 2 << 36 | 900
        cursor.execute("INSERT INTO board_has_pins VALUES (%s, 7, 5)", (board,))
        cursor.execute("UPDATE boards SET data = '{\"user_id\": 2}' WHERE id = %s", (board,))
        cursor.execute("DELETE FROM boards WHERE id = %s", (board,))
        cursor.execute("INSERT INTO usernames VALUES ('binlog', 3)")
        cursor.execute("INSERT INTO email_to_user VALUES ('binlog@example.com', 3)")
    found = reader.read()
    print(json.dumps(found, indent=1))
