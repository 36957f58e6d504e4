"""Log-in byte by byte: both plugins, cold and warm caches, stored hashes, failures that end the session."""

from __future__ import annotations

import hashlib
import select
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

import pymysql
import pytest

from proxy.wire.auth import store_caching_sha2
from tests.integration import raw as wire
from tests.integration.fixtures import Connect, MakeOwn, MakeRaw
from tests.integration.own import OwnProxy, log_problems
from tests.integration.raw import AUTOCOMMIT, IN_TRANS, NATIVE, SHA2, Closed, query
from tests.support.demo import Demo
from tests.support.waiting import wait_until

PASSWORD = "pässwört"


def native_hash(password: str) -> str:
    return "*" + hashlib.sha1(hashlib.sha1(password.encode()).digest()).hexdigest().upper()


ACCOUNTS: list[dict[str, object]] = [
    {"name": "demo", "password": "demo", "role": "admin"},
    {"name": "plain", "password": PASSWORD},
    {"name": "native", "password_hash": native_hash(PASSWORD)},
    {"name": "sha2", "password_hash": "0x" + store_caching_sha2(PASSWORD.encode()).encode().hex()},
    {"name": "empty", "password": ""},
    {"name": "narrow", "password": PASSWORD, "databases": ["legacy"]},
    {"name": "two", "password": PASSWORD, "max_connections": 2},
]


@pytest.fixture(scope="module")
def proxy_of_all(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnProxy]:
    """A proxy with users of every kind of password."""
    with OwnProxy(demo, tmp_path_factory.mktemp("users"), {"users": ACCOUNTS}) as proxy:
        yield proxy
        assert not log_problems(proxy.log.read_text())


def test_greeting(raw: MakeRaw, demo: Demo, flavour: str) -> None:
    client = raw(login=False)
    assert client.greeting() is None
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        (version,) = cursor.fetchone() or ()
    assert client.version.removeprefix("5.5.5-") == version
    assert client.status & AUTOCOMMIT
    assert not client.status & IN_TRANS
    assert len(client.nonce) == 20
    assert 0 not in client.nonce
    assert client.plugin == (NATIVE if flavour == "mariadb" else SHA2)
    assert not client.server_capabilities & wire.DEPRECATE_EOF
    assert client.server_capabilities & wire.SSL
    ids = {raw().id for _ in range(3)}
    assert len(ids) == 3
    mine = raw()
    assert mine.ask("SELECT CONNECTION_ID()").value == str(mine.id).encode()


@pytest.mark.one_server
def test_both_plugins_cold_and_warm(own: MakeOwn) -> None:
    """A stored SHA-2 hash needs the password once (over RSA), then the fast path will do."""
    users = own({"users": ACCOUNTS})
    for user, first in (("plain", False), ("sha2", True), ("native", False)):
        for attempt in range(2):
            for plugin in (SHA2, NATIVE):
                if user == "native" and plugin == SHA2:
                    continue
                client = users.raw(login=False)
                reply = client.login(user, PASSWORD, "demo", plugin=plugin)
                assert reply.kind == "ok", (user, attempt, plugin, reply)
                assert client.asked_full == (first and attempt == 0 and plugin == SHA2), (
                    user,
                    attempt,
                    plugin,
                )
                assert client.ask("SELECT 1").value == b"1"
                client.close()


def test_a_client_with_the_other_plugin_is_switched(users: OwnProxy) -> None:
    client = users.raw(login=False)
    assert client.login("native", PASSWORD, plugin=SHA2).kind == "ok"
    assert client.switched_to == NATIVE
    assert client.ask("SELECT 1").value == b"1"


def test_drivers_log_in_with_every_kind_of_password(users: OwnProxy) -> None:
    for user in ("plain", "native", "sha2", "sha2"):
        with users.connect(user=user, password=PASSWORD.encode()).cursor() as cursor:
            cursor.execute("SELECT USER()")
            assert str(cursor.fetchone()).startswith(f"('{user}@")
    with users.connect(user="empty", password="").cursor() as cursor:
        assert cursor.execute("SELECT 1") == 1


@pytest.mark.one_server
@pytest.mark.parametrize("plugin", [SHA2, NATIVE])
def test_wrong_passwords(users: OwnProxy, plugin: str) -> None:
    given = (
        ("plain", "wrong"),
        ("plain", ""),
        ("native", "wrong"),
        ("sha2", "wrong"),
        ("nobody", "demo"),
        ("é", "demo"),
        ("empty", "something"),
        ("", ""),
    )
    for number, (user, password) in enumerate(given):  # from an address each: none of them waits
        with users.raw(login=False, source=f"127.0.{10 + (plugin == SHA2)}.{number + 1}") as client:
            reply = client.login(user, password, plugin=plugin)
            assert (reply.kind, reply.code, reply.sqlstate) == ("err", 1045, "28000"), (user, reply)
            assert f"using password: {'YES' if password else 'NO'}" in reply.message, (user, reply)
            assert client.closed
    with pytest.raises(pymysql.OperationalError) as error:
        users.connect(password="no")
    assert error.value.args[0] == 1045


