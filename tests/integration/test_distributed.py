"""transaction_mode = 'xa': a transaction over two hosts is committed on both or on none."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from config import xa
from tests.faults.prepared import leave
from tests.integration.accounts import flags, number_of, setting
from tests.integration.binary import Answer, Binary, integer
from tests.integration.fixtures import MakeOwn, MakeRaw, Things, shard_of
from tests.integration.own import OwnProxy
from tests.integration.raw import IN_TRANS, Raw, query
from tests.support.demo import Demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until


@pytest.fixture
def far(things: Things) -> tuple[int, int]:
    """Two users on different hosts, the first on the first."""
    found: dict[bool, int] = {}
    while len(found) < 2:
        id = things.insert("users", {"n": 1})
        found.setdefault(shard_of(id) < 32, id)
    return found[True], found[False]


@pytest.fixture
def client(raw: MakeRaw) -> Raw:
    made = raw()
    assert made.ask("SET transaction_mode = 'xa'").kind == "ok"
    return made


def prepared(demo: Demo) -> list[bytes]:
    """The branches that are prepared on the masters."""
    found = []
    for number in range(len(demo.masters)):
        with demo.direct(number) as server, server.cursor() as cursor:
            cursor.execute("XA RECOVER")
            found += [bytes(str(row[3]), "latin-1") for row in cursor.fetchall()]
    return found


def decisions(demo: Demo) -> list[int]:
    """How many decisions each master has."""
    found = []
    for number in range(len(demo.masters)):
        with demo.direct(number) as server, server.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM {xa.DATABASE}.{xa.DECISIONS} WHERE committed = 1")
            found.append(int((cursor.fetchone() or (0,))[0]))
    return found


@pytest.mark.parametrize("opening", ["BEGIN", "SET autocommit = 0"])
def test_commit_and_rollback(
    demo: Demo, raw: MakeRaw, client: Raw, far: tuple[int, int], opening: str
) -> None:
    other = raw()
    assert client.ask(opening).kind == "ok"
    for order, end, expected in ((far, "ROLLBACK", 1), (far, "COMMIT", 8), (far[::-1], "COMMIT", 8)):
        before = decisions(demo)
        client.ask("BEGIN") if opening == "BEGIN" else None
        for user in order:
            assert flags(client.ask(setting(user, 8)))[1]
        assert [number_of(client, user) for user in far] == [8, 8]
        if expected == 1 or order is far:
            assert [number_of(other, user) for user in far] == [1, 1]
        assert not flags(client.ask(end))[1]
        assert [number_of(other, user) for user in far] == [expected, expected]
        assert prepared(demo) == []
        first = 0 if order is far else 1
        made = [now - was for now, was in zip(decisions(demo), before, strict=True)]
        assert made == ([0, 0] if end == "ROLLBACK" else [1 - first, first])


def test_all_that_a_transaction_can_say(demo: Demo, raw: MakeRaw, client: Raw, far: tuple[int, int]) -> None:
    """Savepoints, what was said of it, both hosts at once, AND CHAIN, and what commits implicitly."""
    other = raw()
    client.ask("BEGIN")
    client.ask(setting(far[0], 10))
    client.ask("SAVEPOINT a")
    client.ask(setting(far[1], 20))
    assert client.ask("ROLLBACK TO a").kind == "ok"
    assert [number_of(client, user) for user in far] == [10, 1]
    assert client.ask("COMMIT AND CHAIN").kind == "ok"
    assert [number_of(other, user) for user in far] == [10, 1]
    both = f"UPDATE users SET data = JSON_SET(data, '$.n', 30) WHERE id IN ({far[0]}, {far[1]})"
    assert client.ask(both).affected == 2
    assert client.ask("ROLLBACK").kind == "ok"
    assert [number_of(other, user) for user in far] == [10, 1]

    client.ask("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    client.ask("BEGIN")
    assert [number_of(client, user) for user in far] == [10, 1]
    assert other.ask(both).affected == 2
    assert [number_of(client, user) for user in far] == [30, 30]  # on the branch, too
    client.ask("COMMIT")

    client.ask("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    for user in far:
        assert other.ask(setting(user, 40)).kind == "ok"
    assert [number_of(client, user) for user in far] == [30, 30]
    client.ask(setting(far[0], 50))
    client.ask("COMMIT")
    assert [number_of(other, user) for user in far] == [50, 40]

    before = decisions(demo)
    client.ask("START TRANSACTION READ ONLY")
    assert [number_of(client, user) for user in far] == [50, 40]
    assert client.ask(setting(far[1], 1)).code == 1792
    client.ask("COMMIT")
    assert decisions(demo) == before  # which has nothing to decide

    client.ask("BEGIN")
    client.ask(both)
    client.ask("BEGIN")  # which commits
    assert [number_of(other, user) for user in far] == [30, 30]
    client.ask("ROLLBACK")
    client.ask("BEGIN")
    for user in far:
        client.ask(setting(user, 60))
    assert client.ask("CREATE TABLE legacy.committing (n INT)").kind == "ok"
    assert client.ask("DROP TABLE legacy.committing").kind == "ok"
    assert [number_of(other, user) for user in far] == [60, 60]
    assert prepared(demo) == []


def test_a_client_that_goes_away(demo: Demo, raw: MakeRaw, client: Raw, far: tuple[int, int]) -> None:
    client.ask("BEGIN")
    for user in far:
        client.ask(setting(user, 5))
    client.close()
    other = raw()
    for user in far:
        assert other.ask(setting(user, 6)).kind == "ok"  # its locks are gone
    assert [number_of(other, user) for user in far] == [6, 6]


def test_a_deadlock_on_a_branch_rolls_back_everywhere(
    demo: Demo, raw: MakeRaw, things: Things, client: Raw
) -> None:
    """It is one of the other host's, and both hosts are free again."""
    here, there = things.insert("users", {"n": 1}), things.insert("users", {"n": 1})
    while shard_of(here) >= 32:
        here = things.insert("users", {"n": 1})
    while shard_of(there) < 32:
        there = things.insert("users", {"n": 1})
    second = things.insert("users", {"n": 1})
    while shard_of(second) < 32:
        second = things.insert("users", {"n": 1})
    other = raw()
    more = things.insert("boards", {"user_id": second})
    client.ask("BEGIN")
    for user in (here, there):
        assert client.ask(setting(user, 2)).affected == 1
    other.ask("BEGIN")
    for _ in range(3):  # it has more to undo, so it is not the victim
        assert other.ask(setting(second, 3)).kind == "ok"
        assert other.ask(f"UPDATE users SET ts = ts + INTERVAL 1 SECOND WHERE id = {second}").affected == 1
    assert other.ask(f"UPDATE boards SET data = JSON_SET(data, '$.x', 1) WHERE id = {more}").affected == 1
    other.write(query(setting(there, 3)))
    with demo.direct(1) as server, server.cursor() as cursor:

        def waits() -> bool:  # innodb_trx stays as it is while it is asked more than ten times a second
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
            return str((cursor.fetchone() or (0, "0"))[1]) != "0"

        wait_until(waits, "it waits for the row", 20)
    reply = client.ask(setting(second, 2))
    if reply.kind == "ok":  # the other one is the victim
        assert other.reply().code == 1213
        assert client.ask("COMMIT").kind == "ok"
        return
    assert reply.code == 1213, reply
    assert not client.ping().status & IN_TRANS
    assert other.reply().kind == "ok"
    other.ask("ROLLBACK")
    assert [number_of(other, user) for user in (here, there, second)] == [1, 1, 1]
    others = [raw() for _ in range(8)]  # one of them gets the connection that had the branch, if it is there
    for one in others:
        assert one.ask("BEGIN").kind == "ok"
        assert one.ask(f"INSERT INTO boards (data) VALUES ('{{\"user_id\": {second}}}')").kind == "ok"
    for one in others:
        assert one.ask("ROLLBACK").kind == "ok"
    client.ask("BEGIN")
    for user in (here, there):
        assert client.ask(setting(user, 4)).kind == "ok"
    assert client.ask("COMMIT").kind == "ok"
    assert [number_of(other, user) for user in (here, there)] == [4, 4]


