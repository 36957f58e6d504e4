"""The servers' accounts: what each cannot do though it logs in directly, and what its users can through the
proxy.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pymysql
import pytest

from tests.integration.fixtures import Connect, MakeOwn
from tests.integration.own import OwnProxy
from tests.support.demo import Demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until, wait_until_is

DENIED = {1044, 1045, 1049, 1095, 1142, 1143, 1146, 1227, 1290, 1305, 1370, 1419}
"""1049 and 1146: what one may not see is said not to be there."""

#: What no account of a non-admin may do, though nothing of the proxy's stands before it.
FORBIDDEN = [
    "SELECT user FROM mysql.user",
    "SELECT COUNT(*) FROM mysql.help_topic",
    "SELECT * FROM sys.version",
    "SELECT COUNT(*) FROM performance_schema.threads",
    "SELECT COUNT(*) FROM performance_schema.accounts",
    "UPDATE mysql.user SET max_questions = 1",
    "CALL sys.ps_setup_show_enabled(1, 1)",
    "LOCK TABLES mysql.user READ",
    "SELECT 1 INTO OUTFILE '{directory}/outfile'",
    "SELECT 1 INTO DUMPFILE '{directory}/dumpfile'",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE legacy.customers",
    "SHOW BINLOG EVENTS",
    "SHOW ENGINE INNODB STATUS",
    "SHOW CREATE USER root@localhost",
    "SHOW GRANTS FOR root@localhost",
    "SET GLOBAL max_connect_errors = 10",
    "SET SESSION sql_log_bin = 0",
    "SET GLOBAL read_only = 1",
    "FLUSH TABLES",
    "CREATE DATABASE new_one",
    "DROP DATABASE legacy",
    "CREATE TABLE legacy.new_one (a INT)",
    "ALTER TABLE legacy.customers ADD COLUMN x INT",
    "DROP TABLE legacy.customers",
    "TRUNCATE TABLE legacy.customers",
    "CREATE VIEW legacy.new_one AS SELECT 1",
    "CREATE PROCEDURE legacy.new_one() SELECT 1",
    "CREATE TRIGGER legacy.new_one BEFORE INSERT ON legacy.customers FOR EACH ROW SET @a = 1",
    "CREATE USER new_one@'%' IDENTIFIED BY 'x'",
    "GRANT SELECT ON legacy.* TO root@localhost",
    "KILL {root}",
]
OF_WRITERS = [
    "INSERT INTO legacy.customers (name, email, created) VALUES ('x', 'x', '2020-01-01')",
    "UPDATE legacy.customers SET city = 'x'",
    "DELETE FROM legacy.orders",
    "CREATE TEMPORARY TABLE legacy.mine (a INT)",
]
CONFINED = {"name": "shop", "password": "shop", "role": "write", "databases": ["legacy"]}
LISTED = {"name": "demos", "password": "demos", "role": "read", "databases": ["demo"]}


def code_of(connection: Connection, sql: str) -> int:
    """The error's code; 0 for none."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            cursor.fetchall()
    except pymysql.MySQLError as error:
        return int(error.args[0])
    return 0


