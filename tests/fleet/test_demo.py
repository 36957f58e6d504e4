"""``shardgate demo`` as a user starts it: what it says, what it serves, and that nothing is left of it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from demo.documents import ZOOKEEPER_NODE
from demo.process import spawn, stop_all, tail
from demo.programs import Program
from demo.ready import ReadyFile
from demo.zookeeper import LocalZooKeeper
from proxy.cli import app
from tests.conftest import StartDemo
from tests.support.demo import Demo, gone, processes_of, running_demo
from tests.support.programs import FLAVOURS, need_program, program_of
from tests.support.waiting import wait_until

SMALL = ("--shards", "4", "--empty")


@pytest.fixture(scope="module")
def any_program() -> Program:
    """One server is enough for what does not depend on it."""
    found = [program for one in FLAVOURS if (program := program_of(one)) is not None]
    return found[0] if found else need_program(FLAVOURS[0])


@pytest.fixture
def start_any(any_program: Program, tmp_path: Path) -> Iterator[StartDemo]:
    with ExitStack() as stack:
        yield lambda *options, **how: stack.enter_context(
            running_demo(any_program, tmp_path / "own", *options, **how)
        )


def ask(demo: Demo, statement: str, **arguments: object) -> list[tuple[object, ...]]:
    with demo.connect(**arguments) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def ask_host(demo: Demo, index: int, statement: str) -> list[tuple[object, ...]]:
    with demo.direct(index) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def assert_nothing_left(demo: Demo) -> None:
    wait_until(lambda: all(map(gone, demo.pids)), "the end of all processes")
    wait_until(lambda: not processes_of(demo.directory), "the end of their children")
    wait_until(lambda: not demo.directory.exists(), "the folder's removal")


# --- what it is ----------------------------------------------------------------------------------


@pytest.mark.either_server
def test_the_ready_file_is_complete(demo: Demo) -> None:
    assert demo.ready.keys() == {
        "config", "proxy", "read_user", "status_url", "zookeeper", "topology", "hosts"
    }  # fmt: skip
    assert demo.ready["proxy"] == {
        "host": "127.0.0.1",
        "port": demo.port,
        "user": "demo",
        "password": "demo",
        "pid": demo.proxy_pid,
    }
    assert demo.ready["read_user"] == {"user": "reader", "password": "reader"}
    assert demo.ready["zookeeper"] is None
    assert demo.ready["config"] == str(demo.settings)
    assert demo.ready["topology"] == str(demo.directory / "topology.json")
    assert [(one.name, one.role) for one in demo.hosts] == [("host1", "master"), ("host2", "master")]
    assert demo.ready_file.stat().st_mode & 0o077 == 0  # it holds passwords
    assert not any(map(gone, demo.pids))


def test_demos_that_share_a_ready_file(tmp_path: Path) -> None:
    """The last one that came up has it, and nobody removes another one's."""
    path, pid = tmp_path / "ready.json", os.getpid()
    first, second, ended = [ReadyFile(path) for _ in range(3)]
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    for number, said in enumerate((one, other)):
        said |= {"config": str(tmp_path / f"{number}.yaml"), "proxy": {"pid": pid, "port": number}}
        Path(said["config"]).touch()
    path.write_text("left by a machine that lost its power: {")
    ended.clear()
    assert not path.exists()
    assert first.write(one) is None
    second.clear()  # it has not come up yet, and may not
    assert json.loads(path.read_text()) == one
    ended.remove()
    assert second.write(other) == one
    first.remove()
    assert json.loads(path.read_text()) == other
    Path(other["config"]).unlink()
    ended.clear()  # a demo whose folder is gone has ended, whoever has its process ID now
    assert not path.exists()
    second.remove()
    assert list(tmp_path.iterdir()) == [Path(one["config"])]


def test_hosts_are_reached_directly(demo: Demo) -> None:
    for index, host in enumerate(demo.hosts):
        assert ask_host(demo, index, "SELECT @@port") == [(host.port,)]
        (databases,) = ask_host(
            demo, index, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'db0%'"
        )
        assert databases == (32,)
        assert ask_host(demo, index, "SELECT COUNT(*) FROM global.countries") == [(36,)]


def test_the_proxy_serves_both_users_and_the_page(demo: Demo) -> None:
    assert ask(demo, "SELECT COUNT(*) FROM users")[0][0] == 300
    assert ask(demo, "SELECT COUNT(*) FROM legacy.customers") == [(60,)]
    with demo.reader() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM usernames")
        assert cursor.fetchall() == ((300,),)
    assert demo.get("readyz")[0] == 200
    assert demo.get("")[0] == 200


def test_what_it_prints_can_be_copied(demo: Demo) -> None:
    said = demo.log.read_text()
    assert f"mysql -h 127.0.0.1 -P {demo.port} -u demo -pdemo demo" in said
    assert f"Status page     {demo.status_url}" in said
    lines = [line.strip() for line in said.splitlines() if line.startswith("  ") and line.endswith(";")]
    assert len(lines) == 5
    for line in lines:
        for statement in line.rstrip(";").split("; "):
            if not statement.startswith("INSERT"):
                assert ask(demo, statement)


@pytest.mark.one_server
def test_another_demo_beside_it(demo: Demo, start_any: StartDemo) -> None:
    other = start_any(*SMALL, "--no-page")
    assert other.port != demo.port
    assert other.status_url is None
    assert ask(other, "SELECT COUNT(*) FROM users")[0][0] == 0
    assert ask(demo, "SELECT COUNT(*) FROM users")[0][0] == 300


