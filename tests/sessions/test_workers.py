"""Sessions of several worker processes: KILL and Ctrl-C reach all of them; what is set is nobody else's."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pymysql
import pytest

from tests.integration.binary import Binary
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy, statements_like
from tests.integration.raw import PROCESS_KILL, RESET_CONNECTION, Closed, Raw, query
from tests.support.demo import Demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until, wait_until_is

pytestmark = pytest.mark.either_server


@pytest.fixture
def pair(own: MakeOwn) -> tuple[OwnProxy, Raw, Raw]:
    """Clients of two workers."""
    proxy = own({"workers": 2})
    clients = [proxy.raw(database="legacy")]

    def another() -> bool:
        clients.append(proxy.raw(database="legacy"))
        return clients[-1].id >> 24 != clients[0].id >> 24

    wait_until(another, "a client of the other worker")
    return proxy, clients[0], clients[-1]


@pytest.fixture
def server(demo: Demo) -> Iterator[Connection]:
    """The default host itself."""
    host = demo.masters[0]
    with pymysql.connect(host=host.host, port=host.port, user=host.user, password=host.password) as server:
        yield server


@pytest.mark.either_server
@pytest.mark.parametrize("pinned", [False, True])
def test_a_statement_of_another_worker_is_killed(
    pair: tuple[OwnProxy, Raw, Raw], server: Connection, pinned: bool
) -> None:
    """As Ctrl-C in the CLI does it; the session goes on, with all it had."""
    _, one, other = pair
    one.ask("SET @kept = 7")
    if pinned:
        assert one.ask("CREATE TEMPORARY TABLE shardgate_kept AS SELECT 1 AS n").kind == "ok"
    one.write(query("SELECT SLEEP(37)"))
    wait_until(lambda: statements_like(server, "%SLEEP(37)%"), "the statement runs")
    assert other.ask(f"KILL QUERY {one.id}").kind == "ok"
    reply = one.reply()
    assert reply.code == 1317 or reply.rows == [(b"1",)]  # MySQL's SLEEP() itself gives 1 when it is ended
    assert one.ask("SELECT @kept").value == b"7"
    if pinned:
        assert one.ask("SELECT n FROM shardgate_kept").value == b"1"


@pytest.mark.either_server
@pytest.mark.parametrize("command", [False, True])
def test_a_session_of_another_worker_is_killed(
    pair: tuple[OwnProxy, Raw, Raw], server: Connection, command: bool
) -> None:
    _, one, other = pair
    one.write(query("SELECT SLEEP(38)"))
    wait_until(lambda: statements_like(server, "%SLEEP(38)%"), "the statement runs")
    if command:
        assert other.do(PROCESS_KILL, one.id.to_bytes(4, "little")).kind == "ok"
    else:
        assert other.ask(f"KILL {one.id}").kind == "ok"
    with pytest.raises(Closed):
        one.reply()
    wait_until(lambda: not statements_like(server, "%SLEEP(38)%"), "the statement is over")
    assert other.ask(f"KILL {one.id}").code == 1094


@pytest.mark.either_server
def test_what_is_set_for_all_holds_in_the_other_worker(pair: tuple[OwnProxy, Raw, Raw]) -> None:
    """Its connections from before have the old value."""
    _, one, other = pair
    before = other.ask("SELECT @@global.group_concat_max_len, @@global.sql_mode").rows[0]
    length, mode = ((value or b"").decode() for value in before)
    try:
        assert one.ask("SET GLOBAL group_concat_max_len = 77777, sql_mode = 'ANSI_QUOTES'").kind == "ok"
        assert other.ask("SELECT @@group_concat_max_len").value == b"77777"
        assert other.do(RESET_CONNECTION).kind == "ok"
        assert other.ask('SELECT 1 AS "name"').columns == ["name"]
        assert other.ask("SELECT 1 AS x, 'y' AS y").columns == ["x", "y"]
    finally:
        one.ask(f"SET GLOBAL group_concat_max_len = {length}, sql_mode = '{mode}'")


def test_a_lock_of_another_worker(pair: tuple[OwnProxy, Raw, Raw]) -> None:
    """IS_USED_LOCK gives the session that has it, by the number that the session knows itself."""
    _, one, other = pair
    assert one.ask("SELECT GET_LOCK('shardgate_workers', 0)").value == b"1"
    asked = "SELECT IS_USED_LOCK('shardgate_workers'), IS_FREE_LOCK('shardgate_workers')"
    mine = (str(one.id).encode(), b"0")
    assert other.ask(asked).rows == one.ask(asked).rows == [mine]
    assert other.ask("USE demo").kind == "ok"
    assert other.ask("BEGIN").kind == "ok"
    assert other.ask("SELECT COUNT(*) FROM countries").kind == "rows"
    assert other.ask(asked).rows == [mine]
    other.ask("SET @name = 'shardgate_workers'")
    assert Binary(other).run(asked.replace("'shardgate_workers'", "@name")).kind == "rows"
    assert other.ask("SELECT GET_LOCK('shardgate_workers', 0)").value == b"0"
    assert one.ask("SELECT RELEASE_LOCK('shardgate_workers')").value == b"1"
    assert other.ask(asked).rows == [(None, b"1")]


@pytest.mark.either_server
def test_workers_end_with_their_supervisor(own: MakeOwn) -> None:
    """Killed by force it can tell them nothing."""
    proxy = own({"workers": 2}, expected=("the supervisor is gone",))
    client = proxy.raw(database="legacy")
    main = proxy.proxy.pid
    workers = [int(pid) for pid in Path(f"/proc/{main}/task/{main}/children").read_text().split()]
    assert len(workers) == 2
    proxy.signal(signal.SIGKILL)
    with pytest.raises(Closed):
        client.reply()
    for pid in workers:
        wait_until(partial(_ended, pid), f"worker {pid} has ended")


def _ended(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.either_server
def test_timed_ids_of_two_workers(own: MakeOwn) -> None:
    """Unique, and each client's ascending: the sequence is the shard's, not the process's."""
    proxy = own({"workers": 2})
    clients = [proxy.raw()]

    def both() -> bool:
        clients.append(proxy.raw())
        return len({client.id >> 24 for client in clients}) == 2

    wait_until(both, "clients of both workers")
    clients = [clients[0], clients[-1]]
    made: dict[int, list[int]] = {client.id: [] for client in clients}
    try:
        for number in range(40):
            rows = ", ".join(["(70, 'test_workers')"] * (1 + number % 3))
            for client in clients:  # at the same time
                client.write(query(f"INSERT INTO photos (user_id, caption) VALUES {rows}"))
            for client in clients:
                reply = client.reply()
                assert reply.kind == "ok", reply
                made[client.id].append(reply.insert_id)
        assert all(ids == sorted(ids) for ids in made.values())
        shown = clients[0].ask("SELECT id FROM photos WHERE user_id = 70 AND caption = 'test_workers'").rows
        assert len(set(shown)) == len(shown) == 2 * sum(1 + number % 3 for number in range(40))
        assert {int(row[0] or 0) for row in shown} >= {id for ids in made.values() for id in ids}
        # whatever worker comes next, its ID is above all there are
        for client in clients:
            later = client.ask("INSERT INTO photos (user_id, caption) VALUES (70, 'test_workers')").insert_id
            assert later > max(int(row[0] or 0) for row in shown)
    finally:
        clients[0].ask("DELETE FROM photos WHERE user_id = 70 AND caption = 'test_workers'")


@pytest.mark.either_server
def test_advice_is_for_the_statements_of_all_workers(pair: tuple[OwnProxy, Raw, Raw]) -> None:
    _, one, other = pair
    for client in (one, other, other):
        assert client.ask("SELECT COUNT(*) AS probe_workers FROM demo.pins WHERE ts > '2001-01-01'").rows

    def counts() -> list[int]:
        rows = one.ask("SHOW PROXY ADVICE LIKE '%probe\\_workers%'").rows
        return [int(row[4] or 0) for row in rows]

    wait_until_is(counts, [3], "both workers' statements are counted")


@pytest.mark.either_server
def test_sessions_of_all_workers_are_shown(pair: tuple[OwnProxy, Raw, Raw]) -> None:
    _, one, other = pair
    shown = {row[0] for row in one.ask("SHOW PROXY SESSIONS").rows}
    assert {str(one.id).encode(), str(other.id).encode()} <= shown