@pytest.mark.one_server
def test_nothing_behind_a_wrong_password_is_executed(users: OwnProxy) -> None:
    """Commands in the same write, and later ones."""
    with users.connect(database="legacy").cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS break_in")
        with users.raw(login=False, source="127.0.13.1") as client:
            behind = query("CREATE TABLE legacy.break_in (id INT)") + query("SELECT 1")
            assert client.login("demo", "wrong", "legacy", behind=behind).code == 1045
            assert client.closed
        with users.raw(login=False) as client:
            client.greeting()
            client.write(client.response("demo", "wrong", "legacy"))
            with suppress(Closed, ConnectionError):
                for _ in range(1000):
                    client.write(query("CREATE TABLE legacy.break_in (id INT)"))
                    assert client.packet()[:1] in (b"\xff", b"\x01")
        with users.raw(login=False) as client:  # no log-in at all
            client.greeting()
            client.write(query("CREATE TABLE legacy.break_in (id INT)"))
            assert client.reply().kind == "err"
            assert client.closed
        assert cursor.execute("SHOW TABLES LIKE 'break_in'") == 0


def test_commands_behind_a_good_password_are_executed_in_order(users: OwnProxy) -> None:
    client = users.raw(login=False)
    behind = query("SELECT 'a'") + wire.command(wire.PING) + query("SELECT 'b'")
    assert client.login("demo", "demo", "demo", behind=behind).kind == "ok"
    assert client.reply().value == b"a"
    assert client.reply().kind == "ok"
    assert client.reply().value == b"b"


def count_refused(users: OwnProxy) -> int:
    """The log-ins that were refused, by the log, which tells of the first in a second only how they were."""
    left_out = [one for one in users.logged("lines left out", 0) if one["like"] == "log-in refused"]
    return len(users.logged("log-in refused", 0)) + sum(int(one["lines"]) for one in left_out)


@pytest.mark.one_server
def test_failed_log_ins_are_answered_later_and_later(users: OwnProxy) -> None:
    times = []
    for _ in range(6):
        with users.raw(login=False, source="127.0.12.1") as client:
            began = time.monotonic()
            assert client.login("demo", "wrong").code == 1045
            times.append(time.monotonic() - began)
            assert client.closed
    assert sum(times[3:]) >= 0.1 + 0.2 + 0.4
    refused = count_refused(users)
    waiting = [users.raw(login=False, source="127.0.12.1") for _ in range(6)]
    for client in waiting:
        client.greeting()
        client.write(client.response("demo", "wrong", "demo", plugin=NATIVE))
    wait_until(lambda: count_refused(users) >= refused + len(waiting), "they are refused")
    with users.raw(login=False, source="127.0.12.1") as client:
        assert client.login("demo", "demo").kind == "ok"
    assert not select.select([waiting[-1].sock], [], [], 0)[0], "it did not wait for the wrong ones"


def test_unknown_and_forbidden_databases_at_log_in(users: OwnProxy) -> None:
    for user, database, code in (
        ("demo", "nowhere", 1049),
        ("narrow", "demo", 1044),
        ("narrow", "nowhere", 1044),
    ):
        with users.raw(login=False) as client:
            reply = client.login(user, "demo" if user == "demo" else PASSWORD, database)
            assert (reply.kind, reply.code) == ("err", code), reply
            assert client.closed  # as MySQL: the log-in has failed
    client = users.raw(login=False)
    assert client.login("narrow", PASSWORD, "legacy").kind == "ok"
    assert client.ask("SELECT COUNT(*) FROM demo.users").code == 1044
    assert client.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    for sql in (
        "SELECT 1 FROM customers, mysql.user",
        "INSERT INTO mysql.db SELECT * FROM mysql.db",
        "SHOW TABLES FROM mysql",
        "SET @x = (SELECT COUNT(*) FROM mysql.user)",
        "SELECT * FROM information_schema.INNODB_METRICS",
        "USE mysql",
    ):
        assert client.ask(sql).code in (1044, 1142), sql
    assert client.ask("SELECT COUNT(*) FROM information_schema.COLLATIONS").kind == "rows"
    assert client.ask("USE information_schema").kind == "ok"


