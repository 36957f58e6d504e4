"""COM_STMT_PREPARE answers whatever the plan is, and what it gives can be executed."""

from __future__ import annotations

import pytest

from tests.integration.binary import Answer, Binary, integer, text
from tests.integration.fixtures import MakeRaw


def test_rows_that_are_gathered(raw: MakeRaw) -> None:
    sql = "SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS place FROM users ORDER BY id LIMIT 3"
    binary = Binary(raw())
    made = binary.statement(sql)
    assert (made.parameters, made.columns) == (0, 2)
    answer = binary.execute(made.id)
    assert (answer.names, len(answer.rows)) == (["id", "place"], 3)


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
        "UPDATE photos SET caption = ? WHERE id IN (SELECT id FROM photos WHERE caption LIKE ?)",
        text("test_prepared_plans b"),
        text("test_prepared_plans a'%"),
    )
    assert changed.ok.affected == 2
    gone = binary.run(
        "DELETE FROM photos WHERE id IN (SELECT id FROM photos WHERE caption = ?)",
        text("test_prepared_plans b"),
    )
    assert gone.ok.affected == 2
