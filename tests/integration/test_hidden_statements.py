"""Statements within others that only a server reads, where they are for sharded tables."""

from __future__ import annotations

import pytest

from tests.integration.answers import answer
from tests.integration.fixtures import Connect
from tests.support.servers import LocalServer

BLOCKS = [
    "BEGIN NOT ATOMIC SELECT 1; END",
    "/* app */ BEGIN NOT ATOMIC SELECT 1; END",
    "IF 1 THEN SELECT 1; END IF",
]


@pytest.mark.parametrize("database", [None, "demo"])
def test_a_block_outside_of_a_routine_is_refused_unless_it_is_no_sql(
    connect: Connect, plain: LocalServer, database: str | None
) -> None:
    client = connect(database=database)
    with plain.connect(database="legacy") as server:
        for sql in (*BLOCKS, "BEGIN NOT ATOMIC SELEC 1; END"):
            expected = answer(server, sql)
            found = answer(client, sql)
            if expected[0] == 1064:
                assert found == expected
            else:
                assert found[0] == 1235
                assert "a block of statements outside of a routine" in found[1]


@pytest.mark.parametrize(
    "statements",
    [
        ["EXECUTE IMMEDIATE 'USE demo'"],
        ["/* app */ EXECUTE IMMEDIATE 'USE demo'"],
        ["SET @s = 'USE demo'", "EXECUTE IMMEDIATE @s"],
        ["PREPARE s FROM 'USE demo'", "EXECUTE s"],
        ["BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'USE demo'; END"],
    ],
)
def test_a_hidden_use_of_a_sharded_database_is_refused_in_clear_words(
    connect: Connect, plain: LocalServer, statements: list[str]
) -> None:
    client = connect(database="legacy")
    with plain.connect(database="legacy") as server:
        expected = [answer(server, sql) for sql in statements]
    found = [answer(client, sql) for sql in statements]
    assert found[:-1] == expected[:-1]
    if expected[-1] == ():  # MariaDB
        code, message = found[-1]
        assert code == 1235
        assert "does not have the sharded database 'demo'" in message
        assert answer(client, "SHOW WARNINGS")[0] == ("Error", code, message)
    else:
        assert found[-1] == expected[-1]
    assert answer(client, "SELECT DATABASE()") == (("legacy",),)
    assert answer(client, "PREPARE s FROM 'SELECT 1'") == ()
