"""`shardgate fleet promote` over ZooKeeper, while proxies, ZooKeeper and the new master fail."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from demo.documents import ZOOKEEPER_NODE
from demo.process import spawn
from demo.programs import Program
from demo.zookeeper import LocalZooKeeper
from fleet import fence
from fleet.core.zookeeper import ZooKeeperStore
from fleet.filling import fill
from tests.faults.link import Link
from tests.faults.pairs import Pairs, kill
from tests.faults.writers import Writers, place
from tests.fleet.killed import Killer
from tests.integration.own import OwnProxy, merged
from tests.support.demo import Demo, DemoHost, processes_of, running_demo, stop_process
from tests.support.waiting import wait_until

pytestmark = pytest.mark.either_server

PLACES = [place(1), place(2)]
SESSION = "5s"


class Cluster(Pairs):
    """One pair, a spare server, ZooKeeper, and three proxies: one that nothing happens to, one to be stopped,
    one whose `link` to ZooKeeper can be cut.
    """

    def __init__(self, demo: Demo, flavour: str, folder: Path, stack: ExitStack) -> None:
        host, _, port = str(demo.ready["zookeeper"]).partition(":")
        self.link = stack.enter_context(Link(host, int(port)))
        document = json.loads(demo.settings.read_text())
        waits = {"timeouts": {"buffer": "120s"}, "topology": {"zookeeper": {"session_timeout": SESSION}}}
        demo.settings.write_text(json.dumps(merged(document, waits)))
        self.proxies = [
            stack.enter_context(OwnProxy(demo, folder / name, self._through(address)))
            for name, address in (
                ("well", f"{host}:{port}"),
                ("stopped", f"{host}:{port}"),
                ("cut", self.link.address),
            )
        ]
        super().__init__(demo, flavour, self.address_of(0))
        self._zookeeper = LocalZooKeeper(demo.directory)
        self._zookeeper.port = int(port)
        self._client = self._zookeeper.client()
        self._client.start(timeout=10.0)
        stack.callback(self._client.stop)
        stack.callback(self.close)

    def _through(self, address: str) -> dict[str, Any]:
        node = {"hosts": address, "path": ZOOKEEPER_NODE, "session_timeout": SESSION}
        return {"topology": {"file": None, "zookeeper": node}}

    def address_of(self, proxy: int) -> tuple[str, int]:
        made = self.proxies[proxy].proxy
        return made.host, made.port

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._client.retry(self._client.get, ZOOKEEPER_NODE)[0])
        return document

    def begin(self) -> tuple[DemoHost, DemoHost]:
        """Master and slave, and nothing is left of the test before."""
        master, slave = self.pair(0)
        assert slave is not None
        users = ", ".join(str(user) for _, user in PLACES)
        with (
            self.demo.connect(host=self.address[0], port=self.address[1]) as client,
            client.cursor() as cursor,
        ):
            cursor.execute(f"DELETE FROM user_likes_pins WHERE user_id IN ({users})")
        self.has_it_all(slave, master)
        return master, slave

    def promote(self, master: DemoHost, *more: str) -> str:
        status, output = self.run("promote", "--host", master.address, "--yes", *more)
        assert status == 0, output
        return output

    def is_promoted(self, old: DemoHost, new: DemoHost) -> None:
        assert self.pair(0) == (new, old)
        assert '"state"' not in json.dumps(self.document)
        assert (self.is_read_only(old), self.is_read_only(new)) == (True, False)
        self.has_it_all(old, new)

    def stop_zookeeper(self) -> list[str]:
        """SIGKILL; how it is started again."""
        for pid in processes_of(self.demo.directory):
            if b"ZooKeeperServerMain" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return kill(pid)
        raise AssertionError("no ZooKeeper")

    def start_zookeeper(self, command: list[str]) -> None:
        process = spawn(
            command, self.demo.directory / "zookeeper.again.log", cwd=self.demo.directory / "zookeeper"
        )
        self._restarted["zookeeper"] = process


@pytest.fixture(scope="module")
def cluster(program: Program, flavour: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("promote")
    options = ("--hosts", "1", "--slaves", "--spares", "1", "--zookeeper", "--shards", "4")
    with running_demo(program, folder, *options) as demo, ExitStack() as stack:
        yield Cluster(demo, flavour, folder, stack)


@pytest.fixture
def at_fence(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """What is to happen once while clients wait: before the old master takes no writes any more."""
    close_host = fence.close_host

    def plan(event: Callable[[], None]) -> None:
        events = [event]

        async def closed(*arguments: Any) -> None:
            while events:
                events.pop()()  # here: the kernel kills what another thread has started when that ends
            await close_host(*arguments)

        monkeypatch.setattr(fence, "close_host", closed)

    return plan


At = Callable[[Callable[[], None]], None]


def all_are_there(cluster: Cluster, *groups: Writers) -> None:
    """On both servers, each once; with those of which nobody knows."""
    acknowledged = sorted(number for group in groups for number in group.acknowledged)
    unknown = {number for group in groups for number in group.unknown}
    master, slave = cluster.pair(0)
    assert slave is not None
    cluster.has_it_all(slave, master)
    for host in (master, slave):
        written = cluster.written(host, PLACES)
        assert len(set(written)) == len(written)
        assert sorted(set(written) - unknown) == acknowledged


def test_second_tool_and_a_slave_that_is_not_named(cluster: Cluster, at_fence: At, tmp_path: Path) -> None:
    """As the demo's tour says it. The other slave goes on behind the old master."""
    old, new = cluster.begin()
    spare = cluster.hosts["spare1"]

    async def filled() -> None:
        async with cluster.demo.as_hosts() as hosts:
            await fill(hosts, spare.address, old.address, old.address)

    asyncio.run(filled())
    cluster.has_it_all(spare, old)
    (line,) = [one for one in cluster.demo.log.read_text().splitlines() if " fleet promote " in one]
    words = shlex.split(line)
    assert words[1:5] == ["fleet", "promote", "--host", old.address]
    log = tmp_path / "log"
    killer = Killer()
    with Writers(cluster.address, PLACES) as writers:
        put = ["topology", "put", str(cluster.demo.directory / "topology.json"), *words[5:], "--yes"]
        others = [[*words[1:], "--yes"], put]
        ended: list[int] = []
        at_fence(lambda: ended.extend([killer.run(one, log) for one in others]))
        output = cluster.promote(old)
        writers.go_on()
    assert ended == [2, 2]
    assert log.read_text().count("another tool is at work: promote") == 2
    assert f"{old.address} has slaves that the topology does not name, server_id 3: they follow it" in output
    assert (writers.problems, writers.retried) == ([], [])
    cluster.is_promoted(old, new)
    all_are_there(cluster, writers)
    cluster.has_it_all(spare, new)
    cluster.promote(new)


