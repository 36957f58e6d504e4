"""A text that is a key is converted to character_set_connection, and must be found again."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeRaw


@pytest.mark.parametrize("collation", ["latin1_swedish_ci", "ascii_general_ci", "utf8mb4_general_ci"])
def test_a_hashed_key(raw: MakeRaw, collation: str) -> None:
    client = raw()
    assert client.ask(f"SET collation_connection = {collation}").kind == "ok"
    for key in ("中@converted", "plain@converted"):
        reply = client.ask(f"REPLACE INTO email_to_user (email, user_id) VALUES ('{key}', 1)")
        assert (reply.kind == "ok") == (key.isascii() or collation.startswith("utf8mb4")), reply
        if reply.kind == "err":
            assert "in UTF-8. SET NAMES utf8mb4" in reply.message
    other = raw()
    for row in other.ask("SELECT email FROM email_to_user WHERE email LIKE '%@converted'").rows:
        text = (row[0] or b"").decode()
        assert other.ask(f"SELECT COUNT(*) FROM email_to_user WHERE email = '{text}'").value == b"1"
    assert other.ask("DELETE /*+ scatter */ FROM email_to_user WHERE email LIKE '%@converted'").kind == "ok"


def test_connections_in_which_ascii_is_something_else(raw: MakeRaw) -> None:
    client = raw()
    for charset in ("swe7", "ucs2", "utf16", "utf32"):
        reply = client.ask(f"SET character_set_connection = {charset}")
        assert (reply.code, reply.sqlstate) == (1231, "42000")
        assert client.ask("SELECT @@character_set_connection").value == b"utf8mb4"