def take_the_tour(demo: Demo) -> None:
    """What it says of the fleet tools, word by word; the client that it lets write hears of nothing."""
    lines = [line.strip() for line in demo.log.read_text().splitlines() if line.startswith("  ")]
    commands = [shlex.split(line) for line in lines if " fleet " in line]
    assert [words[2] for words in commands] == ["promote", "split", "cleanup"]
    (writer,) = [line for line in lines if line.startswith("while ")]
    written = demo.directory / "written"
    with ExitStack() as stack:
        process = spawn(["bash", "-c", writer], written)
        stack.callback(stop_all, [process])
        wait_until(lambda: written.read_text().count("\n") > 1, "the first rows")
        for program, *words in commands:
            assert shutil.which(program), program
            done = CliRunner().invoke(app, [*words, "--yes"])
            assert done.exit_code == 0, done.output
        rows = written.read_text().count("\n")
        wait_until(lambda: written.read_text().count("\n") > rows, "further rows")
        assert process.poll() is None
    assert "ERROR" not in written.read_text()
    _, slave, spare = (one.address for one in demo.hosts)
    masters = [row[3] for row in ask(demo, "SHOW SHARDS") if row[0] == "main"]
    assert masters == [slave, slave, spare, spare]


@pytest.mark.either_server
def test_zookeeper_and_slaves(start_demo: StartDemo) -> None:
    demo = start_demo("--shards", "4", "--zookeeper", "--slaves", "--hosts", "1", "--spares", "1")
    assert demo.ready["topology"] == ZOOKEEPER_NODE
    zookeeper = LocalZooKeeper(demo.directory)
    host, _, port = demo.ready["zookeeper"].partition(":")
    assert host == "127.0.0.1"
    zookeeper.port = int(port)
    client = zookeeper.client()
    client.start(timeout=10)
    content, _ = client.get(ZOOKEEPER_NODE)
    client.stop()
    client.close()
    assert content == (demo.directory / "topology.json").read_bytes()
    roles = [("host1", "master"), ("host1-slave", "slave"), ("spare1", "spare")]
    assert [(one.name, one.role) for one in demo.hosts] == roles
    count = ask(demo, "SELECT COUNT(*) FROM legacy.customers")
    assert ask_host(demo, 1, "SELECT COUNT(*) FROM legacy.customers") == count
    ask(demo, "INSERT INTO usernames VALUES ('replicated', 1)")
    wait_until(
        lambda: ask_host(demo, 1, "SELECT 1 FROM global.usernames WHERE username = 'replicated'"),
        "the row on the slave",
    )
    take_the_tour(demo)
    assert demo.stop() == 0
    assert_nothing_left(demo)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))


# --- how it ends ---------------------------------------------------------------------------------


def test_ctrl_c_leaves_nothing(start_any: StartDemo) -> None:
    demo = start_any(*SMALL, "--workers", "2", as_users_do=True)
    assert len(processes_of(demo.directory)) >= 5  # two servers, a supervisor, two workers
    assert demo.stop(signal.SIGINT) == 0
    assert_nothing_left(demo)
    assert not demo.ready_file.exists()


def test_a_demo_that_was_killed_leaves_nothing(start_any: StartDemo) -> None:
    demo = start_any(*SMALL, "--workers", "2", as_users_do=True)
    assert demo.stop(signal.SIGKILL) == -signal.SIGKILL
    assert_nothing_left(demo)


def test_it_goes_on_when_a_server_dies_and_still_cleans_up(start_any: StartDemo) -> None:
    demo = start_any(*SMALL)
    victim = demo.hosts[1]
    os.kill(victim.pid, signal.SIGKILL)
    wait_until(lambda: f"host2 ({victim.address}) has died" in demo.log.read_text(), "the report")
    assert ask(demo, "SELECT COUNT(*) FROM usernames") == [(0,)]
    assert demo.stop() == 0
    assert_nothing_left(demo)


def test_it_ends_when_the_proxy_dies(start_any: StartDemo) -> None:
    demo = start_any(*SMALL, "--workers", "2")
    os.kill(demo.proxy_pid, signal.SIGKILL)
    assert demo.process.wait(30) == 1
    assert "The proxy has died" in demo.log.read_text()
    assert_nothing_left(demo)


# --- refusals and interruptions ------------------------------------------------------------------


def command(program: Program, *options: str) -> list[str]:
    return [sys.executable, "-m", "proxy", "demo", "--mysqld", str(program.path), *options]


def refusal(program: Program, *options: str) -> str:
    done = subprocess.run(command(program, *options), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    return done.stderr


def test_a_port_in_use(any_program: Program) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refusal(any_program, "--port", str(port))
    assert said == (
        f"shardgate demo: port {port} cannot be used (Address already in use):"
        " choose another with --port (0: a free one)\n"
    )


def test_a_folder_that_is_not_empty(any_program: Program, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    said = refusal(any_program, "--port", "0", "--dir", str(tmp_path))
    assert "is not an empty folder: all in it would be removed" in said
    assert (tmp_path / "mine").exists()


def test_no_server(any_program: Program, tmp_path: Path) -> None:
    said = refusal(any_program, "--port", "0", "--mysqld", str(tmp_path))
    assert said == f"shardgate demo: {tmp_path} holds neither mysqld nor mariadbd\n"


def test_sigterm_while_it_starts(any_program: Program, tmp_path: Path) -> None:
    folder, log = tmp_path / "demo", tmp_path / "log"
    process = spawn(command(any_program, "--port", "0", "--dir", str(folder)), log)
    try:
        wait_until(lambda: (folder / "host1").exists(), "the first server")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, tail(log)
    finally:
        stop_all([process])
    assert not folder.exists()
    assert not processes_of(folder)
