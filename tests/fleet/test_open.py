"""`shardgate fleet open` on real servers: closed until all proxies know the shards; killed, taken back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.security import make_digest_acl

from config.sources.registry import Registration
from demo.zookeeper import LocalZooKeeper
from fleet.core import publish
from tests.fleet.killed import Killer
from tests.fleet.world import World
from tests.support.servers import LocalServer


@pytest.fixture
def world(tmp_path: Path, servers: list[LocalServer], monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(publish, "FILE_SECONDS", 0.0)
    made = World(tmp_path, servers, accounts=True)
    assert made.run("create", "--yes")[0] == 0
    yield made
    made.clear()


def ranges(world: World) -> list[tuple[list[int], str, bool]]:
    document = json.loads(world.run("get", command="topology")[1])
    return [
        (one["range"], one["master"], one.get("open", True))
        for one in document["keyspaces"]["main"]["ranges"]
    ]


def arguments(world: World, shards: str = "4-6", keyspace: str = "main") -> list[str]:
    return ["open", "--keyspace", keyspace, "--shards", shards, "--master", world.servers[1].address]


def test_new_shards(world: World) -> None:
    before = ranges(world)
    status, output = world.run(*arguments(world), "--dry-run")
    assert status == 0
    assert "CREATE DATABASE IF NOT EXISTS `db00004`" in output
    assert ranges(world) == before
    status, output = world.run(*arguments(world), "--yes")
    assert (status, output) == (0, f"main 4-6 on {world.servers[1].address}: open\n")
    assert ranges(world) == [*before, ([4, 6], world.servers[1].address, True)]
    status, output = world.run("history", command="topology")
    assert [line.split()[0] for line in output.splitlines()] == ["version", "1", "2", "3"]
    assert world.run("verify")[0] == 0
    for shards in ("4-6", "5-6", "3-5"):
        done = f"main {shards} on {world.servers[1].address} is open already: nothing is left to do\n"
        assert world.run(*arguments(world, shards), "--yes") == (0, done)


@pytest.mark.either_server
def test_killed_and_run_again(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time a bit farther; then taken back at each of some points."""
    before, there = ranges(world), world.state()
    log = tmp_path / "log"
    command = ["fleet", *arguments(world), "--config", str(world.settings), "--yes"]
    killer = Killer()
    for kill_at in (5, 12, 21, 26):
        assert killer.run(command, log, kill_at) == -9, log.read_text()
        assert not any(opened for (first, _), _, opened in ranges(world) if first == 4)
        status, output = world.run("create", "--yes")
        assert status == 2
        assert (
            f"shardgate fleet open --keyspace main --shards 4-6 --master {world.servers[1].address}" in output
        )
        assert killer.run([*command, "--undo"], log) == 0, log.read_text()
        assert (ranges(world), world.state()) == (before, there)
    for kill_at in (4, 11, 14, 12, 7):
        killer.run(command, log, kill_at)
    assert killer.run(command, log) == 0, log.read_text()
    assert ranges(world) == [*before, ([4, 6], world.servers[1].address, True)]
    assert world.run("verify")[0] == 0
    assert world.run("create", "--yes")[0] == 0


def test_shards_with_rows_are_not_withdrawn(world: World, tmp_path: Path) -> None:
    late = Registration(tmp_path / "topology.json-proxies", "late-1")
    late.say({"version": 1})
    status, output = world.run(*arguments(world), "--yes")
    assert (status, "late-1 serves version 1" in output) == (1, True), output
    late.end()
    published = ranges(world)
    world.execute(1, "INSERT INTO db00005.likes (user_id, pin_id, sequence) VALUES (1, 2, 3)")
    status, output = world.run(*arguments(world), "--yes", "--undo")
    assert status != 0
    assert "has rows by now: there is no way back" in output
    assert ranges(world) == published
    world.execute(1, "DELETE FROM db00005.likes")
    status, output = world.run(*arguments(world), "--yes", "--undo")
    assert status == 0, output
    document = json.loads(world.run("get", command="topology")[1])
    assert document["dropped_shards"] == {"main": [[4, 6]]}
    status, output = world.run(*arguments(world), "--yes")
    assert (status, ranges(world)) == (0, [*published[:-1], ([4, 6], world.servers[1].address, True)])
    assert "dropped_shards" not in json.loads(world.run("get", command="topology")[1])


