"""Strict mode in writes that read first: their expressions run in a SELECT, and fail as in the write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from tests.integration.raw import Raw
from tests.integration.replies import Reply
from tests.support.demo import Demo
from tests.support.servers import LocalServer

FIRST, SECOND = (1 << 46 | 3 << 36 | 1), (2 << 46 | 3 << 36 | 1)
MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO"

JOINED = (
    "UPDATE /*+ scatter */ photos p, usernames u SET {} WHERE p.user_id = u.user_id AND p.caption LIKE 'sm%'"
)
VALUES = (
    "p.caption = u.username + 0",
    "p.caption = u.user_id + 'foo'",
    "p.caption = CAST(u.username AS SIGNED)",
    "p.taken_at = CAST(CONCAT(u.user_id, 'xx') AS DATETIME)",
    "p.caption = u.user_id / 0",
    "p.caption = CAST(u.user_id AS DECIMAL(5, 2))",
    "p.caption = STR_TO_DATE(u.username, '%Y')",
    "p.caption = DATE_ADD('9999-12-31', INTERVAL u.user_id DAY)",
    "p.caption = REPEAT(u.username, 1000000000)",
    "p.caption = CONVERT(x'ff' USING utf8mb4) = u.username",
    "p.caption = LOG(u.user_id - u.user_id)",
    "p.caption = CAST(u.username AS CHAR(1))",
    "p.caption = FORMAT(u.user_id, 0, 'xx')",
    "p.caption = JSON_VALUE(u.username, '$.a')",
    "p.caption = u.username, p.taken_at = '2020-02-30' + INTERVAL (u.user_id - u.user_id) DAY",
)
CONDITIONS = (
    "UPDATE /*+ scatter */ photos p, usernames u SET p.caption = 'sm'"
    " WHERE p.user_id = u.user_id AND p.caption LIKE 'sm%' AND u.username + 0 < 9",
    "DELETE /*+ scatter */ p FROM photos p, usernames u"
    " WHERE p.user_id = u.user_id AND p.caption LIKE 'sm%' AND u.username + 0 > 9",
    "DELETE /*+ scatter */ FROM photos WHERE caption LIKE 'sm%' AND caption + 0 > 9 ORDER BY id LIMIT 1",
    "UPDATE /*+ scatter */ photos SET caption = (SELECT MAX(username + 0) FROM usernames)"
    " WHERE caption LIKE 'sm%'",
)


class Sides(NamedTuple):
    """The proxy and one server, with the same rows."""

    proxy: Raw
    server: Raw

    def ask(self, sql: str) -> tuple[Reply, Reply]:
        """The replies of both."""
        return self.proxy.ask(sql), self.server.ask(sql)

    def rows(self) -> list[tuple[bytes | None, ...]]:
        """The rows, which both must have."""
        sql = "SELECT user_id, caption, taken_at FROM photos WHERE caption LIKE 'sm%' OR user_id IN ({}, {})"
        mine, other = self.ask(sql.format(FIRST, SECOND) + " ORDER BY id")
        assert mine.rows == other.rows
        return mine.rows


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[Sides]:
    with ExitStack() as stack:
        proxy = stack.enter_context(Raw(demo.host, demo.port))
        server = stack.enter_context(Raw("127.0.0.1", plain.port))
        assert proxy.login("demo", "demo", "demo").kind == "ok"
        assert server.login(plain.user, plain.password, "demo").kind == "ok"
        both = Sides(proxy, server)
        both.ask(f"DELETE FROM photos WHERE user_id IN ({FIRST}, {SECOND})")
        ids = []
        for user, caption in ((FIRST, "sm one"), (SECOND, "sm two")):
            made = proxy.ask(f"INSERT INTO photos (user_id, caption) VALUES ({user}, '{caption}')")
            ids.append(made.insert_id)
            server.ask(f"INSERT INTO photos (id, user_id, caption) VALUES ({ids[-1]}, {user}, '{caption}')")
        both.ask("DELETE FROM usernames WHERE username LIKE '%strict%'")
        both.ask(f"INSERT INTO usernames VALUES ('strict one', {FIRST}), ('7 strict', {SECOND})")
        both.ask(f"SET sql_mode = '{MODE}'")
        yield both
        both.ask("DELETE FROM usernames WHERE username LIKE '%strict%'")
        both.ask(f"DELETE FROM photos WHERE user_id IN ({FIRST}, {SECOND})")


def outcome(reply: Reply) -> tuple[object, ...]:
    """What a client must see alike."""
    return reply.kind, reply.code, reply.sqlstate, reply.affected


@pytest.mark.parametrize("value", VALUES)
def test_a_value_that_does_not_fit_is_the_error_of_one_server(sides: Sides, value: str) -> None:
    before = sides.rows()
    mine, other = sides.ask(JOINED.format(value))
    assert outcome(mine) == outcome(other), (mine, other)
    if mine.kind == "err":
        assert sides.rows() == before
    else:
        sides.rows()


@pytest.mark.parametrize("sql", CONDITIONS)
def test_a_condition_fails_where_it_fails_on_one_server(sides: Sides, sql: str) -> None:
    mine, other = sides.ask(sql)
    assert outcome(mine) == outcome(other), (mine, other)
    sides.rows()


@pytest.mark.parametrize("value", ["p.caption = u.user_id + 'foo'", "p.caption = u.user_id / 0"])
def test_without_strict_mode_and_with_ignore_they_are_warnings(sides: Sides, value: str) -> None:
    for mode, ignore in ((MODE, "IGNORE "), ("ERROR_FOR_DIVISION_BY_ZERO", "")):
        sides.proxy.ask("SET scatter_writes = 1")
        sides.ask(f"SET sql_mode = '{mode}'")
        sql = JOINED.format(value).replace("/*+ scatter */ ", ignore).replace("p.caption LIKE 'sm%'", "1")
        mine, other = sides.ask(sql.replace("AND 1", "AND u.username LIKE '%strict%'"))
        assert outcome(mine) == outcome(other), (mine, other)
        assert mine.warnings > 0
        mine, other = sides.ask("SHOW WARNINGS")
        assert sorted(row[:2] for row in mine.rows) == sorted(row[:2] for row in other.rows)
        sides.rows()


@pytest.mark.parametrize("most", [0, 1])
def test_an_error_is_seen_whatever_number_of_warnings_is_kept(sides: Sides, most: int) -> None:
    before = sides.rows()
    sides.ask(f"SET max_error_count = {most}")
    mine, other = sides.ask(JOINED.format("p.caption = u.user_id + 'foo'"))
    assert outcome(mine) == outcome(other), (mine, other)
    assert mine.kind == "err"
    assert sides.rows() == before
    assert sides.proxy.ask("SELECT @@max_error_count").value == b"%d" % most


STATEMENTS_BEFORE = ("SELECT CAST('zz' AS SIGNED)", "SELECT 1 / 0", "DO 1 + 'foo'")


@pytest.mark.parametrize("before", STATEMENTS_BEFORE)
@pytest.mark.parametrize(
    "value", ["VALUES (CONCAT('strict', '@b.c'), 5)", "SELECT CONCAT('strict', '@b.c'), 5"]
)
def test_the_warnings_of_the_statement_before_fail_no_write(sides: Sides, before: str, value: str) -> None:
    sides.ask(before)
    mine, other = sides.ask(f"INSERT INTO email_to_user (email, user_id) {value}")
    shown, theirs = sides.ask("SHOW WARNINGS")
    sides.ask("DELETE FROM email_to_user WHERE email = 'strict@b.c'")
    assert outcome(mine) == outcome(other), (mine, other)
    assert shown.rows == theirs.rows == []
    assert mine.warnings == 0


def test_the_warnings_of_the_rows_that_shards_leave_out_are_shown(sides: Sides) -> None:
    """Their conditions run on the shards, and the rest of the statement elsewhere."""
    sql = (
        "SELECT p.id FROM photos p JOIN usernames u ON p.user_id = u.user_id"
        " WHERE p.caption LIKE 'sm%' AND p.caption + 0 > 5 AND u.username LIKE '%strict%'"
    )
    mine, other = sides.ask(sql)
    assert (mine.rows, mine.warnings) == (other.rows, other.warnings) == ([], 2)
    mine, other = sides.ask("SHOW WARNINGS")
    assert sorted(mine.rows) == sorted(other.rows)
