"""`shardgate fleet cleanup` drops what a split has left when the master in use is shown to have its rows."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from config.load import load_topology
from fleet.core.journal import Journal
from fleet.core.publish import publish
from fleet.core.store import FileStore, Holder
from fleet.fence import Fence
from fleet.rights import Held
from fleet.succession import Served, checked, doubt
from tests.fleet.world import World
from tests.support.servers import LocalServer

LEFT = ("db00002", "db00003")
SPLIT = "shardgate fleet split --keyspace main --shards 2-3 --master h:1"
A, B, C = ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")


@pytest.fixture
def world(tmp_path: Path, servers: list[LocalServer], flavour: str) -> Iterator[World]:
    """A split has moved the shards 2 and 3 from the first server to the second, which has their rows; the
    first has kept them behind its fence.
    """
    made = World(tmp_path, servers, accounts=True)
    first, second = (one.address for one in made.servers)
    before = copy.deepcopy(made.document)
    before["keyspaces"]["main"]["ranges"] = [{"range": [0, 3], "master": first}]
    made.topology.write_text(json.dumps(before))
    assert made.run("create", "--yes")[0] == 0
    change_topology(made, [second, second], SPLIT)
    assert made.run("create", "--yes")[0] == 0
    for server in (0, 1):
        made.execute(
            server, *(f"INSERT INTO {name}.pins (local_id, data) VALUES (1, '{{}}')" for name in LEFT)
        )
    held: dict[tuple[str, str], Held] | None = None if flavour == "mysql9" else {}
    if held is None:
        made.execute(0, *(f"ALTER DATABASE {name} READ ONLY = 1" for name in LEFT))
    with closing(FileStore(made.topology)) as store:
        store.open()
        store.lock(Holder.me("split"))
        journal = Journal(store)
        operation = journal.begin(
            "split", {"keyspace": "main", "shards": "2-3", "master": second}, blocks=True
        )
        rights = {"host": first, "fence": Fence(LEFT, held).document()}
        journal.done(operation, {"rights": rights, "publish": {"version": 2}})
        journal.end(operation, "done")
    yield made
    if held is None:
        there = {name for (name,) in made.execute(0, "SHOW DATABASES")}
        made.execute(0, *(f"ALTER DATABASE {name} READ ONLY = 0" for name in LEFT if name in there), "DO 0")
    made.clear()


def change_topology(world: World, masters: Sequence[str], command: str) -> None:
    """Publish the next version: these are the masters of the shards 2 and 3, by this command."""
    with closing(FileStore(world.topology)) as store:
        store.open()
        store.lock(Holder.me("test"))
        stored = store.topology()
        assert stored is not None
        document = json.loads(stored.content)
        document["version"] += 1
        first = world.servers[0].address
        document["keyspaces"]["main"]["ranges"] = [
            {"range": [0, 1], "master": first},
            *({"range": [n, n], "master": master} for n, master in zip((2, 3), masters, strict=True)),
        ]
        publish(store, json.dumps(document).encode(), stored, command)


def there(world: World) -> list[str]:
    """Which of the databases the first server still has."""
    return sorted({name for (name,) in world.execute(0, "SHOW DATABASES")} & set(LEFT))


def test_what_a_split_has_left_is_dropped(world: World) -> None:
    first = world.servers[0].address
    assert world.run("cleanup", "--yes") == (0, f"{first}: dropped 2 databases\n")
    assert there(world) == []
    assert world.execute(1, "SELECT COUNT(*) FROM db00002.pins") == [(1,)]
    assert world.run("cleanup", "--yes") == (0, "nothing is left over\n")


def test_a_copy_that_served_again_is_left(world: World) -> None:
    """By --move-shards the old master had served shard 2 once more, and may have taken writes."""
    first, second = (one.address for one in world.servers)
    for command, masters in (
        ("shardgate topology rollback 1 --move-shards", [first, second]),
        ("shardgate topology put t.json --move-shards", [second, second]),
    ):
        change_topology(world, masters, command)
    status, output = world.run("cleanup", "--yes")
    assert status == 1
    assert f"{first}: dropped 1 databases" in output
    expected = f"{first}: db00002 left as it is: version 4 gave it from {first} to {second} unchecked"
    assert expected in output.replace("\n", " ")
    assert there(world) == ["db00002"]
    assert world.run("cleanup", "--yes")[0] == 1, "it is still known"


def test_what_the_old_master_serves_again_keeps_its_fence(world: World) -> None:
    """And the split is not forgotten: the newer rows are on the other host."""
    first, second = (one.address for one in world.servers)
    change_topology(world, [first, first], "shardgate topology rollback 1 --move-shards")
    for _ in range(2):
        status, output = world.run("cleanup", "--yes")
        assert (status, f"{second} may have newer rows" in output.replace("\n", " ")) == (1, True), output
        assert there(world) == list(LEFT)
    assert world.execute(1, "SELECT COUNT(*) FROM db00002.pins") == [(1,)]
    change_topology(world, [second, second], "shardgate topology rollback 2 --move-shards")
    status, output = world.run("cleanup", "--yes")
    assert (status, "unchecked" in output) == (1, True), output
    assert there(world) == list(LEFT)


def test_a_host_that_was_declared_dead_is_left(world: World) -> None:
    """What it dropped would be in its binary log, and keep it from becoming a slave."""
    first, second = (one.address for one in world.servers)
    with closing(FileStore(world.topology)) as store:
        store.open()
        store.lock(Holder.me("test"))
        stored = store.topology()
        assert stored is not None
        document = json.loads(stored.content.decode().replace(first, second))
        document["version"] += 1
        publish(
            store, json.dumps(document).encode(), stored, f"shardgate fleet promote --host {first} --dead"
        )
    status, output = world.run("cleanup", "--yes")
    assert (status, "was declared dead" in output.replace("\n", " ")) == (1, True), output
    assert there(world) == list(LEFT)


def test_a_copy_with_rows_is_left_when_the_new_master_has_none(world: World) -> None:
    """As when its data was lost, and `fleet create` has made empty databases."""
    world.execute(1, "DELETE FROM db00003.pins")
    status, output = world.run("cleanup", "--yes")
    assert (status, "it has rows, and" in output) == (1, True), output
    assert there(world) == ["db00003"]
    world.execute(1, "INSERT INTO db00003.pins (local_id, data) VALUES (1, '{}')")
    assert world.run("cleanup", "--yes")[0] == 0
    assert there(world) == []


def test_a_copy_that_somebody_has_opened_is_left(world: World, flavour: str) -> None:
    if flavour != "mysql9":
        pytest.skip("its fence is the rights of accounts")
    world.execute(0, "ALTER DATABASE db00002 READ ONLY = 0")
    status, output = world.run("cleanup", "--yes")
    assert (status, "it is not READ ONLY any more" in output) == (1, True), output
    assert there(world) == ["db00002"]


# --- by the history alone ----------------------------------------------------------------------------


def served(*pairs: tuple[str, str]) -> list[Served]:
    """Versions from 1 on: the master of db00000, "" for none, " SLAVE" behind it, and the command."""
    found = []
    for version, (pair, command) in enumerate(pairs, 1):
        ranges = [{"range": [1, 1], "master": A}]
        ranges += (
            [{"range": [0, 0], **dict(zip(("master", "slave"), pair.split(), strict=False))}] if pair else []
        )
        keyspace = {"layout": "pinterest", "database": "db{shard:05d}", "ranges": ranges}
        document = {"version": version, "keyspaces": {"main": keyspace}}
        found.append(Served(version, command, load_topology(json.dumps(document).encode())))
    return found


PROMOTE = "shardgate fleet promote --host h:1"
BEFORE = "in use before the first change with this tool"
DROPPED = "shardgate topology put t --drop-shards"
UNREADABLE = Served(3, "shardgate topology put t.json", None)


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        (served((A, BEFORE), (B, SPLIT)), ""),
        (served((A, BEFORE), (B, SPLIT), (C, PROMOTE)), ""),
        (served((A, BEFORE), (B, SPLIT), (C, f"{PROMOTE} --dead")), "version 3 gave it from"),
        (served((A, BEFORE), (B, SPLIT), ("", DROPPED), (B, "shardgate topology put t")), ""),
        (
            served((A, BEFORE), (B, SPLIT), ("", DROPPED), (C, "shardgate topology put t")),
            "version 4 gave it",
        ),
        (served((A, BEFORE), (f"{B} {C}", SPLIT), (C, f"{PROMOTE} --dead")), ""),
        (served((A, BEFORE), (B, "")), "written without these tools"),
        (served((A, BEFORE), (C, f"{PROMOTE} --dead"), (A, PROMOTE), (B, SPLIT)), ""),
        ([*served((A, BEFORE), (B, SPLIT)), UNREADABLE], "version 3 of the history cannot be read"),
        (served((B, BEFORE), (C, f"{PROMOTE} --dead"), (B, SPLIT)), ""),
        (served(("", BEFORE), (B, "shardgate fleet open --keyspace main")), ""),
    ],
)
def test_doubt_about_a_copy(versions: list[Served], said: str) -> None:
    """Of what A has: as it had served last, or, if never, as it was copied by version 2."""
    found = doubt("db00000", A, versions, 2)
    assert said in found
    assert bool(said) == bool(found)


def test_commands_that_see_first_that_all_rows_are_there() -> None:
    assert checked("shardgate topology put 'my file.json'")
    assert not checked("shardgate topology put 'my file.json")
    assert not checked("shardgate fleet open --keyspace main --shards 8-9 --master h:1")
    assert not checked("shardgate topology rollback 4 --move-shards")
    assert not checked(BEFORE)
