"""Placement by hand: /*+ shard(N) */, /*+ same_shard_as(id) */, /*+ scatter */; the proxy's own variables."""

from __future__ import annotations

import json

import pytest

from tests.integration.accounts import number_of
from tests.integration.answers import answer
from tests.integration.fixtures import Connect, MakeRaw, Things, shard_of
from tests.support.demo import Demo
from tests.support.servers import LocalServer

SHARDS = 64


def on_shard(demo: Demo, shard: int, sql: str) -> int:
    """What the shard's own server says."""
    with demo.direct(0 if shard < SHARDS // 2 else 1) as server, server.cursor() as cursor:
        cursor.execute(sql.format(f"db{shard:05d}"))
        found = cursor.fetchone()
    assert found is not None
    return int(found[0])


def test_a_read_of_one_shard(raw: MakeRaw, demo: Demo, things: Things) -> None:
    client = raw()
    user = things.insert("users", {"n": 1})
    shard = shard_of(user)
    expected = on_shard(demo, shard, "SELECT COUNT(*) FROM {}.users")
    for hint in (f"shard({shard})", f"same_shard_as({user})"):
        assert client.ask(f"SELECT /*+ {hint} */ COUNT(*) FROM users").value == str(expected).encode()
        found = client.ask(f"SELECT /*+ {hint} */ id FROM users ORDER BY id")
        assert {shard_of(int(row[0] or 0)) for row in found.rows} == {shard}
        assert len(found.rows) == expected
    elsewhere = (shard + 1) % SHARDS
    sql = f"SELECT /*+ shard({elsewhere}) */ COUNT(*) FROM users WHERE id = {user}"
    assert client.ask(sql).value == b"0"
    assert client.ask("SELECT /*+ shard(99) */ COUNT(*) FROM users").code == 1105


@pytest.mark.parametrize("shard", [3, 40])
def test_an_insert(raw: MakeRaw, things: Things, shard: int) -> None:
    client = raw()
    first = client.ask(f"INSERT /*+ shard({shard}) */ INTO users (data) VALUES ('{{}}')")
    things.forget_later("users", "id", first.insert_id)
    assert shard_of(first.insert_id) == shard
    second = client.ask(f"INSERT /*+ same_shard_as({first.insert_id}) */ INTO pins (data) VALUES ('{{}}')")
    things.forget_later("pins", "id", second.insert_id)
    assert shard_of(second.insert_id) == shard
    assert client.ask("INSERT /*+ shard(99) */ INTO users (data) VALUES ('{}')").code == 1105


def test_writes_of_one_shard_and_of_all(raw: MakeRaw, things: Things) -> None:
    client = raw()
    users = []
    for shard in (3, 3, 40):
        made = client.ask(
            f'INSERT /*+ shard({shard}) */ INTO users (data) VALUES (\'{{"hint": 1, "n": 1}}\')'
        )
        things.forget_later("users", "id", made.insert_id)
        users.append(made.insert_id)
    change = "UPDATE {} users SET data = JSON_SET(data, '$.n', {}) WHERE JSON_EXTRACT(data, '$.hint') = 1"
    assert client.ask(change.format("", 2)).code == 1105
    assert [number_of(client, user) for user in users] == [1, 1, 1]
    assert client.ask(change.format("/*+ shard(3) */", 3)).affected == 2
    assert client.ask(change.format(f"/*+ same_shard_as({users[2]}) */", 4)).affected == 1
    assert [number_of(client, user) for user in users] == [3, 3, 4]
    assert client.ask(change.format("/*+ scatter */", 5)).affected == 3
    client.ask("SET scatter_writes = 1")
    assert client.ask(change.format("", 6)).affected == 3
    client.ask("SET scatter_writes = 0")
    assert client.ask(change.format("", 7)).code == 1105
    gone = "DELETE {} FROM users WHERE JSON_EXTRACT(data, '$.hint') = 1"
    assert client.ask(gone.format("")).code == 1105
    assert client.ask(gone.format("/*+ shard(3) */")).affected == 2
    assert client.ask(gone.format("/*+ scatter */")).affected == 1


def test_the_proxys_own_variables_are_read(raw: MakeRaw) -> None:
    client = raw()
    own = "SELECT @@transaction_mode, @@session.scatter_writes, @@LOCAL.with_deleted"
    assert client.ask(own).rows == [(b"multi", b"0", b"0")]
    client.ask("SET @mode = @@transaction_mode, @one = 1")
    client.ask("SET transaction_mode = 'single', scatter_writes = @one, with_deleted = @@scatter_writes")
    assert client.ask(own).rows == [(b"single", b"1", b"0")]
    client.ask("SET transaction_mode = @mode, scatter_writes = DEFAULT")
    assert client.ask(own).rows == [(b"multi", b"0", b"0")]
    for wrong in ("@nothing", "@one", "CONCAT('multi')"):
        assert client.ask(f"SET transaction_mode = {wrong}").code == 1231
    assert client.ask(own).rows == [(b"multi", b"0", b"0")]
    assert client.ask("SELECT @@global.transaction_mode").code == 1193
    assert client.ask("SET GLOBAL scatter_writes = 1").code == 1228


def test_what_a_hint_does_to_the_route(raw: MakeRaw) -> None:
    client = raw()
    told = client.ask("EXPLAIN ROUTE UPDATE /*+ shard(3) */ users SET ts = ts")
    assert b"db00003" in json.dumps([[str(value) for value in row] for row in told.rows]).encode()


def test_a_limit_in_a_hint_is_not_each_server_s(raw: MakeRaw, flavour: str) -> None:
    """COUNT(*) over hosts would count no more than so many rows of each; MariaDB knows no such hint."""
    client = raw()
    rows = client.ask("SELECT COUNT(*) FROM pins").value
    for start in ("SELECT", "EXPLAIN SELECT", "(SELECT"):
        end = ")" if start.startswith("(") else ""
        sql = f"{start} /*+ SET_VAR(`sql_select_limit` = 2) */ COUNT(*) FROM pins{end}"
        sql = sql.replace("`", "") if start == "SELECT" else sql
        reply = client.ask(sql)
        assert (reply.code == 1235) == (flavour == "mysql9"), sql
    assert client.ask("SELECT /*+ SET_VAR(sql_mode = '') */ COUNT(*) FROM pins").value == rows


HINTS = (
    "SET_VAR(sort_buffer_size=65536)",
    "SET_VAR(sort_buffer_size=65536) SET_VAR(sort_buffer_size=65537)",
    "SET_VAR(nothing=1) SET_VAR(sql_mode='ANSI')",
    "MAX_EXECUTION_TIME(60000)",
    "RESOURCE_GROUP(USR_default)",
    "QB_NAME(q) NO_ICP(p@q)",
    "NO_ICP(p) SET_VAR (sort_buffer_size = 65536)",
)


@pytest.mark.parametrize("hints", HINTS)
def test_a_hint_over_shards_warns_as_on_one_server(connect: Connect, plain: LocalServer, hints: str) -> None:
    """A server gets a hint for the whole statement once, and applies it to all of its shards. For MariaDB it
    is a comment.
    """
    selects = (
        "SELECT /*+ {} */ COUNT(*), @@sort_buffer_size FROM pins p",
        "SELECT /*+ {} */ COUNT(*) FROM pins p",
        "SELECT /*+ {} */ id, @@sort_buffer_size FROM pins p ORDER BY id LIMIT 3",
        "SELECT /*+ {} */ @@sort_buffer_size FROM pins WHERE id IN (68719476737, 2267742732289)",
    )
    with connect() as through, plain.connect(database="demo") as direct:
        for connection in (through, direct):
            answer(connection, "SET sort_buffer_size = 131072")
        for select in selects:
            sql = select.format(hints)
            for asked in (sql, "SHOW WARNINGS"):
                assert answer(through, asked) == answer(direct, asked), sql


def test_a_limit_of_time_in_a_hint_holds_over_shards(raw: MakeRaw, flavour: str) -> None:
    """A server stops a UNION by the hint of its first SELECT."""
    reply = raw().ask("SELECT /*+ MAX_EXECUTION_TIME(20) */ id, SLEEP(0.05) FROM pins LIMIT 20")
    assert (reply.code == 3024) == (flavour == "mysql9")