def test_who_may(demo: Demo, own: MakeOwn, raw: MakeRaw, far: tuple[int, int]) -> None:
    """A user of a list, with role write, whose account has only what xa needs; nobody reads the decisions but
    admins; without `xa.enabled` nobody is distributed.
    """
    users = [
        {"name": "writer", "password": "w", "role": "write", "databases": ["demo"], "transaction_mode": "xa"},
        {"name": "demo", "password": "demo", "role": "admin"},
    ]
    with own({"users": users}).raw(login=False) as writer:
        assert writer.login("writer", "w", database="demo").kind == "ok"
        writer.ask("BEGIN")
        for user in far:
            assert writer.ask(setting(user, 7)).kind == "ok"
        assert writer.ask("COMMIT").kind == "ok"
        assert [number_of(writer, user) for user in far] == [7, 7]
        for sql in (f"SELECT * FROM {xa.DATABASE}.{xa.DECISIONS}", f"USE {xa.DATABASE}"):
            assert writer.ask(sql).code == 1044
    admin = raw()
    assert admin.ask(f"SELECT COUNT(*) FROM {xa.DATABASE}.{xa.DECISIONS}").kind == "rows"
    assert xa.DATABASE.encode() not in [row[0] for row in admin.ask("SHOW DATABASES").rows]

    off = own({"xa": {"enabled": False}}).raw()
    refused = off.ask("SET transaction_mode = 'xa'")
    assert (refused.code, "`enabled: true` under `xa`" in refused.message) == (1231, True)


