"""Scripts of random statements about a session: a server's answers to them are what the proxy must give."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

SETUP = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s VARCHAR(10), UNIQUE (n))",
    "CREATE TABLE u (id INT PRIMARY KEY, s VARCHAR(10))",
    "INSERT INTO t (n, s) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
    "INSERT INTO u VALUES (1, 'x'), (2, 'y')",
    "CREATE PROCEDURE p (IN a INT, OUT b INT) BEGIN SET b = a + 1; SELECT a, @v0, COUNT(*) FROM u; END",
    "CREATE PROCEDURE q () BEGIN INSERT INTO t (n) VALUES (NULL); SET @v1 = LAST_INSERT_ID(); END",
    "SELECT 1",
)

_NAMES = ("v0", "v1", "v2")
_TABLES = ("t", "t", "u", "tmp", "tmp2", "nothing")
_MODES = (
    "''",
    "'ANSI_QUOTES'",
    "'NO_BACKSLASH_ESCAPES'",
    "'PIPES_AS_CONCAT'",
    "'STRICT_ALL_TABLES'",
    "DEFAULT",
    "'ANSI'",
    "CONCAT(@@sql_mode, ',NO_ZERO_DATE')",
)
_VALUES = (
    "1",
    "-2",
    "3.50",
    "1e2",
    "NULL",
    "'text'",
    "'it''s'",
    "x'414243'",
    "'5 apples'",
    "''",
    '"q"',
    "'a\\\\b'",
)
_EXPRESSIONS = (
    "@v0 + 1",
    "CONCAT(@v1, 'x')",
    "LAST_INSERT_ID()",
    "@v0 IS NULL",
    "ROW_COUNT()",
    "LAST_INSERT_ID(7)",
    "@@sql_select_limit > 5",
    "DATABASE()",
    "@@autocommit",
)
_ASKED = (
    "SELECT @v0, @v1, @v2",
    "SELECT ROW_COUNT(), LAST_INSERT_ID()",
    "SELECT FOUND_ROWS()",
    "SHOW WARNINGS",
    "SHOW COUNT(*) WARNINGS",
    "SHOW ERRORS",
    "SELECT @@warning_count, @@error_count",
    "SELECT @@sql_mode, @@autocommit, @@time_zone, @@{isolation}",
    "SELECT @@character_set_client, @@character_set_results, @@collation_connection",
    "SELECT DATABASE(), COUNT(*) FROM t",
    "SELECT * FROM t ORDER BY id",
    "SELECT @v0 = @v1, @v1 IS NULL",
)
_TRANSACTIONS = (
    "BEGIN",
    "START TRANSACTION",
    "START TRANSACTION READ ONLY",
    "START TRANSACTION READ WRITE",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "ROLLBACK",
    "SAVEPOINT a",
    "SAVEPOINT b",
    "ROLLBACK TO a",
    "ROLLBACK TO SAVEPOINT b",
    "RELEASE SAVEPOINT a",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "SET TRANSACTION READ ONLY",
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION TRANSACTION READ ONLY",
    "SET SESSION TRANSACTION READ WRITE",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET @@{isolation} = 'READ-COMMITTED'",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET @@autocommit = ON",
)
_SETS = (
    "SET NAMES utf8mb4",
    "SET NAMES latin1",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET NAMES nothing",
    "SET time_zone = '+01:00'",
    "SET time_zone = 'SYSTEM'",
    "SET time_zone = 'x'",
    "SET sql_select_limit = 2",
    "SET sql_select_limit = DEFAULT",
    "SET character_set_results = NULL",
    "SET max_error_count = 1",
    "SET max_error_count = DEFAULT",
    "SET no_such = 1",
    "SET wait_timeout = 1000, @v0 = 9",
    "SET @v0 = 1, sql_mode = 'nonsense'",
    "SET sql_auto_is_null = 0",
    "SET last_insert_id = 33",
    "SET collation_connection = latin1_bin",
    "SET CHARACTER SET latin1",
    "SET sql_notes = 0",
    "SET sql_notes = 1",
    "SET unique_checks = 0",
    "SET foreign_key_checks = DEFAULT",
    "SET innodb_lock_wait_timeout = 1",
)
_PINS = (
    "CREATE TEMPORARY TABLE tmp (n INT, s VARCHAR(10))",
    "CREATE TEMPORARY TABLE tmp2 AS SELECT 1 AS n, 'z' AS s",
    "CREATE TEMPORARY TABLE IF NOT EXISTS tmp (n INT, s VARCHAR(10))",
    "DROP TEMPORARY TABLE tmp",
    "DROP TEMPORARY TABLE IF EXISTS tmp, tmp2",
    "DROP TABLE tmp2",
    "TRUNCATE TABLE tmp",
    "PREPARE st FROM 'SELECT ? + 1, @v0'",
    "PREPARE st FROM 'INSERT INTO t (n) VALUES (?)'",
    "EXECUTE st USING @v0",
    "EXECUTE st",
    "DEALLOCATE PREPARE st",
    "PREPARE bad FROM 'SELEC'",
    "SELECT GET_LOCK('a', 0)",
    "SELECT GET_LOCK('b', 0), GET_LOCK('a', 0)",
    "DO RELEASE_LOCK('a')",
    "SELECT RELEASE_LOCK('b')",
    "SELECT RELEASE_ALL_LOCKS()",
    "SELECT IS_USED_LOCK('a') = CONNECTION_ID()",
    "SELECT IS_FREE_LOCK('b')",
    "LOCK TABLES t WRITE",
    "LOCK TABLES t READ, u READ",
    "UNLOCK TABLES",
    "UNLOCK TABLES",
    "HANDLER t OPEN",
    "HANDLER t READ FIRST",
    "HANDLER t CLOSE",
    "FLUSH TABLES t",
)
_OTHERS = (
    "ALTER TABLE u COMMENT = 'x'",
    "CREATE TABLE v (n INT)",
    "DROP TABLE IF EXISTS v",
    "CREATE INDEX i ON u (s)",
    "DROP INDEX i ON u",
    "TRUNCATE TABLE u",
    "ANALYZE TABLE u",
    "USE scripts",
    "USE nothing_such",
    "SELEC 1",
    "CALL p(3, @v1)",
    "CALL q()",
    "CALL nothing()",
    "DO 1",
    "DO SLEEP(0)",
    "SELECT CAST('x' AS SIGNED)",
    "SELECT 1",
    "SELECT 1 FROM DUAL WHERE 0",
    "DROP TABLE IF EXISTS nothing",
    "SHOW TABLES LIKE 'u'",
    "DESCRIBE u",
    "SELECT SQL_CALC_FOUND_ROWS id FROM t ORDER BY id LIMIT 1",
    "SELECT id FROM t ORDER BY id LIMIT 1, 2",
    "SELECT n INTO @v1 FROM t WHERE id = 2",
    "SELECT n, s INTO @v0, @v2 FROM t ORDER BY id LIMIT 1",
    "SELECT @v0 := n FROM t ORDER BY id",
    "SELECT id FROM t WHERE n = 1 FOR UPDATE",
    "SELECT * FROM u LOCK IN SHARE MODE",
    "SELECT 1 UNION SELECT 2",
    "SIGNAL SQLSTATE '45000'",
    "SELECT 1/0",
    "SHOW CREATE TABLE u",
    "(SELECT id FROM u) LIMIT 1",
    "/* nothing */",
    "SELECT /*! 1 */ 1",
)


_OF_OTHERS = (
    "SELECT COUNT(*) FROM scripts.u",
    "SELECT * FROM scripts.tmp",
    "SELECT @v0, @@sql_mode",
    "SELECT IS_FREE_LOCK('a')",
    "SET sql_mode = 'ANSI', @v0 = 'theirs'",
    "SET NAMES latin1",
)
_ON_DUPLICATE = "ON DUPLICATE KEY UPDATE n = n + 20, id = LAST_INSERT_ID(id)"


def _change(choice: Random) -> str:
    table = choice.choice(_TABLES)
    n, s, id_ = choice.randrange(12), choice.choice(_VALUES), choice.randrange(1, 9)
    return choice.choice(
        (
            f"INSERT INTO {table} (n, s) VALUES ({n}, {s})",
            f"INSERT IGNORE INTO t (n, s) VALUES ({n}, {s}), ({n + 1}, 'much too long text')",
            f"INSERT INTO t (id, n) VALUES ({id_}, {n}) {_ON_DUPLICATE}",
            f"REPLACE INTO t (id, n, s) VALUES ({id_}, {n}, {s})",
            f"INSERT INTO t (n) SELECT MAX(n) + {n + 1} FROM t AS x",
            f"UPDATE {table} SET s = {s} WHERE id = {id_}",
            f"UPDATE t SET n = n + 100 WHERE n = {n}",
            f"UPDATE t SET n = (@v0 := n + 50) WHERE id = {id_}",
            f"DELETE FROM {table} WHERE id = {id_}",
            f"DELETE FROM t ORDER BY id DESC LIMIT {n % 2}",
            f"INSERT INTO u VALUES ({id_}, {s})",
            f"SELECT * FROM {table} WHERE s <> {s} ORDER BY 1",
        )
    )


def _assign(choice: Random) -> str:
    value = choice.choice(choice.choice((_VALUES, _EXPRESSIONS)))
    return f"SET @{choice.choice(_NAMES)} = {value}"


_KINDS: tuple[tuple[int, Callable[[Random], str]], ...] = (
    (30, lambda choice: choice.choice(_ASKED)),
    (22, _change),
    (15, lambda choice: choice.choice(_TRANSACTIONS)),
    (10, _assign),
    (8, lambda choice: choice.choice(_SETS)),
    (3, lambda choice: f"SET sql_mode = {choice.choice(_MODES)}"),
    (12, lambda choice: choice.choice(_PINS)),
    (12, lambda choice: choice.choice(_OTHERS)),
)


def random_line(choice: Random) -> str:
    """One of the lines of random scripts."""
    return choice.choices([make for _, make in _KINDS], [weight for weight, _ in _KINDS])[0](choice)


def random_script(seed: int, length: int) -> list[str]:
    """`length` lines behind `SETUP`, the same ones for the same seed. One in twelve is for a second session,
    and one in eight goes as a prepared statement.
    """
    choice = Random(seed)
    weights = [weight for weight, _ in _KINDS]
    lines = list(SETUP)
    for _ in range(length):
        kind = choice.choices(_KINDS, weights)[0][1]
        line = kind(choice)
        if choice.random() < 0.125 and "SESSION TRANSACTION" not in line and "CALL" not in line:
            line = "P: " + line
        if choice.random() < 0.08:
            line = "2: " + choice.choice(
                (
                    "SELECT COUNT(*) FROM scripts.u",
                    "SELECT * FROM scripts.tmp",
                    "SELECT @v0, @@sql_mode",
                    "SELECT IS_FREE_LOCK('a')",
                    "SET sql_mode = 'ANSI', @v0 = 'theirs'",
                    "SET NAMES latin1",
                )
            )
        lines.append(line)
        if "CALL" in line:
            lines.append("SELECT 1")
    return lines
