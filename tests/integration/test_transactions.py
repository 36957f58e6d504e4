"""Transactions as on one server: locks, isolation, errors that end them, flags that tell the truth."""

from __future__ import annotations

import threading

import pymysql
import pytest

from tests.integration.accounts import flags, number_of, setting
from tests.integration.both_sides import logged_in
from tests.integration.fixtures import Connect, MakeRaw, Things, shard_of
from tests.integration.own import read_status
from tests.integration.raw import Closed, Raw, query
from tests.support.demo import Demo
from tests.support.servers import LocalServer
from tests.support.waiting import wait_until


@pytest.fixture
def user(things: Things) -> int:
    return things.insert("users", {"n": 1})


@pytest.fixture
def pair(things: Things) -> tuple[int, int]:
    """Two users on one shard."""
    first = things.insert("users", {"n": 1})
    second = first + 1  # the next local id of the shard, which nobody has: the server counts from the highest
    things.cursor.execute("INSERT INTO users (id, data) VALUES (%s, '{\"n\": 2}')", (second,))
    things.forget_later("users", "id", second)
    return first, second


def test_read_lock_write_commit(raw: MakeRaw, user: int) -> None:
    client, other = raw(), raw()
    assert flags(client.ask("BEGIN")) == (True, True)
    locked = client.ask(f"SELECT JSON_EXTRACT(data, '$.n') FROM users WHERE id = {user} FOR UPDATE")
    assert flags(locked) == (True, True)
    assert locked.value == b"1"
    assert flags(client.ask(setting(user, 2))) == (True, True)
    assert flags(client.ping()) == (True, True)
    assert number_of(other, user) == 1
    assert number_of(client, user) == 2
    other.ask("SET innodb_lock_wait_timeout = 1")
    waited = other.ask(f"SELECT id FROM users WHERE id = {user} FOR UPDATE")
    assert (waited.code, waited.sqlstate) == (1205, "HY000")
    assert flags(client.ask("COMMIT")) == (True, False)
    assert number_of(other, user) == 2
    assert flags(other.ask("SELECT 1")) == (True, False)


def test_rollback(raw: MakeRaw, user: int) -> None:
    client = raw()
    for begin in ("BEGIN", "START TRANSACTION", "begin work", "START TRANSACTION READ WRITE"):
        assert flags(client.ask(begin)) == (True, True)
        client.ask(setting(user, 9))
        assert number_of(client, user) == 9
        assert flags(client.ask("ROLLBACK")) == (True, False)
        assert number_of(client, user) == 1
    assert flags(client.ask("COMMIT")) == (True, False)  # of nothing
    assert flags(client.ask("ROLLBACK")) == (True, False)


def test_read_only_transactions(raw: MakeRaw, user: int) -> None:
    client = raw()
    client.ask("START TRANSACTION READ ONLY")
    assert number_of(client, user) == 1
    assert client.ask(setting(user, 3)).code == 1792
    client.ask("ROLLBACK")
    assert client.ask(setting(user, 3)).kind == "ok"


