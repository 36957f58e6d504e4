"""`shardgate fleet promote` on real servers, under clients that write all the time."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from signal import SIGCONT, SIGHUP, SIGINT, SIGTERM
from typing import Self

import pytest

from demo.programs import Program
from fleet.core.store import FileStore, Holder
from tests.faults.pairs import Pairs
from tests.faults.writers import PAUSE, RETRY, Writers, place
from tests.fleet.killed import Killer
from tests.integration.own import patient
from tests.integration.raw import Raw, Reply
from tests.support.demo import DemoHost, running_demo, stop_process
from tests.support.links import linked
from tests.support.waiting import wait_until

FIRST, LAST = [place(1), place(2)], [place(6), place(7)]
"""Shards of the two pairs."""


@pytest.fixture(scope="module")
def pairs(program: Program, flavour: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pairs]:
    folder = tmp_path_factory.mktemp("pairs")
    with (
        running_demo(program, folder, "--slaves", "--shards", "8") as demo,
        patient(demo, folder / "proxy") as proxy,
    ):
        made = Pairs(demo, flavour, (proxy.proxy.host, proxy.proxy.port))
        yield made
        made.close()


def promote(pairs: Pairs, master: DemoHost, *more: str) -> str:
    status, output = pairs.run("promote", "--host", master.address, "--yes", *more)
    assert status == 0, output
    return output


def is_promoted(pairs: Pairs, old: DemoHost, new: DemoHost) -> None:
    """They have changed places, and replicate."""
    assert pairs.pair(0) == (new, old)
    assert '"state"' not in json.dumps(pairs.document)
    assert (pairs.is_read_only(old), pairs.is_read_only(new)) == (True, False)
    pairs.has_it_all(old, new)


class Transfers:
    """A client whose transactions are on two hosts, all or none; within it, as a context manager."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.done = 0
        self.problems: list[Reply] = []
        self._client = Raw(*address, timeout=300.0)
        assert self._client.login(database="demo").kind == "ok"
        assert self._client.ask("SET transaction_mode = 'xa'").kind == "ok"
        gathered = "SELECT COUNT(*) FROM users u JOIN pins p ON u.data = p.data"
        assert self._client.ask(gathered).kind == "rows"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        row = "INSERT INTO user_follows_user (user_id, followed_id, sequence) VALUES ({}, {}, 0)"
        while not self._stop.wait(PAUSE) and not self.problems:
            steps = [row.format(user, self.done) for _, user in (FIRST[0], LAST[0])]
            for sql in ("BEGIN", *steps, "COMMIT"):
                reply = self._client.ask(sql)
                if reply.kind != "ok" and reply.code not in RETRY:
                    self.problems.append(reply)
                if reply.kind != "ok":
                    break
            else:
                self.done += 1

    def go_on(self) -> None:
        before = self.done
        wait_until(lambda: self.done > before + 2 or self.problems, "transactions over two hosts")


def test_there_and_back(pairs: Pairs) -> None:
    """Nobody hears of it, and every row that was acknowledged is there, once, on both servers; and so it goes
    with transactions over two hosts, which need to know at once where they are decided.
    """
    old, new = pairs.pair(0)
    assert new is not None
    with Writers(pairs.address, FIRST) as writers, Transfers(pairs.address) as transfers:
        assert pairs.execute(old, "SHOW DATABASES LIKE 'shardgate_scratch'")  # which no slave has
        assert f"{new.address} is the master, {old.address} its slave" in promote(pairs, old)
        writers.go_on()
        is_promoted(pairs, old, new)
        transfers.go_on()
        promote(pairs, new)
        writers.go_on()
        transfers.go_on()
    is_promoted(pairs, new, old)
    assert (writers.problems, writers.retried, transfers.problems) == ([], [], [])
    for host in (old, new):
        assert sorted(pairs.written(host, FIRST)) == sorted(writers.acknowledged)
    assert pairs.run("verify") == (0, "ok  all is as it should be\n")
    if pairs.flavour != "mariadb":
        kept = "SELECT variable_value FROM performance_schema.persisted_variables WHERE variable_name = '{}'"
        for host, value in ((old, "OFF"), (new, "ON")):
            assert pairs.execute(host, kept.format("super_read_only")) == [(value,)]