def test_several_slaves_that_are_named(cluster: Cluster, tmp_path: Path) -> None:
    """All follow the new master, and not through the old one."""
    master, slave = cluster.begin()
    other, file = cluster.hosts["spare1"], tmp_path / "several.json"
    document = cluster.document
    document["version"] += 1
    document["keyspaces"]["global"]["slave"] = other.address
    file.write_text(json.dumps(document))
    assert cluster.run("put", str(file), "--yes", command="topology")[0] == 0
    status, output = cluster.run("promote", "--host", master.address, "--yes")
    assert (status, f"which slave of {master.address}? The topology has several" in output) == (2, True)
    cluster.promote(master, "--to", slave.address)
    cluster.is_promoted(master, slave)
    cluster.execute(master, f"STOP {cluster.replica_word}")
    cluster.has_it_all(other, slave)
    cluster.execute(master, f"START {cluster.replica_word}")


def test_proxies_that_do_not_follow(cluster: Cluster) -> None:
    """One is stopped, one does not reach ZooKeeper: what they send the old master waits there for nobody. Who
    is stopped may send it a statement on a connection that it has ended meanwhile: nobody knows its outcome.
    """
    old, new = cluster.begin()
    stopped, link = cluster.proxies[1].proxy.pid, cluster.link
    addresses = [cluster.address_of(index) for index in range(3)]
    with ExitStack() as stack:
        all_writers = [
            stack.enter_context(Writers(one, PLACES, 4, group=n, tolerant=n == 1))
            for n, one in enumerate(addresses)
        ]
        well, *others = all_writers
        stop_process(stopped)
        link.refuse()
        try:
            output = cluster.promote(old, "--to", new.address)
            well.go_on()
        finally:
            os.kill(stopped, signal.SIGCONT)
            link.accept()
        for one in others:
            one.go_on()
    assert f"{new.address} is the master" in output
    assert [one.problems for one in all_writers] == [[], [], []]
    assert well.retried == []
    cluster.is_promoted(old, new)
    all_are_there(cluster, *all_writers)