def test_repeatable_reads(raw: MakeRaw, user: int) -> None:
    reader, writer = raw(), raw()
    reader.ask("BEGIN")
    assert number_of(reader, user) == 1
    writer.ask(setting(user, 2))
    assert number_of(reader, user) == 1
    reader.ask("COMMIT")
    assert number_of(reader, user) == 2
    reader.ask("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    reader.ask("BEGIN")
    assert number_of(reader, user) == 2
    writer.ask(setting(user, 3))
    assert number_of(reader, user) == 3
    reader.ask("COMMIT")


def test_isolation_for_the_next_transaction_only(raw: MakeRaw, user: int) -> None:
    reader, writer = raw(), raw()
    for _ in range(2):
        reader.ask("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        reader.ask("BEGIN")
        before = number_of(reader, user)
        writer.ask(setting(user, before + 1))
        assert number_of(reader, user) == before + 1
        assert reader.ask("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE").code == 1568
        reader.ask("COMMIT")
        reader.ask("BEGIN")  # back to REPEATABLE READ
        before = number_of(reader, user)
        writer.ask(setting(user, before + 1))
        assert number_of(reader, user) == before
        reader.ask("COMMIT")


def test_isolation_for_the_next_transaction_without_autocommit(raw: MakeRaw, user: int) -> None:
    reader, writer = raw(), raw()
    reader.ask("SET autocommit = 0")
    reader.ask("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    assert number_of(reader, user) == 1
    writer.ask(setting(user, 2))
    assert number_of(reader, user) == 2
    reader.ask("COMMIT")
    assert number_of(reader, user) == 2
    writer.ask(setting(user, 3))
    assert number_of(reader, user) == 2
    reader.ask("ROLLBACK")


def test_autocommit_off(raw: MakeRaw, user: int) -> None:
    client, other = raw(), raw()
    assert flags(client.ask("SET autocommit = 0")) == (False, False)
    assert flags(client.ask("SELECT 1"))[0] is False
    assert flags(client.ask(setting(user, 5))) == (False, True)
    assert number_of(other, user) == 1
    assert flags(client.ask("COMMIT")) == (False, False)
    assert number_of(other, user) == 5
    assert flags(client.ask(setting(user, 6))) == (False, True)
    assert flags(client.ask("ROLLBACK")) == (False, False)
    assert number_of(other, user) == 5
    client.ask("COMMIT")
    client.ask(setting(user, 7))
    assert flags(client.ask("SET autocommit = 1")) == (True, False)  # commits
    assert number_of(other, user) == 7


def test_savepoints(raw: MakeRaw, pair: tuple[int, int]) -> None:
    first, second = pair
    client = raw()
    client.ask("BEGIN")
    client.ask("SAVEPOINT before_all")
    client.ask(setting(first, 10))
    client.ask("SAVEPOINT between")
    client.ask(setting(second, 20))
    assert flags(client.ask("ROLLBACK TO SAVEPOINT between")) == (True, True)
    assert (number_of(client, first), number_of(client, second)) == (10, 2)
    client.ask(setting(second, 30))
    assert client.ask("ROLLBACK TO no_such_point").code == 1305
    assert client.ask("RELEASE SAVEPOINT between").kind == "ok"
    assert client.ask("ROLLBACK TO between").code == 1305
    assert client.ask("COMMIT").kind == "ok"
    assert (number_of(client, first), number_of(client, second)) == (10, 30)
    client.ask("BEGIN")
    client.ask("SAVEPOINT before_all")
    client.ask(setting(first, 11))
    assert client.ask("ROLLBACK TO before_all").kind == "ok"
    assert flags(client.ask("COMMIT")) == (True, False)
    assert number_of(client, first) == 10


def test_a_client_that_disconnects_is_rolled_back(raw: MakeRaw, user: int, demo: Demo) -> None:
    other = raw()
    for end in (Raw.close, Raw.reset):
        client = raw()
        client.ask("BEGIN")
        client.ask(setting(user, 99))
        end(client)
        wait_until(lambda: read_status(demo.status_url)["clients"]["in_transaction"] == 0, "it is noticed")
        assert other.ask(setting(user, 1)).kind == "ok"  # waits for the lock, and gets it
        assert number_of(other, user) == 1


def test_a_deadlock_is_passed_on(raw: MakeRaw, pair: tuple[int, int]) -> None:
    """One of two gets 1213, is in no transaction afterwards, and can begin again."""
    clients = [raw(), raw()]
    for client, mine in zip(clients, pair, strict=True):
        client.ask("SET innodb_lock_wait_timeout = 10")
        client.ask("BEGIN")
        assert client.ask(setting(mine, 50)).kind == "ok"
    clients[0].write(query(setting(pair[1], 60)))
    clients[1].write(query(setting(pair[0], 70)))
    replies = [client.reply() for client in clients]
    assert sorted(reply.kind for reply in replies) == ["err", "ok"]
    loser = next(index for index, reply in enumerate(replies) if reply.kind == "err")
    assert (replies[loser].code, replies[loser].sqlstate) == (1213, "40001")
    assert flags(clients[loser].ping()) == (True, False)
    assert flags(clients[1 - loser].ping()) == (True, True)
    clients[1 - loser].ask("COMMIT")
    assert clients[loser].ask(setting(pair[0], 80)).kind == "ok"  # autocommitted
    assert number_of(clients[1 - loser], pair[0]) == 80
    assert flags(clients[loser].ask("BEGIN")) == (True, True)
    assert flags(clients[loser].ask("ROLLBACK")) == (True, False)


def test_a_lock_wait_that_times_out_keeps_the_transaction(raw: MakeRaw, pair: tuple[int, int]) -> None:
    holder, client = raw(), raw()
    holder.ask("BEGIN")
    holder.ask(setting(pair[0], 5))
    client.ask("SET innodb_lock_wait_timeout = 1")
    client.ask("BEGIN")
    client.ask(setting(pair[1], 6))
    reply = client.ask(setting(pair[0], 6))
    assert (reply.code, reply.sqlstate) == (1205, "HY000")
    assert flags(client.ping()) == (True, True)
    assert number_of(client, pair[1]) == 6
    holder.ask("ROLLBACK")
    assert client.ask(setting(pair[0], 6)).kind == "ok"
    assert flags(client.ask("COMMIT")) == (True, False)
    assert [number_of(holder, user) for user in pair] == [6, 6]


def test_an_error_inside_a_transaction_keeps_it(raw: MakeRaw, user: int) -> None:
    client = raw()
    client.ask("BEGIN")
    client.ask(setting(user, 4))
    for sql in (
        f"INSERT INTO users (id, data) VALUES ({user}, '{{}}')",
        "SELECT * FROM nothing_like_it",
        f"SELECT nothing FROM users WHERE id = {user}",
        "SELEKT",
        "UPDATE users SET ts = ts",
    ):
        assert client.ask(sql).kind == "err"
        assert flags(client.ping()) == (True, True), sql
    assert flags(client.ask("COMMIT")) == (True, False)
    assert number_of(client, user) == 4


def test_ddl_commits_implicitly(raw: MakeRaw) -> None:
    client, other = raw(database="legacy"), raw(database="legacy")
    client.ask("DROP TABLE IF EXISTS implicit_commit")
    assert client.ask("CREATE TABLE implicit_commit (id INT PRIMARY KEY)").kind == "ok"
    try:
        client.ask("BEGIN")
        assert flags(client.ask("INSERT INTO implicit_commit VALUES (1)")) == (True, True)
        assert other.ask("SELECT COUNT(*) FROM implicit_commit").value == b"0"
        assert flags(client.ask("ALTER TABLE implicit_commit ADD COLUMN n INT")) == (True, False)
        assert other.ask("SELECT COUNT(*) FROM implicit_commit").value == b"1"
        assert flags(client.ask("ROLLBACK")) == (True, False)
        assert other.ask("SELECT COUNT(*) FROM implicit_commit").value == b"1"
        client.ask("BEGIN")
        client.ask("INSERT INTO implicit_commit (id) VALUES (2)")
        assert flags(client.ask("BEGIN")) == (True, True)  # commits the first
        assert other.ask("SELECT COUNT(*) FROM implicit_commit").value == b"2"
        client.ask("ROLLBACK")
    finally:
        client.ask("DROP TABLE implicit_commit")


def test_commit_and_chain(raw: MakeRaw, user: int) -> None:
    client = raw()
    client.ask("BEGIN")
    client.ask(setting(user, 2))
    assert flags(client.ask("COMMIT AND CHAIN")) == (True, True)
    client.ask(setting(user, 3))
    assert flags(client.ask("ROLLBACK")) == (True, False)
    assert number_of(client, user) == 2
    client.ask("BEGIN")
    client.ask(setting(user, 4))
    assert client.ask("COMMIT RELEASE").kind == "ok"
    assert client.closed
    assert number_of(raw(), user) == 4


def test_no_chain_whatever_completion_type_is(raw: MakeRaw) -> None:
    client = raw(database="legacy")
    client.ask("SET completion_type = 1, autocommit = 0")
    client.ask("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    client.ask("SELECT COUNT(*) FROM customers")
    assert flags(client.ask("COMMIT AND NO CHAIN")) == (False, False)
    client.ask("SELECT COUNT(*) FROM customers")
    assert flags(client.ask("ROLLBACK AND NO CHAIN")) == (False, False)


@pytest.mark.parametrize("completion", [0, 1, 2])
@pytest.mark.parametrize("chain", ["", " AND CHAIN", " AND NO CHAIN"])
@pytest.mark.parametrize("release", ["", " RELEASE", " NO RELEASE"])
def test_what_follows_a_transaction(
    demo: Demo, plain: LocalServer, completion: int, chain: str, release: str
) -> None:
    """What the statement does not say is as completion_type has it."""
    found: list[tuple[int, object]] = []
    for ending in ("COMMIT", "ROLLBACK WORK"):
        with logged_in(demo, plain) as sides:
            for client in sides:
                client.ask(f"SET completion_type = {completion}")
                client.ask("BEGIN")
                client.ask("SELECT COUNT(*) FROM legacy.customers")
                reply = client.ask(f"{ending}{chain}{release}")
                try:
                    found.append((reply.code, flags(client.ask("DO 1"))))
                except (Closed, OSError):
                    found.append((reply.code, "closed"))
    assert found[::2] == found[1::2]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE countries SET name = CONCAT(name, '') WHERE code = 'DE'",
        "REPLACE INTO countries (code, name) VALUES ('Q8', 'x'), ('Q9', 'y')",
        "DELETE FROM countries WHERE code IN ('Q8', 'Q9')",
        "UPDATE users SET data = JSON_SET(data, '$.c', 1) WHERE id IN ({ids}) ORDER BY id LIMIT 2",
        "UPDATE users SET data = JSON_SET(data, '$.c', 2) WHERE id IN ({ids})",
        "INSERT IGNORE INTO email_to_user SELECT CONCAT('ct', id % 7), 3 FROM users WHERE id IN ({ids})",
    ],
)
@pytest.mark.parametrize("mode", ["multi", "xa"])
@pytest.mark.parametrize("completion", ["CHAIN", "RELEASE"])
def test_completion_type_is_nothing_to_a_write_that_commits_by_itself(
    raw: MakeRaw, things: Things, completion: str, mode: str, sql: str
) -> None:
    ids = ", ".join(str(things.insert("users", {"n": 1})) for _ in range(6))
    client = raw(database="demo")
    client.ask(f"SET transaction_mode = '{mode}', completion_type = '{completion}'")
    answer = client.ask(sql.format(ids=ids))
    assert answer.kind == "ok", answer
    assert flags(answer) == (True, False)
    assert flags(client.ask("SELECT COUNT(*) FROM countries")) == (True, False)
    client.ask("SET completion_type = 'NO_CHAIN'")
    client.ask("DELETE FROM email_to_user WHERE email LIKE 'ct%'")


def test_the_session_overrides_what_was_set_for_the_next_transaction(raw: MakeRaw) -> None:
    client, other = raw(database="legacy"), raw(database="legacy")
    client.ask("SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY")
    client.ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    client.ask("START TRANSACTION")
    before = client.ask("SELECT COUNT(*) FROM customers").value
    other.ask("INSERT INTO customers (name, email) VALUES ('next', 'next@example.com')")
    try:
        assert client.ask("SELECT COUNT(*) FROM customers").value == before
        assert client.ask("DELETE FROM customers WHERE name = 'next'").code == 1792  # READ ONLY holds
        client.ask("COMMIT")
    finally:
        other.ask("DELETE FROM customers WHERE name = 'next'")


@pytest.mark.parametrize(
    "sql",
    [
        "START TRANSACTION READ ONLY, READ WRITE",
        "START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT, READ WRITE",
        "SET TRANSACTION READ ONLY, READ WRITE",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE, ISOLATION LEVEL READ COMMITTED",
        "COMMIT AND CHAIN RELEASE",
        "ROLLBACK AND CHAIN RELEASE",
    ],
)
def test_what_contradicts_itself_is_no_sql(raw: MakeRaw, sql: str) -> None:
    client = raw(database="legacy")
    assert client.ask(sql).code == 1064
    assert client.ask("SELECT 1").value == b"1"


def test_last_insert_id_inside_and_after(raw: MakeRaw, things: Things) -> None:
    client = raw()
    client.ask("BEGIN")
    made = client.ask("INSERT INTO users (data) VALUES ('{}')")
    things.forget_later("users", "id", made.insert_id)
    assert made.insert_id >> 36 & 0x3FF == 3
    assert client.ask("SELECT LAST_INSERT_ID()").value == str(made.insert_id).encode()
    client.ask("COMMIT")
    assert client.ask("SELECT LAST_INSERT_ID()").value == str(made.insert_id).encode()
    assert raw().ask("SELECT LAST_INSERT_ID()").value == b"0"


def test_many_transfers_at_once(connect: Connect, things: Things) -> None:
    """Threads move units between users of one shard, and retry deadlocks as applications do."""
    first = things.insert("users", {"n": 100})
    users = [first]
    for number in range(3):
        id = (shard_of(first) << 46 | 3 << 36 | 1 << 34) + (first & 0xFFFF) * 8 + number
        things.cursor.execute("INSERT INTO users (id, data) VALUES (%s, '{\"n\": 100}')", (id,))
        things.forget_later("users", "id", id)
        users.append(id)
    change = "UPDATE users SET data = JSON_SET(data, '$.n', JSON_EXTRACT(data, '$.n') + %s) WHERE id = %s"
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            with connect(autocommit=False) as connection, connection.cursor() as cursor:
                for turn in range(12):
                    source, target = users[(seed + turn) % 4], users[(seed * 3 + turn * 2 + 1) % 4]
                    while True:
                        try:
                            cursor.execute(change, (-1, source))
                            cursor.execute(change, (1, target))
                            connection.commit()
                            break
                        except pymysql.OperationalError as error:
                            if error.args[0] != 1213:
                                raise
                            connection.rollback()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    things.cursor.execute(
        f"SELECT JSON_EXTRACT(data, '$.n') FROM users WHERE id IN ({', '.join(map(str, users))})"
    )
    assert sum(float(row[0]) for row in things.cursor.fetchall()) == 400


def test_a_fan_out_uses_up_set_transaction(raw: MakeRaw) -> None:
    """As a statement on one table of one server would: then the next one is an ordinary one again."""
    client = raw()
    users = [row[0] or b"" for row in client.ask("SELECT id FROM users ORDER BY id").rows]
    change = f"UPDATE users SET ts = ts WHERE id IN ({users[0].decode()}, {users[-1].decode()})"
    assert client.ask("SET TRANSACTION READ ONLY").kind == "ok"
    assert client.ask("SELECT COUNT(*) FROM users").kind == "rows"
    assert client.ask(change).kind == "ok"
    assert client.ask("SET TRANSACTION READ ONLY").kind == "ok"
    assert client.ask("SELECT 1").kind == "rows"
    assert client.ask(change).code == 1792
