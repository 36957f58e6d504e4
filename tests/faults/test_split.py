"""`shardgate fleet split` and `cleanup` on real servers, under clients that write all the time."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

import pymysql
import pytest

from demo.programs import Program
from demo.zookeeper import LocalZooKeeper
from fleet import fence, replication, splitting
from fleet.core.errors import HostError
from fleet.core.store import FileStore, Holder
from fleet.core.zookeeper import ZooKeeperStore
from tests.faults.link import Link
from tests.faults.writers import Place, Writers, place
from tests.fleet.killed import Killer
from tests.fleet.moving import Moving
from tests.integration.fixtures import make_id
from tests.integration.own import Document, OwnProxy, merged, patient
from tests.support.demo import Demo, DemoHost, gone, running_demo, stop_process
from tests.support.links import linked
from tests.support.waiting import wait_until

MOVED, STAY = (2, 3), (0, 5)
"""Shards that move, one that stays on the old master, and one of another."""
PLACES = [place(shard) for shard in (*MOVED, *STAY)]


ODD = (
    "CREATE DATABASE odd CHARACTER SET latin1",
    """CREATE TABLE odd.t (n BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, f FLOAT, d DOUBLE, x DECIMAL(30, 10),
    b BIT(9), v VARBINARY(50), l LONGBLOB, c VARCHAR(50) CHARACTER SET utf8mb4, w VARCHAR(50),
    e ENUM('a', 'b'), s SET('x', 'y'), j JSON, t TIMESTAMP(6) NULL, y YEAR, g GEOMETRY,
    k INT AS (e + 1) STORED)""",
    r"""INSERT INTO odd.t (n, f, d, x, b, v, l, c, w, e, s, j, t, y, g) VALUES (18446744073709551000, 0.1,
    1e-7 / 3, 1234567890.0123456789, b'101010101', X'00FF27', X'5C271A00', 'é😀\\''', 'é', 'b', 'x,y',
    '{"a": [1, "ü"]}', '2024-03-31 01:30:00.123456', 2024, POINT(1, 2))""",
    "INSERT INTO odd.t (n, v, c) VALUES (7, '', '')",
    "CREATE FUNCTION odd.f() RETURNS INT DETERMINISTIC RETURN 7",
    "CREATE VIEW odd.v AS SELECT odd.f() AS f, COUNT(*) AS c FROM odd.t",
    "CREATE TRIGGER odd.r BEFORE INSERT ON odd.t FOR EACH ROW SET NEW.w = 'r'",
)
"""What a copy could change on its way."""


@pytest.fixture(scope="module")
def moving(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moving]:
    options = ("--shards", "8", "--spares", "4")
    folder = tmp_path_factory.mktemp("split")
    with running_demo(program, folder, *options) as demo, patient(demo, folder / "proxy") as proxy:
        yield Moving(demo, (proxy.proxy.host, proxy.proxy.port))


def written(moving: Moving, places: Sequence[Place] = PLACES) -> list[int]:
    """What the writers have written, as the masters have it."""
    found, owners = [], moving.owners("main")
    for database, user in places:
        host = moving.demo.holder(owners[user >> 46][0])
        sql = f"SELECT pin_id FROM {database}.user_likes_pins WHERE user_id = {user}"
        found += [int(number) for (number,) in moving.ask(host, sql)]
    return sorted(found)


@pytest.fixture(autouse=True)
def nothing_written(moving: Moving, request: pytest.FixtureRequest) -> None:
    """By the writers of the test before."""
    if "kept" in request.fixturenames:
        return
    users = ", ".join(str(user) for _, user in PLACES)
    with moving.demo.connect() as client, client.cursor() as cursor:
        cursor.execute(f"DELETE FROM user_likes_pins WHERE user_id IN ({users})")


def split(moving: Moving) -> list[str]:
    return moving.arguments("main,lookup", "2-3")


def test_filled_and_taken_back(moving: Moving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty pair is filled under writers, in spite of a death on the way. What goes wrong between freezing
    and publishing is taken back: the old master serves again at once.
    """
    before = moving.owners("main")
    status, output = moving.run(*split(moving), "--yes")
    assert (status, f"{moving.new.address} does not replicate" in output) == (2, True), output
    filled = [*split(moving), "--provision"]
    moving.ask(moving.slave, "SET SESSION sql_log_bin = 0", "CREATE DATABASE mine")
    status, output = moving.run(*filled, "--yes")
    assert (status, f"{moving.slave.address} is not empty: it has mine" in output) == (2, True), output
    moving.ask(moving.slave, "SET SESSION sql_log_bin = 0", "DROP DATABASE mine")

    async def refused(*_: object) -> None:
        raise HostError(moving.new.address, "no space left")

    log = tmp_path / "log"
    moving.ask(moving.old, *ODD)
    with Writers(moving.address, PLACES) as writers:
        killer = Killer()
        command = ["fleet", *filled, "--config", str(moving.demo.settings), "--yes"]
        assert killer.run(command, log, 17) == -9, log.read_text()
        assert moving.ask(moving.new, "SHOW DATABASES LIKE 'db0000_'"), "it was at it"
        with monkeypatch.context() as patch:
            patch.setattr(replication, "stop", refused)
            status, output = moving.run(*filled, "--yes")
        assert status == 1, output
        assert f"no space left. It was taken back: {moving.old.address} serves main,lookup 2-3" in output
        assert moving.owners("main") == before
        writers.go_on()
    assert writers.problems == []
    moving.catch_up()
    for sql in ("CHECKSUM TABLE odd.t", "SELECT * FROM odd.v", "SELECT n, f, d, HEX(c), w, k, t FROM odd.t"):
        there = [moving.ask(host, sql) for host in (moving.old, moving.new, moving.slave)]
        assert there[0] == there[1] == there[2], sql
    assert moving.ask(moving.new, "SHOW TRIGGERS FROM odd")


