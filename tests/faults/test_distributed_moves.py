"""Masters that change while branches are prepared: each is finished as it was decided, on both servers of its
pair, and replication goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from demo.programs import Program
from fleet import fence
from tests.faults.pairs import Pairs
from tests.faults.prepared import leave, names
from tests.faults.writers import place
from tests.integration.own import patient
from tests.support.demo import DemoHost, running_demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until

pytestmark = pytest.mark.either_server

DATABASES = (place(1)[0], place(6)[0])
"""One of each pair."""


@pytest.fixture(scope="module")
def pairs(program: Program, flavour: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pairs]:
    folder = tmp_path_factory.mktemp("moves")
    with (
        running_demo(program, folder, "--slaves", "--shards", "8") as demo,
        patient(demo, folder / "proxy") as proxy,
    ):
        made = Pairs(demo, flavour, (proxy.proxy.host, proxy.proxy.port))
        for host in made.hosts.values():  # a master that has died has what it has prepared
            made.execute(host, "SET GLOBAL innodb_flush_log_at_trx_commit = 1", "SET GLOBAL sync_binlog = 1")
        yield made
        made.close()


@pytest.fixture
def direct(pairs: Pairs) -> Iterator[Callable[[DemoHost], Connection]]:
    """A connection past the proxy, kept to the end."""
    with ExitStack() as stack:

        def connect(host: DemoHost) -> Connection:
            made = pairs.demo.direct(list(pairs.hosts.values()).index(host))
            stack.callback(lambda: made.close() if made.open else None)
            return made

        yield connect


def row(number: int, pair: int) -> str:
    return f"INSERT INTO {DATABASES[pair]}.user_likes_pins VALUES (7, {number}, 7)"


def there(pairs: Pairs, host: DemoHost, pair: int) -> set[int]:
    sql = f"SELECT pin_id FROM {DATABASES[pair]}.user_likes_pins WHERE user_id = 7"
    return {int(number) for (number,) in pairs.execute(host, sql)}


def prepared(pairs: Pairs, *hosts: DemoHost) -> list[tuple[Any, ...]]:
    return [one for host in hosts for one in pairs.execute(host, "XA RECOVER")]


def at_fence(monkeypatch: pytest.MonkeyPatch, event: Callable[[], None]) -> None:
    """`event` happens as the old master is about to be closed, when the proxies hold what comes already."""
    close_host, events = fence.close_host, [event]

    async def closed(*arguments: Any) -> None:
        while events:
            events.pop()()
        await close_host(*arguments)

    monkeypatch.setattr(fence, "close_host", closed)


def is_finished(pairs: Pairs, old: DemoHost, new: DemoHost) -> None:
    """And the old master is a slave that has all."""
    masters = [pairs.pair(index)[0] for index in (0, 1)]
    wait_until(lambda: not prepared(pairs, *masters), "it is finished", 30)
    pairs.has_it_all(old, new)
    wait_until(lambda: not prepared(pairs, *pairs.hosts.values()), "on the slaves, too", 30)


@pytest.mark.parametrize("kept", [True, False])
def test_a_branch_whose_host_is_promoted(
    pairs: Pairs, direct: Callable[[DemoHost], Connection], monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """`kept`: its connection still is there, silent; the fence ends that."""
    old, new = pairs.pair(0)
    first, _ = pairs.pair(1)
    assert new is not None
    numbers = {101, 102} if kept else {103, 104}

    def left() -> None:
        for number in sorted(numbers):
            branch = direct(old)
            leave(branch, direct(first), first.address, row(number, 0), committed=number % 2 == 1)
            if not kept:
                branch.close()

    at_fence(monkeypatch, left)
    status, output = pairs.run("promote", "--host", old.address, "--yes")
    assert status == 0, output
    assert pairs.pair(0) == (new, old)
    is_finished(pairs, old, new)
    committed = {number for number in numbers if number % 2 == 1}
    for host in (old, new):
        assert there(pairs, host, 0) & numbers == committed
    assert pairs.run("verify") == (0, "ok  all is as it should be\n")


def test_decisions_whose_host_is_promoted(
    pairs: Pairs, direct: Callable[[DemoHost], Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are found at the new master."""
    first, new = pairs.pair(1)
    host, _ = pairs.pair(0)
    assert new is not None

    def left() -> None:
        for number, committed in ((201, True), (202, False)):
            branch = direct(host)
            leave(branch, direct(first), first.address, row(number, 0), committed=committed)
            branch.close()

    at_fence(monkeypatch, left)
    status, output = pairs.run("promote", "--host", first.address, "--yes")
    assert status == 0, output
    is_finished(pairs, first, new)
    assert there(pairs, host, 0) & {201, 202} == {201}


def test_a_branch_whose_host_dies(pairs: Pairs, direct: Callable[[DemoHost], Connection]) -> None:
    """Its slave has it, too, and is promoted, though it can be finished only then. What comes back is a slave
    that has it finished as well.
    """
    old, new = pairs.pair(0)
    first, _ = pairs.pair(1)
    assert new is not None
    branch = direct(old)
    holder = direct(first)
    with holder.cursor() as cursor:  # so nobody can learn what was decided before the master is dead
        cursor.execute("LOCK TABLES shardgate_xa.decisions WRITE, shardgate_xa.identity READ")
        leave(branch, holder, first.address, row(301, 0), committed=True)
        pairs.has_it_all(new, old)
        command = pairs.kill(old)
        cursor.execute("UNLOCK TABLES")
    assert len(prepared(pairs, new)) == 1
    status, output = pairs.run("promote", "--host", old.address, "--dead", "--yes")
    assert status == 0, output
    wait_until(lambda: not prepared(pairs, new), "it is finished", 30)
    assert there(pairs, new, 0) & {301} == {301}
    pairs.start(old, command)
    status, output = pairs.run("promote", "--host", old.address, "--dead", "--yes")
    assert status == 0, output
    is_finished(pairs, old, new)
    assert there(pairs, old, 0) & {301} == {301}
    assert names(direct(old)) == []
