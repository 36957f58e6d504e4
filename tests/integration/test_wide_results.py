"""`character_set_results` of ucs2 and its kin: the proxy still reads what it asks."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeRaw
from tests.integration.raw import QUERY, command


@pytest.mark.parametrize("charset", ["ucs2", "utf16", "utf16le", "utf32"])
def test_warnings_and_insert_ids(raw: MakeRaw, flavour: str, charset: str) -> None:
    client = raw(database="legacy")
    client.write(command(QUERY, f"SET character_set_results = {charset}".encode()))
    assert client.packet()[:1] == b"\0"
    for number in range(2):  # the connection was given back in between
        client.write(command(QUERY, b"SELEC"))  # an error, so that its diagnostics are fetched
        assert client.packet()[:3] == b"\xff\x28\x04", number
    codec = {"utf16le": "utf-16-le", "utf32": "utf-32-be"}.get(charset, "utf-16-be")
    code = "1064".encode(codec) if flavour == "mariadb" else b"1064"  # as the servers themselves send it
    shown = client.ask("SHOW WARNINGS").rows
    assert [row[:2] for row in shown] == [("Error".encode(codec), code)]
    assert client.ask("CREATE TEMPORARY TABLE wide (id INT AUTO_INCREMENT PRIMARY KEY, b INT)").kind == "ok"
    assert client.ask("INSERT INTO wide (b) VALUES (1), (2)").insert_id == 1
    assert client.ask("INSERT INTO wide (id, b) VALUES (LAST_INSERT_ID(40 + 1), 3)").kind == "ok"
    client.write(command(QUERY, b"SET character_set_results = utf8mb4"))
    assert client.packet()[:1] == b"\0"
    assert client.ask("SELECT LAST_INSERT_ID()").value == b"41"
    assert client.ask("DROP TABLE wide").kind == "ok"
