"""`shardgate topology` and `shardgate schema`: over files and over a ZooKeeper that lets only their user in,
with real hosts behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.sources.registry import Registration
from config.sources.schema import digest_of
from demo.zookeeper import LocalZooKeeper
from fleet.core import publish
from tests.fleet.world import World
from tests.support.servers import LocalServer

pytestmark = pytest.mark.either_server


@pytest.fixture(params=["file", "zookeeper"])
def world(request: pytest.FixtureRequest, tmp_path: Path, servers: list[LocalServer]) -> Iterator[World]:
    """All databases are there."""
    place: dict[str, Any] | None = None
    if request.param == "zookeeper":
        zookeeper: LocalZooKeeper = request.getfixturevalue("zookeeper")
        place = {"hosts": f"{zookeeper.address}/cli-{tmp_path.name}-{servers[0].port}/prod"}
        place |= {"user": "fleet", "password": "its:own", "path": "/shards", "schema_path": "/in/schema"}
        place["cache_file"] = str(tmp_path / "cache")
    made = World(tmp_path, servers, zookeeper=place)
    for index in (0, 1):
        made.execute(index, "CREATE USER sg@'%' IDENTIFIED BY 'own'", "GRANT SELECT ON *.* TO sg@'%'")
    if place is not None:
        first = tmp_path / "first.json"
        first.write_text(json.dumps(made.document))
        status, output = topology(made, "put", str(first), "--yes")
        assert (status, "shardgate schema put FILE" in output) == (2, True), output
        assert made.run("put", str(tmp_path / "schema.json"), "--yes", command="schema")[0] == 0
        assert made.run("put", str(first), "--yes", command="topology")[0] == 0
    assert made.run("create", "--yes")[0] == 0
    yield made
    made.clear()


def changed(world: World, version: int, **fields: Any) -> Path:
    """A document of that version; its first range of main has `fields`."""
    document = json.loads(json.dumps(world.document)) | {"version": version}
    document["keyspaces"]["main"]["ranges"][0] |= fields
    path = world.folder / f"v{version}.json"
    path.write_text(json.dumps(document))
    return path


def topology(world: World, *arguments: str) -> tuple[int, str]:
    return world.run(*arguments, command="topology")


def test_status_tells_what_does_not_serve(world: World) -> None:
    """A tool that was killed may leave it so, and nothing is wrong on the hosts."""
    assert "frozen" not in world.run("status")[1]
    frozen = changed(world, 2, state="frozen")
    assert topology(world, "put", str(frozen), "--yes")[0] == 0
    status, output = world.run("status")
    line = f"{world.servers[0].address}: main 0-1 is frozen, clients wait\n"
    assert (status, line in output) == (0, True), output


def test_put_diff_get_history_rollback(world: World) -> None:
    closed = changed(world, 2, open=False)
    status, output = topology(world, "diff", str(closed))
    assert (status, output) == (0, "version 1 → 2\nmain 0-1: open → closed\n")
    status, output = topology(world, "put", str(closed))
    assert (status, "give --yes" in output) == (2, True)
    assert "publish version 2: main 0-1: open → closed" in output
    status, output = topology(world, "put", str(closed), "--yes")
    assert (status, output) == (0, "version 2 is published: main 0-1: open → closed\n")
    status, output = topology(world, "get")
    assert (status, json.loads(output)["version"]) == (0, 2)
    status, output = topology(world, "put", str(closed), "--yes")
    assert (status, output) == (0, "version 2 is in use: nothing to do\n")
    status, output = topology(world, "rollback", "1", "--yes")
    assert (status, output) == (0, "version 3 is published: main 0-1: closed → open\n")
    status, output = topology(world, "history")
    assert status == 0
    lines = [line.split() for line in output.splitlines()]
    assert [line[0] for line in lines] == ["version", "1", "2", "3"]
    assert lines[3][-2:] == ["in", "use"]
    assert "shardgate topology rollback 1" in output
    status, output = topology(world, "rollback", "9", "--yes")
    assert (status, "version 9 is not in the history" in output) == (2, True)
    assert "shardgate topology put" in world.run("status")[1]


def without_the_last_range(world: World, version: int, **fields: Any) -> Path:
    """A document of that version in which no range has shards 2 and 3 of main."""
    document = json.loads(json.dumps(world.document)) | {"version": version} | fields
    assert document["keyspaces"]["main"]["ranges"].pop()["range"] == [2, 3]
    path = world.folder / f"v{version}.json"
    path.write_text(json.dumps(document))
    return path


LACKS = "keyspaces.main.ranges: shards 2 to 3 are in no range, but in version"


def test_a_document_that_lacks_shards_is_refused_until_they_are_dropped_and_have_no_rows(
    world: World,
) -> None:
    def refused(text: str, *arguments: str) -> None:
        status, output = topology(world, *arguments, "--yes")
        assert (status, text in output) == (2, True), output
        assert json.loads(topology(world, "get")[1])["version"] == 1

    master = world.servers[1].address
    with_rows = f"{master} has rows in db00003, and this document lacks these databases"
    world.execute(1, "INSERT INTO db00003.likes (user_id, pin_id, sequence) VALUES (1, 2, 3)")
    file = str(without_the_last_range(world, 2))
    refused(LACKS, "put", file)
    refused(with_rows, "put", file, "--drop-shards")
    refused(with_rows, "put", str(without_the_last_range(world, 2, dropped_shards={"main": [[2, 3]]})))
    world.execute(1, "DELETE FROM db00003.likes")
    file = str(without_the_last_range(world, 2))
    refused(LACKS, "put", file)
    status, output = topology(world, "put", file, "--drop-shards", "--dry-run")
    assert (status, "main 2-3: gone" in output) == (0, True), output
    status, output = topology(world, "put", file, "--drop-shards", "--yes")
    assert (status, "version 2 is published: main 2-3: gone" in output) == (0, True), output
    assert json.loads(topology(world, "get")[1])["dropped_shards"] == {"main": [[2, 3]]}
    status, output = topology(world, "put", file, "--drop-shards", "--yes")
    assert (status, output) == (0, "version 2 is in use: nothing to do\n")


def test_a_rollback_does_not_hide_shards_either(world: World) -> None:
    master = world.servers[1].address
    file = str(without_the_last_range(world, 2))
    assert topology(world, "put", file, "--drop-shards", "--yes")[0] == 0
    status, output = topology(world, "rollback", "1", "--yes")  # the shards come back
    assert (status, "main 2-3: new" in output) == (0, True), output
    assert "dropped_shards" not in json.loads(topology(world, "get")[1])
    world.execute(1, "INSERT INTO db00002.likes (user_id, pin_id, sequence) VALUES (1, 2, 3)")
    for word in ([], ["--drop-shards"]):
        status, output = topology(world, "rollback", "2", *word, "--yes")
        text = f"{master} has rows in db00002, and this document lacks these databases"
        assert (status, text in output) == (2, True), output
    world.execute(1, "DELETE FROM db00002.likes")
    assert topology(world, "rollback", "2", "--yes")[0] == 0
    document = json.loads(topology(world, "get")[1])
    assert (document["version"], document["dropped_shards"]) == (4, {"main": [[2, 3]]})


def written(world: World, version: int, keyspaces: dict[str, Any], default: Any, **more: Any) -> str:
    """A document of that version with other unsharded keyspaces and another default host."""
    document = json.loads(json.dumps(world.document)) | {"version": version} | more
    document["keyspaces"] |= keyspaces
    document.pop("default", None)
    if default is not None:
        document["default"] = default
    path = world.folder / f"v{version}.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_unsharded_databases_with_rows_do_not_vanish_or_move_away_from_them(world: World) -> None:
    first, second = ({"master": server.address} for server in world.servers[:2])
    for sql in (
        "CREATE DATABASE qzxshop",
        "CREATE TABLE qzxshop.t (a INT)",
        "INSERT INTO qzxshop.t VALUES (1)",
    ):
        world.execute(1, sql)
    world.execute(0, "CREATE DATABASE qzxshop", "CREATE TABLE qzxshop.t (a INT)")
    try:
        start = written(world, 2, {"qzxshop": second}, first)
        status, output = topology(world, "put", start, "--yes")
        assert status == 0, output
        full = f"{world.servers[1].address} has rows in qzxshop"
        without = written(world, 3, {}, {"master": world.servers[0].address})
        status, output = topology(world, "put", without, "--yes")
        assert (status, "keyspaces.qzxshop: is missing, but in version 2" in output) == (2, True), output
        for arguments in (
            [without, "--drop-shards"],
            [written(world, 3, {}, first, dropped_keyspaces=["qzxshop"])],
        ):
            status, output = topology(world, "put", *arguments, "--yes")
            assert (status, full in output) == (2, True), output
        status, output = topology(world, "put", written(world, 3, {"qzxshop": first}, first), "--yes")
        lost = f"{full}, {world.servers[0].address} has none there"
        assert (status, lost in output) == (2, True), output
        world.execute(1, "DELETE FROM qzxshop.t")
        without = written(world, 3, {}, first)
        status, output = topology(world, "put", without, "--drop-shards", "--yes")
        assert status == 0, output
        assert json.loads(topology(world, "get")[1])["dropped_keyspaces"] == ["qzxshop"]
        world.execute(0, "INSERT INTO qzxshop.t VALUES (1)")
        status, output = topology(world, "put", written(world, 4, {}, None), "--yes")
        assert (status, "default: is missing, but in version 3" in output) == (2, True), output
        status, output = topology(world, "put", written(world, 4, {}, None), "--drop-shards", "--yes")
        assert (status, f"{world.servers[0].address} has rows in qzxshop" in output) == (2, True), output
    finally:
        for index in (0, 1):
            world.execute(index, "DROP DATABASE IF EXISTS qzxshop")


def test_rows_that_cannot_be_asked_for_are_taken_for_rows(world: World) -> None:
    """An account without rights does not see a database that is there."""
    world.execute(1, "INSERT INTO db00003.likes (user_id, pin_id, sequence) VALUES (1, 2, 3)")
    world.execute(1, "REVOKE SELECT ON *.* FROM sg@'%'")
    status, output = topology(world, "put", str(without_the_last_range(world, 2)), "--drop-shards", "--yes")
    assert (status, "have rows is not known" in output) == (2, True), output
    assert "Access denied" in output


def test_verify_says_how_shards_with_rows_come_back_and_not_to_drop_them(world: World) -> None:
    world.execute(1, "INSERT INTO db00003.likes (user_id, pin_id, sequence) VALUES (1, 2, 3)")
    file = without_the_last_range(world, 1)
    status, output = world.run("verify", "--json", "--topology", str(file))
    found = {
        one["database"]: one for one in map(json.loads, output.splitlines()) if one["kind"] == "misplaced"
    }
    assert status == 1
    assert sorted(found) == ["db00002", "db00003"]
    assert found["db00003"]["text"].endswith(
        "no range has such a shard. It has rows, which no statement finds"
    )
    assert found["db00002"]["text"].endswith("no range has such a shard. It has no rows")
    for one in found.values():
        assert "put its range back: shardgate topology rollback VERSION" in one["remedy"]
        assert "drop" not in one["remedy"]


def test_the_schema(world: World) -> None:
    def schema(*arguments: str) -> tuple[int, str]:
        return world.run(*arguments, command="schema")

    file = world.folder / "next.json"
    document = json.loads((world.folder / "schema.json").read_text())
    tables = document["databases"]["app"]["tables"]
    tables["boards"] = tables["pins"] | {"type": 2}
    file.write_text(json.dumps(document))
    status, output = schema("put", str(file), "--dry-run")
    assert (status, output.splitlines()[0]) == (0, f"make {file} the schema: new: app.boards")
    assert "boards" not in schema("get")[1]
    assert schema("put", str(file), "--yes") == (0, "the schema is published: new: app.boards\n")
    assert schema("put", str(file), "--yes") == (0, "this is the schema already: nothing to do\n")
    assert schema("get") == (0, file.read_text())
    assert "shardgate schema put" in world.run("status")[1]
    lines = [line.split() for line in schema("history")[1].splitlines()]
    assert [(line[0], line[-2:] == ["in", "use"]) for line in lines[1:]] == [("1", False), ("2", True)]
    assert schema("rollback", "1", "--yes") == (0, "the schema is published: gone: app.boards\n")
    assert "boards" not in schema("get")[1]
    status, output = schema("rollback", "9", "--yes")
    assert (status, "version 9 is not in the history: `shardgate schema history`" in output) == (2, True)
    assert schema("rollback", "2", "--yes")[0] == 0
    tables["boards"]["keyspace"] = "nowhere"
    file.write_text(json.dumps(document))
    status, output = schema("put", str(file), "--yes")
    assert (status, "the topology has no keyspace 'nowhere'" in output) == (2, True), output
    file.write_text("databases: 5")
    assert schema("put", str(file), "--yes")[0] == 2
    assert "boards" in schema("get")[1]


def test_a_proxy_that_does_not_follow_the_schema(
    world: World, zookeeper: LocalZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named; the same command goes on when it has followed."""
    monkeypatch.setattr(publish, "SERVED_SECONDS", 0.3)
    file = world.folder / "next.json"
    file.write_text((world.folder / "schema.json").read_text() + "\n")
    late = Registration(world.folder / "topology.json-proxies", "late-1")
    place = json.loads(world.settings.read_text())["topology"].get("zookeeper")
    hosts = place["hosts"] if place else zookeeper.address
    client = zookeeper.client(hosts=hosts, auth_data=[("digest", "fleet:its:own")])
    client.start()

    def say(schema: str) -> None:
        said = {"version": 1, "schema": schema}
        if place is None:
            late.say(said)
        else:
            client.ensure_path("/shards-proxies/late-1")
            client.set("/shards-proxies/late-1", json.dumps(said).encode())

    try:
        say("another")
        status, output = world.run("put", str(file), "--yes", command="schema")
        assert (status, "not served within 0.3 s by late-1" in output) == (1, True), output
        say(digest_of(file.read_bytes()))
        status, output = world.run("put", str(file), "--yes", command="schema")
        assert (status, "the schema is published" in output) == (0, True), output
        assert "unfinished" not in world.run("status")[1]
    finally:
        late.end()
        client.stop()
        client.close()


