"""What statements leave behind in a session: FOUND_ROWS(), ROW_COUNT(), LAST_INSERT_ID(), warnings, errors:
after each of many kinds of statements as after them on a server itself; as text, prepared, and among several.
"""

from __future__ import annotations

from itertools import cycle

import pytest

from tests.integration.binary import Binary
from tests.integration.raw import MORE_RESULTS, SET_OPTION, command
from tests.sessions.test_scripts import Side, sides, told

__all__ = ["sides"]

SETUP = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s VARCHAR(5))",
    "INSERT INTO t (n) VALUES (1), (2), (3)",
    "CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
    "INSERT INTO u (n) VALUES (5), (6)",
    "CREATE PROCEDURE p1() SELECT id FROM t LIMIT 2",
    "CREATE PROCEDURE p2() BEGIN SELECT 1; SELECT id FROM t; UPDATE t SET n = n + 1 WHERE id < 3; END",
    "CREATE PROCEDURE p3() BEGIN INSERT INTO u (n) VALUES (9); INSERT INTO u (n) VALUES (10); END",
    "CREATE PROCEDURE p4() BEGIN DECLARE x INT; SELECT COUNT(*) INTO x FROM t; END",
    "CREATE PROCEDURE p5() BEGIN SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1; END",
    "CREATE FUNCTION f1() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM t)",
    "CREATE VIEW v AS SELECT * FROM t",
)

