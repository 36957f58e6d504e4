"""`shardgate fleet changes` on a demo: rows by their logical names, each told of once, whatever moves."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest
from typer.testing import CliRunner

from demo.programs import Program
from proxy.cli import app
from tests.fleet.moving import Moving
from tests.support.demo import Demo, running_demo
from tests.support.waiting import wait_until

Change = dict[str, Any]
BOARD = 2 << 46 | 2 << 36 | 900


class Reader:
    """The command, with positions of its own."""

    def __init__(self, demo: Demo, folder: Path) -> None:
        self.demo, self.file = demo, folder / "positions"

    def words(self, *arguments: str) -> list[str]:
        """The command."""
        where = ["--positions", str(self.file), "--config", str(self.demo.settings)]
        return ["fleet", "changes", *where, *arguments]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit status, what is printed, and what is told, to the end of the logs."""
        done = CliRunner().invoke(app, self.words("--once", *arguments))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout, done.stderr

    def read(self, *arguments: str) -> list[Change]:
        """The changes since the last time."""
        status, printed, told = self.run(*arguments)
        assert status == 0, told
        return [json.loads(line) for line in printed.splitlines()]

    def begin(self) -> None:
        """From now on."""
        assert self.read() == []


@pytest.fixture(scope="module")
def cluster(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    options = ("--slaves", "--spares", "2", "--shards", "8")
    with running_demo(program, tmp_path_factory.mktemp("binlog"), *options) as demo:
        yield demo


@pytest.fixture
def reader(cluster: Demo, tmp_path: Path) -> Reader:
    made = Reader(cluster, tmp_path)
    made.begin()
    return made


def execute(demo: Demo, *statements: str) -> None:
    """By the proxy."""
    with demo.connect() as connection, connection.cursor() as cursor:
        for one in statements:
            cursor.execute(one)


def shown(changes: list[Change], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(one.get(name) for name in names) for one in changes]


def test_rows_have_their_logical_names(cluster: Demo, reader: Reader) -> None:
    execute(
        cluster,
        f"INSERT INTO boards (id, data) VALUES ({BOARD}, '{{\"user_id\": 1}}')",
        f"INSERT INTO board_has_pins VALUES ({BOARD}, 7, 13300000000000000000000000000000000001)",
        f"UPDATE boards SET data = '{{\"user_id\": 2}}' WHERE id = {BOARD}",
        f"DELETE FROM boards WHERE id = {BOARD}",
        "INSERT INTO email_to_user VALUES ('binlog@example.com', 3)",
        "INSERT INTO countries VALUES ('ZZ', 'Nowhere')",
        "CREATE TABLE legacy.of_changes (a INT PRIMARY KEY, b VARBINARY(4))",
        "INSERT INTO legacy.of_changes VALUES (1, x'00ff'), (2, NULL)",
        "TRUNCATE legacy.of_changes",
    )
    found = {(one["table"], one["op"]): one for one in reader.read()}
    made, changed, gone = (found["boards", op] for op in ("insert", "update", "delete"))
    assert (
        shown([made, changed, gone], "database", "keyspace", "shard", "id")
        == [("demo", "main", 2, BOARD)] * 3
    )
    assert made["after"]["id"] == BOARD
    assert json.loads(made["after"]["data"]) == {"user_id": 1}
    assert "before" not in made
    assert [json.loads(changed[one]["data"])["user_id"] for one in ("before", "after")] == [1, 2]
    assert "after" not in gone
    pin = found["board_has_pins", "insert"]["after"]
    assert pin == {"board_id": BOARD, "pin_id": 7, "sequence": "13300000000000000000000000000000000001"}
    lookup = found["email_to_user", "insert"]
    assert shown([lookup], "keyspace", "shard") == [("lookup", shard_of("binlog@example.com"))]
    assert found["countries", "insert"]["after"] == {"code": "ZZ", "name": "Nowhere"}
    assert found["of_changes", "insert"]["after"] == {"a": 2, "b": None}
    assert shown([found["of_changes", "truncate"]], "database", "table", "shard") == [
        ("legacy", "of_changes", None)
    ]
    assert len(found) == 8


def shard_of(email: str) -> int:
    """Of 8."""
    return int(hashlib.md5(email.encode()).hexdigest(), 16) % 8


def test_what_was_asked_for_and_once_each(cluster: Demo, reader: Reader) -> None:
    execute(
        cluster,
        "REPLACE INTO countries VALUES ('ZY', 'Elsewhere')",  # on each host, and told of once
        f"INSERT INTO user_likes_pins VALUES ({3 << 36 | 1}, 7, 5), ({3 << 36 | 1}, 8, 6)",
    )
    kept = reader.file.read_bytes()
    assert shown(reader.read("--table", "user_likes_pins"), "row", "last") == [(1, False), (2, True)]
    reader.file.write_bytes(kept)
    assert shown(reader.read("--table", "demo.countries"), "table") == [("countries",)]
    reader.file.write_bytes(kept)
    assert reader.read("--database", "legacy") == []
    reader.file.write_bytes(kept)
    found = reader.read("--print-positions")
    assert [one["table"] for one in found if "table" in one].count("countries") == 1
    assert found[-1]["positions"] == json.loads(reader.file.read_text())
    assert reader.read() == []


#: Columns, what is written to them, and what is told.
SELDOM: dict[str, tuple[str, str, Any]] = {
    "below_zero": ("TIME(6)", "'-00:00:00.000001'", "-00:00:00.000001"),
    "far_below": ("TIME(3)", "'-838:59:58.999'", "-838:59:58.999000"),
    "no_year": ("YEAR", "0", 0),
    "no_time": ("TIMESTAMP NULL", "'0000-00-00 00:00:00'", None),
    "half_a_date": ("DATE", "'2024-00-15'", None),
    "padded": ("BINARY(4)", "x'ff00'", {"base64": "/wAAAA=="}),
    "no_bytes": ("VARBINARY(4)", "''", {"base64": ""}),
    "controls": ("VARCHAR(9) CHARACTER SET latin1", "x'6181'", "a\x81"),
    "wide": ("VARCHAR(9) CHARACTER SET utf16", "'a😀'", "a😀"),
    "wider": ("VARCHAR(9) CHARACTER SET utf32", "'a😀'", "a😀"),
}
ON_SETS: dict[str, tuple[str, str, Any]] = {
    "nothing": ("JSON", "'null'", "null"),
    "opaque": (
        "JSON",
        "JSON_ARRAY(CAST('2024-01-02' AS DATE), CAST('2024-01-02 03:04:05.678' AS DATETIME(3)),"
        " CAST('-01:02:03.5' AS TIME(1)), CAST(1.50 AS DECIMAL(5, 2)), x'00ff')",
        '["2024-01-02", "2024-01-02 03:04:05.678000", "-01:02:03.500000", 1.5, "base64:type15:AP8="]',
    ),
    "vector": ("VECTOR(1)", "x'0000803F'", {"base64": "AACAPw=="}),
}
ON_DOMAINS: dict[str, tuple[str, str, Any]] = {
    "packed": ("VARCHAR(300) COMPRESSED", "REPEAT('ü', 200)", "ü" * 200),
    "packed_short": ("VARCHAR(10) COMPRESSED", "'ü'", "ü"),
    "packed_bytes": ("BLOB COMPRESSED", "REPEAT(x'00', 3)", {"base64": "AAAA"}),
    "address": ("INET6", "'1::'", {"base64": "AAEAAAAAAAAAAAAAAAAAAA=="}),
}


def test_values_that_are_seldom(cluster: Demo, reader: Reader) -> None:
    domains = json.loads(reader.file.read_text())["kind"] == "domains"
    columns = SELDOM | (ON_DOMAINS if domains else ON_SETS)
    defined = ", ".join(f"{name} {type_}" for name, (type_, _, _) in columns.items())
    values = ", ".join(value for _, value, _ in columns.values())
    with cluster.direct(0) as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4, SESSION sql_mode = ''")
        cursor.execute(f"CREATE TABLE legacy.seldom (a INT PRIMARY KEY, {defined}, z INT)")
        cursor.execute(f"INSERT INTO legacy.seldom VALUES (1, {values}, 3)")
        cursor.execute("DROP TABLE legacy.seldom")
    (told,) = reader.read()
    wanted = {name: value for name, (_, _, value) in columns.items()}
    assert told["after"] == {"a": 1, **wanted, "z": 3}


def test_prepared_transactions_are_told_of_when_they_commit(cluster: Demo, reader: Reader) -> None:
    with ExitStack() as stack:
        cursors = {}
        for name, pin in (("kept", 31), ("given up", 32)):
            cursors[name] = cursor = stack.enter_context(stack.enter_context(cluster.direct(0)).cursor())
            cursor.execute(f"XA START '{name}'")
            cursor.execute(f"INSERT INTO db00001.user_likes_pins VALUES (1, {pin}, 5), (2, {pin}, 6)")
            for verb in ("END", "PREPARE"):
                cursor.execute(f"XA {verb} '{name}'")
        assert reader.read() == []
        cursors["given up"].execute("XA ROLLBACK 'given up'")
        cursors["kept"].execute("XA COMMIT 'kept'")
        cursor.execute("XA START 'at once'")
        cursor.execute("DELETE FROM db00001.user_likes_pins WHERE pin_id = 31 AND user_id = 1")
        cursor.execute("XA END 'at once'")
        cursor.execute("XA COMMIT 'at once' ONE PHASE")
    found = reader.read()
    assert [(one["op"], (one.get("after") or one["before"])["pin_id"], one["last"]) for one in found] == [
        ("insert", 31, False),
        ("insert", 31, True),
        ("delete", 31, True),
    ]
    assert len({one["gtid"] for one in found}) == 2
    assert json.loads(reader.file.read_text())["prepared"] == {}


def test_a_server_whose_log_has_not_all_is_refused(cluster: Demo, reader: Reader) -> None:
    with cluster.direct(1) as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL binlog_row_metadata = MINIMAL")
        try:
            status, printed, told = reader.run()
        finally:
            cursor.execute("SET GLOBAL binlog_row_metadata = FULL")
    assert (status, printed) == (2, "")
    assert "SET GLOBAL binlog_row_metadata = FULL" in told
    assert cluster.masters[1].address in told


def test_changes_that_were_logged_as_a_statement_stop_it(cluster: Demo, reader: Reader) -> None:
    with cluster.direct(0) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        cursor.execute("/* who */ INSERT INTO db00001.user_likes_pins VALUES (1, 33, 5)")
        cursor.execute("CREATE TABLE mysql.shardgate_checks (a INT)")
        cursor.execute("INSERT INTO mysql.shardgate_checks VALUES (1)")
        cursor.execute("SET SESSION binlog_format = ROW")
        cursor.execute("INSERT INTO db00001.user_likes_pins VALUES (1, 34, 5)")
        cursor.execute("DROP TABLE mysql.shardgate_checks")
    status, printed, told = reader.run()
    assert (status, printed) == (1, "")
    assert "binlog_format is not ROW" in told
    skipped = told.partition("--skip ")[2].strip()
    found = reader.read("--skip", skipped)
    assert [one["after"]["pin_id"] for one in found] == [34]


@pytest.mark.parametrize(
    "statement",
    [
        "WITH one AS (SELECT 36 AS pin) UPDATE {0} JOIN one ON pin_id = pin SET sequence = 1",
        "UPDATE mysql.shardgate_checks JOIN {0} ON a = pin_id SET sequence = 1",
        "DELETE found FROM {0} AS found WHERE found.pin_id = 36",
    ],
)
def test_no_statement_hides_the_rows_it_changes(cluster: Demo, reader: Reader, statement: str) -> None:
    if statement.startswith("WITH") and json.loads(reader.file.read_text())["kind"] == "domains":
        pytest.skip("it has no such statement")
    with cluster.direct(0) as connection, connection.cursor() as cursor:
        cursor.execute("USE db00001")
        cursor.execute("CREATE TABLE IF NOT EXISTS mysql.shardgate_checks (a INT)")
        cursor.execute("INSERT INTO mysql.shardgate_checks VALUES (36)")
        cursor.execute("INSERT INTO user_likes_pins VALUES (1, 36, 5)")
        assert [one["after"]["pin_id"] for one in reader.read()] == [36]
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        cursor.execute(statement.format("db00001.user_likes_pins"))
        cursor.execute("SET SESSION binlog_format = ROW")
        cursor.execute("DELETE FROM user_likes_pins WHERE pin_id = 36")
        cursor.execute("DROP TABLE mysql.shardgate_checks")
    status, printed, told = reader.run()
    assert (status, printed) == (1, "")
    assert "binlog_format is not ROW" in told


def test_another_kind_of_positions(cluster: Demo, reader: Reader, tmp_path: Path) -> None:
    document = json.loads(reader.file.read_text())
    other = {"sets": "domains", "domains": "sets"}[document["kind"]]
    reader.file.write_text(json.dumps({"kind": other, "gtids": "", "hosts": {}, "prepared": {}}))
    assert reader.run()[0] == 2
    reader.file.write_text("{}")
    status, _, told = reader.run()
    assert status == 2
    assert "is no file that this command has written" in told
    assert "--from-oldest" in told


PAUSE = 0.02
"""Seconds between two rounds of the writer: all that it writes goes to a slave, and is read and printed."""


class Writer:
    """A client that writes all the time: new users anywhere, and one counter on each of some shards."""

    SHARDS = (0, 2, 3, 6)

    def __init__(self, demo: Demo) -> None:
        self.made: list[int] = []
        self.counters = {shard << 46 | 3 << 36 | 5000: 0 for shard in self.SHARDS}
        self._demo = demo
        self._stop = threading.Event()
        execute(
            demo, *(f"INSERT INTO users (id, data) VALUES ({one}, '{{\"n\": 0}}')" for one in self.counters)
        )
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        connection = self._demo.connect()
        with connection.cursor() as cursor:
            while not self._stop.is_set():
                cursor.execute("INSERT INTO users (data) VALUES ('{\"n\": 1}')")
                self.made.append(int(cursor.lastrowid or 0))
                for one, count in self.counters.items():
                    cursor.execute(f"UPDATE users SET data = '{{\"n\": {count + 1}}}' WHERE id = {one}")
                    self.counters[one] = count + 1
                self._stop.wait(PAUSE)
        connection.close()

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@contextmanager
def followed(reader: Reader, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command as long as it is wanted; what it prints is in `folder`."""
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (folder / "printed").open("ab") as printed, (folder / "told").open("ab") as told:
        heeding = ["env", "--default-signal=INT"]  # which shells let their background jobs ignore
        words = [*heeding, sys.executable, "-m", "proxy", *reader.words()]
        process = subprocess.Popen(words, stdout=printed, stderr=told, env=env)
        try:
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0, (folder / "told").read_text()
        finally:
            process.kill()
            process.wait()


def printed_in(folder: Path) -> list[Change]:
    whole = (folder / "printed").read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def all_printed(folder: Path, writer: Writer) -> bool:
    found = printed_in(folder)
    counted = {one["id"]: json.loads(one["after"]["data"])["n"] for one in found if one["op"] == "update"}
    return counted == writer.counters and writer.made[-1] in {one["id"] for one in found}


@pytest.mark.either_server
def test_documents_that_are_away_stop_nothing(cluster: Demo, reader: Reader, tmp_path: Path) -> None:
    aside = tmp_path / "schema"
    with followed(reader, tmp_path) as process:
        execute(cluster, "REPLACE INTO countries VALUES ('ZW', 'There')")
        wait_until(lambda: len(printed_in(tmp_path)) >= 1, "the first change")
        cluster.schema.rename(aside)
        try:
            wait_until(
                lambda: process.poll() is not None or "cannot be read" in (tmp_path / "told").read_text(),
                "a look at the schema",
            )
            with cluster.direct(0) as connection, connection.cursor() as cursor:
                cursor.execute("INSERT INTO db00001.user_likes_pins VALUES (1, 37, 5)")
            wait_until(
                lambda: process.poll() is not None or "user_likes_pins" in tables_of(tmp_path),
                "changes meanwhile",
            )
        finally:
            aside.rename(cluster.schema)
    assert "user_likes_pins" in tables_of(tmp_path)


def tables_of(folder: Path) -> set[str]:
    return {one["table"] for one in printed_in(folder)}


@pytest.mark.either_server
def test_masters_and_shards_that_move_lose_no_change(cluster: Demo, tmp_path: Path) -> None:
    """Last: it changes the cluster."""
    reader = Reader(cluster, tmp_path)
    writer = Writer(cluster)
    reader.begin()
    moving = Moving(cluster, (cluster.host, cluster.port))
    spares = moving.arguments("main,lookup,media", "2-3")
    with writer:
        with followed(reader, tmp_path) as process:
            wait_until(lambda: len(printed_in(tmp_path)) > 10, "the first changes")
            status, output = moving.run("promote", "--host", cluster.masters[0].address, "--yes")
            assert status == 0, output
            wait_until(
                lambda: process.poll() is not None or hosts_of(tmp_path) >= 3, "the new master's changes"
            )
        # what moves while nobody reads
        status, output = moving.run(*spares, "--provision", "--yes")
        assert status == 0, output
        count = len(writer.made)
        wait_until(lambda: len(writer.made) > count + 5, "changes at the new place")
    with followed(reader, tmp_path):
        wait_until(lambda: all_printed(tmp_path, writer), "all changes")
    found = printed_in(tmp_path)
    assert sorted(one["id"] for one in found if one["op"] == "insert") == sorted(writer.made)
    for one, count in writer.counters.items():
        seen = [json.loads(change["after"]["data"])["n"] for change in found if change["id"] == one]
        assert seen == list(range(1, count + 1))
    assert hosts_of(tmp_path) == 4


def hosts_of(folder: Path) -> int:
    return len({one["host"] for one in printed_in(folder)})


def test_a_log_that_is_purged_is_told(cluster: Demo, reader: Reader) -> None:
    """After all: older changes are gone."""
    with cluster.direct(1) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO db00005.user_likes_pins VALUES (1, 35, 5)")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("INSERT INTO db00005.user_likes_pins VALUES (1, 36, 5)")
        cursor.execute("SHOW BINARY LOGS")
        last = cursor.fetchall()[-1][0]
        wait_until(lambda: _purged(cursor, last), "the older log to be purged")
    status, printed, told = reader.run()
    assert status == 1, printed
    address = cluster.masters[1].address
    assert f"--skip {address}" in told
    found = reader.read("--skip", address)
    assert [one["after"]["pin_id"] for one in found] == [36]


def _purged(cursor: pymysql.cursors.Cursor, last: str) -> bool:
    cursor.execute(f"PURGE BINARY LOGS TO '{last}'")
    cursor.execute("SHOW BINARY LOGS")
    return len(cursor.fetchall()) == 1


def test_the_rights_that_are_documented_suffice(
    cluster: Demo, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "changes.md").read_text()
    grants = page.partition("```sql changes\n")[2].partition("```")[0]
    assert grants
    for index in range(len(cluster.hosts)):
        with cluster.direct(index) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.read_only")
            if not cursor.fetchall()[0][0]:
                for statement in filter(str.strip, grants.split(";")):
                    cursor.execute(statement.replace("PASSWORD", "Changes-1"))
    monkeypatch.setenv("CHANGES_PASSWORD", "Changes-1")
    execute(cluster, "REPLACE INTO countries VALUES ('ZX', 'There')")
    login = ["--user", "shardgate_changes", "--password-env", "CHANGES_PASSWORD"]
    assert shown(reader.read(*login), "table")[-1] == ("countries",)