def test_what_is_refused(world: World) -> None:
    """And nothing is changed by it."""
    before, there = ranges(world), world.state()
    world.execute(1, "CREATE DATABASE db00009")
    cases = {
        ("2-5", "main"): f"shards 2-3 of main are on {world.servers[1].address} already",
        ("6-7", "main"): "shards 4 to 5 are in no range",
        ("7-4", "main"): "must be the first and the last",
        ("4-70000", "main"): "beyond the highest shard number",
        (
            "4-5",
            "lookup",
        ): "keyspace lookup has a number of shards that never changes: shards can be opened in main",
        ("4-5", "none"): "keyspace none is not there",
        ("4-9", "main"): "has databases db00009 already, without rows. If they are these shards, publish",
    }
    for (shards, keyspace), text in cases.items():
        status, output = world.run(*arguments(world, shards, keyspace), "--yes")
        assert (status, text in output) == (2, True), output
    away = ["open", "--keyspace", "main", "--shards", "4-5", "--master", "127.0.0.1:1"]
    status, output = world.run(*away, "--yes")
    assert status == 2
    world.execute(1, "DROP DATABASE db00009", "ALTER USER sg_read@'%' IDENTIFIED BY 'other'")
    status, output = world.run(*arguments(world), "--yes")
    world.execute(1, "ALTER USER sg_read@'%' IDENTIFIED BY 'read'")
    text = f"cannot log in to {world.servers[1].address} as sg_read: "
    assert (status, text in output) == (2, True), output
    assert (ranges(world), world.state()) == (before, there)


@pytest.mark.parametrize("place", ["file", "zookeeper"])
def test_a_proxy_that_does_not_follow(
    place: str,
    world: World,
    tmp_path: Path,
    servers: list[LocalServer],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """The shards stay closed, and it is named; they are opened when it has followed."""
    monkeypatch.setattr(publish, "SERVED_SECONDS", 0.3)
    if place == "zookeeper":  # which lets nobody in but the tools and the proxies
        zookeeper: LocalZooKeeper = request.getfixturevalue("zookeeper")
        path = f"/open-{servers[0].port}/topology"
        own = [make_digest_acl("fleet", "p:w", all=True)]
        client = zookeeper.client(auth_data=[("digest", "fleet:p:w")], default_acl=own)
        client.start(timeout=10.0)
        request.addfinalizer(client.close)
        request.addfinalizer(client.stop)
        client.create(path, json.dumps(world.document).encode(), makepath=True)
        client.create(f"{path}-proxies/late-1", makepath=True)
        node: dict[str, Any] = {"hosts": zookeeper.address, "path": path, "cache_file": str(tmp_path / "c")}
        world = World(tmp_path, servers, zookeeper=node | {"user": "fleet", "password": "p:w"}, accounts=True)

        def say(version: int) -> None:
            client.set(f"{path}-proxies/late-1", b'{"version": %d}' % version)

    else:
        late = Registration(tmp_path / "topology.json-proxies", "late-1")

        def say(version: int) -> None:
            late.say({"version": version})

    say(1)
    status, output = world.run(*arguments(world), "--yes")
    assert status == 1
    assert "late-1 serves version 1" in output
    assert [opened for _, _, opened in ranges(world)] == [True, True, False]
    assert "proxy late-1 serves version 1" in world.run("status")[1]
    say(3)
    status, output = world.run(*arguments(world), "--yes")
    assert status == 0, output
    assert [opened for _, _, opened in ranges(world)] == [True, True, True]
    if place == "file":
        late.end()
    else:
        nodes = [path, *(f"{path}-fleet/{one}" for one in client.get_children(f"{path}-fleet"))]
        nodes += [f"{path}-fleet/history/{one}" for one in client.get_children(f"{path}-fleet/history")]
        assert len(nodes) > 4
        assert [one for one in nodes if client.get_acls(one)[0] != own] == []
