"""User variables whose names are not ASCII: in some character sets a byte of theirs is half a backtick."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeOwn

NAME = "\u4e2d"


@pytest.mark.parametrize("charset", ["gbk", "sjis", "big5", "latin1"])
def test_a_connection_of_another_character_set(own: MakeOwn, charset: str) -> None:
    """The one connection goes from session to session."""
    proxy = own({"backends": {"max_connections": 1}})
    other, client = proxy.raw(database="legacy"), proxy.raw(database="legacy")
    assert client.ask(f"SET @`{NAME}` = 'kept', @plain = 2").kind == "ok"
    for _ in range(2):
        assert other.ask(f"SET NAMES {charset}").kind == "ok"
        assert other.ask("SELECT COUNT(*) FROM customers").kind == "rows"
        reply = client.ask(
            f"SELECT CONCAT(@`{NAME}`, @plain, @@sql_mode = @@global.sql_mode) FROM customers LIMIT 1"
        )
        assert reply.value == b"kept21"


@pytest.mark.parametrize("charset", ["gbk", "latin1"])
def test_names_in_other_character_sets(own: MakeOwn, charset: str) -> None:
    """Refused where the proxy would have to write them; what a query assigns stays on its connection."""
    proxy = own({})
    client = proxy.raw(database="legacy")
    name = NAME.encode("gbk")
    assert client.ask(f"SET NAMES {charset}").kind == "ok"
    reply = client.ask(b"SET @" + name + b" = 1")
    assert (reply.code, reply.sqlstate) == (1235, "42000")
    assert client.ask(b"SELECT 5 INTO @`" + name + b"`").kind == "ok"
    assert client.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    assert client.ask(b"SELECT @`" + name + b"`").value == b"5"
    other = proxy.raw()
    assert other.ask(f"SET NAMES {charset}").kind == "ok"
    assert other.ask(b"SELECT @`" + name + b"`").value is None