def test_files_and_replication_are_for_admins(users: OwnProxy) -> None:
    client = users.raw(login=False)
    assert client.login("plain", PASSWORD).kind == "ok"
    for sql in ("SELECT LOAD_FILE('/etc/hostname')", "SET sql_log_bin = 0", "SHOW ENGINE INNODB STATUS"):
        assert client.ask(sql).code == 1142, sql
    assert users.raw().ask("SHOW ENGINE INNODB STATUS").kind == "rows"


def test_a_character_set_that_no_client_may_have(raw: MakeRaw, demo: Demo) -> None:
    """As on a server; and it leaves nobody behind in the list of sessions."""
    ucs2 = 35
    client = wire.Raw(demo.host, demo.port)
    client.greeting()
    response = client.response("demo", "demo")
    client.write(response[:12] + bytes((ucs2,)) + response[13:])
    refused = client._authenticate("demo")
    assert (refused.code, refused.sqlstate) == (1231, "42000")
    assert client.closed
    assert raw().ask("SHOW PROCESSLIST").kind == "rows"
    assert raw().ask("SHOW GLOBAL STATUS LIKE 'Threads_connected'").kind == "rows"


@pytest.mark.one_server
def test_limits_of_connections(users: OwnProxy) -> None:
    held = [users.raw(login=False) for _ in range(2)]
    for client in held:
        assert client.login("two", PASSWORD).kind == "ok"
    with users.raw(login=False) as third:
        assert third.login("two", PASSWORD).code == 1226
        assert third.closed
    held[0].close()
    users.wait_idle(clients=1)
    assert users.raw(login=False).login("two", PASSWORD).kind == "ok"


@pytest.mark.one_server
def test_too_many_connections(own: MakeOwn) -> None:
    proxy = own({"limits": {"max_connections": 3}})
    held = [proxy.raw() for _ in range(3)]
    with proxy.raw(login=False) as fourth:
        refused = fourth.greeting()
        assert refused is not None
        assert (refused.code, refused.sqlstate) == (1040, "08004")
        assert fourth.closed
    held[0].close()
    proxy.wait_idle(clients=2)
    assert proxy.raw().ask("SELECT 1").value == b"1"


@pytest.mark.one_server
def test_a_slow_log_in_is_ended(own: MakeOwn) -> None:
    proxy = own({"timeouts": {"login": "1s"}})
    silent, half = proxy.raw(login=False), proxy.raw(login=False)
    assert silent.greeting() is None
    assert half.greeting() is None
    half.write(half.response("demo", "demo")[:20])
    assert silent.closed
    assert half.closed


def test_status_flags_from_the_first_packet(connect: Connect, raw: MakeRaw) -> None:
    assert raw(login=False).login().status & (AUTOCOMMIT | IN_TRANS) == AUTOCOMMIT
    connection = connect(autocommit=False)  # PyMySQL sends SET AUTOCOMMIT = 0 only if the flag differs
    assert connection.get_autocommit() is False


@pytest.mark.parametrize("workers", [1, 2])
def test_users_are_read_again(own: MakeOwn, workers: int, flavour: str) -> None:
    """On SIGHUP: new passwords, users and roles hold from then on; a bad file changes nothing."""
    demo = {"name": "demo", "password": "demo", "role": "admin"}
    users = [demo, {"name": "old", "password": "old"}, {"name": "kept", "password": "one", "role": "read"}]
    proxy = own({"users": users, "workers": workers}, expected=("settings refused",))

    def code(user: str, password: str) -> int:
        with proxy.raw(login=False) as client:
            return client.login(user, password, "legacy").code or 0

    def said(what: str) -> int:
        return proxy.log.read_text().count(what)

    def put(users: object) -> None:
        proxy.proxy.configure(proxy.settings | {"users": users})
        proxy.signal(signal.SIGHUP)

    assert (code("old", "old"), code("new", "new"), code("kept", "one")) == (0, 1045, 0)
    standing = proxy.raw(login=False)
    assert standing.login("old", "old", "legacy").kind == "ok"
    put([demo, {"name": "new", "password": "new"}, {"name": "kept", "password": "two"}])
    wait_until(lambda: said("users read again") == workers, "the new users in every worker")
    assert (code("new", "new"), code("old", "old"), code("kept", "one"), code("kept", "two")) == (
        0,
        1045,
        1045,
        0,
    )
    if flavour == "mysql9":
        assert standing.reply().code == 3169
    assert standing.closed, "the user is no more"
    other = proxy.raw()
    assert other.ask("SELECT 1").value == b"1"
    assert other.change_user("old", "old").code == 1045
    client = proxy.raw(login=False)
    assert client.login("kept", "two", "legacy").kind == "ok"
    assert client.ask("DELETE FROM customers WHERE 1 = 0").kind == "ok"
    put([{"name": "demo"}])
    wait_until(lambda: said("settings refused") == workers, "the refusal")
    assert code("new", "new") == 0