def test_the_mode_stays_for_the_transaction(client: Raw, far: tuple[int, int]) -> None:
    client.ask("BEGIN")
    client.ask(setting(far[0], 2))
    for mode in ("'multi'", "'single'", "DEFAULT"):
        assert client.ask(f"SET transaction_mode = {mode}").code == 1568
    assert client.ask("SET transaction_mode = 'xa'").kind == "ok"
    client.ask("ROLLBACK")
    assert client.ask("SET transaction_mode = 'multi'").kind == "ok"


def test_what_is_shown(demo: Demo, raw: MakeRaw, client: Raw, far: tuple[int, int]) -> None:
    other = raw()
    client.ask("BEGIN")
    for user in far:
        client.ask(setting(user, 3))
    (row,) = other.ask("SHOW PROXY TRANSACTIONS").rows
    state, _, user_, age, hosts, gtrid, reason, last = row
    assert (state, user_, reason) == (b"open", b"demo", None)
    assert float(age or b"-1") >= 0
    assert (last or b"").startswith(b"UPDATE ")
    assert (hosts or b"").decode() == ", ".join(one.address for one in demo.masters)
    assert gtrid is not None
    client.ask("ROLLBACK")
    assert other.ask("SHOW PROXY TRANSACTIONS").rows == []


def test_those_of_applications_are_left_alone(demo: Demo, own: MakeOwn) -> None:
    """Prepared past the proxy or through it, whatever their names look like."""
    names = ("'application'", "'0123456789abcdef.1.0123456789abcdef0123','1.x',7")
    proxy = own({"xa": {"resolve_after": "50ms"}})
    client = proxy.raw(database="legacy")
    with demo.direct(0) as server, server.cursor() as cursor:
        for number, name in enumerate(names, 1):
            for sql in (
                f"XA START {name}",
                f"UPDATE customers SET city = 'Prepared' WHERE id = {number}",
                f"XA END {name}",
                f"XA PREPARE {name}",
            ):
                assert client.ask(sql).kind == "ok", sql
            client.close()
            client = proxy.raw(database="legacy")
        looks = proxy.metric("shardgate_uptime_seconds")
        wait_until(lambda: proxy.metric("shardgate_uptime_seconds") > looks + 0.5, "it has looked")
        for name in names:
            assert client.ask(f"XA ROLLBACK {name}").kind == "ok"
        cursor.execute("XA RECOVER")
        assert cursor.fetchall() == ()
        cursor.execute("UPDATE legacy.customers SET city = city WHERE id < 3")  # no lock is left


def both(far: tuple[int, int], n: int) -> str:
    return f"UPDATE users SET data = JSON_SET(data, '$.n', {n}) WHERE id IN ({far[0]}, {far[1]})"


def test_a_write_over_hosts_is_one_transaction(
    demo: Demo, raw: MakeRaw, client: Raw, far: tuple[int, int]
) -> None:
    """Outside of one: it is on all hosts or on none, and the client is told as of any other."""
    other = raw()
    before = decisions(demo)
    reply = client.ask(both(far, 30))
    assert (reply.affected, reply.info, flags(reply)) == (
        2,
        "Rows matched: 2  Changed: 2  Warnings: 0",
        (True, False),
    )
    assert client.ask("SELECT ROW_COUNT()").value == b"2"
    assert sum(decisions(demo)) == sum(before) + 1
    assert [number_of(other, user) for user in far] == [30, 30]

    for locked in far:
        other.ask("BEGIN")
        other.ask(setting(locked, 31))
        client.ask("SET innodb_lock_wait_timeout = 1")
        reply = client.ask(both(far, 40))
        assert (reply.code, client.ping().status & IN_TRANS) == (1205, 0)
        assert {row[1] for row in client.ask("SHOW WARNINGS").rows} == {b"1205"}
        other.ask("ROLLBACK")
        assert [number_of(other, user) for user in far] == [30, 30]

    side = Binary(client)
    statement = side.statement("UPDATE users SET data = JSON_SET(data, '$.n', ?) WHERE id IN (?, ?)")
    answer = side.execute(statement.id, [integer(35), *map(integer, far)])
    assert isinstance(answer, Answer)
    assert (answer.code, answer.ok.affected, answer.ok.status & IN_TRANS) == (0, 2, 0)
    assert [number_of(other, user) for user in far] == [35, 35]

    client.ask("SET completion_type = 1")
    assert flags(client.ask(both(far, 50))) == (True, False)
    assert flags(client.ask("SELECT 1")) == (True, False)
    assert [number_of(other, user) for user in far] == [50, 50]
    client.ask("SET completion_type = 0")
    client.ask("SET TRANSACTION READ ONLY")
    assert client.ask(both(far, 60)).code == 1792
    assert client.ask(both(far, 60)).affected == 2
    assert prepared(demo) == []


