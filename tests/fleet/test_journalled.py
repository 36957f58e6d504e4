"""`shardgate fleet create` on real servers: killed anywhere and run again, taken back, refused, reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.zookeeper import LocalZooKeeper
from fleet.core.store import FileStore, Holder
from tests.fleet.killed import Killer
from tests.fleet.world import World
from tests.support.servers import LocalServer

pytestmark = pytest.mark.either_server

TABLES = {"db": ["likes", "pins"], "ms": ["emails"]}


def whole(shards: int) -> list[dict[str, list[str]]]:
    """What `World.state` gives when all is there."""
    halves = (range(shards // 2), range(shards // 2, shards))
    return [{f"{kind}{n:05d}": TABLES[kind] for kind in TABLES for n in half} for half in halves]


@pytest.fixture
def world(tmp_path: Path, servers: list[LocalServer]) -> Iterator[World]:
    made = World(tmp_path, servers)
    yield made
    made.clear()


def test_killed_anywhere_and_run_again(world: World, tmp_path: Path, servers: list[LocalServer]) -> None:
    """Each time from nothing. Then all is there, and the journal says so once."""
    World(tmp_path, servers, 2)
    log = tmp_path / "log"
    create = ["fleet", "create", "--config", str(world.settings), "--yes"]
    killer = Killer()
    kill_at, status = 0, -9
    while status == -9:
        world.clear()
        kill_at += 1
        status = killer.run(create, log, kill_at)
        if status == -9:
            assert killer.run(create, log) == 0, log.read_text()
        assert world.state() == whole(2), (kill_at, log.read_text())
        assert world.run("create", "--yes")[0] == 0
    assert status == 0
    assert kill_at > 20  # four databases on each of two hosts, before and after, the journal's entries
    unfinished = [
        line for line in world.run("status", "--last", "100")[1].splitlines() if " done " not in line
    ]
    assert [line.split()[0] for line in unfinished] == ["at", "operation"], unfinished


def test_killed_with_zookeeper(
    world: World, tmp_path: Path, servers: list[LocalServer], zookeeper: LocalZooKeeper
) -> None:
    """Again and again, each time a bit farther; the lock of the dead is waited for."""
    path = f"/{tmp_path.name}-{servers[0].port}/topology"
    zookeeper.put(path, json.dumps(world.document).encode())
    place = {
        "hosts": zookeeper.address,
        "path": path,
        "session_timeout": 1.0,
        "cache_file": str(tmp_path / "c"),
    }
    World(tmp_path, servers, zookeeper=place)
    log = tmp_path / "log"
    create = ["fleet", "create", "--config", str(world.settings), "--yes"]
    killer = Killer()
    for kill_at in (2, 4, 8, 9, 12):
        assert killer.run(create, log, kill_at) == -9, log.read_text()
    assert killer.run(create, log) == 0, log.read_text()
    assert world.state() == whole(4)
    status, output = world.run("status")
    assert status == 0
    (line,) = [line for line in output.splitlines() if "shardgate fleet create" in line]
    assert " done " in line


def test_an_unfinished_one_is_taken_back(world: World, tmp_path: Path) -> None:
    """What it made and nobody uses yet; what has rows, and what was there before, stays."""
    world.execute(0, "CREATE DATABASE db00000", "CREATE TABLE db00000.mine (a INT)")
    world.execute(1, "CREATE DATABASE db00002", "CREATE TABLE db00002.likes (a INT)")
    before = world.state()
    killer = Killer()
    create = ["fleet", "create", "--config", str(world.settings), "--yes"]
    while killer.run(create, tmp_path / "log", 24) != -9:
        raise AssertionError
    status, output = world.run("create", "--undo", "--dry-run")
    assert status == 0
    assert "DROP DATABASE IF EXISTS `" in output
    assert "mine" not in output
    status, output = world.run("create", "--undo", "--yes")
    assert status == 0, output
    assert world.state() == before
    status, output = world.run("create", "--undo", "--yes")
    assert (status, output) == (0, "no create is unfinished: there is nothing to take back\n")
    assert " undone " in world.run("status")[1]
    assert world.run("create", "--yes")[0] == 0


def test_rows_are_never_taken_back(world: World, tmp_path: Path) -> None:
    world.execute(0, "CREATE DATABASE ms00001", "CREATE VIEW ms00001.other AS SELECT 1")
    killer = Killer()
    kill_at = 22
    create = ["fleet", "create", "--config", str(world.settings), "--yes"]
    assert killer.run(create, tmp_path / "log", kill_at) == -9
    made = [
        (index, name) for index, held in enumerate(world.state()) for name in held if "pins" in held[name]
    ]
    index, name = made[0]
    world.execute(index, f"INSERT INTO {name}.pins (data) VALUES ('{{}}')")
    assert world.run("create", "--undo", "--yes")[0] == 0
    left = world.state()
    assert name in left[index]
    assert sum(len(held) for held in left) == 2  # and the one with a view of somebody's


def test_a_second_tool_is_refused(world: World) -> None:
    store = FileStore(world.topology)
    store.lock(Holder.me("split"))
    status, output = world.run("create", "--yes")
    assert status == 2
    assert "another tool is at work: split, process " in output
    assert world.state() == [{}, {}]
    assert "at work: split, process " in world.run("status")[1]
    store.close()
    assert world.run("create", "--yes")[0] == 0


def test_asked_first(world: World) -> None:
    status, output = world.run("create")
    assert (status, "nothing was changed: give --yes" in output) == (2, True)
    status, output = world.run("create", "--dry-run")
    assert status == 0
    assert output.count("CREATE DATABASE IF NOT EXISTS") == 8
    assert world.state() == [{}, {}]
    assert "operation" not in world.run("status")[1]


def test_status_without_a_topology_that_can_be_used(world: World) -> None:
    """It is what is looked at when something is wrong."""
    for content in ("{", '{"version": 1}'):
        world.topology.write_text(content)
        assert world.run("status") == (0, "at work: no tool\n")


def test_an_account_that_is_not_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host was reached: what is missing is the account, and who makes it is said."""
    monkeypatch.setenv("NOBODY", "x")
    status, output = world.run("create", "--yes", "--user", "sgnobody", "--password-env", "NOBODY")
    assert (status, "cannot log in: " in output, "accounts.sql makes it" in output) == (1, True, True), output
    assert world.state() == [{}, {}]