@pytest.mark.either_server
def test_what_is_refused(moving: Moving, flavour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is changed by it."""
    word = "SLAVE" if flavour == "mariadb" else "REPLICA"
    unlogged = ["SET SESSION sql_log_bin = 0"]
    if flavour != "mariadb":
        unlogged.append("SET GLOBAL super_read_only = OFF")
    row = [*unlogged, "INSERT INTO db00002.user_likes_pins VALUES (1, 1, 1)"]
    unrow = [*unlogged, "DELETE FROM db00002.user_likes_pins WHERE user_id = 1"]
    table = [*unlogged, "RENAME TABLE db00003.users TO db00003.gone"]
    untable = [*unlogged, "RENAME TABLE db00003.gone TO db00003.users"]
    other, old, new = moving.demo.masters[1].address, moving.old.address, moving.new.address
    column = [*unlogged, "ALTER TABLE db00002.users ADD more INT"]
    uncolumn = [*unlogged, "ALTER TABLE db00002.users DROP more"]
    collation = [*unlogged, "ALTER TABLE db00003.boards CHARACTER SET latin1"]
    uncollation = [*unlogged, "ALTER TABLE db00003.boards CHARACTER SET utf8mb4"]
    late = "MASTER TO MASTER_DELAY" if flavour == "mariadb" else "REPLICATION SOURCE TO SOURCE_DELAY"
    delayed, prompt = (
        [f"STOP {word}", f"CHANGE {late} = {seconds}", f"START {word}"] for seconds in (3600, 0)
    )
    written = ["INSERT INTO db00000.users (local_id, data) VALUES (900000, '{}')"]
    written.append("DELETE FROM db00000.users WHERE local_id = 900000")
    twice, untwice = [*unlogged, written[0]], [*unlogged, written[1], f"START {word}"]
    master, slave = moving.new, moving.slave
    other_rows = f"db00002.user_likes_pins have not the same rows there as on {old}"
    planted: list[tuple[DemoHost, list[str], list[str], str]] = [
        (master, [f"STOP {word} SQL_THREAD"], [f"START {word} SQL_THREAD"], "its SQL thread does not run"),
        (slave, [f"STOP {word} IO_THREAD"], [f"START {word} IO_THREAD"], "its IO thread does not run"),
        (master, row, unrow, f"{new}: {other_rows}"),
        (slave, row, unrow, f"{slave.address}: {other_rows}"),
        (master, table, untable, "db00003 the table users is missing"),
        (slave, table, untable, f"{slave.address} db00003 the table users is missing"),
        (master, column, uncolumn, "db00002 users has `more`"),
        (slave, collation, uncollation, f"{slave.address} db00003 boards has "),
        (slave, delayed, prompt, f"{slave.address}: has not applied all: it is still behind after 1 s"),
        (slave, twice, untwice, "Duplicate entry '900000' for key"),
    ]
    account = json.loads(moving.demo.settings.read_text())["backends"]["accounts"][0]
    name = f"'{account['user']}'@'%'"
    other_password = [*unlogged, f"ALTER USER {name} IDENTIFIED BY 'otherPassword-1'"]
    right_password = [*unlogged, f"ALTER USER {name} IDENTIFIED BY '{account['password']}'"]
    planted += [
        (host, other_password, right_password, f"cannot log in to {host.address} as {account['user']}: ")
        for host in (master, slave)
    ]
    monkeypatch.setattr(splitting, "LAG_SECONDS", 1.0)
    pair = ["--master", new]
    asked: list[tuple[list[str], str]] = [
        (["main", "--shards", "6-9", *pair], "shard 8 of main is in no range"),
        (["main", "--shards", "3-4", *pair], f"main 3-3 on {old}, main 4-4 on {other}"),
        (["none", "--shards", "2-3", *pair], "keyspace none is not there: shards are in main, lookup, media"),
        (["global", "--shards", "2-3", *pair], "keyspace global has no shards"),
        (["main", "--shards", "2-3", "--master", other], f"{other} is the master of other shards already"),
        (["main", "--shards", "2-3", "--master", "127.0.0.1:1"], "127.0.0.1:1: cannot be reached"),
        (["main", "--shards", "2-3", "--master", "x:y"], "x:y"),
        (["main", "--shards", "2-3", *pair, "--slave", old], f"{old}"),
        (["main", "--shards", "2-3", *pair, "--slave", "127.0.0.1:1"], "127.0.0.1:1: cannot be reached"),
        (
            ["main", "--shards", "2-3", "--master", moving.slave.address],
            f"replicates from {new}, not from {old}",
        ),
    ]
    before = moving.document
    for arguments, text in asked:
        status, output = moving.run("split", "--keyspace", *arguments, "--yes")
        assert (status, text in output) == (2, True), output
    for host, plant, mend, text in planted:
        moving.ask(host, *plant)
        if plant is delayed:
            linked(moving.demo, host)
        if plant in (delayed, twice):
            moving.ask(moving.old, *written)
        status, output = moving.run(*split(moving), "--yes")
        moving.ask(host, *mend)
        assert (status, text in output) == (2, True), (text, output)
        moving.catch_up()
    store = FileStore(moving.demo.directory / "topology.json")
    store.lock(Holder.me("promote"))
    status, output = moving.run(*split(moving), "--yes")
    store.close()
    assert (status, "another tool is at work: promote, process " in output) == (2, True), output
    assert moving.document == before
    assert moving.run("cleanup", "--yes") == (0, "nothing is left over\n")
    status, output = moving.run(*split(moving), "--dry-run")
    assert status == 0
    assert "publish main,lookup 2-3 as frozen: from now on clients wait" in output
    assert moving.document == before


@pytest.mark.either_server
def test_killed_and_taken_back(moving: Moving, tmp_path: Path) -> None:
    """At each of its steps before the last that has a way back."""
    log = tmp_path / "log"
    command = ["fleet", *split(moving), "--config", str(moving.demo.settings), "--yes"]
    before = moving.owners("main"), moving.owners("lookup")
    killer = Killer()
    with Writers(moving.address, PLACES) as writers:
        for kill_at in (7, 14, 22, 26, 31):
            assert killer.run(command, log, kill_at) == -9, (kill_at, log.read_text())
            status, output = moving.run("open", "--keyspace", "main", "--shards", "8-9", "--master", "h:1")
            assert (status, "shardgate fleet split --keyspace main,lookup" in output) == (2, True), output
            assert killer.run([*command, "--undo"], log) == 0, (kill_at, log.read_text())
            assert (moving.owners("main"), moving.owners("lookup")) == before
            writers.go_on()
    assert writers.problems == []
    assert written(moving) == sorted(writers.acknowledged)
    moving.catch_up()


@pytest.mark.either_server
def test_interrupted(moving: Moving, tmp_path: Path) -> None:
    """At each of its steps: clients have only waited, and it is as if nothing had been begun."""
    log = tmp_path / "log"
    command = ["fleet", *split(moving), "--config", str(moving.demo.settings), "--yes"]
    before = moving.owners("main"), moving.owners("lookup")
    killer = Killer()
    with Writers(moving.address, PLACES) as writers:
        for at in (14, 18, 20, 24, 28):
            log.write_text("")
            assert killer.run(command, log, at, signal.SIGINT) == 1, (at, log.read_text())
            said = f"interrupted. It was taken back: {moving.old.address} serves main,lookup 2-3 as before"
            assert log.read_text().splitlines()[1:] == [f"shardgate: {said}"], at
            assert (moving.owners("main"), moving.owners("lookup")) == before
            writers.go_on()
    assert (writers.problems, writers.retried) == ([], [])
    assert written(moving) == sorted(writers.acknowledged)
    moving.catch_up()


def test_a_split_under_writers(moving: Moving, tmp_path: Path) -> None:
    """Killed again and again, each time a bit farther, and run to its end."""
    new, old = moving.new.address, moving.old.address
    log = tmp_path / "log"
    command = ["fleet", *split(moving), "--config", str(moving.demo.settings), "--yes"]
    with Writers(moving.address, PLACES, 12) as writers:
        killer = Killer()
        for kill_at in (16, 24, 18, 22, 8, 12):
            killer.run(command, log, kill_at)
        assert killer.run(command, log) == 0, log.read_text()
        writers.go_on()
    assert writers.problems == []
    assert [moving.owners("main")[shard][0] for shard in (0, 1, *MOVED)] == [old, old, new, new]
    assert written(moving) == sorted(writers.acknowledged)
    is_closed(moving)


def is_closed(moving: Moving) -> None:
    """Who goes past the topology cannot write on the old master, with no account of the proxy's."""
    for account in json.loads(moving.demo.settings.read_text())["backends"]["accounts"]:
        login = {name: account[name] for name in ("user", "password")}
        with (
            closing(moving.demo.direct(0, **login)) as client,
            client.cursor() as cursor,
            pytest.raises(pymysql.MySQLError, match=r"denied|read only"),
        ):
            cursor.execute("INSERT INTO db00002.user_likes_pins VALUES (1, 1, 1)")


@pytest.mark.either_server
def test_cleanup(moving: Moving, tmp_path: Path) -> None:
    """Refused while somebody uses what is left over; killed and run again; then all is as it should be."""
    log = tmp_path / "log"
    assert moving.run("verify")[0] == 1, "what is left over"
    with closing(moving.demo.direct(0, database="db00002")):
        status, output = moving.run("cleanup", "--yes")
        assert (status, "somebody uses db00002 now" in output) == (2, True), output
    command = ["fleet", "cleanup", "--config", str(moving.demo.settings), "--yes"]
    killer = Killer()
    with Writers(moving.address, PLACES) as writers:
        for kill_at in (4, 8, 9):
            assert killer.run(command, log, kill_at) == -9, log.read_text()
        assert killer.run(command, log) == 0, log.read_text()
        writers.go_on()
    assert writers.problems == []
    assert moving.run("cleanup", "--yes") == (0, "nothing is left over\n")
    assert moving.run("verify") == (0, "ok  all is as it should be\n")
    with moving.demo.connect() as client, client.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM user_likes_pins")
        cursor.execute("SELECT COUNT(*) FROM ip_data")


# --- over ZooKeeper ----------------------------------------------------------------------------------

NODE = "/shardgate/topology"


class References:
    """A client that writes to a reference table all the time. A context manager."""

    def __init__(self, proxy: OwnProxy) -> None:
        self.client = proxy.raw()
        self.rows, self.problems = 0, list[object]()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.wait(0.01) and not self.problems:
            code = f"0{self.rows % 10}"
            for sql in (
                f"INSERT INTO countries VALUES ('{code}', '{self.rows}')",
                f"DELETE FROM countries WHERE code = '{code}'",
            ):
                reply = self.client.ask(sql)
                if (reply.kind, getattr(reply, "affected", 1)) != ("ok", 1):
                    self.problems.append((sql, reply))
            self.rows += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


class Kept:
    """The topology is in ZooKeeper. `near` is a proxy as it should be; `cut` reaches ZooKeeper by `link`,
    `stopped` will be. `moving`: to the second pair of spares.
    """

    def __init__(self, demo: Demo, folder: Path, zookeeper: LocalZooKeeper, link: Link) -> None:
        self.folder, self.zookeeper, self.link = folder, zookeeper, link
        self.demo = demo
        self.proxies = [
            OwnProxy(demo, folder / name, self._place(name, address))
            for name, address in (
                ("near", zookeeper.address),
                ("cut", link.address),
                ("stopped", zookeeper.address),
            )
        ]
        self.near, self.cut, self.stopped = self.proxies
        document = merged(json.loads(demo.settings.read_text()), self._place("tool", zookeeper.address))
        demo.settings.write_text(json.dumps(document))
        self.moving = Moving(demo, (self.near.proxy.host, self.near.proxy.port), 1)

    def _place(self, name: str, address: str) -> Document:
        """Settings."""
        cache = str(self.folder / f"{name}.cache")
        place = {"hosts": address, "path": NODE, "session_timeout": "2s", "name": name, "cache_file": cache}
        return {"topology": {"file": None, "zookeeper": place}, "timeouts": {"buffer": "120s"}}

    def writers(self, number: int, proxy: OwnProxy, *shards: int, tolerant: bool = False) -> Writers:
        """Four a shard. `number`: of their users, nobody else has them."""
        places = [(f"db{shard:05d}", make_id(shard, 3, 900_010 + number)) for shard in shards]
        address = proxy.proxy.host, proxy.proxy.port
        return Writers(address, places, 4 * len(shards), tolerant=tolerant)

    def split(self, *more: str) -> tuple[int, str]:
        return self.moving.run(*self.moving.arguments("main,lookup", "0-1"), "--yes", *more)

    def proxies_behind(self) -> list[str]:
        version = self.moving.document["version"]
        return [one.log.parent.name for one in self.proxies if one.status()["topology"]["version"] < version]


@pytest.fixture(scope="module")
def kept(moving: Moving, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("kept")
    with ExitStack() as stack:
        zookeeper = stack.enter_context(LocalZooKeeper(folder / "zookeeper").start())
        zookeeper.put(NODE, (moving.demo.directory / "topology.json").read_bytes())
        link = stack.enter_context(Link(zookeeper.host, zookeeper.port))
        made = Kept(moving.demo, folder, zookeeper, link)
        for proxy in made.proxies:
            stack.enter_context(proxy)
        stack.callback(made.stopped.signal, signal.SIGCONT)  # whatever a test has left
        yield made


@pytest.mark.either_server
def test_zookeeper_is_restarted(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the shards are fenced off: the tool waits for it, and takes back what goes wrong after that."""
    closing_databases = fence.close_databases

    async def restarted(*arguments: Any) -> None:
        kept.zookeeper.stop()
        kept.zookeeper.spawn()
        await closing_databases(*arguments)

    async def refused(*_: object) -> None:
        raise HostError(kept.moving.new.address, "no space left")

    before = kept.moving.owners("main")
    with (
        monkeypatch.context() as patch,
        kept.writers(0, kept.near, 0) as writers,
        kept.writers(1, kept.cut, 1) as others,
        References(kept.near) as references,
    ):
        patch.setattr(fence, "close_databases", restarted)
        patch.setattr(replication, "stop", refused)
        status, output = kept.split("--provision")
        assert (status, "no space left. It was taken back: " in output) == (1, True), output
        assert kept.moving.owners("main") == before
        writers.go_on()
        others.go_on()
    for one in (writers, others):
        assert (one.problems, one.retried) == ([], [])
        assert written(kept.moving, one.places) == sorted(one.acknowledged)
    assert (references.problems, references.rows > 0) == ([], True)
    kept.moving.catch_up()


@pytest.mark.either_server
def test_proxies_that_do_not_follow(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is cut off from ZooKeeper, one stopped, through the whole split; ZooKeeper is away in the middle of
    it, and the tool dies when it has published. No write is lost, and none lands on the old master.
    """
    closing_databases, publishing = fence.close_databases, ZooKeeperStore.publish
    new, old = kept.moving.new.address, kept.moving.old.address

    async def away(*arguments: Any) -> None:
        kept.zookeeper.stop()
        await closing_databases(*arguments)

    def dies(store: ZooKeeperStore, content: bytes, expected: Any) -> None:
        publishing(store, content, expected)
        if new in content.decode():
            raise KeyboardInterrupt

    with (
        kept.writers(2, kept.near, 0) as writers,
        kept.writers(3, kept.cut, 1) as others,
        kept.writers(4, kept.stopped, 1, tolerant=True) as sleepers,
        References(kept.near) as references,
    ):
        kept.link.refuse()
        stop_process(kept.stopped.proxy.pid)
        with monkeypatch.context() as patch:
            patch.setattr(fence, "close_databases", away)
            patch.setattr(ZooKeeperStore.__init__, "__defaults__", (0.5,))
            status, output = kept.split()
        assert status == 1, output
        assert "cannot be reached" in output or "does not answer" in output, output
        assert "run the same command again" in output, output
        kept.zookeeper.start()
        with monkeypatch.context() as patch:
            patch.setattr(ZooKeeperStore, "publish", dies)
            wait_until(lambda: kept.split()[0] == 1, "the lock of who could not give it back")
        assert kept.moving.owners("main")[0] == (new, "serving")
        left = [kept.moving.ask(kept.moving.old, sql) for sql in rows_of(others, sleepers)]
        writers.go_on()
        kept.stopped.signal(signal.SIGCONT)
        kept.link.accept()
        sleepers.go_on()
        others.go_on()
        assert [kept.moving.ask(kept.moving.old, sql) for sql in rows_of(others, sleepers)] == left, old
    assert (references.problems, references.rows > 0) == ([], True)
    assert (writers.problems, writers.retried) == ([], [])
    for one in (writers, others, sleepers):
        assert one.problems == []
        rows = written(kept.moving, one.places)
        assert len(rows) == len(set(rows))
        assert one.acknowledged <= set(rows) <= one.acknowledged | one.unknown
    assert kept.proxies_behind() == []


def rows_of(*some: Writers) -> list[str]:
    """What asks for the rows of writers."""
    return [
        f"SELECT pin_id FROM {database}.user_likes_pins WHERE user_id = {user} ORDER BY pin_id"
        for one in some
        for database, user in one.places
    ]


@pytest.mark.either_server
def test_the_new_master_dies(kept: Kept) -> None:
    """Before the tool has ended: it says what to do, and lets the promotion go first."""
    new, slave = kept.moving.new, kept.moving.slave
    with kept.writers(5, kept.near, 1, tolerant=True) as writers:
        os.kill(new.pid, signal.SIGKILL)
        wait_until(lambda: gone(new.pid), "its end")
        status, output = kept.split()
        assert (status, f"promote --host {new.address} --dead" in output) == (1, True), output
        status, output = kept.moving.run("promote", "--host", new.address, "--dead", "--yes")
        assert status == 0, output
        writers.go_on()
    assert writers.problems == []
    assert kept.moving.owners("main")[0][0] == slave.address
    rows = written(kept.moving, writers.places)
    assert len(rows) == len(set(rows))
    assert set(rows) <= writers.acknowledged | writers.unknown
    status, output = kept.split()
    assert (status, "nothing is left to do" in output) == (0, True), output
    assert kept.moving.run("cleanup", "--yes")[0] == 0
    assert kept.moving.run("verify") == (0, "ok  all is as it should be\n")
