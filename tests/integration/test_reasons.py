"""What a statement is told that cannot run, or that runs only in a part of its forms."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeRaw
from tests.integration.raw import Raw
from tests.support.servers import LocalServer


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE x FROM user_has_boards x JOIN board_has_pins y ON x.board_id = y.board_id WHERE y.pin_id = 5",
        "/* app */ DELETE FROM x USING user_has_boards x JOIN user_likes_pins y USING (user_id)"
        " WHERE y.pin_id = 5",
    ],
)
def test_a_delete_by_an_alias_that_names_no_id_hears_of_the_id(raw: MakeRaw, sql: str) -> None:
    client = raw()
    reply = client.ask(sql)
    assert reply.code == 1105
    assert "names no ID" in reply.message
    client.ask("SET scatter_writes = 1")
    assert client.ask(sql).kind == "ok"


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW COLUMNS FROM legacy.usernames FROM demo",
        "SHOW FULL COLUMNS IN legacy.usernames IN demo LIKE 'u%'",
        "SHOW FULL FIELDS FROM `nowhere`.`usernames` FROM `demo` WHERE Field = 'user_id'",
        "SHOW INDEX FROM legacy.usernames IN demo",
        "SHOW KEYS FROM demo.customers FROM legacy",
    ],
)
def test_the_database_behind_from_counts_in_show(raw: MakeRaw, plain: LocalServer, sql: str) -> None:
    with Raw("127.0.0.1", plain.port) as server:
        assert server.login(plain.user, plain.password, "demo").kind == "ok"
        mine, other = raw().ask(sql), server.ask(sql)
    assert (mine.kind, mine.columns) == (other.kind, other.columns)
    # without the estimates of rows
    assert (
        [row[:6] for row in mine.rows] == [row[:6] for row in other.rows] or "INDEX" in sql or "KEYS" in sql
    )
    assert mine.rows


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT IGNORE INTO email_to_user (user_id) VALUES (3)",
        "INSERT IGNORE INTO email_to_user (user_id) VALUES (3), (4)",
        "INSERT IGNORE INTO email_to_user SET user_id = 3",
        "INSERT IGNORE INTO email_to_user VALUES (DEFAULT, 3)",
        "INSERT IGNORE INTO email_to_user (user_id, email) VALUES (3, default), (4, DEFAULT)",
        "INSERT IGNORE INTO email_to_user SET user_id = 3, email = DEFAULT",
        "INSERT INTO email_to_user VALUES (DEFAULT, 3)",
        "INSERT INTO email_to_user (user_id) VALUES (3)",
    ],
)
def test_ignore_takes_the_implicit_default_of_a_key_that_is_left_out(
    raw: MakeRaw, plain: LocalServer, sql: str
) -> None:
    read = "SELECT email, user_id FROM email_to_user WHERE email = ''"
    clean = "DELETE FROM email_to_user WHERE email = ''"
    with Raw("127.0.0.1", plain.port) as server:
        assert server.login(plain.user, plain.password, "demo").kind == "ok"
        client = raw()
        mine, other = client.ask(sql), server.ask(sql)
        rows, theirs = client.ask(read).rows, server.ask(read).rows
        client.ask(clean), server.ask(clean)
    assert (mine.kind, mine.code, mine.affected, mine.warnings, mine.info) == (
        other.kind,
        other.code,
        other.affected,
        other.warnings,
        other.info,
    )
    assert rows == theirs