def test_what_is_refused(world: World) -> None:
    """And nothing is changed by it."""
    before = topology(world, "get")[1]
    other = world.servers[1].address
    cases = {
        "cannot follow version 1, which is in use: give it version 2": changed(world, 1, open=False),
        f"{other} has no databases db00000, db00001": changed(world, 2, master=other),
        "shards 2 to 3 are also in": changed(world, 3, range=[0, 3]),
        "cannot be read": world.folder / "none.json",
        "unknown field": changed(world, 4, opne=True),
    }
    for text, path in cases.items():
        status, output = topology(world, "put", str(path), "--yes")
        assert (status, text in output) == (2, True), output
    nowhere = changed(world, 5, master="127.0.0.1:1")
    status, output = topology(world, "put", str(nowhere), "--yes")
    assert (status, "127.0.0.1:1: cannot be reached" in output) == (2, True), output
    assert topology(world, "get")[1] == before


ROW = "INSERT INTO db00000.likes (user_id, pin_id, sequence) VALUES (1, 2, {})"


def copied(world: World) -> str:
    """The second server gets the databases of the first one, empty; its address."""
    for name in ("db00000", "db00001"):
        tables = [table for (table,) in world.execute(0, f"SHOW TABLES FROM {name}")]
        made = [world.execute(0, f"SHOW CREATE TABLE {name}.{table}")[0][1] for table in tables]
        world.execute(1, f"CREATE DATABASE {name}", f"USE {name}", *made)
    return world.servers[1].address