def values(connection: Connection, sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [row[0] for row in cursor.fetchall()]


class Direct:
    """Connections to the servers past the proxy, as the accounts of some settings."""

    def __init__(self, demo: Demo, settings: dict[str, Any], stack: ExitStack) -> None:
        self.demo = demo
        self.stack = stack
        self.accounts = {
            (one["role"], tuple(one.get("databases", "*"))): one for one in settings["backends"]["accounts"]
        }

    def login(self, role: str, databases: tuple[str, ...] = ("*",), index: int = 0) -> Connection:
        account = self.accounts[role, databases]
        host = self.demo.hosts[index]
        made = pymysql.connect(
            host=host.host,
            port=host.port,
            user=account["user"],
            password=account["password"],
            autocommit=True,
        )
        return self.stack.enter_context(made)


@pytest.fixture
def confined(own: MakeOwn) -> OwnProxy:
    """A proxy with users of single databases."""
    users = [
        {"name": "demo", "password": "demo", "role": "admin"},
        {"name": "writer", "password": "writer", "role": "write"},
        {"name": "reader", "password": "reader", "role": "read"},
        CONFINED,
        LISTED,
    ]
    return own({"users": users})


@pytest.fixture
def direct(demo: Demo, confined: OwnProxy) -> Iterator[Direct]:
    with ExitStack() as stack:
        yield Direct(demo, confined.settings, stack)


ALL = [("read", ("*",)), ("write", ("*",)), ("write", ("legacy",)), ("read", ("demo",))]


def test_what_no_account_of_others_may_do(demo: Demo, direct: Direct) -> None:
    """The proxy may misread a text: the server refuses it all the same."""
    for index in (0, 1):
        with demo.direct(index) as root:
            for role, databases in ALL:
                account = direct.login(role, databases, index)
                forbidden = FORBIDDEN + (OF_WRITERS if role == "read" else [])
                for sql in forbidden:
                    text = sql.format(directory=demo.directory, root=root.thread_id())
                    assert code_of(account, text) in DENIED, (index, role, databases, text)
                assert values(account, "SELECT LOAD_FILE('/etc/passwd')") == [None]
                assert not any("secret" in str(one) for one in values(account, "SHOW PROCESSLIST"))


def test_confined_accounts_get_into_nothing_else(demo: Demo, direct: Direct) -> None:
    with demo.direct() as root, root.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS legacy_other")
        cursor.execute("CREATE TABLE IF NOT EXISTS legacy_other.t (a INT)")
        cursor.execute("CREATE DATABASE IF NOT EXISTS legacyx")
    try:
        shop = direct.login("write", ("legacy",))
        # MySQL shows performance_schema to everybody, as it has views of everybody's own session
        visible = {"information_schema", "performance_schema", "legacy", "shardgate_scratch", "shardgate_xa"}
        assert set(values(shop, "SHOW DATABASES")) <= visible
        others = ["legacy_other", "legacyx", "db00000", "global", "msdb00000", "shard00000"]
        for name in others:
            assert code_of(shop, f"USE {name}") == 1044, name
            assert code_of(shop, f"SHOW TABLES FROM {name}") == 1044, name
        assert code_of(shop, "SELECT * FROM legacy_other.t") == 1142
        assert code_of(shop, "SELECT * FROM db00000.pins") == 1142
        demos = direct.login("read", ("demo",))
        assert code_of(demos, "SELECT * FROM legacy.customers") == 1142
        assert code_of(demos, "SELECT * FROM legacy_other.t") == 1142
        assert code_of(demos, "SELECT COUNT(*) FROM db00000.pins") == 0
        assert code_of(demos, "SELECT COUNT(*) FROM global.usernames") == 0
        second = direct.login("write", ("legacy",), 1)
        visible -= {"legacy", "shardgate_scratch"}
        assert set(values(second, "SHOW DATABASES")) <= visible
    finally:
        with demo.direct() as root, root.cursor() as cursor:
            cursor.execute("DROP DATABASE legacy_other")
            cursor.execute("DROP DATABASE legacyx")


def test_the_administrators_account_passes_no_fence(demo: Demo, direct: Direct, flavour: str) -> None:
    """A server that is taken out of service is written by nobody who comes through the proxy."""
    admin = direct.login("admin")
    fence = "read_only" if flavour == "mariadb" else "super_read_only"
    with demo.direct() as root, root.cursor() as cursor:
        cursor.execute(f"SET GLOBAL {fence} = 1")
        try:
            assert code_of(admin, "UPDATE legacy.customers SET city = city") == 1290
        finally:
            cursor.execute("SET GLOBAL super_read_only = 0" if flavour == "mysql9" else "DO 0")
            cursor.execute("SET GLOBAL read_only = 0")
    assert code_of(admin, "UPDATE legacy.customers SET city = city") == 0


def connected(proxy: OwnProxy, user: str, database: str) -> Connection:
    return proxy.connect(user=user, password=user, database=database)


def test_what_their_users_can_do(confined: OwnProxy) -> None:
    """Sessions are as they were: locks, temporary tables, prepared statements, XA, gathers, KILL."""
    admin = connected(confined, "demo", "legacy")
    with admin.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE VIEW legacy.of_admins AS SELECT name, id FROM legacy.customers")
        cursor.execute("DROP PROCEDURE IF EXISTS legacy.of_admins")
        cursor.execute("CREATE PROCEDURE legacy.of_admins() SELECT COUNT(*) FROM legacy.customers")
    try:
        for user, database in (("reader", "legacy"), ("writer", "legacy"), ("shop", "legacy")):
            client = connected(confined, user, database)
            assert values(client, "SELECT CURRENT_USER()") == [f"{user}@%"]
            assert values(client, "SELECT COUNT(*) FROM of_admins") == [60]
            assert values(client, "SHOW CREATE VIEW of_admins") == ["of_admins"]
            assert values(client, "SELECT GET_LOCK('accounts', 5)") == [1]
            assert values(client, "SELECT IS_USED_LOCK('accounts') = CONNECTION_ID()") == [1]
            assert values(client, "SELECT RELEASE_LOCK('accounts')") == [1]
            for sql in (
                "PREPARE s FROM 'SELECT id FROM customers WHERE id = ?'",
                "SET @one = 1",
                "EXECUTE s USING @one",
                "DEALLOCATE PREPARE s",
                "HANDLER customers OPEN",
                "HANDLER customers READ FIRST",
                "HANDLER customers CLOSE",
                "EXPLAIN SELECT * FROM of_admins",
                "CHECKSUM TABLE customers",
                "SHOW PROCESSLIST",
            ):
                assert code_of(client, sql) == 0, (user, sql)
        for user in ("writer", "shop"):
            client = connected(confined, user, "legacy")
            for sql in (
                "CREATE TEMPORARY TABLE mine (a INT PRIMARY KEY)",
                "INSERT INTO mine SELECT id FROM customers",
                "UPDATE mine JOIN customers ON id = a SET a = a",
                "DELETE FROM mine WHERE a > 5",
                "DROP TEMPORARY TABLE mine",
                "LOCK TABLES customers READ",
                "LOCK TABLES customers WRITE",
                "UNLOCK TABLES",
                "CALL of_admins()",
                "SELECT id FROM customers LIMIT 1 FOR UPDATE",
            ):
                assert code_of(client, sql) == 0, (user, sql)
        for sql in (
            "XA START 'accounts'",
            "DELETE FROM orders",
            "XA END 'accounts'",
            "XA ROLLBACK 'accounts'",
        ):
            assert code_of(admin, sql) == 0, sql
        demos = connected(confined, "demos", "demo")
        assert values(demos, "SELECT COUNT(*) FROM pins") == [1800]
        twice = "WITH c AS (SELECT id FROM users) SELECT COUNT(*) FROM c a JOIN c b ON a.id = b.id"
        assert values(demos, twice) == [300]
        writer = connected(confined, "writer", "demo")
        assert code_of(writer, "INSERT INTO photos (user_id, caption) VALUES (206158430209, 'accounts')") == 0
        assert (
            code_of(writer, "DELETE FROM photos WHERE user_id = 206158430209 AND caption = 'accounts'") == 0
        )
    finally:
        with admin.cursor() as cursor:
            cursor.execute("DROP VIEW legacy.of_admins")
            cursor.execute("DROP PROCEDURE legacy.of_admins")


def test_a_database_that_an_admin_has_made(confined: OwnProxy) -> None:
    """Writers of all databases use it at once, on the default host, and others not."""
    admin, writer = connected(confined, "demo", "legacy"), connected(confined, "writer", "legacy")
    shop = connected(confined, "shop", "legacy")
    with admin.cursor() as cursor:
        cursor.execute("CREATE DATABASE made_now")
        cursor.execute("CREATE TABLE made_now.t (a INT)")
    try:
        assert code_of(writer, "INSERT INTO made_now.t VALUES (1)") == 0
        assert values(writer, "SELECT a FROM made_now.t") == [1]
        assert code_of(writer, "DROP TABLE made_now.t") == 1142
        assert code_of(shop, "SELECT a FROM made_now.t") in (1044, 1142)
    finally:
        with admin.cursor() as cursor:
            cursor.execute("DROP DATABASE made_now")


def test_errors_name_the_user(connect: Connect, demo: Demo) -> None:
    """Not the account, whose name is the operator's business."""
    with connect() as admin, admin.cursor() as cursor:
        cursor.execute("CREATE FUNCTION legacy.of_writers() RETURNS INT DETERMINISTIC RETURN 1")
    try:
        reader = connect(user="reader", password="reader")
        for sql in ("SELECT legacy.of_writers()", "SHOW EVENTS FROM legacy"):
            with pytest.raises(pymysql.MySQLError, match="denied ") as caught, reader.cursor() as cursor:
                cursor.execute(sql)
            assert "'reader'@'%'" in caught.value.args[1]
            assert "shardgate" not in caught.value.args[1]
            with reader.cursor() as cursor:
                cursor.execute("SHOW WARNINGS")
                assert "shardgate" not in json.dumps(cursor.fetchall())
    finally:
        with connect() as admin, admin.cursor() as cursor:
            cursor.execute("DROP FUNCTION legacy.of_writers")


def test_another_user_means_another_account(own: MakeOwn, demo: Demo) -> None:
    """COM_CHANGE_USER leaves no connection of the account before; all accounts share one limit."""
    proxy = own({"backends": {"max_connections": 2}})
    client = proxy.raw()
    users = set()
    for name in ("demo", "reader", "demo", "reader"):
        assert client.change_user(name, name, "legacy").kind == "ok"
        assert client.ask("SELECT COUNT(*) FROM customers").rows == [(b"60",)]
        with demo.direct() as root:
            sql = "SELECT user FROM information_schema.processlist WHERE user LIKE 'shardgate%'"
            users |= set(values(root, sql))
        # the client may read its answer before the worker has taken the connection back
        wait_until_is(lambda: proxy.host_state(demo.hosts[0].address)["busy"], 0, "no connection is lent")
        state = proxy.host_state(demo.hosts[0].address)
        assert state["busy"] + state["idle"] <= 2
    assert {"shardgate_admin", "shardgate_read"} <= users


def test_an_account_that_is_refused_stops_nobody_else(own: MakeOwn, demo: Demo) -> None:
    """Its users get an error at once; the others' statements run, and so do theirs when it is mended."""
    settings = json.loads(demo.settings.read_text())
    accounts = [
        one | ({"password": "wrong"} if one["role"] == "read" else {})
        for one in settings["backends"]["accounts"]
    ]
    backends = {"accounts": accounts}
    proxy = own({"backends": backends}, expected=("account refused",))
    reader = proxy.connect(user="reader", password="reader")
    admin = proxy.connect()
    for _ in range(3):
        assert code_of(reader, "SELECT COUNT(*) FROM legacy.customers") == 1045
        assert values(admin, "SELECT COUNT(*) FROM legacy.customers") == [60]
    assert proxy.host_state(demo.hosts[0].address)["failures"] == 0
    assert "shardgate_read" in str(proxy.logged("account refused"))


@pytest.mark.parametrize("workers", [1, 2])
def test_other_rights_hold_from_the_next_statement_on(own: MakeOwn, demo: Demo, workers: int) -> None:
    """A session whose user is a reader now runs as the readers' account, though the settings name that one
    only now.
    """
    settings = json.loads(demo.settings.read_text())
    some = [one for one in settings["backends"]["accounts"] if one["role"] != "read"]
    users = [{"name": "demo", "password": "demo", "role": "admin"}, {"name": "u", "password": "u"}]
    proxy = own({"backends": {"accounts": some}, "users": users, "workers": workers})
    client = proxy.connect(user="u", password="u", database="legacy")
    assert code_of(client, "UPDATE customers SET city = city WHERE id = 1") == 0
    assert values(client, "SELECT COUNT(*) FROM customers") == [60]
    users[1] = {"name": "u", "password": "u", "role": "read"}
    proxy.proxy.configure(proxy.settings | {"users": users, "backends": settings["backends"]})
    proxy.signal(signal.SIGHUP)
    wait_until(
        lambda: proxy.log.read_text().count("users read again") == workers, "the new users in every worker"
    )
    with pytest.raises(pymysql.MySQLError, match="the role 'read' does not allow it"):
        client.query("UPDATE customers SET city = city WHERE id = 1")
    assert values(client, "SELECT COUNT(*) FROM customers") == [60]
    assert code_of(client, "SELECT legacy.no_such()") == 1142, "a function that may write"
    with demo.direct() as root:
        sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'shardgate_read'"
        assert values(root, sql)[0] > 0


def test_a_right_that_an_account_lacks_is_in_the_log(own: MakeOwn, demo: Demo) -> None:
    """The user's role allows it, so the client's error names nobody but the user: where it was, and as whom,
    the operator reads. Not for each statement anew.
    """
    right = "UPDATE ON `%`.*"
    with demo.direct() as root, root.cursor() as cursor:
        cursor.execute(f"REVOKE {right} FROM shardgate_write@'%'")
        try:
            users = [{"name": "u", "password": "u"}, {"name": "demo", "password": "demo", "role": "admin"}]
            proxy = own({"users": users})
            client = proxy.connect(user="u", password="u", database="legacy")
            for _ in range(5):
                assert code_of(client, "UPDATE customers SET city = city WHERE id = 1") == 1142
            assert code_of(client, "UPDATE orders SET customer_id = 1 WHERE id = 1") == 1142
        finally:
            cursor.execute(f"GRANT {right} TO shardgate_write@'%'")
    told = proxy.logged("denied by a server", 2)
    assert len(told) == 2
    assert (told[0]["host"], told[0]["account"]) == (demo.hosts[0].address, "shardgate_write")
    assert (told[0]["user"], told[0]["code"]) == ("u", 1142)
