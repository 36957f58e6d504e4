"""Transactions that reach two hosts."""

from __future__ import annotations

import pytest

from tests.integration.accounts import flags, number_of, setting
from tests.integration.fixtures import MakeRaw, Things, shard_of
from tests.integration.own import statements_like
from tests.integration.raw import query
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
                wait_until(lambda: not statements_like(server, f"%{mark}%"), f"it is killed: {sql}", 5)
    holder.ask("ROLLBACK")
    assert [number_of(holder, user) for user in far] == [1, 1]
