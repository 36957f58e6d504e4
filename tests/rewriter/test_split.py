"""A text is cut into its statements as servers cut it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.flavour import flavour_of
from rewriter.env import Env
from rewriter.text import split
from rewriter.text.split import cut, has_many_statements, only_first, trim

ENV = Env(server_version=90700)
MARIADB = Env(server_version=101106, flavour=flavour_of("MariaDB"))


def pieces(sql: str, env: Env = ENV) -> list[str]:
    text = trim(sql.encode())
    found = []
    at: int | None = 0
    while at is not None:
        piece = cut(text, at, env)
        found.append(text[piece.start : piece.end].decode())
        at = piece.following
    assert has_many_statements(sql.encode(), env) == (len(found) > 1)
    return found


WHOLE = [
    "SELECT 1",
    "SELECT ';', \";\", `;`, 'it''s;', 'a\\';'",
    "SELECT 1 /* ; */ # ;\n + -- ;\n 1",
    "SELECT */* ; */FROM t",
    "SELECT */*! , 1 */FROM t",
    "SELECT 'never closed; SELECT 2",
    "SELECT /* never closed; SELECT 2",
    "/*!99999 SELECT 1; */ SELECT 2",
    "/*!50000 SELECT 1; SELECT 2 */",  # servers refuse it whole
    "SELECT 1 --;SELECT 2",  # so they do this
    "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END",
    "CREATE DEFINER=`a`@`b;` PROCEDURE IF NOT EXISTS p(IN a INT) COMMENT ';' BEGIN END",
    "/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`b`*/ /*!50003 TRIGGER t BEFORE UPDATE ON x FOR EACH ROW "
    "BEGIN SET @a = 1; SET NEW.b = IF(NEW.b, 1, 2); END */",
    "CREATE TRIGGER t AFTER INSERT ON x FOR EACH ROW FOLLOWS `begin` IF 1 THEN SET @a = 1; END IF",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS NOW() COMMENT 'do' DO BEGIN SELECT 1; SELECT 2; END",
    "ALTER EVENT e ON SCHEDULE EVERY 2 DAY DO BEGIN SELECT 1; END",
    "CREATE PROCEDURE p() BEGIN IF a THEN SELECT 1; ELSEIF b THEN SELECT 2; ELSE SELECT 3; END IF; END",
    "CREATE PROCEDURE p() BEGIN CASE a WHEN 1 THEN DO 1; ELSE BEGIN DO 2; END; END CASE; DO 3; END",
    "CREATE PROCEDURE p() BEGIN SELECT CASE WHEN CASE 1 WHEN 1 THEN 2 END THEN 3 END; SELECT 4; END",
    "CREATE PROCEDURE p() l: BEGIN m: LOOP LEAVE m; END LOOP m; WHILE 1 DO SELECT 1; END WHILE; END l",
    "CREATE PROCEDURE p() BEGIN REPEAT SELECT 1; UNTIL REPEAT('a', 1) = 'a' END REPEAT; SELECT 2; END",
    "CREATE PROCEDURE p() BEGIN DECLARE EXIT HANDLER FOR NOT FOUND, SQLSTATE '42000' BEGIN SELECT 1; END; "
    "DECLARE CONTINUE HANDLER FOR 1051 SET @a = 1; SELECT end FROM t; END",
    "CREATE PROCEDURE p() IF EXISTS (SELECT 1) THEN SELECT 1; END IF",
    "CREATE FUNCTION f(a SET('x', ';')) RETURNS CHAR(9) CHARACTER SET utf8mb4 BEGIN RETURN ';'; END",
    "CREATE OR REPLACE AGGREGATE FUNCTION f(x INT) RETURNS INT BEGIN RETURN 1; END",
]


@pytest.mark.parametrize("sql", WHOLE)
def test_one_statement(sql: str) -> None:
    assert pieces(sql) == [sql]
    assert pieces(f"  {sql} ;; \n") == [sql]


@pytest.mark.parametrize(
    "sql", [sql for sql in WHOLE if "never" not in sql and "2 */" not in sql and "--;" not in sql]
)
def test_one_among_others(sql: str) -> None:
    assert pieces(f"SELECT 1; {sql};\n{sql};SELECT 2;") == ["SELECT 1", sql, sql, "SELECT 2"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("", [""]),
        (";", [""]),
        ("; SELECT 1", ["", "SELECT 1"]),
        ("SELECT 1;; SELECT 2", ["SELECT 1", "", "SELECT 2"]),
        ("SELECT 1; -- end", ["SELECT 1", "-- end"]),
        ("/*!50000 SELECT 1 */; SELECT 2", ["/*!50000 SELECT 1 */", "SELECT 2"]),
        ("SELECT 1; SELECT 'open; SELECT 3", ["SELECT 1", "SELECT 'open; SELECT 3"]),
        ("CREATE PROCEDURE p() DO IF(1, 2, 3); DO 2", ["CREATE PROCEDURE p() DO IF(1, 2, 3)", "DO 2"]),
        ("CREATE TABLE begin (a INT); SELECT 2", ["CREATE TABLE begin (a INT)", "SELECT 2"]),
        ("CREATE VIEW v AS SELECT CASE 1 WHEN 1 THEN 2 END; DO",
         ["CREATE VIEW v AS SELECT CASE 1 WHEN 1 THEN 2 END", "DO"]),
        ("DROP PROCEDURE p; BEGIN; COMMIT", ["DROP PROCEDURE p", "BEGIN", "COMMIT"]),
        ("ALTER EVENT e DISABLE; SELECT 1", ["ALTER EVENT e DISABLE", "SELECT 1"]),
        ("CREATE TRIGGER t AFTER DELETE ON x FOR EACH ROW DELETE FROM y; SELECT 1",
         ["CREATE TRIGGER t AFTER DELETE ON x FOR EACH ROW DELETE FROM y", "SELECT 1"]),
        ("IF 1 THEN SELECT 1; END IF", ["IF 1 THEN SELECT 1", "END IF"]),
        ("SELECT @`;`, @';' ; SELECT 2", ["SELECT @`;`, @';' ", "SELECT 2"]),
    ],
)  # fmt: skip
def test_several(sql: str, expected: list[str]) -> None:
    assert pieces(sql) == expected


def test_settings_matter() -> None:
    assert pieces("SELECT 'a\\'; SELECT 'b'") == ["SELECT 'a\\'; SELECT 'b'"]
    assert pieces("SELECT 'a\\'; SELECT 'b'", Env(no_backslash_escapes=True)) == [
        "SELECT 'a\\'",
        "SELECT 'b'",
    ]
    assert pieces('SELECT "a\\"; SELECT 1', Env(ansi_quotes=True)) == ['SELECT "a\\"', "SELECT 1"]
    assert pieces("/*M! SELECT 1; */ SELECT 2") == ["/*M! SELECT 1; */ SELECT 2"]
    block = "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END"
    for sql in (
        block,
        "IF 1 THEN SELECT 1; END IF",
        "FOR i IN 1..2 DO SELECT i; END FOR",
        f"a: LOOP {block}; END LOOP",
    ):
        assert pieces(f"{sql}; SELECT 3", MARIADB) == [sql, "SELECT 3"]


@given(st.text("';\"`-#/*!\n aB\\()", max_size=40))
def test_it_always_ends(text: str) -> None:
    for env in (ENV, MARIADB, Env(ansi_quotes=True, no_backslash_escapes=True)):
        found = pieces(text, env)
        assert sum(map(len, found)) <= len(text)
        pieces("CREATE PROCEDURE p() " + text, env)


def test_many_statements_take_linear_time() -> None:
    assert len(pieces("SELECT ';' /*!50000 + 1 */;" * 20_000)) == 20_000


@pytest.mark.parametrize("near", [300, 320, 400])
def test_what_is_cut_near_is_cut_alike(monkeypatch: pytest.MonkeyPatch, near: int) -> None:
    """Statements of all lengths around the limit, with all that hides a semicolon."""
    monkeypatch.setattr(split, "NEAR", near)
    inside = ("';'", '";"', "`;`", "/* ; */", "/*! 1; */", "'it''s;'", "x", "-- ;\n")
    cut_at_once = 0
    for size in range(60):
        body = " ".join(inside[(size + n) % len(inside)] for n in range(size))
        for text in (f"SELECT {body}; SELECT {body};  SELECT 3", f"DO 1;{' ' * size * 9}DO 2; SELECT {body}"):
            sql = trim(text.encode())
            at: int | None = 0
            while at is not None:
                expected = cut(sql, at, ENV)
                found = split.cut_near(sql, at, ENV)
                assert found in (None, expected)
                cut_at_once += found is not None
                at = expected.following
    assert cut_at_once > 100


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"SELECT 1; -- x", True),
        (b"SELECT 1; /* a */ # b\n;", True),
        (b"SELECT 1; /* a */ SELECT 2 /* b */", False),
        (b"SELECT 1; --\nSELECT 2", False),
        (b"SELECT 1; --\n", True),
        (b"SELECT 1; /*! SELECT 2 */", False),
        (b"/* a */; /* b */", False),
    ],
)
def test_only_comments_behind_the_first(sql: bytes, expected: bool) -> None:
    assert only_first(sql, Env()) == expected
