"""Query attributes: offered by MySQL alone, and stepped over."""

from __future__ import annotations

import subprocess

import pytest

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