@pytest.mark.either_server
def test_killed_and_run_again(pairs: Pairs, tmp_path: Path) -> None:
    """At each of its steps: it ends right when it is run again, or is as before when that is taken back."""
    log = tmp_path / "log"
    frozen, fenced, released = 12, 17, 24
    runs = [([fenced], True), ([frozen, 9, 14], True), ([released, 12, 7], False)]
    killer = Killer()
    with Writers(pairs.address, FIRST, 4) as writers:
        for points, back in runs:
            old, new = pairs.pair(0)
            assert new is not None
            words = ["--host", old.address, "--config", str(pairs.demo.settings), "--yes"]
            command = ["fleet", "promote", *words]
            for kill_at in points:
                assert killer.run(command, log, kill_at) == -9, (kill_at, log.read_text())
            assert killer.run([*command, "--undo"] if back else command, log) == 0, log.read_text()
            is_promoted(pairs, *((new, old) if back else (old, new)))
            writers.go_on()
    assert writers.problems == []
    master, slave = pairs.pair(0)
    assert slave is not None
    pairs.has_it_all(slave, master)
    for host in (master, slave):
        assert set(pairs.written(host, FIRST)) >= writers.acknowledged


@pytest.mark.either_server
def test_interrupted(pairs: Pairs, tmp_path: Path) -> None:
    """At each of its steps, also while it is taken back: clients have only waited, and nothing is in the way
    of the next. Behind the point of no return it says how to go on.
    """
    frozen, fenced, released, published, follows = 12, 17, 24, 25, 31
    log = tmp_path / "log"
    old, new = pairs.pair(0)
    assert new is not None
    words = ["--host", old.address, "--config", str(pairs.demo.settings), "--yes"]
    command = ["fleet", "promote", *words]
    killer = Killer()
    with Writers(pairs.address, FIRST) as writers:
        for at, by in ((frozen, SIGINT), (fenced, SIGTERM), (released, SIGHUP)):
            log.write_text("")
            assert killer.run(command, log, at, by) == 1, (at, log.read_text())
            said = f"shardgate: interrupted. It was taken back: {old.address} serves as before"
            assert log.read_text().splitlines()[1:] == [said]
            is_promoted(pairs, new, old)
            writers.go_on()
        assert pairs.run("promote", *words, "--undo") == (
            0,
            "no promote is unfinished: there is nothing to take back\n",
        )
        assert killer.run(command, log, fenced) == -9
        is_told(pairs, old)
        log.write_text("")
        assert killer.run([*command, "--undo"], log, 6, SIGINT) == 0, log.read_text()
        assert f"{old.address} is the master as before" in log.read_text()
        is_promoted(pairs, new, old)
        for at in (published, follows):
            log.write_text("")
            assert killer.run(command, log, at, SIGINT) == 1, (at, log.read_text())
            done = f"interrupted. {new.address} is the master and serves: there is no way back\n"
            assert done in log.read_text()
            assert "run the same command again, which goes on where it was\n" in log.read_text()
            writers.go_on()
            assert killer.run(command, log) == 0, log.read_text()
            is_promoted(pairs, old, new)
            promote(pairs, new)
            writers.go_on()
    is_promoted(pairs, new, old)
    assert (writers.problems, writers.retried) == ([], [])
    for host in (old, new):
        assert set(pairs.written(host, FIRST)) >= writers.acknowledged


