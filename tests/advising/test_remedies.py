"""What is advised routes: every change of the schema that is named, and every statement to write instead, is
planned with the change made.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewriter.advice.changes import Trials
from rewriter.advice.cost import RANK, TO_ONE, Cost, Way
from rewriter.advice.remedies import Advice, advise
from rewriter.env import Env, env_of
from rewriter.planner import Rewriter
from tests.rewriter.support import SCHEMA_MODEL, TOPOLOGY, expand

from . import world

DEMO = Rewriter(SCHEMA_MODEL, TOPOLOGY)
SHOP = world.rewriter()


def cost(sql: str, database: str = "demo") -> Cost:
    return Trials(DEMO if database == "demo" else SHOP).cost(expand(sql).encode(), Env(database=database))


def advice(sql: str, database: str = "demo") -> list[Advice]:
    trials, env, text = (
        Trials(DEMO if database == "demo" else SHOP),
        Env(database=database),
        expand(sql).encode(),
    )
    return advise(trials, text, env, trials.cost(text, env))


@pytest.mark.parametrize(
    ("sql", "way", "shards"),
    [
        ("SELECT * FROM pins WHERE id = <pins 2 77>", Way.POINT, 1),
        ("SELECT * FROM pins WHERE id IN (<pins 2 77>, <pins 2 78>)", Way.ONE, 1),
        ("SELECT * FROM pins WHERE id IN (<pins 2 77>, <pins 1 5>)", Way.LIST, 2),
        ("SELECT * FROM pins", Way.SCATTER, 4),
        ("SELECT * FROM email_to_user WHERE email = 'a@b'", Way.POINT, 1),
        ("SELECT * FROM photos WHERE user_id = 12", Way.POINT, 1),
        ("UPDATE pins SET data = '{}'", Way.REFUSED, 0),
        ("UPDATE /*+ scatter */ pins SET data = '{}'", Way.SCATTER, 4),
        ("UPDATE pins SET id = 5 WHERE id = <pins 2 77>", Way.REFUSED, 0),
        ("SELECT username FROM usernames", Way.HOST, 0),
        (
            "SELECT p.id FROM pins p JOIN countries c ON c.code = p.data WHERE p.id = <pins 2 77>",
            Way.POINT,
            1,
        ),
        ("SELECT COUNT(DISTINCT data) FROM pins", Way.GATHER, 4),
        (
            "SELECT p.* FROM board_has_pins m JOIN pins p ON p.id = m.pin_id WHERE m.board_id = <boards 1 5>",
            Way.JOIN,
            1,
        ),
        ("INSERT INTO countries VALUES ('de', 'x')", Way.EVERYWHERE, 0),
        ("ALTER TABLE pins ADD COLUMN x INT", Way.DEFINITION, 4),
        ("CALL reorder_board_pin(<boards 1 5>, 1, 2, NULL)", Way.POINT, 1),
        ("SET NAMES utf8mb4", Way.PROXY, 0),
        ("SELEC 1", Way.REFUSED, 0),
        (
            "SELECT * FROM board_has_pins WHERE board_id = <boards 1 5> AND board_id = <boards 2 6>",
            Way.ONE,
            1,
        ),
    ],
)
def test_what_a_statement_costs(sql: str, way: Way, shards: int) -> None:
    found = cost(sql)
    assert (found.way, found.shards) == (way, shards)
    assert not found.estimated
    assert (found.error is not None) == (way is Way.REFUSED)


@pytest.mark.parametrize(
    ("sql", "way", "shards"),
    [
        ("SELECT * FROM pins WHERE id = 17", Way.POINT, 1),
        ("SELECT * FROM pins WHERE id IN (17, 18, 17)", Way.LIST, 2),
        ("SELECT * FROM pins WHERE id IN (1, 2, 3, 4, 5, 6)", Way.LIST, 4),
        ("SELECT * FROM pins WHERE id IN (17, 18) AND id IN (18, 19)", Way.ONE, 1),
        ("SELECT * FROM pins WHERE id = 17 OR data = 'x'", Way.SCATTER, 4),
        ("SELECT COUNT(DISTINCT data) FROM pins WHERE id IN (1, 2)", Way.GATHER, 2),
        ("SELECT COUNT(DISTINCT data) FROM pins WHERE id = 1", Way.POINT, 1),
        ("UPDATE pins SET data = '{}' WHERE id IN (1, 2)", Way.LIST, 2),
        ("UPDATE pins SET id = 5 WHERE id = 6", Way.REFUSED, 0),
        ("INSERT INTO pins (id, data) VALUES (17, '{}')", Way.ONE, 1),
        ("INSERT INTO board_has_pins (board_id, pin_id) VALUES (5, 7), (6, 7), (6, 8)", Way.LIST, 2),
    ],
)
def test_ids_that_no_shard_has_made_are_each_on_one(sql: str, way: Way, shards: int) -> None:
    """Those of an application that is not sharded yet."""
    found = cost(sql)
    assert (found.way, found.shards) == (way, shards)
    assert found.estimated or way is Way.REFUSED


ROUTED = [
    # (database, statement, a part of the best advice, what the statement or those instead of it cost then)
    ("demo", "SELECT * FROM users WHERE data->>'$.email' = 'x'", "read email_to_user", Way.POINT),
    (
        "demo",
        "UPDATE users SET data = '{}' WHERE JSON_VALUE(data, '$.email') = 'x'",
        "read email_to_user",
        Way.POINT,
    ),
    ("demo", "SELECT * FROM pins WHERE data->>'$.board_id' IN (17, 18)", "read board_has_pins", Way.JOIN),
    ("demo", "SELECT * FROM user_likes_pins WHERE pin_id = 5", "read pin_liked_by_user", Way.POINT),
    (
        "demo",
        "SELECT * FROM user_has_boards WHERE board_id = 5",
        "a mapping table from `board_id`",
        Way.POINT,
    ),
    (
        "demo",
        "DELETE FROM user_follows_user WHERE followed_id = 5",
        "a mapping table from `followed_id`",
        Way.LIST,
    ),
    ("demo", "SELECT * FROM email_to_user WHERE user_id = 5", "a table hashed by `user_id`", Way.LIST),
    ("demo", "SELECT * FROM photos WHERE caption = 'x'", "a table hashed by `caption`", Way.LIST),
    ("demo", "SELECT * FROM nothere WHERE id = 5", "name nothere in the schema", Way.HOST),
    (
        "demo",
        "SELECT p.id, u.username FROM pins p JOIN usernames u ON u.user_id = p.id WHERE p.id = <pins 2 77>",
        "make usernames a reference table",
        Way.POINT,
    ),
    (
        "shop",
        "SELECT * FROM orders WHERE user_id = 7 ORDER BY id DESC LIMIT 5",
        "every row of orders",
        Way.POINT,
    ),
    ("shop", "UPDATE orders SET state = 1 WHERE user_id = 7 AND state < 3", "every row of orders", Way.POINT),
    (
        "shop",
        "SELECT o.id, u.name FROM orders o JOIN users u ON u.id = o.user_id WHERE o.user_id IN (1, 2, 3)",
        "every row of orders",
        Way.LIST,
    ),
    (
        "shop",
        "SELECT o.id, u.name FROM orders o, users u WHERE u.id = o.user_id",
        "every row of orders",
        Way.SCATTER,
    ),
    ("shop", "SELECT * FROM users WHERE email = 'a@b'", "a table hashed by `email`", Way.POINT),
    ("shop", "DELETE FROM users WHERE email IN ('a@b', 'c@d')", "a table hashed by `email`", Way.LIST),
    (
        "shop",
        "SELECT o.id, s.name FROM orders o JOIN states s ON s.id = o.state WHERE o.id = 5",
        "make states a reference table",
        Way.POINT,
    ),
]


@pytest.mark.parametrize(("database", "sql", "text", "way"), ROUTED)
def test_what_would_route_a_statement(database: str, sql: str, text: str, way: Way) -> None:
    first = advice(sql, database)[0]
    assert text in first.text
    assert first.to is not None
    assert first.to.way is way or (way is Way.POINT and first.to.way in TO_ONE)
    assert first.to.better(cost(sql, database))


@pytest.mark.parametrize(("database", "sql", "text", "way"), ROUTED)
def test_what_is_named_was_tried(database: str, sql: str, text: str, way: Way) -> None:
    """Independently of what made the advice: with the change, and by the statements told."""
    trials = Trials(DEMO if database == "demo" else SHOP)
    env = Env(database=database)
    before = trials.cost(expand(sql).encode(), env)
    for one in advice(sql, database):
        if one.sql:
            for told in one.sql:
                text = told.replace("SELECT …", "SELECT *")
                if "…" not in text:
                    found = trials.cost(text.encode(), replace(env, parameters=True), one.change)
                    assert found.good, text
        elif one.change is not None:
            found = trials.cost(expand(sql).encode(), env, one.change)
            assert RANK[found.way] <= RANK[before.way]
            assert found == one.to


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT * FROM email_to_user WHERE LOWER(email) = 'secret'", "`LOWER(email) = ?` does not narrow"),
        ("SELECT * FROM pins WHERE id % 2 = 17", "`id % ? = ?` does not narrow"),
        ("SELECT * FROM pins WHERE id = 17 OR data = 'secret'", "cut `id = ? OR data = ?` into statements"),
        ("SELECT COUNT(*) FROM pins", "keep the number in a row of its own"),
        ("SELECT * FROM pins ORDER BY ts DESC LIMIT 10", "add a condition on `id` of pins"),
        (
            "SELECT * FROM users WHERE id IN (SELECT user_id FROM user_likes_pins WHERE pin_id = 17)",
            "run the subquery of `id IN (SELECT user_id FROM user_likes_pins WHERE pin_id = ?)` by itself",
        ),
        (
            "SELECT p.*, b.* FROM pins p JOIN boards b ON b.id = p.data->>'$.board_id' WHERE p.id = 17",
            "read the tables one after another instead of the join: boards by `id` IN (…)",
        ),
    ],
)
def test_what_is_said_of_the_statement_itself(sql: str, text: str) -> None:
    found = advice(sql)
    assert text in found[0].text
    assert not any("secret" in one.text or "17" in one.text for one in found)


def test_further_conditions_stay() -> None:
    sql = "DELETE FROM user_follows_user WHERE followed_id = 5 AND sequence < 7"
    assert advice(sql)[0].sql == (
        "SELECT user_id FROM user_follows_user_by_followed_id WHERE followed_id = ?",
        "DELETE FROM user_follows_user WHERE user_id IN (?) AND followed_id = ? AND …",
    )
    sql = "SELECT user_id FROM user_likes_pins WHERE pin_id = 5 AND sequence < 7"
    assert advice(sql)[0].sql[1].endswith("WHERE user_id IN (?) AND pin_id = ? AND …")


def test_few_values_make_no_hashed_table() -> None:
    assert [one.change for one in advice("SELECT * FROM users WHERE active = 1", "shop")] == [None]


def test_what_goes_to_one_shard_needs_no_advice() -> None:
    for sql in (
        "SELECT * FROM pins WHERE id = 17",
        "SELECT * FROM pins WHERE id IN (1, 2)",
        "SET NAMES utf8mb4",
    ):
        assert advice(sql) == []


def test_an_environment_by_its_key() -> None:
    envs = [
        Env(),
        Env(database="a b", ansi_quotes=True, parameters=True, server_version=101106),
        Env(database="", charset="gbk", connection="latin1", exact="01", pipes_as_concat=True),
        replace(
            Env(database="demo", ignore_space=True), each_shard=True, with_deleted=True, scatter_writes=True
        ),
    ]
    assert [env_of(one.key) for one in envs] == envs
