"""Scripts, as in `scripts.py`, of what a session is told of the statement before: FOUND_ROWS() and the
diagnostics. `P: ` stands before what is sent as a prepared statement.
"""

from __future__ import annotations

from tests.sessions.scripts import ITEMS

#: Before each of these FOUND_ROWS() is 7; what is it then?
_COUNTED = (
    "UPDATE t SET n = 5",
    "UPDATE t SET n = 5",
    "UPDATE t SET n = 8 WHERE id < 3 LIMIT 1",
    "UPDATE t SET n = 8 WHERE id > 300",
    "UPDATE t JOIN seven ON t.id > seven.a SET t.n = 4",
    "UPDATE nothing SET a = 1",
    "INSERT INTO t (n) VALUES (1), (2)",
    "INSERT INTO t (n, s) SELECT n, s FROM t LIMIT 2",
    "REPLACE INTO t SELECT * FROM t LIMIT 1",
    "DELETE FROM t WHERE id = 3",
    "DELETE t FROM t JOIN seven ON t.id = seven.a + 3",
    "SELECT MAX(id) INTO @a FROM t",
    "SELECT id FROM t WHERE id = 1 INTO @a",
    "SELECT * FROM t LIMIT 1, 2",
    "SELECT * FROM t LIMIT 1 OFFSET 1",
    "SELECT * FROM t LIMIT 1 OFFSET 100",
    "SELECT * FROM t LIMIT 0",
    "SELECT * FROM (SELECT * FROM seven LIMIT 2, 9) AS x LIMIT 1, 1",
    "SELECT * FROM seven UNION ALL SELECT * FROM seven LIMIT 1",
    "SELECT SQL_CALC_FOUND_ROWS * FROM seven LIMIT 1, 1",
    "P: SELECT * FROM t LIMIT 1, 1",
    "P: UPDATE t SET n = n + 1 WHERE id < 3",
    "EXPLAIN SELECT * FROM seven WHERE a = 1",
    "DESCRIBE t",
    "SHOW CREATE TABLE t",
    "SHOW COLUMNS FROM t",
    "SHOW WARNINGS",
    "SHOW COUNT(*) WARNINGS",
    "CHECK TABLE t",
    "SAVEPOINT a",
    "mariadb: INSERT INTO t (n) VALUES (6), (7) RETURNING id, n",
    "mariadb: INSERT INTO t (id, n) VALUES (1000, 8) RETURNING id",
    "mariadb: REPLACE INTO t (n) VALUES (8) RETURNING id",
    "mariadb: DELETE FROM t WHERE n > 6 RETURNING id",
)


def _asked(line: str) -> tuple[str, str, str]:
    flavour = "mariadb: " if line.startswith("mariadb: ") else ""
    told = "SELECT FOUND_ROWS(), ROW_COUNT(), LAST_INSERT_ID()"
    return f"{flavour}SELECT * FROM seven", line, flavour + told


_BAD = "INSERT IGNORE INTO t (n, s) VALUES (1, 'much too long for twenty'), ('x', 'b')"

TOLD_SCRIPTS: dict[str, tuple[str, ...]] = {
    "found rows of all kinds": (
        *ITEMS,
        "CREATE TABLE seven (a INT)",
        "INSERT INTO seven VALUES (1), (2), (3), (4), (5), (6), (7)",
        *(step for line in _COUNTED for step in _asked(line)),
    ),
    "prepared and diagnostics": (
        *ITEMS,
        _BAD,
        "P: SELECT @@warning_count, @@error_count",
        _BAD,
        "P: SHOW WARNINGS",
        "P: SHOW COUNT(*) WARNINGS",
        "P: SHOW ERRORS",
        "P: SHOW WARNINGS LIMIT 1",
        "P: " + _BAD,
        "SHOW WARNINGS",
        "SHOW COUNT(*) WARNINGS",
        "P: SELECT CAST('x' AS SIGNED)",
        "SHOW WARNINGS",
        "P: SELECT CAST('x' AS SIGNED)",
        "P: SHOW WARNINGS",
        "P: SELECT 1",
        "P: SHOW WARNINGS",
        "SELECT * FROM nothing",
        "P: SHOW WARNINGS",
        "P: SELECT * FROM nothing",
        "SHOW WARNINGS",
        "P: SHOW COUNT(*) ERRORS",
    ),
    "more than one diagnostic": (
        *ITEMS,
        "INSERT INTO t (id, n) SELECT '1 a', CONCAT(n, 'x') FROM t",
        "SHOW WARNINGS",
        "SELECT @@warning_count, @@error_count",
        "BEGIN",
        "UPDATE t SET id = '1 a' WHERE n = '2 b'",
        "SHOW WARNINGS",
        "ROLLBACK",
        "CREATE PROCEDURE fails () BEGIN SELECT CAST('y' AS SIGNED) INTO @y; SELECT * FROM nothing; END",
        "CALL fails()",
        "SHOW WARNINGS",
        "DROP TABLE nothing, nobody",
        "SHOW WARNINGS",
        "SET max_error_count = 1",
        _BAD,
        "SHOW WARNINGS",
        "SHOW COUNT(*) WARNINGS",
        "SELECT @@warning_count",
        "SET max_error_count = 0",
        _BAD,
        "SHOW WARNINGS",
        "SHOW COUNT(*) WARNINGS",
        "SELECT * FROM nothing",
        "SHOW WARNINGS",
        "SELEC 1",
        "SHOW WARNINGS",
        "SET max_error_count = DEFAULT, sql_notes = 0",
        "DROP TABLE IF EXISTS nothing",
        "SHOW WARNINGS",
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'hello'",
        "SHOW WARNINGS",
        "SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'warned'",
        "SHOW WARNINGS",
    ),
}
