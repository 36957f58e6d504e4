"""Transactions that reach two hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.integration.accounts import flags, number_of, setting
from tests.integration.binary import Answer, Binary
from tests.integration.fixtures import MakeRaw, Things, shard_of
from tests.integration.own import statements_like
from tests.integration.raw import Raw, query
from tests.support.demo import Demo
from tests.support.waiting import wait_until


@pytest.fixture
def far(things: Things) -> tuple[int, int]:
    """Two users on different hosts."""
    found: dict[bool, int] = {}
    while len(found) < 2:
        id = things.insert("users", {"n": 1})
        found.setdefault(shard_of(id) < 32, id)
    return found[True], found[False]


def test_savepoints_over_two_hosts(raw: MakeRaw, far: tuple[int, int]) -> None:
    """A savepoint made before a host took part is there as well."""
    client = raw()
    client.ask("BEGIN")
    client.ask(setting(far[0], 10))
    client.ask("SAVEPOINT a")
    client.ask(setting(far[1], 20))
    assert client.ask("ROLLBACK TO a").kind == "ok"
    assert (number_of(client, far[0]), number_of(client, far[1])) == (10, 1)
    client.ask("COMMIT")
    assert (number_of(client, far[0]), number_of(client, far[1])) == (10, 1)


def test_a_transaction_over_two_hosts(raw: MakeRaw, far: tuple[int, int]) -> None:
    client, other = raw(), raw()
    for end, expected in (("ROLLBACK", 1), ("COMMIT", 8)):
        client.ask("BEGIN")
        for user in far:
            assert flags(client.ask(setting(user, 8))) == (True, True)
        assert [number_of(other, user) for user in far] == [1, 1]
        assert flags(client.ask(end)) == (True, False)
        assert [number_of(other, user) for user in far] == [expected, expected]
    listed = f"{far[0]}, {far[1]}"
    client.ask("BEGIN")
    reply = client.ask(f"UPDATE users SET data = JSON_SET(data, '$.n', 9) WHERE id IN ({listed})")
    assert (reply.affected, flags(reply)) == (2, (True, True))
    rows = client.ask(f"SELECT JSON_EXTRACT(data, '$.n') FROM users WHERE id IN ({listed})")
    assert (rows.rows, flags(rows)) == ([(b"9",)] * 2, (True, True))
    client.ask("ROLLBACK")
    assert [number_of(other, user) for user in far] == [8, 8]


def test_mode_single_refuses_a_second_host(raw: MakeRaw, far: tuple[int, int]) -> None:
    client = raw()
    client.ask("SET transaction_mode = 'single'")
    client.ask("BEGIN")
    assert client.ask(setting(far[0], 5)).kind == "ok"
    refused = client.ask(setting(far[1], 5))
    assert refused.kind == "err"
    assert "single" in refused.message
    assert flags(client.ping()) == (True, True)
    assert client.ask("COMMIT").kind == "ok"
    assert [number_of(client, user) for user in far] == [5, 1]


def test_mode_single_refuses_a_second_shard_of_the_same_host(raw: MakeRaw, things: Things) -> None:
    """And names both. Unsharded tables of the host may take part."""
    near: dict[int, int] = {}
    while len(near) < 2:  # two shards of the first host, which holds the lower half
        id = things.insert("users", {"n": 1})
        if shard_of(id) < 32:
            near[shard_of(id)] = id
    (first, one), (second, other) = near.items()
    client = raw()
    client.ask("SET transaction_mode = 'single'")
    for begin, end in (("BEGIN", "ROLLBACK"), ("SET autocommit = 0", "COMMIT")):
        client.ask(begin)
        assert client.ask(setting(one, 5)).kind == "ok"
        assert client.ask(f"SELECT COUNT(*) FROM users WHERE id = {one}").rows == [(b"1",)]
        assert client.ask("SELECT COUNT(*) FROM usernames WHERE username = ''").kind == "rows"
        for refused in (
            client.ask(setting(other, 5)),
            client.ask(f"SELECT * FROM users WHERE id = {other}"),
            client.ask(f"SELECT COUNT(*) FROM db{second:05d}.users"),
        ):
            assert refused.kind == "err"
            assert f"shard {first} of main" in refused.message
            assert f"shard {second} of main" in refused.message
        assert client.ask(end).kind == "ok"
        assert client.ask(setting(other, 5)).kind == "ok"
        client.ask("COMMIT")


def test_a_vanished_clients_lock_wait_is_ended(raw: MakeRaw, far: tuple[int, int], demo: Demo) -> None:
    """The waiting statement is killed on the server: one host's, and one of several hosts'."""
    holder = raw()
    holder.ask("BEGIN")
    assert holder.ask(setting(far[1], 5)).kind == "ok"
    mark = "vanished\\_client"
    with demo.direct(1) as server:
        for sql in (
            f"UPDATE users SET data = JSON_SET(data, '$.vanished_client', 1) WHERE id = {far[1]}",
            "UPDATE users SET data = JSON_SET(data, '$.vanished_client', 1)"
            f" WHERE id IN ({far[0]}, {far[1]})",
        ):
            for begin in (False, True):
                victim = raw()
                if begin:
                    victim.ask("BEGIN")
                victim.write(query(sql))
                wait_until(lambda: statements_like(server, f"%{mark}%"), "it waits")
                victim.close()
                wait_until(lambda: not statements_like(server, f"%{mark}%"), f"it is killed: {sql}", 30)
    holder.ask("ROLLBACK")
    assert [number_of(holder, user) for user in far] == [1, 1]


@pytest.fixture
def near(things: Things) -> tuple[int, int]:
    """Two users on the second host."""
    found: list[int] = []
    while len(found) < 2:
        id = things.insert("users", {"n": 1})
        found += [id] if shard_of(id) >= 32 else []
    return found[0], found[1]


def test_a_deadlock_on_one_host_rolls_back_the_other_too(
    raw: MakeRaw, far: tuple[int, int], near: tuple[int, int], things: Things
) -> None:
    """As on one server: of the transaction that is chosen nothing stays, and its session goes on."""
    other_far = things.insert("users", {"n": 1})
    while shard_of(other_far) >= 32:
        other_far = things.insert("users", {"n": 1})
    clients, watcher = [raw(), raw()], raw()
    for client, on_first, on_second in zip(clients, (far[0], other_far), near, strict=True):
        client.ask("SET innodb_lock_wait_timeout = 10")
        client.ask("BEGIN")
        assert client.ask(setting(on_first, 50)).kind == "ok"
        assert client.ask(setting(on_second, 50)).kind == "ok"
    clients[0].write(query(setting(near[1], 60)))
    clients[1].write(query(setting(near[0], 60)))
    replies = [client.reply() for client in clients]
    assert sorted(reply.kind for reply in replies) == ["err", "ok"]
    loser = next(index for index, reply in enumerate(replies) if reply.kind == "err")
    assert (replies[loser].code, replies[loser].sqlstate) == (1213, "40001")
    assert flags(clients[loser].ping()) == (True, False)
    firsts = (far[0], other_far)
    assert clients[loser].ask(setting(firsts[loser], 70)).kind == "ok"  # no lock is left on the first host
    assert number_of(watcher, firsts[loser]) == 70
    assert clients[1 - loser].ask("COMMIT").kind == "ok"
    assert number_of(watcher, firsts[1 - loser]) == 50
    assert [number_of(watcher, user) for user in near] == ([50, 60] if loser else [60, 50])


def test_a_deadlock_within_a_statement_on_several_hosts(
    raw: MakeRaw, far: tuple[int, int], near: tuple[int, int]
) -> None:
    """The host that has no deadlock gives up its part, too."""
    listed = f"{far[0]}, {near[1]}"
    change = f"UPDATE users SET data = JSON_SET(data, '$.n', 60) WHERE id IN ({listed})"
    client, other = raw(), raw()
    for one in (client, other):
        one.ask("SET innodb_lock_wait_timeout = 10")
        one.ask("BEGIN")
    assert client.ask(setting(near[0], 50)).kind == "ok"
    for user in near[1], far[1]:
        assert other.ask(setting(user, 55)).kind == "ok"
    client.write(query(change))
    other.write(query(setting(near[0], 55)))
    replies = [client.reply(), other.reply()]
    assert sorted(reply.kind for reply in replies) == ["err", "ok"]
    lost = replies[0].kind == "err"
    assert replies[0 if lost else 1].code == 1213
    assert flags((client if lost else other).ping()) == (True, False)
    (other if lost else client).ask("COMMIT")
    assert number_of(client, far[0]) == (1 if lost else 60)
    assert number_of(client, near[1]) == (55 if lost else 60)
    assert client.ask(setting(far[0], 2)).kind == "ok"


def test_a_lock_wait_on_one_host_undoes_the_statement_on_both(
    raw: MakeRaw, far: tuple[int, int], near: tuple[int, int]
) -> None:
    """1205 takes back the statement, not the transaction."""
    holder, client = raw(), raw()
    holder.ask("BEGIN")
    assert holder.ask(setting(far[1], 5)).kind == "ok"
    client.ask("SET innodb_lock_wait_timeout = 1")
    client.ask("BEGIN")
    assert client.ask(setting(near[0], 6)).kind == "ok"
    both = f"UPDATE users SET data = JSON_SET(data, '$.n', 7) WHERE id IN ({far[0]}, {far[1]})"
    reply = client.ask(both)
    assert (reply.code, reply.sqlstate) == (1205, "HY000")
    assert flags(client.ping()) == (True, True)
    assert (number_of(client, far[0]), number_of(client, near[0])) == (1, 6)
    holder.ask("ROLLBACK")
    assert client.ask(both).affected == 2
    assert client.ask("COMMIT").kind == "ok"
    assert [number_of(holder, user) for user in (*far, near[0])] == [7, 7, 6]


def test_a_deadlock_that_no_host_sees_ends_by_the_time_out(raw: MakeRaw, far: tuple[int, int]) -> None:
    """Each waits for the other on another host; nobody waits longer than innodb_lock_wait_timeout."""
    clients = [raw(), raw()]
    for client, mine, seconds in zip(clients, far, (1, 20), strict=True):
        client.ask(f"SET innodb_lock_wait_timeout = {seconds}")
        client.ask("BEGIN")
        assert client.ask(setting(mine, 5)).kind == "ok"
    for client, other in zip(clients, reversed(far), strict=True):
        client.write(query(setting(other, 6)))
    assert clients[0].reply().code == 1205
    assert flags(clients[0].ping()) == (True, True)
    assert clients[0].ask("ROLLBACK").kind == "ok"
    assert clients[1].reply().kind == "ok"
    assert clients[1].ask("COMMIT").kind == "ok"
    assert [number_of(clients[0], user) for user in far] == [6, 5]


def test_a_client_that_vanishes_is_rolled_back_on_both_hosts(raw: MakeRaw, far: tuple[int, int]) -> None:
    other = raw()
    for end in (Raw.close, Raw.reset):
        client = raw()
        client.ask("BEGIN")
        for user in far:
            assert client.ask(setting(user, 99)).kind == "ok"
        end(client)
        for user in far:
            assert other.ask(setting(user, 1)).kind == "ok"  # waits for the lock, and gets it
            assert number_of(other, user) == 1


@pytest.mark.parametrize("begin", ["BEGIN", "SET autocommit = 0"])
def test_a_definition_commits_on_both_hosts(raw: MakeRaw, far: tuple[int, int], begin: str) -> None:
    client, other = raw(), raw()
    client.ask(begin)
    for number, (sql, kind) in enumerate(
        [
            ("CREATE TABLE legacy.commits_on_hosts (id INT)", "ok"),
            ("CREATE TABLE legacy.commits_on_hosts (id INT)", "err"),  # which commits all the same
            ("DROP TABLE legacy.commits_on_hosts", "ok"),
        ]
    ):
        client.ask("BEGIN")
        for user in far:
            assert client.ask(setting(user, 20 + number)).kind == "ok"
        assert client.ask(sql).kind == kind
        client.ask("ROLLBACK")
        assert [number_of(other, user) for user in far] == [20 + number] * 2
    client.ask("SET autocommit = 1")


def test_a_procedure_that_ends_the_transaction_of_other_hosts_is_refused(
    raw: MakeRaw, far: tuple[int, int], routines: Callable[[str], None]
) -> None:
    """With autocommit off, on a host where nothing is open: its COMMIT would not be the others'."""
    routines("COMMIT")
    client, other = raw(), raw()
    there = far[1]
    before = number_of(other, there)
    client.ask("SET autocommit = 0")
    assert client.ask(setting(there, 77)).kind == "ok"
    reply = client.ask("CALL legacy.ends()")
    assert (reply.code, "ends a transaction" in reply.message) == (1235, True), reply
    client.ask("ROLLBACK")
    assert number_of(other, there) == before
    assert client.ask("CALL legacy.ends()").kind == "ok"