#: Left out: what MariaDB clears its warnings for by what is in it (a stored function, an EXECUTE of a SET).
STATEMENTS = """
SELECT 1
DO 1
DO SLEEP(0)
DO (SELECT COUNT(*) FROM t)
SHOW FULL PROCESSLIST
SHOW GRANTS
SHOW DATABASES LIKE 'scr%'
SHOW SCHEMAS LIKE 'scr%'
SHOW TABLES
SHOW FULL TABLES
SHOW TABLES LIKE 't'
SHOW COLUMNS FROM t
SHOW FULL COLUMNS FROM t
DESCRIBE t
DESC t id
SHOW INDEX FROM t
SHOW CREATE TABLE t
SHOW CREATE VIEW v
SHOW CREATE PROCEDURE p0
SHOW CREATE FUNCTION f1
SHOW CREATE DATABASE scripts
SHOW TABLE STATUS
SHOW TABLE STATUS LIKE 't'
SHOW VARIABLES LIKE 'auto_inc%'
SHOW GLOBAL VARIABLES LIKE 'auto_inc%'
SHOW STATUS LIKE 'Uptime'
SHOW GLOBAL STATUS LIKE 'Uptime'
SHOW SESSION STATUS LIKE 'Com_sel%'
SHOW WARNINGS
SHOW ERRORS
SHOW COUNT(*) WARNINGS
SHOW COUNT(*) ERRORS
SHOW ENGINES
SHOW PLUGINS
SHOW PRIVILEGES
SHOW CHARACTER SET LIKE 'utf8%'
SHOW COLLATION LIKE 'latin1%'
SHOW TRIGGERS
SHOW EVENTS
SHOW PROCEDURE STATUS WHERE Db = 'scripts'
SHOW FUNCTION STATUS WHERE Db = 'scripts'
SHOW OPEN TABLES FROM scripts
SHOW ENGINE INNODB STATUS
SHOW PROFILES
USE scripts
USE nothing
SET @a = 1
SET @a = (SELECT COUNT(*) FROM t)
SET @a = 1 + 1
SET sql_mode = ''
SET sql_mode = CONCAT(@@sql_mode, '')
SET NAMES utf8mb4
SET autocommit = 1
SET TRANSACTION READ WRITE
SET no_such = 1
EXPLAIN SELECT 1
EXPLAIN SELECT * FROM t
EXPLAIN FORMAT=JSON SELECT * FROM t
DESCRIBE SELECT * FROM t
EXPLAIN UPDATE t SET n = 1
EXPLAIN t
ANALYZE FORMAT=JSON SELECT * FROM t
ANALYZE SELECT * FROM t
EXPLAIN ANALYZE SELECT * FROM t
EXPLAIN FORMAT=TREE SELECT * FROM t
HELP 'select'
CALL p3()
CALL p1()
CALL p2()
CALL p4()
CALL p5()
SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1
SELECT id FROM t LIMIT 1
SELECT id FROM t LIMIT 0
SELECT id FROM t LIMIT 1, 1
SELECT id FROM t LIMIT 10, 1
SELECT id FROM t LIMIT 1 OFFSET 2
SELECT id FROM t WHERE 0
SELECT COUNT(*) FROM t
SELECT id FROM t UNION SELECT id FROM u
SELECT id FROM t UNION ALL SELECT id FROM u LIMIT 2
(SELECT id FROM t LIMIT 1) UNION ALL (SELECT id FROM u LIMIT 1)
SELECT SQL_CALC_FOUND_ROWS id FROM t UNION ALL SELECT id FROM u LIMIT 1
SELECT id INTO @x FROM t LIMIT 1
SELECT id INTO @x FROM t WHERE id = 99
SELECT id, n INTO @x, @y FROM t WHERE id = 1
SELECT DISTINCT n FROM t LIMIT 1
SELECT n, COUNT(*) FROM t GROUP BY n LIMIT 2
SELECT n, COUNT(*) FROM t GROUP BY n WITH ROLLUP
SELECT * FROM (SELECT id FROM t LIMIT 2) x
SELECT id FROM t WHERE id IN (SELECT id FROM u) LIMIT 1
SELECT id FROM t FOR UPDATE
SELECT * FROM v LIMIT 1
WITH c AS (SELECT id FROM t) SELECT * FROM c LIMIT 1
VALUES ROW(1), ROW(2)
VALUES (1), (2)
TABLE t
TABLE t LIMIT 1
INSERT INTO t (n) VALUES (7)
INSERT INTO t (n) VALUES (7), (8)
INSERT INTO t SET n = 3
INSERT INTO t (id, n) VALUES (1, 7)
INSERT IGNORE INTO t (id, n) VALUES (1, 7), (200, 1)
INSERT INTO t (n) SELECT n FROM u
INSERT INTO t (n) SELECT n FROM u WHERE 0
INSERT INTO t (n) SELECT n FROM u LIMIT 1
INSERT INTO t (id, n) VALUES (1, 7) ON DUPLICATE KEY UPDATE n = n + 1
INSERT INTO t (n) VALUES (7) RETURNING id
REPLACE INTO t (id, n) VALUES (1, 9)
REPLACE INTO t (id, n) SELECT id, n FROM u
REPLACE INTO t (n) VALUES (7) RETURNING id, n
UPDATE t SET n = n + 1
UPDATE t SET n = n
UPDATE t SET n = 5 WHERE id = 2
UPDATE t SET n = 5 WHERE id = 999
UPDATE t, u SET t.n = 99 WHERE t.id = u.id
UPDATE t SET n = 6 ORDER BY id LIMIT 1
UPDATE t JOIN u USING (id) SET t.n = u.n, u.n = 0
DELETE FROM t WHERE id = 3
DELETE FROM t WHERE id = 999
DELETE FROM t WHERE id > 100
DELETE t FROM t JOIN u USING (id)
DELETE FROM t WHERE id = 2 RETURNING id
DELETE FROM u LIMIT 1
TRUNCATE TABLE u
CREATE TABLE w (n INT)
CREATE TABLE IF NOT EXISTS w (n INT)
CREATE TABLE w2 AS SELECT id FROM t
CREATE TABLE w3 LIKE t
CREATE TEMPORARY TABLE tmp AS SELECT id FROM t LIMIT 2
INSERT INTO tmp VALUES (1), (2)
DROP TEMPORARY TABLE tmp
ALTER TABLE w ADD COLUMN m INT
ALTER TABLE t ADD COLUMN zz INT
CREATE INDEX i ON t (n)
DROP INDEX i ON t
RENAME TABLE w TO w9
DROP TABLE IF EXISTS w9, w2, w3, nothing
CREATE VIEW v2 AS SELECT 1
DROP VIEW v2
CREATE PROCEDURE p9() SELECT 1
DROP PROCEDURE p9
CREATE DATABASE IF NOT EXISTS scripts
ANALYZE TABLE t
CHECK TABLE t
CHECKSUM TABLE t
OPTIMIZE TABLE t
REPAIR TABLE t
FLUSH TABLES
FLUSH STATUS
LOCK TABLES t READ
UNLOCK TABLES
BEGIN
SAVEPOINT a
RELEASE SAVEPOINT a
COMMIT
ROLLBACK
START TRANSACTION READ ONLY
COMMIT
PREPARE st FROM 'SELECT id FROM t'
EXECUTE st
DEALLOCATE PREPARE st
PREPARE st FROM 'UPDATE t SET n = n + 1'
EXECUTE st
DEALLOCATE PREPARE st
PREPARE st FROM 'INSERT INTO t (n) VALUES (1)'
EXECUTE st
DEALLOCATE PREPARE st
PREPARE st FROM 'SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1'
EXECUTE st
DEALLOCATE PREPARE st
PREPARE st FROM 'CALL p2()'
EXECUTE st
DEALLOCATE PREPARE st
PREPARE st FROM 'SHOW TABLES'
EXECUTE st
DEALLOCATE PREPARE st
PREPARE st FROM 'SELECT id FROM t LIMIT 1, 1'
EXECUTE st
DEALLOCATE PREPARE st
PREPARE st FROM 'DELETE FROM t WHERE id > 1000'
EXECUTE st
DEALLOCATE PREPARE st
EXECUTE IMMEDIATE 'SELECT id FROM t LIMIT 2'
EXECUTE nothing
HANDLER t OPEN
HANDLER t READ FIRST
HANDLER t READ FIRST LIMIT 2
HANDLER t CLOSE
SELECT GET_LOCK('l', 0)
SELECT RELEASE_LOCK('l')
SELECT SLEEP(0)
SELECT 1/0
SELECT CAST('x' AS SIGNED)
SELECT * FROM nothing
SELEC
SIGNAL SQLSTATE '45000'
SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'w'
GET DIAGNOSTICS @n = NUMBER
RESIGNAL
KILL 99999999
XA RECOVER
SELECT * FROM information_schema.schemata WHERE schema_name = 'scripts'
SELECT table_name FROM information_schema.tables WHERE table_schema = 'scripts' LIMIT 1
SELECT COUNT(*) FROM information_schema.processlist
SELECT LAST_INSERT_ID(77)
UPDATE t SET n = LAST_INSERT_ID(n + 1) WHERE id = 1
SELECT @v := 5
SELECT @v := id FROM t
BEGIN NOT ATOMIC SELECT 1; SELECT id FROM t; END
LOAD DATA INFILE '/nonexistent' INTO TABLE t
SELECT id FROM t INTO OUTFILE '/nonexistent/x'
SELECT 1 LIMIT 0
SELECT id FROM t PROCEDURE ANALYSE()
SHOW STORAGE ENGINES
SHOW BINLOG EVENTS
SHOW REPLICA STATUS
SHOW SLAVE STATUS
SHOW MASTER STATUS
SHOW BINARY LOG STATUS
SHOW CREATE USER
SHOW INDEXES FROM t WHERE Key_name = 'x'
SELECT id FROM t LIMIT 18446744073709551615
SELECT NULL INTO @x
/* nothing */
SELECT 1;
SELECT id FROM t ORDER BY id FETCH FIRST 1 ROWS ONLY
SELECT id FROM t ORDER BY id OFFSET 1 ROWS FETCH FIRST 1 ROWS ONLY
SELECT id FROM t LIMIT ROWS EXAMINED 100
""".strip().split("\n")