def test_zookeeper_is_started_anew(cluster: Cluster, at_fence: At) -> None:
    """While clients wait: they wait for it, too."""
    old, new = cluster.begin()
    with Writers(cluster.address, PLACES) as writers:
        at_fence(lambda: cluster.start_zookeeper(cluster.stop_zookeeper()))
        cluster.promote(old, "--to", new.address)
        writers.go_on()
    assert (writers.problems, writers.retried) == ([], [])
    cluster.is_promoted(old, new)
    all_are_there(cluster, writers)


def test_zookeeper_is_away(cluster: Cluster, at_fence: At, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool gives up, and goes on when it is back."""
    old, new = cluster.begin()
    command: list[str] = []
    words = ["promote", "--host", old.address, "--to", new.address, "--yes"]
    with Writers(cluster.address, PLACES) as writers:
        with monkeypatch.context() as patch:
            patch.setattr("fleet.command.ZooKeeperStore", partial(ZooKeeperStore, timeout=1.0))
            at_fence(lambda: command.extend(cluster.stop_zookeeper()))
            status, output = cluster.run(*words)
        assert (status, "zookeeper" in output) == (1, True), output
        cluster.start_zookeeper(command)
        runs: list[tuple[int, str]] = []

        def ended() -> bool:
            """The lock goes with the session."""
            runs.append(cluster.run(*words))
            return runs[-1][0] != 2

        wait_until(ended, "the lock of the first")
        assert runs[-1][0] == 0, runs
        writers.go_on()
    assert (writers.problems, writers.retried) == ([], [])
    cluster.is_promoted(old, new)
    all_are_there(cluster, writers)


def test_the_new_master_dies_at_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is published, and nobody replicates from it: the old one, which has all, takes its place again."""
    old, new = cluster.begin()
    open_host = fence.open_host
    command: list[str] = []
    cluster.execute(new, "SET GLOBAL innodb_flush_log_at_trx_commit = 1", "SET GLOBAL sync_binlog = 1")

    async def opened(*arguments: Any) -> None:
        await open_host(*arguments)
        command.extend(cluster.kill(new))

    with Writers(cluster.address, PLACES, tolerant=True) as writers:
        with monkeypatch.context() as patch:
            patch.setattr(fence, "open_host", opened)
            status, output = cluster.run("promote", "--host", old.address, "--to", new.address, "--yes")
        how = f"If it is dead: shardgate fleet promote --host {new.address} --dead"
        assert (status, how in output) == (1, True), output
        assert cluster.pair(0) == (new, old)
        output = cluster.promote(new, "--dead")
        writers.go_on()
    assert f"{old.address} is the master" in output
    assert writers.problems == []
    assert cluster.pair(0) == (old, None)
    cluster.start(new, command)
    assert f"{new.address} is a slave of {old.address}" in cluster.promote(new, "--dead")
    cluster.is_promoted(new, old)
    rows = cluster.written(old, PLACES)
    assert len(rows) == len(set(rows))
    assert writers.acknowledged <= set(rows) <= writers.acknowledged | writers.unknown
    spare = cluster.hosts["spare1"].address  # not what `create` has made
    faults = cluster.run("verify", "--json")[1].splitlines()
    assert [one for one in faults if json.loads(one)["host"] != spare] == []