ENDS = {
    "ROLLBACK": "ROLLBACK",
    "COMMIT": "COMMIT",
    "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK; SIGNAL SQLSTATE '45000'; END": "a handler",
    "BEGIN SELECT 1; ROLLBACK; SELECT 2; END": "results",
}


@pytest.fixture
def routines(demo: Demo, raw: MakeRaw) -> Iterator[Callable[[str], None]]:
    """Makes legacy.ends() with that body."""
    client = raw(database="legacy")

    def make(body: str) -> None:
        client.ask("DROP PROCEDURE IF EXISTS ends")
        assert client.ask(f"CREATE PROCEDURE ends() {body}").kind == "ok"
        assert client.ping().kind == "ok"  # when the proxy has learnt of it

    yield make
    client.ask("DROP PROCEDURE IF EXISTS ends")


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("body", ENDS, ids=ENDS.values())
def test_a_procedure_that_ends_one_part(
    raw: MakeRaw,
    far: tuple[int, int],
    routines: Callable[[str], None],
    body: str,
    tracked: bool,
    prepared: bool,
) -> None:
    """Whether it has committed or rolled back nobody tells: nothing else of the transaction stays."""
    if prepared and "SELECT" in body:
        pytest.skip("the results of a prepared CALL are read elsewhere")
    routines(body)
    client, other = raw(), raw()
    if tracked:
        client.ask("SET session_track_transaction_info = 'CHARACTERISTICS'")
    for begin in ("BEGIN", "SET autocommit = 0"):
        assert client.ask(begin).kind == "ok"
        for user in far:
            assert client.ask(setting(user, 8)).kind == "ok"
        client.ask("UPDATE legacy.customers SET city = city WHERE id = 1")
        if prepared:
            side = Binary(client)
            answer = side.execute(side.statement("CALL legacy.ends()").id, [])
            assert isinstance(answer, Answer)
            assert (answer.code, b"rolled back" in answer.payload) == (1105, True)
        else:
            client.write(query("CALL legacy.ends()"))
            last = client.replies()[-1]
            assert (last.code, last.sqlstate, "rolled back" in last.message) == (1105, "HY000", True)
        refused = client.ask(setting(far[1], 9))
        assert refused.code == 1105, "nothing of the transaction runs by itself"
        assert client.ask("ROLLBACK").kind == "ok"
        assert number_of(other, far[1]) == 1
        assert client.ask("SET autocommit = 1").kind == "ok"
        kept = number_of(other, far[0])
        assert kept == (8 if body == "COMMIT" else 1)
        client.ask(setting(far[0], 1))