FIVE_ROWS = b"SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5"
#: What comes before: rows, a change, an error.
BEFORE = (FIVE_ROWS, b"INSERT INTO u (n) VALUES (4)", b"SELEC")
ASKED = (b"SELECT FOUND_ROWS(), ROW_COUNT(), LAST_INSERT_ID()", b"SHOW WARNINGS")


@pytest.fixture
def filled(sides: tuple[Side, Side]) -> tuple[Side, Side]:
    """Both sides, with the tables and procedures of SETUP."""
    for side in sides:
        for sql in SETUP:
            assert side.ask(1, sql.encode()).kind == "ok"
    return sides


def _run(side: Side, text: bytes) -> list[tuple[object, ...]]:
    """The kinds of all replies to a statement, and what the session says afterwards."""
    found = [side.ask(1, text)]
    while found[-1].kind != "err" and found[-1].status & MORE_RESULTS:
        raw = side.sessions[1]
        found.append(Binary(raw).answer() if text.startswith(b"P: ") else raw.reply())
    kinds = [(one.kind, one.code) for one in found]
    return [*kinds, *(told(side.ask(1, asked)) for asked in ASKED)]


@pytest.mark.parametrize("way", ["", "P: "])
def test_after_a_statement(filled: tuple[Side, Side], way: str) -> None:
    through, direct = filled
    differences = []
    for statement, before in zip(STATEMENTS, cycle(BEFORE), strict=False):
        for side in filled:
            side.ask(1, before)
        text = (way + statement).encode()
        expected, got = _run(direct, text), _run(through, text)
        if expected != got:
            differences.append(f"{before!r}; {statement}\n    direct  {expected}\n    through {got}")
    assert not differences, "\n" + "\n".join(differences)


def test_among_several_statements(filled: tuple[Side, Side]) -> None:
    through, direct = filled
    for side in filled:
        side.sessions[1].write(command(SET_OPTION, b"\0\0"))
        side.sessions[1].packet()
    differences = []
    for statement, before in zip(STATEMENTS, cycle(BEFORE[:2]), strict=False):
        text = b"; ".join((before, statement.encode(), b"SELECT ROW_COUNT()"))
        expected, got = _run(direct, text), _run(through, text)
        if expected != got:
            differences.append(f"{text!r}\n    direct  {expected}\n    through {got}")
    assert not differences, "\n" + "\n".join(differences)
