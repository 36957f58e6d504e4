"""Names outside ASCII from clients whose character set is not UTF-8: databases, tables, columns, and messages
that quote them, beside one server.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from tests.integration.binary import Binary, Prepared
from tests.integration.fixtures import MakeOwn, MakeRaw
from tests.integration.raw import INIT_DB, NATIVE, SHA2, Raw, packet
from tests.integration.replies import Reply
from tests.support.demo import Demo

#: Character set, its collation's number, Python's codec, a letter; sjis has a backslash as its second byte.
SETS = [
    ("utf8mb4", 45, "utf-8", "é"),
    ("latin1", 8, "cp1252", "é"),
    ("cp1251", 51, "cp1251", "ж"),
    ("koi8r", 7, "koi8_r", "ж"),
    ("latin2", 9, "iso8859_2", "ž"),
    ("gbk", 28, "gbk", "中"),
    ("sjis", 13, "shift_jis", "表"),
]
STATEMENTS = [
    "CREATE DATABASE `café`",
    "USE `café`",
    "SELECT DATABASE(), SCHEMA()",
    "CREATE TABLE t (a INT PRIMARY KEY, `é` VARCHAR(10) CHARACTER SET utf8mb4)",
    "INSERT INTO t VALUES (1, 'é')",
    "/* é */ INSERT INTO `café`.t VALUES (2, 'éé')",
    "SELECT a, `é`, HEX(`é`) FROM t ORDER BY a",
    "SELECT * FROM `café`.t WHERE `é` = 'é'",
    "SELECT x.a AS `xé` FROM t AS x JOIN t AS `é` ON `é`.a = x.a ORDER BY `xé`",
    "CREATE TABLE `té` (a INT)",
    "SELECT * FROM `té`",
    "SHOW TABLES",
    "SHOW TABLES LIKE 't_'",
    "SHOW TABLES FROM `café`",
    "SHOW DATABASES LIKE 'caf%'",
    "SHOW DATABASES LIKE 'café'",
    "SHOW DATABASES WHERE `Database` = 'café'",
    "SHOW CREATE DATABASE `café`",
    "SHOW CREATE TABLE `café`.t",
    "SHOW COLUMNS FROM t FROM `café`",
    "SHOW COLUMNS FROM t LIKE 'é'",
    "DESCRIBE t `é`",
    "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'caf%'",
    "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = 'café' ORDER BY 2",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1",
    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'café' AND table_name = 't'",
    "SELECT * FROM nosuché",
    "SHOW WARNINGS",
    "SHOW ERRORS",
    "SELECT nosuché FROM t",
    "SHOW ERRORS",
    "DROP TABLE IF EXISTS nosuché",
    "SHOW WARNINGS",
    "SELECT CAST('é' AS SIGNED)",
    "SHOW WARNINGS",
    "SET @x = 'é'",
    "SELECT @x, HEX(@x), CHARSET(@x)",
    "USE `nosuché`",
    "SELECT DATABASE()",
    "USE information_schema",
    "SHOW TABLES FROM `café`",
    "DROP DATABASE `café`",
    "SHOW DATABASES LIKE 'caf%'",
]


@pytest.fixture
def one(demo: Demo, flavour: str) -> Iterator[Raw]:
    """A client of the second host, which has no databases but shards."""
    host = demo.hosts[1]
    with Raw(host.host, host.port) as client:
        plugin = NATIVE if flavour == "mariadb" else SHA2
        assert client.login(host.user, host.password, plugin=plugin).kind == "ok"
        yield client


def said(client: Raw, reply: Reply, title: str) -> tuple[object, ...]:
    """What a client reads, and of columns their collations, lengths and types. MySQL itself breaks the name
    of a column that repeats a pattern of letters outside ASCII.
    """
    if reply.kind == "err":
        return reply.code, client.heard[-1][1]
    shown = [payload for _, payload in client.heard[1 : 1 + len(reply.columns)]]
    names = [] if " LIKE " in title else reply.columns
    return reply.kind, reply.affected, [payload[-12:-5] for payload in shown], names, reply.rows


def ask(client: Raw, sql: bytes) -> tuple[object, ...]:
    client.heard.clear()
    return said(client, client.ask(sql), sql.decode("latin-1"))


@pytest.mark.parametrize(("charset", "collation", "codec", "letter"), SETS, ids=[one[0] for one in SETS])
def test_names_in_each_character_set(
    raw: MakeRaw, one: Raw, charset: str, collation: int, codec: str, letter: str
) -> None:
    client = raw(database="legacy")
    for each in (client, one):
        assert each.ask(f"SET NAMES {charset}").kind == "ok"
    try:
        for text in STATEMENTS:
            sql = text.replace("é", letter).encode(codec)
            assert ask(client, sql) == ask(one, sql), text
    finally:
        for each in (client, one):
            each.ask(f"DROP DATABASE IF EXISTS `caf{letter}`".encode(codec))


@pytest.mark.parametrize(("charset", "collation", "codec", "letter"), SETS, ids=[one[0] for one in SETS])
def test_databases_of_a_login_and_of_a_command(
    raw: MakeRaw, demo: Demo, charset: str, collation: int, codec: str, letter: str
) -> None:
    """By bytes of the client's character set; also on connections that another client's set was used on."""
    name = f"caf{letter}"
    plain = raw(database="legacy")
    assert plain.ask(f"CREATE DATABASE `{name}`").kind == "ok"
    try:
        with Raw(demo.host, demo.port) as client:
            client.greeting()
            answer = client.response("demo", "demo", "DATABASE")[4:].replace(b"DATABASE", name.encode(codec))
            answer = answer[:8] + struct.pack("<B", collation) + answer[9:]
            client.write(packet(answer, 1))
            assert client._authenticate("demo").kind == "ok"
            assert client.ask("SELECT DATABASE()").value == name.encode(codec)
            assert client.ask("CREATE TABLE t (a INT)").kind == "ok"
            assert client.do(INIT_DB, b"legacy").kind == "ok"
            assert client.do(INIT_DB, name.encode(codec)).kind == "ok"
            for number in range(3):
                assert client.ask(f"INSERT INTO t VALUES ({number})").kind == "ok"
                assert plain.do(INIT_DB, name.encode()).kind == "ok"
                assert plain.ask("SELECT COUNT(*) FROM t").value == b"%d" % (number + 1)
            refused = client.do(INIT_DB, f"nosuch{letter}".encode(codec))
            assert refused.code == 1049
            assert client.heard[-1][1].endswith(f"Unknown database 'nosuch{letter}'".encode(codec))
            assert plain.ask("SET NAMES ascii").kind == "ok"  # which cannot write the name
            assert plain.ask("SELECT COUNT(*) FROM t").value == b"3"
    finally:
        plain.ask("SET NAMES utf8mb4")
        plain.ask(f"DROP DATABASE `{name}`")


def test_prepared_statements_with_names_in_latin1(raw: MakeRaw) -> None:
    client = raw(database="legacy")
    client.ask("SET NAMES latin1")
    try:
        client.ask("CREATE DATABASE `café`".encode("latin-1"))
        client.ask("USE `café`".encode("latin-1"))
        client.ask("CREATE TABLE `té` (`é` INT)".encode("latin-1"))
        side = Binary(client)
        asked = ("INSERT INTO `té` (`é`) VALUES (5)", "SELECT `té`.`é` FROM `café`.`té`", "SELECT DATABASE()")
        for sql in asked:
            statement = side.prepare(sql.encode("latin-1"))
            assert isinstance(statement, Prepared)
            answer = side.execute(statement.id)
            assert answer.kind in ("ok", "rows"), answer
        assert answer.rows == [b"\0\0\4caf\xe9"]
    finally:
        client.ask("DROP DATABASE `café`".encode("latin-1"))


def test_lists_of_databases_name_them_in_unicode(own: MakeOwn) -> None:
    """A user who may use one database is known to, whatever its client writes in."""
    user = {"name": "u", "password": "u", "role": "admin", "databases": ["café"]}
    with own({"users": [{"name": "demo", "password": "demo", "role": "admin"}, user]}) as proxy:
        admin = proxy.raw(database="legacy")
        admin.ask("CREATE DATABASE `café`")
        admin.ask("CREATE DATABASE `thé`")
        try:
            client = proxy.raw(login=False)
            assert client.login("u", "u").kind == "ok"
            client.ask("SET NAMES latin1")
            assert client.ask("USE `café`".encode("latin-1")).kind == "ok"
            assert client.ask("CREATE TABLE `café`.t (a INT)".encode("latin-1")).kind == "ok"
            assert client.ask("SELECT * FROM t").rows == []
            for sql in ("USE `thé`", "CREATE TABLE `thé`.t (a INT)", "SELECT * FROM `thé`.t", "USE `cafÃ©`"):
                assert client.ask(sql.encode("latin-1")).code in (1044, 1142), sql
        finally:
            admin.ask("DROP DATABASE `café`")
            admin.ask("DROP DATABASE `thé`")