@pytest.mark.parametrize("body", ["START TRANSACTION", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN"])
def test_a_procedure_that_begins_another(
    raw: MakeRaw, far: tuple[int, int], routines: Callable[[str], None], body: str
) -> None:
    routines(body)
    client, other = raw(), raw()
    client.ask("BEGIN")
    for user in far:
        client.ask(setting(user, 8))
    client.ask("UPDATE legacy.customers SET city = city WHERE id = 1")
    refused = client.ask("CALL legacy.ends()")
    assert (refused.code, refused.sqlstate) == (1235, "42000")
    assert [number_of(client, user) for user in far] == [8, 8]
    assert client.ask("ROLLBACK").kind == "ok"
    assert [number_of(other, user) for user in far] == [1, 1]
    assert client.ask("CALL legacy.ends()").kind == "ok"
    client.ask("ROLLBACK")


BROKEN = [
    "LOCK TABLES legacy.customers READ foo",
    "ALTER TABLE legacy.customers ADD",
    "ALTER TABLE pins ADD",
    "CREATE INDEX i ON legacy.customers",
    "CREATE TABLE legacy.never (a)",
    "DROP TABLE",
    "TRUNCATE legacy.customers now",
    "CREATE VIEW legacy.never",
]


@pytest.mark.parametrize("sql", BROKEN)
def test_what_is_no_sql_commits_nothing(raw: MakeRaw, far: tuple[int, int], sql: str) -> None:
    client, other = raw(), raw()
    client.ask("BEGIN")
    for user in far:
        assert client.ask(setting(user, 8)).kind == "ok"
    client.ask("UPDATE legacy.customers SET city = city WHERE id = 1")
    assert client.ask(sql).kind == "err"
    assert [number_of(client, user) for user in far] == [8, 8]
    assert client.ask("ROLLBACK").kind == "ok"
    assert [number_of(other, user) for user in far] == [1, 1]