def is_told(pairs: Pairs, old: DemoHost) -> None:
    """By all commands: what clients wait for, that a change is not finished, and what to do."""
    words = f"finish it: shardgate fleet promote --host {old.address} --config {pairs.demo.settings}; or take"
    for command, *more in (("fleet", "status"), ("fleet", "verify"), ("check", "--connect")):
        status, output = pairs.run(*more, command=command)
        assert status == (0 if "status" in more else 1), output
        assert f"{old.address}: main 0-3 is frozen, clients wait\n" in output, output
        assert ("unfinished" in output, words in output) == (True, True), output


@pytest.mark.either_server
def test_what_is_refused(pairs: Pairs) -> None:
    """And nothing is changed by it."""
    old, new = pairs.pair(0)
    other = pairs.pair(1)[0]
    assert new is not None
    slave = pairs.replica_word
    delay = (
        "CHANGE MASTER TO MASTER_DELAY = {}"
        if pairs.flavour == "mariadb"
        else "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = {}"
    )
    writable = "SET GLOBAL read_only = OFF"
    lacking = ["SET SESSION sql_log_bin = 0", writable, "RENAME TABLE db00002.users TO db00002.gone"]
    found = ["SET SESSION sql_log_bin = 0", "RENAME TABLE db00002.gone TO db00002.users"]
    row = "global.usernames VALUES ('clash', 1)"
    clash = ["SET SESSION sql_log_bin = 0", writable, f"INSERT INTO {row}"]
    solved = [clash[0], "DELETE FROM global.usernames WHERE username = 'clash'", f"START {slave} SQL_THREAD"]
    late = [f"STOP {slave}", delay.format(3600), f"START {slave}"]
    soon = [f"STOP {slave}", delay.format(0), f"START {slave}"]
    cases: list[tuple[list[str], list[str], list[str], str]] = [
        ([f"STOP {slave} SQL_THREAD"], [f"START {slave} SQL_THREAD"], [], "SQL thread does not run"),
        ([f"STOP {slave} IO_THREAD"], [f"START {slave} IO_THREAD"], [], "IO thread does not run"),
        (late, soon, [], "has not applied all: "),
        (clash, solved, [], f"{new.address}: "),
        (lacking, found, [], "db00002.users"),
        (["SET GLOBAL sql_mode = 'ANSI'"], ["SET GLOBAL sql_mode = DEFAULT"], [], "its sql_mode is"),
        ([], [], ["--to", other.address], f"{other.address} is in the topology already, as a master"),
        ([], [], ["--to", "127.0.0.1:1"], "127.0.0.1:1: cannot be reached"),
        ([], [], ["--dead"], f"{old.address} answers, so it is not dead"),
    ]
    before = pairs.document
    for plant, mend, more, text in cases:
        pairs.execute(new, *plant or ["DO 0"])
        if plant == late:
            linked(pairs.demo, new)
            pairs.execute(old, "CREATE DATABASE late", "DROP DATABASE late")
        if plant == clash:
            pairs.execute(old, f"INSERT INTO {row}")
        status, output = pairs.run("promote", "--host", old.address, "--yes", *more)
        pairs.execute(new, *mend or ["DO 0"])
        if plant == clash:
            pairs.execute(old, solved[1])
        linked(pairs.demo, new)
        assert (status, text in output) == (2, True), (text, output)
        assert pairs.document == before
    stop_process(old.pid)
    status, output = pairs.run("promote", "--host", old.address, "--yes")
    os.kill(old.pid, SIGCONT)
    hint = f"If it is dead: shardgate fleet promote --host {old.address} --dead"
    assert (status, hint in output) == (2, True), output
    assert pairs.document == before
    pairs.execute(new, f"SET GLOBAL {'read_only' if slave == 'SLAVE' else 'super_read_only'} = ON")
    status, output = pairs.run("promote", "--host", new.address, "--yes")
    assert (status, "is no master of this topology" in output) == (2, True), output
    store = FileStore(pairs.demo.directory / "topology.json")
    store.lock(Holder.me("split"))
    status, output = pairs.run("promote", "--host", old.address, "--yes")
    store.unlock()
    assert (status, "another tool is at work: split" in output) == (2, True), output
    pairs.has_it_all(new, old)