def test_rows_over_hosts_are_one_transaction(
    demo: Demo, things: Things, client: Raw, far: tuple[int, int]
) -> None:
    """INSERT, what it has made, and (where there is that) RETURNING."""
    new = far[0] + 1000
    reply = client.ask(f"INSERT INTO users (id, data) VALUES ({new}, '{{}}'), ({far[1]}, '{{}}')")
    assert reply.code == 1062
    assert client.ask(f"SELECT COUNT(*) FROM users WHERE id = {new}").value == b"0"
    values = ", ".join(f"""('{{"user_id": {user}}}')""" for user in far)
    reply = client.ask(f"INSERT INTO boards (data) VALUES {values}")
    assert (reply.affected, reply.info) == (2, "Records: 2  Duplicates: 0  Warnings: 0")
    assert int(client.ask("SELECT LAST_INSERT_ID()").value or 0) == reply.insert_id > 0
    found = f"SELECT id FROM boards WHERE JSON_EXTRACT(data, '$.user_id') IN ({far[0]}, {far[1]})"
    made = [int(id or 0) for (id,) in client.ask(found).rows]
    for id in made:
        things.forget_later("boards", "id", id)
    assert (len(made), {shard_of(id) < 32 for id in made}) == (2, {True, False})
    assert prepared(demo) == []