def test_a_host_that_fails(world: World, servers: list[LocalServer]) -> None:
    """The others are made; it is said what is left; the next run finishes it."""
    servers[1].kill()
    try:
        status, output = world.run("create", "--yes")
        assert status == 1
        assert f"{servers[1].address}: cannot be reached: " in output
        assert "operation 1 is not finished" in output
        assert "failed" in world.run("status")[1]
    finally:
        servers[1].start()
    assert world.run("create", "--yes")[0] == 0
    assert world.state() == whole(4)


def test_a_table_that_cannot_be_made(world: World) -> None:
    """Which step, on which host, and what the server says; the others are made."""
    world.execute(0, "CREATE DATABASE db00001", "CREATE VIEW db00001.pins AS SELECT 1")
    world.execute(
        0, "CREATE USER sg_limited@'%' IDENTIFIED BY 'l'", "GRANT SELECT, CREATE ON *.* TO sg_limited@'%'"
    )
    world.execute(0, "REVOKE CREATE ON *.* FROM sg_limited@'%'")
    settings = json.loads(world.settings.read_text())
    other = settings["fleet"]["hosts"][world.servers[1].address]["password"]
    settings["fleet"] = {"user": "sg_limited", "password": "l"}
    world.settings.write_text(json.dumps(settings))
    world.execute(
        1, "CREATE USER sg_limited@'%' IDENTIFIED BY 'l'", "GRANT SELECT, CREATE ON *.* TO sg_limited@'%'"
    )
    assert other
    status, output = world.run("create", "--yes")
    assert status == 1
    assert f"{world.servers[0].address}: make db00000 with 2 tables: " in output
    assert "(1044)" in output
    assert world.state()[1] == whole(4)[1]
