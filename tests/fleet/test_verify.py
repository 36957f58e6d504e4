"""`shardgate fleet verify` on real servers: each planted fault is found, said, and gone when it is mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from config.load import load_topology
from demo.programs import Program
from fleet.faults import Definition, Fault, differences, grouped, of_slave, read_definition
from tests.fleet.world import World
from tests.support.demo import Demo, running_demo
from tests.support.servers import LocalServer
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, servers: list[LocalServer]) -> Iterator[World]:
    """Without a fault: each test leaves it so."""
    made = World(tmp_path_factory.mktemp("world"), servers, accounts=True)
    assert made.run("create", "--yes")[0] == 0
    yield made
    made.clear()


def verify(world: World, *arguments: str) -> list[dict[str, Any]]:
    """The faults."""
    status, output = world.run("verify", "--json", *arguments)
    faults = [json.loads(line) for line in output.splitlines()]
    assert status == (1 if faults else 0), output
    return faults


#: By name: the server, what plants it, the kind, a part of what is said, what mends it.
FAULTS: dict[str, tuple[int, list[str], str, str, list[str]]] = {
    "a missing table": (
        0,
        ["DROP TABLE db00001.likes"],
        "missing",
        "the table likes is missing",
        ["CREATE TABLE db00001.likes LIKE db00000.likes"],
    ),
    "another column": (
        1,
        ["ALTER TABLE db00002.pins ADD note INT"],
        "definition",
        "pins has `note` int",
        ["ALTER TABLE db00002.pins DROP note"],
    ),
    "another type": (
        1,
        ["ALTER TABLE db00002.likes MODIFY pin_id INT UNSIGNED NOT NULL"],
        "definition",
        "likes has `pin_id` int",
        ["DROP TABLE db00002.likes", "CREATE TABLE db00002.likes LIKE db00003.likes"],
    ),
    "a missing index": (
        0,
        ["ALTER TABLE ms00001.emails DROP PRIMARY KEY"],
        "definition",
        "emails lacks PRIMARY KEY (`email`)",
        ["ALTER TABLE ms00001.emails ADD PRIMARY KEY (email)"],
    ),
    "an index too many": (
        0,
        ["ALTER TABLE ms00001.emails ADD KEY of_user (user_id)"],
        "definition",
        "emails has KEY `of_user` (`user_id`) too many",
        ["ALTER TABLE ms00001.emails DROP KEY of_user"],
    ),
    "another collation": (
        0,
        ["ALTER TABLE ms00000.emails MODIFY email VARCHAR(255) COLLATE utf8mb4_general_ci NOT NULL"],
        "definition",
        "emails has `email` varchar(255)",
        ["DROP TABLE ms00000.emails", "CREATE TABLE ms00000.emails LIKE ms00001.emails"],
    ),
    "columns in another order": (
        0,
        ["ALTER TABLE db00000.likes MODIFY pin_id BIGINT UNSIGNED NOT NULL FIRST"],
        "definition",
        "likes has its columns in another order",
        ["DROP TABLE db00000.likes", "CREATE TABLE db00000.likes LIKE db00001.likes"],
    ),
    "AUTO_INCREMENT near its end": (
        0,
        ["ALTER TABLE db00001.pins AUTO_INCREMENT = 60000000000"],
        "headroom",
        "pins: AUTO_INCREMENT is 60000000000, 87 % of what IDs have room for",
        ["ALTER TABLE db00001.pins AUTO_INCREMENT = 1"],
    ),
    "an orphan": (
        1,
        ["CREATE DATABASE db00077"],
        "misplaced",
        "a database like those of main, but no range has such a shard. It has no rows",
        ["DROP DATABASE db00077"],
    ),
    "an orphan with rows": (
        1,
        ["CREATE DATABASE db00078", "CREATE TABLE db00078.t (a INT)", "INSERT INTO db00078.t VALUES (1)"],
        "misplaced",
        "no range has such a shard. It has rows, which no statement finds",
        ["DROP DATABASE db00078"],
    ),
    "a shard on two hosts": (
        1,
        ["CREATE DATABASE db00001"],
        "misplaced",
        "the database is on two hosts: the topology has it on 127.0.0.1:",
        ["DROP DATABASE db00001"],
    ),
    "a missing right": (
        0,
        ["REVOKE INSERT ON `db_____`.* FROM sg_write@'%'"],
        "grants",
        "sg_write lacks INSERT on `db_____`.*",
        ["GRANT INSERT ON `db_____`.* TO sg_write@'%'"],
    ),
    "a right too many": (
        0,
        ["GRANT FILE ON *.* TO sg_read@'%'"],
        "grants",
        "sg_read has FILE on all databases",
        ["REVOKE FILE ON *.* FROM sg_read@'%'"],
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(world: World, name: str) -> None:
    server, plant, kind, said, mend = FAULTS[name]
    assert verify(world) == []
    world.execute(server, *plant)
    try:
        (fault,) = verify(world)
        assert (fault["kind"], fault["host"]) == (kind, world.servers[server].address)
        assert said in fault["text"]
        assert fault["remedy"]
    finally:
        world.execute(server, *mend)
    assert verify(world) == []


def test_a_master_that_takes_no_writes_is_found(world: World) -> None:
    world.execute(1, "SET GLOBAL read_only = ON")
    try:
        (fault,) = verify(world)
        assert (fault["kind"], fault["host"]) == ("closed", world.servers[1].address)
        assert "takes no writes" in fault["text"]
        assert "shardgate fleet status" in fault["remedy"]
    finally:
        world.execute(1, "SET GLOBAL read_only = OFF")
    assert verify(world) == []


def test_databases_that_take_no_writes_are_found(world: World, flavour: str) -> None:
    if flavour != "mysql9":
        pytest.skip("it has no such databases")
    names = ("db00000", "db00001")
    world.execute(0, *(f"ALTER DATABASE {name} READ ONLY = 1" for name in names))
    try:
        faults = verify(world)
        assert [(one["kind"], one["database"]) for one in faults] == [("closed", name) for name in names]
        assert "db00000 … db00001 (2 databases)" in world.run("verify")[1]
    finally:
        world.execute(0, *(f"ALTER DATABASE {name} READ ONLY = 0" for name in names), "DO 0")
    assert verify(world) == []


def test_a_missing_database(world: World) -> None:
    """And where it is instead; `create` makes what is nowhere."""
    world.execute(0, "DROP DATABASE ms00001")
    (fault,) = verify(world)
    assert (fault["text"], fault["database"]) == ("the database is missing", "ms00001")
    world.execute(1, "CREATE DATABASE ms00001")
    texts = {(one["host"], one["text"]) for one in verify(world)}
    first, second = (one.address for one in world.servers)
    assert texts == {
        (first, f"the database is missing, but there is one on {second}"),
        (second, f"the database is here, but the topology has it on {first}"),
    }
    world.execute(1, "DROP DATABASE ms00001")
    assert world.run("create", "--yes")[0] == 0
    assert verify(world) == []


def test_rows_on_the_wrong_shard(world: World) -> None:
    """By ID and by hash; only with --deep."""
    wrong = 3 << 46 | 1 << 36 | 7
    right = 1 << 46 | 1 << 36 | 7
    world.execute(
        0, f"INSERT INTO db00001.likes (user_id, pin_id, sequence) VALUES ({wrong}, 1, 1), ({right}, 1, 1)"
    )
    world.execute(0, "INSERT INTO ms00001.emails VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 4), ('e', 5)")
    try:
        assert verify(world) == []
        first, second = sorted(verify(world, "--deep"), key=lambda one: one["database"])
        assert first["text"] == f"likes has 1 rows of other shards, from {wrong} to {wrong}"
        keyspace = load_topology(world.document).keyspaces["lookup"]
        away = [key for key in "abcde" if keyspace.shard_of_key(key.encode()) != 1]
        assert second["text"] == f"emails has {len(away)} rows of other shards, from {away[0]} to {away[-1]}"
    finally:
        world.execute(0, "DELETE FROM db00001.likes", "DELETE FROM ms00001.emails")


def test_for_people(world: World) -> None:
    """Databases with the same fault are one row."""
    status, output = world.run("verify")
    assert (status, output) == (0, "ok  all is as it should be\n")
    world.execute(0, "DROP TABLE db00000.likes", "DROP TABLE db00001.likes")
    status, output = world.run("verify")
    assert status == 1
    host = world.servers[0].address
    assert output.splitlines() == [
        f"missing  {host} db00000 … db00001 (2 databases): the table likes is missing",
        "    make it: shardgate fleet create",
        "2 faults, in 2 databases",
    ]
    assert world.run("create", "--yes")[0] == 0


def test_a_host_that_cannot_be_reached(world: World) -> None:
    world.servers[1].kill()
    try:
        (fault, *others) = [one for one in verify(world) if one["kind"] == "unreachable"]
        assert fault["host"] == world.servers[1].address
        assert others == []
    finally:
        world.servers[1].start()
    assert verify(world) == []


@pytest.fixture(scope="module")
def pairs(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("pairs")
    options = ("--hosts", "1", "--shards", "2", "--slaves", "--no-page", "--empty")
    with running_demo(program, folder, *options) as running:
        yield running


def test_slaves_get_definitions(pairs: Demo) -> None:
    """From their masters, and nothing of the copies on which `ddl` tries them."""
    from typer.testing import CliRunner

    from proxy.cli import app

    def alter(what: str) -> None:
        words = ["fleet", "ddl", "--statement", f"ALTER TABLE pins {what}", "--yes"]
        done = CliRunner().invoke(app, [*words, "--config", str(pairs.settings)])
        assert done.exit_code == 0, done.output

    def columns() -> list[str]:
        slave.execute("SHOW COLUMNS FROM db00001.pins")
        return [row[0] for row in slave.fetchall()]

    with pairs.direct(1) as one, one.cursor() as slave, pairs.direct() as other, other.cursor() as master:
        before = columns()
        alter("ADD note INT")
        wait_until(lambda: columns() == [*before, "note"], "the slave has it")
        alter("DROP note")
        wait_until(lambda: columns() == before, "the slave has it")
        master.execute("SHOW BINARY LOGS")
        for name, *_ in master.fetchall():
            master.execute(f"SHOW BINLOG EVENTS IN '{name}'")
            events = [str(row[-1]) for row in master.fetchall()]
            assert [one for one in events if "shardgate_ddl" in one] == []


def test_slaves_that_do_not_replicate(pairs: Demo, flavour: str) -> None:
    """On a demo with slaves, whose settings name the account of the tools: nothing is to be given."""
    from typer.testing import CliRunner

    from proxy.cli import app

    def faults() -> list[str]:
        done = CliRunner().invoke(app, ["fleet", "verify", "--json", "--config", str(pairs.settings)])
        assert done.exit_code in (0, 1), done.output
        return [json.loads(line)["text"] for line in done.output.splitlines()]

    word = "SLAVE" if flavour == "mariadb" else "REPLICA"
    assert faults() == []
    with pairs.direct(1) as slave, slave.cursor() as cursor:
        cursor.execute(f"STOP {word}")
        assert faults() == [
            "receives nothing: its IO thread does not run",
            "applies nothing: its SQL thread does not run",
        ]
        cursor.execute("SET GLOBAL read_only = OFF")
        assert "takes writes, though it is a slave" in faults()
        cursor.execute("INSERT INTO db00000.pins (local_id, data) VALUES (7, '{}')")
        cursor.execute(f"SET GLOBAL {'super_' if flavour == 'mysql9' else ''}read_only = ON")
        cursor.execute(f"START {word}")
        with pairs.direct() as master, master.cursor() as other:
            other.execute("INSERT INTO db00000.pins (local_id, data) VALUES (7, '{}')")
        wait_until(lambda: any("applies nothing: " in text for text in faults()), "an error")


# --- without servers ---------------------------------------------------------------------------------


def test_definitions_are_compared_by_name() -> None:
    wanted = read_definition(
        "CREATE TEMPORARY TABLE `t` (\n  `a` int NOT NULL,\n  `b` int,\n"
        "  PRIMARY KEY (`a`),\n  KEY `k` (`b`)\n) ENGINE=InnoDB"
    )
    found = read_definition(
        "CREATE TABLE `t` (\n  `b` bigint,\n  `c` int,\n  KEY `k` (`b`,`c`)\n) ENGINE=InnoDB AUTO_INCREMENT=7"
    )
    assert found.next_id == 7
    assert differences(wanted, wanted) == []
    assert differences(wanted, found) == [
        "lacks `a` int NOT NULL",
        "has `b` bigint instead of `b` int",
        "lacks PRIMARY KEY (`a`)",
        "has KEY `k` (`b`,`c`) instead of KEY `k` (`b`)",
        "has `c` int too many",
    ]
    turned = Definition((wanted.lines[1], wanted.lines[0], *wanted.lines[2:]))
    assert differences(wanted, turned) == ["has its columns in another order"]


def test_what_is_said_of_a_slave() -> None:
    good = {"Source_Host": "a", "Source_Port": 1, "Replica_IO_Running": "Yes", "Replica_SQL_Running": "Yes"}
    good |= {"Seconds_Behind_Source": 0}

    def said(row: dict[str, Any], master: str = "a:1") -> list[str]:
        return [one.text for one in of_slave("s:1", master, [row], read_only=True)]

    assert said(good) == []
    assert said(good, "b:1") == ["replicates from a:1, but the topology says b:1"]
    assert said(good | {"Seconds_Behind_Source": 61}) == ["is 61 s behind"]
    failed = good | {
        "Replica_SQL_Running": "No",
        "Last_SQL_Error": "no such table",
        "Seconds_Behind_Source": None,
    }
    assert said(failed) == ["applies nothing: no such table"]
    assert [one.text for one in of_slave("s:1", "a:1", [], read_only=True)] == ["does not replicate"]


def test_equal_faults_are_grouped() -> None:
    faults = [Fault("missing", host, "t", "r", name) for host in ("a:1", "b:1") for name in ("x", "y", "z")]
    assert [one.where for one in grouped([*faults, Fault("grants", "a:1", "g")])] == [
        "a:1 x … z (3 databases)",
        "b:1 x … z (3 databases)",
        "a:1",
    ]