def test_what_goes_wrong_is_taken_back(pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between freezing and publishing: the old master serves again at once."""
    from fleet import replication
    from fleet.core.errors import HostError

    old, new = pairs.pair(0)
    assert new is not None

    async def refused(*_: object) -> None:
        raise HostError(new.address, "no space left")

    with Writers(pairs.address, FIRST) as writers:
        with monkeypatch.context() as patch:
            patch.setattr(replication, "stop", refused)
            status, output = pairs.run("promote", "--host", old.address, "--yes")
        assert status == 1
        assert f"no space left. It was taken back: {old.address} serves as before" in output
        writers.go_on()
        is_promoted(pairs, new, old)
    assert (writers.problems, writers.retried) == ([], [])


def test_a_dead_master_that_comes_back(pairs: Pairs, tmp_path: Path) -> None:
    """It had nothing more than its slave, and is a slave now. Interrupted, it is as before."""
    old, new = pairs.pair(1)
    assert new is not None
    pairs.has_it_all(new, old)
    command, log = pairs.kill(old), tmp_path / "log"
    words = ["--host", old.address, "--dead", "--config", str(pairs.demo.settings), "--yes"]
    killer = Killer()
    for at in (12, 16):
        log.write_text("")
        assert killer.run(["fleet", "promote", *words], log, at, SIGINT) == 1
        assert f"It was taken back: {old.address} is the master as before, if it" in log.read_text()
        assert (pairs.pair(1), '"state"' in json.dumps(pairs.document)) == ((old, new), False)
    output = promote(pairs, old, "--dead")
    assert f"{new.address} is the master" in output
    (received,) = re.findall(r"all that it had received, up to ([^;]*);", output)
    assert len(set(received.split(","))) == len(received.split(","))
    assert f"{old.address} could not be reached, so it is not fenced" in output
    assert pairs.pair(1) == (new, None)
    pairs.start(old, command)
    assert f"{old.address} is a slave of {new.address}" in promote(pairs, old, "--dead")
    assert pairs.pair(1) == (new, old)
    assert pairs.is_read_only(old)
    pairs.has_it_all(old, new)
    assert pairs.run("verify")[0] == 0


def test_a_dead_master_under_load(pairs: Pairs) -> None:
    """What its slave had received is there, and only what was in flight fails."""
    old, new = pairs.pair(1)
    assert new is not None
    with Writers(pairs.address, LAST, tolerant=True) as writers:
        pairs.kill(old)
        promote(pairs, old, "--dead")
        writers.go_on()
    assert writers.problems == []
    rows = pairs.written(new, LAST)
    assert len(rows) == len(set(rows))
    assert set(rows) <= writers.acknowledged | writers.unknown
    for writer in writers.all:
        kept = [number in rows for number in sorted(writer.acknowledged)]
        lost = kept.count(False)
        first = kept.index(False) if lost else 0
        assert not any(kept[first : first + lost]), "lost is what came last, and nothing in between"


def test_a_dead_master_that_had_more(pairs: Pairs) -> None:
    """What was never sent is named when it is back; it takes no writes, and is no slave."""
    old, new = pairs.pair(0)
    assert new is not None
    slave = pairs.replica_word
    pairs.has_it_all(new, old)
    pairs.execute(new, f"STOP {slave} IO_THREAD")
    database, user = FIRST[0]
    pairs.execute(old, f"INSERT INTO {database}.user_likes_pins VALUES ({user}, 5, 5)")
    command = pairs.kill(old)
    promote(pairs, old, "--dead")
    pairs.start(old, command)
    status, output = pairs.run("promote", "--host", old.address, "--dead", "--yes")
    assert status == 1
    assert f"{old.address} has transactions that {new.address} has not: " in output
    assert pairs.is_read_only(old)
    assert pairs.pair(0) == (new, None)