def test_shards_go_to_a_master_that_is_the_current_copy(world: World, kind: str) -> None:
    """It has the same rows, takes writes, and the old one takes none; else an explicit word is needed."""
    old, new = world.servers[0].address, copied(world)
    file = str(changed(world, 2, master=new))

    def refused(text: str, *arguments: str) -> None:
        status, output = topology(world, *(arguments or ("put", file)), "--yes")
        assert (status, text in output) == (2, True), output
        assert f"main 0-1: {old} → {new}" in output, output
        assert "--move-shards" in output, output

    def closed(server: int, value: str) -> None:
        words = ["read_only"] if kind == "mariadb" else ["super_read_only", "read_only"]
        world.execute(server, *(f"SET GLOBAL {word} = {value}" for word in words))

    world.execute(0, ROW.format(3))
    refused(f"{old} has rows in db00000, {new} has none there")
    world.execute(1, "RENAME TABLE db00000.likes TO db00000.other")
    refused(f"{new} has no db00000.likes, which {old} has with rows")
    world.execute(1, "RENAME TABLE db00000.other TO db00000.likes", ROW.format(4))
    refused(f"{old} takes writes to db00000, which {new} does not get")
    if kind == "mysql":
        world.execute(0, "ALTER DATABASE db00000 READ ONLY = 1")
    else:
        closed(0, "ON")
    try:
        refused(f"db00000.likes have not the same rows on {old} and on {new}")
        world.execute(1, "UPDATE db00000.likes SET sequence = 3")
        closed(1, "ON")
        refused(f"{new} takes no writes: it is read_only")
        closed(1, "OFF")
        if kind == "mysql":
            world.execute(1, "ALTER DATABASE db00000 READ ONLY = 1")
            refused(f"db00000 on {new} take no writes: they are READ ONLY")
            world.execute(1, "ALTER DATABASE db00000 READ ONLY = 0")
        status, output = topology(world, "put", file, "--yes")
        assert (status, output) == (0, f"version 2 is published: main 0-1: {old} → {new}\n")
    finally:
        closed(0, "OFF")
        closed(1, "OFF")
        for index in (0, 1) if kind == "mysql" else ():
            world.execute(index, "ALTER DATABASE db00000 READ ONLY = 0")


