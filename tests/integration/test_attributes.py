"""Query attributes: offered by MySQL alone, and handed on to it with the statement."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator

import pymysql
import pytest

from tests.integration.binary import Binary, Prepared
from tests.integration.fixtures import MakeRaw
from tests.integration.raw import MULTI_STATEMENTS, QUERY, Raw, command, packet
from tests.support.demo import Demo
from tests.support.programs import program_of

ATTRIBUTES = 0x08000000
NAMED = b"\2\1\0\1" + b"\x08\0\1n" + b"\xfd\0\4text" + b"\7\0\0\0\0\0\0\0" + b"\5value"


def with_attributes(raw: MakeRaw, database: str = "demo") -> Raw:
    client = raw(login=False)
    assert client.login(database=database, flags=ATTRIBUTES | MULTI_STATEMENTS).kind == "ok"
    return client


def test_the_text_behind_them(raw: MakeRaw, flavour: str) -> None:
    client = with_attributes(raw)
    assert bool(client.server_capabilities & ATTRIBUTES) == (flavour == "mysql9")
    if flavour == "mariadb":  # it has none, so a client that sets the flag regardless sends none
        assert client.ask("SELECT 1").value == b"1"
        return
    for prefix in (b"\0\1", NAMED):
        for sql in (
            b"SELECT COUNT(*) FROM users WHERE id = 1",
            b"SELECT 5",
            b"SELECT 'x' FROM legacy.orders LIMIT 1",
        ):
            client.write(command(QUERY, prefix + sql))
            assert len(client.reply().rows) == 1
    client.write(command(QUERY, NAMED + b"SELECT 1; SELECT 2; SELECT 3"))
    assert [reply.value for reply in client.replies()] == [b"1", b"2", b"3"]
    text = b"x" * 17_000_000
    client.write(packet(b"\x03" + NAMED + b"SELECT '" + text + b"'"))
    assert client.reply().value == text
    whole = command(QUERY, NAMED + b"SELECT 7")
    for place in range(1, len(whole)):
        client.write(whole[:place])
        client.write(whole[place:])
        assert client.reply().value == b"7"
    for damaged in (b"", b"\0", b"\1\1\0\1\x08\0\1aabc", b"\3SELECT 1"):
        client.write(command(QUERY, damaged))
        assert client.reply().code == 1835
    client.write(command(QUERY, b"\0\1SELECT 8"))
    assert client.reply().value == b"8"


def test_the_cli(demo: Demo, unharmed: None) -> None:
    """It always has the flag."""
    program = program_of("mysql9")
    if program is None:
        pytest.skip("no mysql CLI")
    words = [str(program.path.with_name("mysql")), "--no-defaults", "-h", demo.host, "-P", str(demo.port)]
    words += ["-udemo", "-pdemo", "--get-server-public-key", "-N", "demo"]
    sql = "SELECT 5;\nSELECT COUNT(*) FROM users WHERE id = 1;\n"
    done = subprocess.run(words, input=sql, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["5", "0"], done.stderr


@pytest.fixture
def component(demo: Demo) -> Iterator[None]:
    """What shows the attributes, on the default host."""
    with demo.direct(0) as server, server.cursor() as cursor:
        try:
            cursor.execute("INSTALL COMPONENT 'file://component_query_attributes'")
        except pymysql.err.MySQLError as error:
            pytest.skip(f"the server has no component_query_attributes: {error}")
        yield
        cursor.execute("UNINSTALL COMPONENT 'file://component_query_attributes'")


def test_they_reach_the_server(raw: MakeRaw, flavour: str, request: pytest.FixtureRequest) -> None:
    """With the statement that has them, in each protocol, and with no other."""
    if flavour == "mariadb":
        return
    request.getfixturevalue("component")
    shown = b"SELECT CONCAT_WS(',', mysql_query_attribute_string('n'), mysql_query_attribute_string('text'))"
    client = with_attributes(raw, "legacy")
    for _ in range(2):
        client.write(command(QUERY, NAMED + shown))
        assert client.reply().value == b"7,value"
        client.write(command(QUERY, b"\0\1" + shown))
        assert client.reply().value == b""
    client.write(command(QUERY, NAMED + b"SELECT 1; SET @a = 1; " + shown))
    assert client.replies()[-1].value == b"7,value"
    client.write(command(QUERY, b"\0\1BEGIN"))
    assert client.reply().kind == "ok"
    for sql in (shown, shown + b" FROM orders LIMIT 1", shown):
        client.write(command(QUERY, NAMED + sql))
        assert client.reply().value == b"7,value"
    binary = Binary(client)
    statement = binary.prepare(b"SELECT ?, " + shown[7:])
    assert isinstance(statement, Prepared)
    head = b"\x17" + struct.pack("<IBI", statement.id, 8, 1)
    client.write(packet(head + b"\3\0\1" + b"\3\0\0" + NAMED[4:-14] + b"\5\0\0\0" + NAMED[-14:]))
    assert binary.answer().rows == [b"\0\0\5\0\0\0\0\0\0\0\7" + b"7,value"]
    client.write(packet(head + b"\1\0\1" + b"\3\0\0" + b"\5\0\0\0"))
    assert binary.answer().rows == [b"\0\0\5\0\0\0\0\0\0\0\0"]
