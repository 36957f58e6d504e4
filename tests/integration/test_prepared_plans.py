"""COM_STMT_PREPARE answers whatever the plan is, and what it gives can be executed."""

from __future__ import annotations

import pytest

from config.layout import PINTEREST
from tests.integration.binary import Answer, Binary, integer, text
from tests.integration.fixtures import MakeRaw


def test_rows_that_are_gathered(raw: MakeRaw) -> None:
    sql = "SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS place FROM users ORDER BY id LIMIT 3"
    binary = Binary(raw())
    made = binary.statement(sql)
    assert (made.parameters, made.columns) == (0, 2)
    answer = binary.execute(made.id)
    assert (answer.names, len(answer.rows)) == (["id", "place"], 3)


def test_parameters_of_what_is_gathered(raw: MakeRaw) -> None:
    """A server knows them as parameters: no value stands for them, which might be none of their type."""
    binary = Binary(raw())
    made = binary.statement(
        "SELECT u.id + ? AS n, ? COLLATE utf8mb4_bin AS t, COUNT(*) OVER () AS c"
        " FROM users u WHERE u.id > ? LIMIT ?"
    )
    assert (made.parameters, made.columns) == (4, 3)
    answer = binary.execute(made.id, [integer(0), text("x"), integer(0), integer(2)])
    assert (answer.names, len(answer.rows)) == (["n", "t", "c"], 2)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, ROW_NUMBER() OVER (ORDER BY id) FROM users WHERE id > ?",
        "DELETE FROM countries WHERE code = ?",
        "ALTER TABLE users COMMENT = 'x'",
        "INSERT INTO user_likes_pins SELECT * FROM user_likes_pins WHERE user_id > ?",
    ],
)
def test_statements_for_several_hosts(raw: MakeRaw, sql: str) -> None:
    """Only prepared: it can be, or the error is the one for what cannot."""
    client = raw()
    made = Binary(client).prepare(sql)
    assert not isinstance(made, Answer) or made.code == 1295, made
    assert client.ask("SELECT 1").value == b"1"


def test_writes_that_read_first(raw: MakeRaw) -> None:
    """INSERT … SELECT, then UPDATE and DELETE of rows that a subquery names, each with parameters."""
    binary = Binary(raw())
    made = binary.run(
        "INSERT INTO photos (user_id, caption) SELECT ? + 0, CONCAT('test_prepared_plans ', ?)"
        " FROM users ORDER BY id LIMIT 2",
        integer(7),
        text("a'b"),
    )
    assert made.ok.affected == 2
    changed = binary.run(
        "UPDATE photos SET caption = ?"
        " WHERE id IN (SELECT id FROM (SELECT id FROM photos WHERE caption LIKE ?) x)",
        text("test_prepared_plans b"),
        text("test_prepared_plans a'%"),
    )
    assert changed.ok.affected == 2
    gone = binary.run(
        "DELETE FROM photos WHERE id IN (SELECT id FROM (SELECT id FROM photos WHERE caption = ?) x)",
        text("test_prepared_plans b"),
    )
    assert gone.ok.affected == 2


def test_changes_of_several_tables(raw: MakeRaw) -> None:
    """Values that a server is asked for, a join over shards, LIMIT over shards; each with parameters."""
    binary = Binary(raw())
    user = PINTEREST.compose(shard=9, type=3, local=660_001)
    other = PINTEREST.compose(shard=50, type=3, local=660_002)
    for id in (user, other):
        made = binary.run(
            "INSERT INTO users (id, data)"
            " VALUES (? DIV 1, (SELECT JSON_OBJECT('n', COUNT(*) * 0 + ?) FROM boards))",
            integer(id),
            integer(5),
        )
        assert made.ok.affected == 1
    binary.run(
        "INSERT INTO user_follows_user VALUES (?, ?, 1), (?, ?, 2)", *map(integer, (user, other, other, user))
    )
    changed = binary.run(
        "UPDATE user_follows_user f JOIN users u ON u.id = f.followed_id"
        " SET f.sequence = JSON_EXTRACT(u.data, '$.n') + ? WHERE f.user_id IN (?, ?)",
        *map(integer, (100, user, other)),
    )
    assert changed.ok.affected == 2
    sql = f"SELECT COUNT(*) FROM user_follows_user WHERE user_id IN ({user}, {other}) AND sequence = 105"
    assert binary.raw.ask(sql).value == b"2"
    gone = binary.run(
        "DELETE FROM user_follows_user WHERE user_id IN (?, ?) ORDER BY user_id LIMIT ?",
        *map(integer, (user, other, 1)),
    )
    assert gone.ok.affected == 1
    gone = binary.run(
        "DELETE f, u FROM user_follows_user f JOIN users u ON u.id = f.user_id WHERE f.user_id IN (?, ?)",
        *map(integer, (user, other)),
    )
    assert gone.ok.affected == 2
    assert binary.run("DELETE FROM users WHERE id IN (?, ?)", integer(user), integer(other)).ok.affected == 1