def test_an_explicit_word_moves_shards_to_any_master_that_has_the_databases(world: World) -> None:
    """Also back to one that they have left, where what was written since is missing."""
    old, new = world.servers[0].address, copied(world)
    world.execute(0, ROW.format(3))
    file = str(changed(world, 2, master=new))
    assert topology(world, "put", file, "--yes")[0] == 2
    assert topology(world, "put", file, "--yes", "--move-shards")[0] == 0
    world.execute(1, ROW.format(4))
    status, output = topology(world, "rollback", "1", "--yes")
    assert (status, f"main 0-1: {new} → {old}: {new} takes writes to db00000" in output) == (2, True), output
    assert topology(world, "rollback", "1", "--yes", "--move-shards")[0] == 0


def test_shards_without_rows_go_where_their_tables_are(world: World) -> None:
    old, other = world.servers[0].address, world.servers[1].address
    world.execute(1, "CREATE DATABASE db00000", "CREATE DATABASE db00001")
    file = str(changed(world, 2, master=other))
    status, output = topology(world, "put", file, "--yes")
    assert (status, f"{other} has no db00000.likes, db00000.pins" in output) == (2, True), output
    world.execute(1, "DROP DATABASE db00000", "DROP DATABASE db00001")
    copied(world)
    assert topology(world, "put", file, "--yes")[0] == 0
    status, output = topology(world, "rollback", "1", "--yes")
    assert (status, output) == (0, f"version 3 is published: main 0-1: {other} → {old}\n")


