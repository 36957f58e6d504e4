"""A syntax error or an unknown name in a row of an INSERT over shards: no row is written, as on a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.integration.binary import Answer, Binary, text
from tests.integration.fixtures import MakeRaw
from tests.integration.raw import Raw
from tests.integration.replies import Reply
from tests.support.servers import LocalServer

KEYS = [f"resolved {letter}" for letter in "abcdefgh"]
"""Keys of email_to_user, on shards of both hosts."""
ALL = ", ".join(f"'{key}'" for key in KEYS)

WRONG = (
    "COUNT(1 b)", "1 b", "1 2", "nothing", "COUNT(1)", "nowhere.f(1)", "no_such_function(1)", "1 +", "x'0'",
    "email_to_user.x", "x'zz'", "b'12'", "1e999", "NOW(7)", "UUID(1)", "DEFAULT(nothing)", "VALUES(nothing)",
    "LENGTH()", "CAST(1 AS NOTHING)", "(1, 2)", "@@nothing", "_utf8mb4'\\xff", "MAX(user_id)",
    "'a' 'b' c", "1 COLLATE nothing", "-DEFAULT", "N'a' b", "CURRENT_TIMESTAMP(1, 2)", "(SELECT nothing)",
    "1, 2", "*", "?", "$$", "",
)  # fmt: skip
"""Values that a server refuses before it writes a row."""
RIGHT = (
    "1 + 1", "LENGTH(UUID())", "x'31'", "b'101'", "1e3", "YEAR(NOW(6))", "user_id + 1", "(2)", "'1' '2'",
    "0x31", "@nothing IS NULL", "CAST('7' AS UNSIGNED)", "TRUE", "-(-5)", "LENGTH(_utf8mb4'a')", "CRC32('a')",
)  # fmt: skip


class Sides(NamedTuple):
    """The proxy and one server."""

    proxy: Raw
    server: Raw

    def ask(self, sql: str) -> tuple[Reply, Reply]:
        """The replies of both."""
        return self.proxy.ask(sql), self.server.ask(sql)

    def rows(self) -> list[tuple[bytes | None, ...]]:
        """The rows, which both must have."""
        mine, other = self.ask(f"SELECT email, user_id FROM email_to_user WHERE email IN ({ALL})")
        assert sorted(mine.rows) == sorted(other.rows)
        return sorted(mine.rows)


@pytest.fixture
def sides(raw: MakeRaw, plain: LocalServer) -> Iterator[Sides]:
    with Raw("127.0.0.1", plain.port) as server:
        assert server.login(plain.user, plain.password, "demo").kind == "ok"
        both = Sides(raw(), server)
        both.ask("ROLLBACK")
        both.ask(f"DELETE FROM email_to_user WHERE email IN ({ALL})")
        yield both
        both.ask("ROLLBACK")
        both.ask(f"DELETE FROM email_to_user WHERE email IN ({ALL})")


def rows(value: str, *, at: int = 0, others: str = "7") -> str:
    """VALUES with `value` in one row."""
    return ", ".join(f"('{key}', {value if number == at else others})" for number, key in enumerate(KEYS))


@pytest.mark.parametrize("value", WRONG)
def test_nothing_is_written_where_one_row_has_an_error_of_syntax_or_of_a_name(
    sides: Sides, value: str
) -> None:
    for at in (0, 5):
        mine, other = sides.ask(f"INSERT INTO email_to_user (email, user_id) VALUES {rows(value, at=at)}")
        assert (mine.kind, mine.code, mine.sqlstate) == (other.kind, other.code, other.sqlstate), (
            mine,
            other,
        )
        assert mine.kind == "err"
        assert sides.rows() == []


def test_a_function_of_the_server_s_own_is_another_one_behind_a_blank(sides: Sides) -> None:
    mine, other = sides.ask(f"INSERT INTO email_to_user VALUES {rows('NOW ()')}")
    assert (mine.kind, other.kind) == ("err", "err")
    assert sides.rows() == []


@pytest.mark.parametrize("value", RIGHT)
def test_values_that_a_server_has_to_resolve_are_written(sides: Sides, value: str) -> None:
    mine, other = sides.ask(f"INSERT INTO email_to_user (email, user_id) VALUES {rows(value)}")
    assert (mine.kind, mine.affected, mine.message) == (other.kind, other.affected, other.message)
    assert len(sides.rows()) == len(KEYS)


STATEMENTS = (
    f"REPLACE INTO email_to_user VALUES {rows('COUNT(1 b)')}",
    f"INSERT IGNORE INTO email_to_user VALUES {rows('nothing', at=2)}",
    f"INSERT INTO email_to_user VALUES {rows('COUNT(1)', at=1, others='1 + 1')}",
    f"INSERT INTO email_to_user VALUES {rows('no_such_function()')} ON DUPLICATE KEY UPDATE user_id = 5",
    f"INSERT INTO email_to_user VALUES {rows('4')} ON DUPLICATE KEY UPDATE user_id = nothing",
    f"INSERT INTO email_to_user VALUES {rows('4')} ON DUPLICATE KEY UPDATE user_id = COUNT(1 b)",
    f"INSERT INTO email_to_user (email, nothing) VALUES {rows('4')}",
    "INSERT INTO email_to_user SET email = 'resolved a', user_id = COUNT(1 b)",
    f"UPDATE email_to_user SET user_id = COUNT(1 b) WHERE email IN ({ALL})",
    f"UPDATE email_to_user SET user_id = 5 WHERE email IN ({ALL}) AND nothing = 1",
    f"DELETE FROM email_to_user WHERE email IN ({ALL}) AND user_id IN (3, COUNT(1 b))",
    f"DELETE FROM email_to_user WHERE email IN ({ALL}) AND (user_id = 3 OR nothing = 1)",
)


@pytest.mark.parametrize("begin", ["SET autocommit = 1", "BEGIN", "SET transaction_mode = 'xa'"])
@pytest.mark.parametrize("sql", STATEMENTS)
def test_nothing_is_written_by_whatever_statement_and_in_transactions(
    sides: Sides, sql: str, begin: str
) -> None:
    sides.ask(f"INSERT INTO email_to_user VALUES {rows('3')}" if "INTO" not in sql else "DO 1")
    before = sides.rows()
    sides.proxy.ask(begin)
    if begin == "BEGIN":
        sides.server.ask(begin)
    mine, other = sides.ask(sql)
    assert (mine.kind, mine.code, mine.sqlstate) == (other.kind, other.code, other.sqlstate), (mine, other)
    assert mine.kind == "err"
    shown, theirs = sides.ask("SHOW WARNINGS")
    assert [row[:2] for row in shown.rows] == [row[:2] for row in theirs.rows]
    sides.ask("COMMIT")
    assert sides.rows() == before


def test_returning_over_shards_writes_nothing_either(sides: Sides, flavour: str) -> None:
    if flavour != "mariadb":
        pytest.skip("MariaDB's own")
    for sql in (
        f"INSERT INTO email_to_user VALUES {rows('nothing')} RETURNING email",
        f"INSERT INTO email_to_user VALUES {rows('4')} RETURNING nothing",
    ):
        mine, other = sides.ask(sql)
        assert (mine.kind, mine.code) == (other.kind, other.code) == ("err", 1054)
        assert sides.rows() == []


def test_a_prepared_statement_with_an_unknown_name_in_a_row_is_not_prepared(sides: Sides) -> None:
    for value in ("nothing + ?", "COUNT(?)", "no_such_function(?)", "? b"):
        sql = f"INSERT INTO email_to_user VALUES {rows(value)}"
        mine, other = (Binary(one).prepare(sql) for one in sides)
        assert isinstance(mine, Answer)
        assert isinstance(other, Answer)
        assert (mine.kind, mine.code) == (other.kind, other.code)


def test_a_prepared_statement_with_a_value_to_resolve_is_executed(sides: Sides) -> None:
    sql = f"INSERT INTO email_to_user VALUES {rows('LENGTH(?)')}"
    for client in sides:
        one = Binary(client)
        number = one.statement(sql).id
        answer = one.execute(number, [text("four")])
        assert isinstance(answer, Answer)
        assert answer.kind == "ok"
    assert len(sides.rows()) == len(KEYS)


def test_rows_of_literals_are_not_asked_about(sides: Sides) -> None:
    def prepared() -> int:
        reply = sides.proxy.ask("SHOW GLOBAL STATUS LIKE 'Com_stmt_prepare'")
        return int(reply.rows[0][1] or 0)

    before = prepared()
    for value in ("5", "-5", "NULL IS NULL"[:4], "'5'", "TRUE", "x'35'", "b'101'", "@a", "UUID()", "NOW(6)"):
        sides.proxy.ask(f"INSERT IGNORE INTO email_to_user VALUES {rows(value)}")
    assert prepared() == before
    sides.proxy.ask(f"REPLACE INTO email_to_user VALUES {rows('2 + 2')}")
    assert prepared() > before


USERS = [shard << 46 | 3 << 36 | 4321 for shard in range(64)]
TABLES = {
    "user_has_boards": ("(user_id, board_id, sequence)", "({user}, 4321, {value})", "board_id = 4321"),
    "photos": ("(user_id, caption)", "({user}, CONCAT('resolved', {value}))", "caption LIKE 'resolved%'"),
    "boards": ("(data, ts)", '(\'{{"user_id": {user}, "resolved": 1}}\', {value})', "data LIKE '%resolved%'"),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("length", [1, 40])
def test_rows_of_every_kind_of_table_and_of_long_statements(sides: Sides, table: str, length: int) -> None:
    columns, row, where = TABLES[table]
    users = USERS * length
    for wrong in ("COUNT(1 b)", "nothing", "no_such_function()"):
        values = ", ".join(
            row.format(user=user, value=wrong if number == 30 else number)
            for number, user in enumerate(users)
        )
        mine, other = sides.ask(f"INSERT INTO {table} {columns} VALUES {values}")
        assert (mine.kind, mine.code) == (other.kind, other.code), (mine, other)
        assert mine.kind == "err"
        sides.proxy.ask("SET scatter_writes = 1")
        assert sides.proxy.ask(f"DELETE FROM {table} WHERE {where}").affected == 0