@pytest.mark.parametrize(
    "opening", ["BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "SET autocommit = 0"]
)
def test_who_may_only_read(own: MakeOwn, far: tuple[int, int], opening: str) -> None:
    """Their accounts can decide nothing, and need not."""
    users = [
        {"name": "reader", "password": "r", "role": "read", "databases": ["demo"], "transaction_mode": "xa"},
        {"name": "demo", "password": "demo", "role": "admin"},
    ]
    with own({"users": users}).raw(login=False) as reader:
        assert reader.login("reader", "r", database="demo").kind == "ok"
        assert reader.ask(opening).kind == "ok"
        assert [number_of(reader, user) for user in far] == [1, 1]
        assert reader.ask("COMMIT").kind == "ok"


def test_tables_that_are_locked(client: Raw, far: tuple[int, int]) -> None:
    """Sharded tables are not among them: the statement is refused before the other host takes part."""
    client.ask("SET autocommit = 0")
    client.ask("LOCK TABLES legacy.customers WRITE")
    assert client.ask("UPDATE legacy.customers SET city = city WHERE id = 1").kind == "ok"
    reply = client.ask(setting(far[1], 5))
    assert (reply.code, "UNLOCK TABLES first" in reply.message) == (1100, True), reply
    assert client.ask("COMMIT").kind == "ok"
    client.ask("UNLOCK TABLES")


def test_a_decision_that_cannot_be_written(
    demo: Demo, raw: MakeRaw, client: Raw, far: tuple[int, int]
) -> None:
    """The disk is full, or the table is gone: nothing is committed, and it says why."""
    full = "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'The table is full'"
    faults = (
        (
            f"CREATE TRIGGER full BEFORE INSERT ON decisions FOR EACH ROW {full}",
            "DROP TRIGGER full",
            "is full",
        ),
        ("RENAME TABLE decisions TO away", "RENAME TABLE away TO decisions", "doesn't exist"),
    )
    other = raw()
    with demo.direct(0, database=xa.DATABASE) as server, server.cursor() as cursor:
        for fault, mend, text in faults:
            cursor.execute(fault)
            try:
                client.ask("BEGIN")
                for user in far:
                    assert client.ask(setting(user, 9)).kind == "ok"
                reply = client.ask("COMMIT")
                assert (reply.kind, text in reply.message) == ("err", True), reply
                assert [number_of(other, user) for user in far] == [1, 1]
                assert not client.ping().status & IN_TRANS
            finally:
                cursor.execute(mend)
    assert client.ask(both(far, 1)).kind == "ok"
    assert prepared(demo) == []


@pytest.fixture
def quick(own: MakeOwn) -> OwnProxy:
    return own({"xa": {"resolve_after": "50ms"}})


def account(proxy: OwnProxy) -> dict[str, str]:
    """What runs the statements of the demo's user."""
    backends = proxy.settings["backends"]
    one = next((one for one in backends.get("accounts", ()) if one["role"] == "admin"), backends)
    return {"user": one["user"], "password": one["password"]}


def is_there(server: Connection, number: int) -> bool:
    with server.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {MARKS} WHERE id = {number}")
        return bool((cursor.fetchone() or (0,))[0])


MARKS = "shardgate_marks.marks"


@pytest.fixture
def marks(demo: Demo) -> Iterator[Connection]:
    """On the second host, a table to write to past the proxy."""
    with demo.direct(1) as server, server.cursor() as cursor:
        for sql in ("CREATE DATABASE shardgate_marks", f"CREATE TABLE {MARKS} (id INT PRIMARY KEY)"):
            cursor.execute(sql)
        yield server
        cursor.execute("DROP DATABASE shardgate_marks")


def mark(number: int) -> str:
    return f"INSERT INTO {MARKS} VALUES ({number})"


def test_servers_that_begin_with_autocommit_off(demo: Demo, own: MakeOwn, marks: Connection) -> None:
    """What the resolver decides stays."""
    for number in (0, 1):
        with demo.direct(number) as server, server.cursor() as cursor:
            cursor.execute("SET GLOBAL autocommit = 0")
    try:
        proxy = own({"xa": {"resolve_after": "50ms"}})
        assert proxy.logged("sessions begin with autocommit off")
        with demo.direct(0) as first, demo.direct(1) as branch:
            gtrid = leave(branch, first, demo.masters[0].address, mark(1), committed=False)
        wait_until(lambda: not prepared(demo), "it is rolled back", 20)
        with demo.direct(0) as first, first.cursor() as cursor:
            cursor.execute(f"SELECT committed FROM {xa.DATABASE}.{xa.DECISIONS} WHERE gtrid = %s", (gtrid,))
            assert cursor.fetchall() == ((0,),)
    finally:
        for number in (0, 1):
            with demo.direct(number) as server, server.cursor() as cursor:
                cursor.execute("SET GLOBAL autocommit = 1")


def test_what_became_of_one(demo: Demo, quick: OwnProxy, marks: Connection) -> None:
    """SHOW PROXY TRANSACTIONS LIKE its name tells, also after it is finished, and whoever asks."""
    asking = [quick.raw(), quick.raw(login=False)]
    asking[1].login("reader", "reader", "demo")

    def states(gtrid: bytes) -> list[bytes | None]:
        sql = f"SHOW PROXY TRANSACTIONS LIKE '{gtrid.decode()}'"
        return [client.ask(sql).rows[0][0] for client in asking]

    for number, committed in enumerate((True, False)):
        with demo.direct(0) as first, demo.direct(1) as branch:
            gtrid = leave(branch, first, demo.masters[0].address, mark(number), committed=committed)
        wait_until(lambda: not prepared(demo), "it is finished", 20)
        assert states(gtrid) == [b"committed" if committed else b"aborted"] * 2
        assert is_there(marks, number) is committed
    assert states(gtrid[:-20] + b"0" * 20) == [b"unknown"] * 2
    assert states(b"0" * 16 + gtrid[16:]) == [b"undecided"] * 2, "no master has this identity"


@pytest.mark.either_server
def test_connections_that_are_silent(demo: Demo, quick: OwnProxy, marks: Connection) -> None:
    """One that has a branch, one that was about to decide, and one that has the resolvers' lock: they are of
    proxies that are gone, and are ended.
    """
    address, login = demo.masters[0].address, account(quick)
    with (
        demo.direct(0) as first,
        demo.direct(0, **login) as decider,
        demo.direct(1, **login) as branch,
        demo.direct(1, **login) as other,
        demo.direct(1, **login) as locker,
        locker.cursor() as cursor,
    ):
        cursor.execute("SELECT GET_LOCK('shardgate_xa', 0)")
        leave(branch, first, address, mark(1), committed=True)
        with decider.cursor() as deciding:
            deciding.execute("START TRANSACTION")
            leave(other, decider, address, mark(2), committed=True, thread=decider.thread_id())
        wait_until(lambda: not prepared(demo), "they are finished", 40)
        assert [is_there(marks, number) for number in (1, 2)] == [True, False]
        with pytest.raises(pymysql.MySQLError):
            decider.commit()
        first.commit()
