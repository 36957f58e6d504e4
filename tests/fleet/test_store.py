"""The store of a topology, in a file's folder and in a real ZooKeeper: lock, publishing, journal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from config.settings import ZooKeeper
from demo.zookeeper import LocalZooKeeper
from fleet.core.errors import Failed, LockLost, Refused
from fleet.core.hosts import Hosts
from fleet.core.journal import Journal, Operation
from fleet.core.progress import Silent
from fleet.core.run import Report, Runner, Tool
from fleet.core.steps import Step
from fleet.core.store import FileStore, Holder, Store
from fleet.core.zookeeper import ZooKeeperStore
from tests.fleet.conftest import DOCUMENT, MakeStore
from tests.support.waiting import wait_until


def version(number: int) -> bytes:
    return json.dumps(DOCUMENT | {"version": number}).encode()


def test_one_tool_at_a_time(make_store: MakeStore) -> None:
    """The second is told who has the lock, and gets it when the first is done."""
    first, second = make_store(), make_store()
    assert first.holder() is None
    first.lock(Holder.me("split"))
    with pytest.raises(Refused, match=f"another tool is at work: split, process {os.getpid()} on "):
        second.lock(Holder.me("create"))
    assert str(second.holder()).startswith("split, process ")
    first.unlock()
    second.lock(Holder.me("create"))
    second.check_lock()
    with pytest.raises(LockLost):
        first.check_lock()


def test_publishing_is_compare_and_set(make_store: MakeStore) -> None:
    first, second = make_store(), make_store()
    seen = first.topology()
    assert seen is not None
    assert json.loads(seen.content) == DOCUMENT
    with pytest.raises(LockLost):
        first.publish(version(2), seen)
    first.lock(Holder.me("one"))
    first.publish(version(2), seen)
    first.unlock()
    second.lock(Holder.me("two"))
    with pytest.raises(Refused, match="has changed meanwhile"):
        second.publish(version(3), seen)
    with pytest.raises(Refused, match="has changed meanwhile"):
        second.publish(version(3), None)
    found = second.topology()
    assert found is not None
    assert found.content == version(2)
    second.publish(version(3), found)


def test_the_first_topology(tmp_path: Path, zookeeper: LocalZooKeeper) -> None:
    settings = ZooKeeper(hosts=zookeeper.address, path="/first/of/all", cache_file=tmp_path / "cache")
    stores: tuple[Store, ...] = (FileStore(tmp_path / "topology.json"), ZooKeeperStore(settings))
    for store in stores:
        store.open()
        assert store.topology() is None
        store.lock(Holder.me("put"))
        store.publish(version(1), None)
        found = store.topology()
        assert found is not None
        assert found.content == version(1)
        store.close()


def test_who_may_read_a_topology_file_stays(tmp_path: Path) -> None:
    """The proxy may be another user than who moves shards."""
    path = tmp_path / "topology.json"
    path.write_bytes(b"{}")
    path.chmod(0o644)
    store = FileStore(path)
    store.lock(Holder.me("test"))
    store.publish(b"[]", store.topology())
    store.close()
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"[]", 0o644)


def test_nobody_else_can_hold_the_lock(tmp_path: Path) -> None:
    """Who may read a file may lock it: any user of the machine could keep all tools out."""
    store = FileStore(tmp_path / "topology.json")
    store.lock(Holder.me("test"))
    assert (tmp_path / "topology.json.fleet" / "lock").stat().st_mode & 0o077 == 0
    store.close()


def test_documents_and_lists(make_store: MakeStore) -> None:
    store = make_store()
    assert store.names("history") == []
    assert store.create("history/0000000002", b"two")
    assert not store.create("history/0000000002", b"other")
    store.put("history/0000000001", b"one")
    store.put("history/0000000001", b"won")
    assert store.names("history") == ["0000000001", "0000000002"]
    assert (store.read("history/0000000001"), store.read("history/3")) == (b"won", None)
    for number in range(12):
        store.append("journal/000001", b"%d" % number)
    assert make_store().entries("journal/000001") == [b"%d" % number for number in range(12)]
    assert store.entries("journal/000002") == []


def test_an_entry_that_was_cut_off(tmp_path: Path) -> None:
    """A crash in the middle of writing: what was said to be there is, and the list goes on."""
    store = FileStore(tmp_path / "topology.json")
    store.append("journal/000001", b"whole")
    (file,) = tmp_path.glob("*.fleet/journal/000001")
    with open(file, "ab") as journal:
        journal.write(b'{"half')
    assert store.entries("journal/000001") == [b"whole"]
    store.append("journal/000001", b"next")
    assert store.entries("journal/000001") == [b"whole", b"next"]


def test_the_journal_remembers(make_store: MakeStore) -> None:
    steps = [Step(f"k{n}", f"step {n}", "a:1", final=n == 2499) for n in range(2500)]
    journal = Journal(make_store())
    operation = journal.begin("split", {"keyspace": "main", "shards": "0-1", "provision": True}, blocks=True)
    journal.plan(operation, steps)
    journal.done(operation, {"k0": {"position": "0-1-22"}, "k1": {}})
    journal.failed(operation, ["a:1: no"])
    (read,) = Journal(make_store()).unfinished()
    assert read == operation
    assert (read.progress, read.final, read.problems) == ("2 of 2500 steps", False, ["a:1: no"])
    assert read.done["k0"] == {"position": "0-1-22"}
    assert read.command == "shardgate fleet split --keyspace main --shards 0-1 --provision"
    journal.plan(operation, steps[:3])
    journal.done(operation, {"k2499": {}})
    assert (operation.problems, operation.final, len(operation.planned)) == ([], True, 2500)
    journal.end(operation, "done")
    again = Journal(make_store())
    assert again.unfinished() == []
    assert again.begin("create", {}, blocks=False).number == 2


HOLDS = """
import sys, time
from tests.fleet.test_store import store_from
from fleet.core.store import Holder
store = store_from(sys.argv[1])
store.open()
store.lock(Holder.me("split"))
print("locked", flush=True)
time.sleep(600)
"""


def store_from(place: str) -> Store:
    """A store by `file PATH` or `zookeeper HOSTS PATH`."""
    kind, *words = place.split(" ")
    if kind == "file":
        return FileStore(Path(words[0]))
    settings = ZooKeeper(hosts=words[0], path=words[1], session_timeout=2.0, cache_file=Path("/tmp/unused"))
    return ZooKeeperStore(settings)


@pytest.mark.parametrize("kind", ["file", "zookeeper"])
def test_a_tool_that_was_killed_holds_no_lock(kind: str, tmp_path: Path, request: Any) -> None:
    """The next one gets it without being told to wait, though ZooKeeper finds out in a session's time."""
    zookeeper = request.getfixturevalue("zookeeper") if kind == "zookeeper" else None
    place = f"zookeeper {zookeeper.address} /killed/t" if zookeeper else f"file {tmp_path / 'topology.json'}"
    with subprocess.Popen([sys.executable, "-c", HOLDS, place], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        store = store_from(place)
        store.open()
        with pytest.raises(Refused, match=f"split, process {process.pid} on "):
            store.lock(Holder.me("create"))
        process.send_signal(signal.SIGKILL)
        process.wait()
    store.lock(Holder.me("create"))
    store.close()


def test_a_lost_session_publishes_nothing(tmp_path: Path, zookeeper: LocalZooKeeper) -> None:
    """A tool that was stopped for longer than its session finds its lock gone, whoever has it now."""
    settings = ZooKeeper(
        hosts=zookeeper.address, path="/lost/t", session_timeout=1.0, cache_file=tmp_path / "cache"
    )
    store, other = ZooKeeperStore(settings), ZooKeeperStore(settings)
    store.open()
    other.open()
    store.lock(Holder.me("split"))
    store.publish(version(1), None)
    seen = store.topology()
    other._ask(
        "delete", next(f"/lost/t-fleet/{one}" for one in other._children("/lost/t-fleet") if "-" in one)
    )
    other._ask("delete", "/lost/t-fleet/lock")  # as the end of the session does
    with pytest.raises(LockLost, match="another tool may be at work"):
        store.publish(version(2), seen)
    with pytest.raises(LockLost):
        store.check_lock()
    other.lock(Holder.me("create"))
    with pytest.raises(LockLost):
        store.publish(version(2), seen)
    other.publish(version(3), seen)
    store.close()
    other.close()


@pytest.mark.parametrize("other", [False, True])
def test_a_lost_lock_is_taken_again(tmp_path: Path, zookeeper: LocalZooKeeper, other: bool) -> None:
    """A tool whose session has ended goes on; but not when somebody else has gone on with its operation."""
    path = f"/again-{other}/t"
    settings = ZooKeeper(hosts=zookeeper.address, path=path, cache_file=tmp_path / "cache")
    store = ZooKeeperStore(settings)
    store.open()
    taken: list[str] = []

    async def steps(operation: Operation | None) -> list[Step]:
        return [Step(key, key, action="take", stage=at) for at, key in enumerate("ab") if key not in taken]

    async def take(step: Step) -> dict[str, Any]:
        taken.append(step.key)
        if len(taken) == 1:
            for node in store._children(f"{path}-fleet"):
                if node.startswith("lock"):
                    store._ask("delete", f"{path}-fleet/{node}")  # as the end of the session does
            if other:
                journal = Journal(store)
                journal.failed(journal.unfinished()[0], ["somebody else's problem"])
        return {}

    async def run() -> Report:
        async with Hosts(no_host) as hosts:
            answers = iter([True])  # it is asked once
            runner = Runner(store, hosts, Silent(), lambda steps: next(answers))
            return await runner.run(Tool("split", {}, steps, actions={"take": take}))

    if other:
        with pytest.raises(LockLost):
            asyncio.run(run())
    else:
        assert asyncio.run(run()).problems == []
    assert (taken, len(Journal(store).unfinished())) == ((["a"], 1) if other else (["a", "b"], 0))
    assert store.holder() is None
    store.close()


async def no_host(host: str) -> Any:
    raise AssertionError(host)


def test_no_zookeeper(tmp_path: Path) -> None:
    settings = ZooKeeper(hosts="127.0.0.1:1", path="/t", cache_file=tmp_path / "cache")
    store = ZooKeeperStore(settings, timeout=0.3)
    with pytest.raises(Failed, match=r"127.0.0.1:1: Connection refused"):
        store.open()
    store.close()


def test_zookeeper_is_restarted_meanwhile(tmp_path: Path) -> None:
    """What is asked while it is away waits for it; the lock stays when it is back within the session (which
    lasts longer than any machine takes for a start).

    A ZooKeeper that is asked in the moment before it has read its data neither answers nor closes (a
    NullPointerException in its log). The client waits for the session's time then, divided by the number of
    hosts: with one host the session is gone. So it has two names here, as an ensemble has.
    """
    server = LocalZooKeeper(tmp_path / "zookeeper")
    server.start()
    hosts = ",".join((server.address, server.address.replace("127.0.0.1", "localhost")))
    assert hosts.count("localhost") == 1
    settings = ZooKeeper(hosts=hosts, path="/t", session_timeout=50.0, cache_file=tmp_path / "cache")
    store = ZooKeeperStore(settings)
    store.open()
    try:
        me = Holder.me("split")
        store.lock(me)
        store.append("journal/000001", b"before")
        server.stop()
        server.spawn()
        store.append("journal/000001", b"after")
        assert store.holder() == me, server.log.read_text()
        store.check_lock()
        assert set(store.entries("journal/000001")) == {b"before", b"after"}
        store.publish(version(1), None)
        wait_until(lambda: store.topology(), "the topology")
    finally:
        store.close()
        server.stop()