def test_the_default_host_does_not_leave_its_databases_behind(world: World) -> None:
    first, second = ({"master": server.address} for server in world.servers[:2])
    assert topology(world, "put", written(world, 2, {}, first), "--yes")[0] == 0
    try:
        world.execute(0, "CREATE DATABASE qzxapp", "CREATE TABLE qzxapp.t (a INT)")
        world.execute(0, "INSERT INTO qzxapp.t VALUES (1)")
        moved = written(world, 3, {}, second)
        status, output = topology(world, "put", moved, "--yes")
        old, new = world.servers[0].address, world.servers[1].address
        text = f"default: {old} → {new}: {new} has no qzxapp.t, which {old} has with rows"
        assert (status, text in output) == (2, True), output
        world.execute(0, "DROP DATABASE qzxapp")
        assert topology(world, "put", moved, "--yes")[0] == 0
    finally:
        world.execute(0, "DROP DATABASE IF EXISTS qzxapp")


def test_a_broken_topology_is_mended(world: World) -> None:
    if "file" not in json.loads(world.settings.read_text())["topology"]:
        return
    world.topology.write_text('{"version": 4, "keyspaces": {')
    status, output = topology(world, "get")
    assert (status, output) == (0, '{"version": 4, "keyspaces": {')
    assert topology(world, "put", str(changed(world, 5)), "--yes")[0] == 0


@pytest.mark.parametrize("content", ['{"version": 4, "keyspaces": {', None])
def test_a_document_that_cannot_be_read_is_followed_like_the_last_one(
    world: World, content: str | None
) -> None:
    """The proxies serve what they have read before: versions go on from there, and the hosts are asked."""
    if "file" not in json.loads(world.settings.read_text())["topology"]:
        return
    assert topology(world, "put", str(changed(world, 2, open=False)), "--yes")[0] == 0
    world.execute(0, "INSERT INTO db00000.pins (local_id, data) VALUES (1, '{}')")

    def spoil() -> None:
        world.topology.unlink()
        if content is not None:
            world.topology.write_text(content)

    spoil()
    moved = changed(world, 7, master=world.servers[1].address)
    status, output = topology(world, "put", str(moved), "--yes")
    assert (status, "has no databases" in output) == (2, True), output
    status, output = topology(world, "put", str(changed(world, 2)), "--yes")
    assert (status, "version 2 cannot follow version 2" in output) == (2, True), output
    status, output = topology(world, "rollback", "1", "--yes")
    assert (status, output) == (0, "version 3 is published: main 0-1: closed → open\n")
    world.execute(0, "DELETE FROM db00000.pins")


def test_watch(world: World) -> None:
    status, output = topology(world, "watch", "--for", "0.1")
    assert status == 0
    assert output.split()[1:3] == ["version", "1"]
