"""Random sessions: statements and commands in any order, whose answers must be a server's own.

What `random_scripts` has of statements, and besides them commands, settings of all kinds, procedures with
several results, several statements in one text, diagnostics, locks, XA, HANDLER, read-only transactions.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from random import Random

from tests.integration.binary import Answer, Binary
from tests.integration.raw import (
    INIT_DB,
    MORE_RESULTS,
    PING,
    RESET_CONNECTION,
    SET_OPTION,
    Closed,
    Raw,
    command,
)
from tests.integration.replies import Reply
from tests.sessions.random_scripts import random_line
from tests.sessions.test_scripts import Side, told

SETUP = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, s VARCHAR(10), UNIQUE (n))",
    "CREATE TABLE u (id INT PRIMARY KEY, s VARCHAR(10))",
    "CREATE TABLE seen (n INT)",
    "INSERT INTO t (n, s) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
    "INSERT INTO u VALUES (1, 'x'), (2, 'y')",
    "CREATE PROCEDURE p (IN a INT, OUT b INT) BEGIN SET b = a + 1; SELECT a, @v0, COUNT(*) FROM u; END",
    "CREATE PROCEDURE q () BEGIN INSERT INTO t (n) VALUES (NULL); SET @v1 = LAST_INSERT_ID(); END",
    "CREATE PROCEDURE two () BEGIN SELECT id FROM t ORDER BY id LIMIT 2; SELECT 'b' AS b, 2.50 AS c; END",
    "CREATE PROCEDURE warns () BEGIN SELECT CAST('x' AS SIGNED); END",
    "CREATE PROCEDURE fails () BEGIN SELECT 1; INSERT INTO u VALUES (1, 'again'); SELECT 2; END",
    "CREATE PROCEDURE handles () BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN GET DIAGNOSTICS"
    " CONDITION 1 @v2 = MYSQL_ERRNO; END; INSERT INTO u VALUES (1, 'again'); END",
    "CREATE PROCEDURE makes () BEGIN CREATE TEMPORARY TABLE IF NOT EXISTS made AS SELECT 1 AS n; END",
    "CREATE PROCEDURE commits () BEGIN START TRANSACTION; INSERT INTO u VALUES (8, 'c'); COMMIT; END",
    "CREATE PROCEDURE sets () BEGIN SET sql_mode = 'ANSI_QUOTES'; SET @v0 = 'set'; SET NAMES latin1; END",
    "CREATE FUNCTION f (a INT) RETURNS INT DETERMINISTIC BEGIN SET @v2 = a * 2; RETURN a + 1; END",
    "CREATE TRIGGER tr AFTER INSERT ON u FOR EACH ROW BEGIN INSERT INTO seen VALUES (NEW.id);"
    " SET @v1 = NEW.id; END",
    "CREATE VIEW v AS SELECT id, f(id) AS g FROM u",
    "SELECT 1",
)

_SETTINGS = (
    "SET completion_type = 1",
    "SET completion_type = 'NO_CHAIN'",
    "SET completion_type = DEFAULT",
    "SET sql_select_limit = 1",
    "SET sql_select_limit = DEFAULT",
    "SET sql_safe_updates = 1",
    "SET sql_safe_updates = 0",
    "SET sql_warnings = 1",
    "SET group_concat_max_len = 5",
    "SET group_concat_max_len = DEFAULT",
    "SET div_precision_increment = 2",
    "SET auto_increment_increment = 3, auto_increment_offset = 2",
    "SET auto_increment_increment = DEFAULT, auto_increment_offset = DEFAULT",
    "SET timestamp = 1500000000.5",
    "SET timestamp = DEFAULT",
    "SET lc_time_names = 'de_DE'",
    "SET max_error_count = 0",
    "SET @@session.sql_mode = CONCAT(@@sql_mode, ',NO_ZERO_DATE'), @v0 = @@sql_mode",
    "SET @@session.max_join_size = 5",
    "SET @@session.max_join_size = DEFAULT",
    "SET SESSION tmp_table_size = 1000000",
    "SET default_storage_engine = 'InnoDB'",
    "SET old_alter_table = 0",
    "SET @v0 = CAST('2020-01-02' AS DATE), @v1 = CAST('12:13:14.5' AS TIME(1)), @v2 = 1 = 1",
    "SET @v0 = NULL, @v1 = x'00ff', @v2 = 1.5e300",
    "SET @v1 = _latin1'a' COLLATE latin1_bin, @v2 = CAST(-1 AS UNSIGNED)",
    "SET @v2 = REPEAT('ab', 300), @v0 = 0x41, @v1 = b'101'",
    "SET @`odd name` = 5, @v1 = @`odd name` + 1",
    "SET @v0 = (SELECT MAX(n) FROM t), @v1 = (SELECT s FROM u WHERE id = 1)",
    "SET @v0 = f(3)",
)
_OF_MARIADB = (
    "SET max_statement_time = 2",
    "SET max_statement_time = DEFAULT",
    "SET STATEMENT max_statement_time = 1 FOR SELECT 1",
    "SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT \"id\" FROM t ORDER BY 1 LIMIT 1",
    "EXECUTE IMMEDIATE 'SELECT n + ? FROM t ORDER BY id LIMIT 1' USING 3",
    "INSERT INTO t (n) VALUES (NULL) RETURNING id > 0",
    "SELECT * FROM t ORDER BY id FETCH FIRST 1 ROWS ONLY",
    "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END",
    "SELECT NEXTVAL(nothing)",
)
_OF_MYSQL = (
    "SET max_execution_time = 2000",
    "SET max_execution_time = DEFAULT",
    "SELECT /*+ MAX_EXECUTION_TIME(1000) */ COUNT(*) FROM t",
    "SELECT /*+ SET_VAR(sql_mode = '') */ 1",
    "SET PERSIST_ONLY sql_select_limit = 'x'",
    "TABLE u ORDER BY id LIMIT 1",
    "VALUES ROW(1, 'a'), ROW(2, 'b')",
    "SELECT @@persisted_globals_load",
)
_ASKED = (
    "SELECT @v0, @v1, @v2",
    "SELECT HEX(@v0), HEX(@v1), HEX(@v2), COLLATION(@v1), @v0 + 0, @v1 IS NULL",
    "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()",
    "SHOW WARNINGS",
    "SHOW WARNINGS LIMIT 1",
    "SHOW ERRORS",
    "SHOW COUNT(*) ERRORS",
    "SHOW COUNT(*) WARNINGS",
    "SELECT @@error_count, @@warning_count",
    "SELECT @@sql_mode, @@autocommit, @@completion_type, @@sql_select_limit, @@group_concat_max_len",
    "SELECT @@session.auto_increment_increment, @@timestamp = 1500000000.5, @@lc_time_names",
    "SELECT @@global.autocommit, @@session.autocommit, @@local.sql_safe_updates",
    "SELECT DATABASE(), @@character_set_client, @@collation_connection",
    "SELECT GROUP_CONCAT(s ORDER BY id), 1 / 3, DATE_FORMAT('2020-01-01', '%M') FROM u",
    "SELECT * FROM t ORDER BY id",
    "SELECT * FROM u ORDER BY id",
    "SELECT COUNT(*) FROM seen",
    "SELECT id, g FROM v ORDER BY id",
    "SELECT IS_USED_LOCK('a') = CONNECTION_ID(), IS_FREE_LOCK('b')",
)
_STATEMENTS = (
    "CALL two()",
    "CALL warns()",
    "CALL fails()",
    "CALL handles()",
    "CALL makes()",
    "CALL commits()",
    "CALL sets()",
    "CALL p(@v0, @v1)",
    "CALL q",
    "SELECT f(5)",
    "SELECT * FROM made",
    "DROP TEMPORARY TABLE IF EXISTS made",
    "INSERT INTO u VALUES (FLOOR(3 + (SELECT COUNT(*) FROM seen)), 'z')",
    "DELETE FROM u WHERE id > 2",
    "INSERT INTO t (n) VALUES (NULL), (NULL)",
    "SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'careful', MYSQL_ERRNO = 1234",
    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no', MYSQL_ERRNO = 5678",
    "SIGNAL SQLSTATE '02000'",
    "RESIGNAL",
    "KILL QUERY CONNECTION_ID()",
    "SELECT SLEEP(0)",
    "SELECT BENCHMARK(2, 1)",
    "SELECT SQL_BIG_RESULT n, COUNT(*) FROM t GROUP BY n ORDER BY n",
    "SELECT SQL_CALC_FOUND_ROWS n FROM t ORDER BY id LIMIT 2",
    "SELECT SQL_NO_CACHE 1",
    "SELECT HIGH_PRIORITY n FROM t ORDER BY id LIMIT 1",
    "SHOW CREATE TABLE t",
    "SHOW CREATE PROCEDURE p",
    "SHOW CREATE FUNCTION f",
    "SHOW CREATE VIEW v",
    "SHOW CREATE TRIGGER nothing",
    "SHOW TABLES",
    "SHOW COLUMNS FROM u",
    "SHOW INDEX FROM nothing",
    "SHOW TRIGGERS LIKE 'nothing'",
    "SHOW OPEN TABLES LIKE 'nothing'",
    "SHOW ENGINES LIKE 'x'",
    "SHOW VARIABLES LIKE 'sql_select%'",
    "SHOW GLOBAL VARIABLES LIKE 'autocommit'",
    "DESCRIBE t s",
    "EXPLAIN SELECT 1",
    "CHECKSUM TABLE u",
    "CHECK TABLE u",
    "LOCK TABLES t WRITE, seen WRITE",
    "LOCK TABLES u READ LOCAL, t AS x READ",
    "UNLOCK TABLES",
    "HANDLER u OPEN AS h",
    "HANDLER h READ FIRST",
    "HANDLER h READ NEXT",
    "HANDLER h CLOSE",
    "DO GET_LOCK('a', 0)",
    "SELECT GET_LOCK('b', 0)",
    "SELECT RELEASE_ALL_LOCKS()",
    "XA START 'random'",
    "XA END 'random'",
    "XA PREPARE 'random'",
    "XA COMMIT 'random'",
    "XA COMMIT 'random' ONE PHASE",
    "XA ROLLBACK 'random'",
    "XA RECOVER",
    "START TRANSACTION READ ONLY",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "COMMIT AND CHAIN",
    "ROLLBACK AND CHAIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT a",
    "ROLLBACK TO SAVEPOINT a",
    "RELEASE SAVEPOINT nothing",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "PREPARE st FROM 'SELECT ?, n FROM t ORDER BY id LIMIT 1'",
    "PREPARE st FROM 'CALL two()'",
    "PREPARE st FROM 'UPDATE t SET s = ? WHERE id = 2'",
    "SET @v2 = 'SELECT COUNT(*) FROM t WHERE n > ?'",
    "PREPARE st FROM @v2",
    "EXECUTE st USING @v0",
    "EXECUTE st",
    "DEALLOCATE PREPARE st",
    "DROP PREPARE st",
    "ALTER TABLE u ALTER s SET DEFAULT 'q'",
    "CREATE TEMPORARY TABLE t (id INT, n INT, s VARCHAR(10))",
    "DROP TEMPORARY TABLE t",
    "DROP TEMPORARY TABLE IF EXISTS t",
    "CREATE OR REPLACE VIEW w AS SELECT 1 AS one",
    "FLUSH TABLES",
    "RESET QUERY CACHE",
    "SELECT 1 INTO @v0",
    "SELECT id, s INTO @v0, @v1 FROM u ORDER BY id LIMIT 1",
    "SELECT id INTO @v0 FROM u",
    "SELECT id INTO @v0 FROM u WHERE 0",
    "SELECT 'a' = 'A', 'a' COLLATE utf8mb4_bin = 'A'",
    "INSERT INTO u (id) VALUES ('abc')",
    "INSERT IGNORE INTO u (id, s) VALUES ('5x', 'way too long for it')",
    "UPDATE u SET s = 'k' LIMIT 1",
    "DELETE FROM t WHERE n IS NULL",
    "REPLACE INTO u VALUES (2, 'yy')",
)
_PIECES = (
    "SELECT 1",
    "SELECT id FROM t ORDER BY id LIMIT 1",
    "INSERT INTO t (n) VALUES (NULL)",
    "INSERT INTO u VALUES (1, 'dup')",
    "SET @v0 = 7",
    "SELECT CAST('x' AS SIGNED)",
    "SELEC",
    "SHOW WARNINGS",
    "CALL two()",
    "BEGIN",
    "COMMIT",
    "SELECT * FROM nothing",
    "SELECT @v0, ROW_COUNT()",
    "USE scripts",
    "DO 0",
)
_COMMANDS = ("PING", "RESET", "INIT_DB scripts", "INIT_DB nothing", "OPTION 0", "OPTION 1", "USER")


def _several(choice: Random) -> str:
    return "M: " + "; ".join(choice.choice(_PIECES) for _ in range(choice.randrange(2, 5)))


def _own(flavour: str) -> tuple[str, ...]:
    return _OF_MARIADB if flavour == "mariadb" else _OF_MYSQL


def random_session(seed: int, length: int, flavour: str) -> list[str]:
    """`length` lines behind SETUP, the same ones for the same seed. Lines that begin with `P: ` go as
    prepared statements, `M: ` are several statements, `C: ` commands, `2: ` for a second session.
    """
    choice = Random(seed)
    kinds: tuple[tuple[int, Callable[[], str]], ...] = (
        (30, lambda: choice.choice(_ASKED)),
        (34, lambda: choice.choice(_STATEMENTS)),
        (10, lambda: choice.choice(_SETTINGS)),
        (3, lambda: choice.choice(_own(flavour))),
        (14, lambda: random_line(choice)),
        (5, lambda: _several(choice)),
        (3, lambda: "C: " + choice.choice(_COMMANDS)),
    )
    lines = list(SETUP)
    for _ in range(length):
        line = choice.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]()
        if (
            line[1:3] != ": "
            and choice.random() < 0.12
            and "CREATE" not in line
            and "TRANSACTION" not in line
        ):
            line = "P: " + line
        lines.append(line)
        if ("CALL" in line or "ATOMIC" in line) and not line.startswith("M: "):
            lines.append("SELECT COUNT(*) FROM seen")  # MariaDB clears warnings by what is in the procedure
    isolation = "tx_isolation" if flavour == "mariadb" else "transaction_isolation"
    return [line.replace("{isolation}", isolation) for line in lines]


def replies(side: Side, line: str) -> list[tuple[object, ...]]:
    """What a client can tell of all replies to a line."""
    session = 2 if line.startswith("2: ") else 1
    text = line.removeprefix("2: ").encode()
    if session not in side.sessions:
        side.ask(session, b"DO 0")
    raw: Raw = side.sessions[session]
    try:
        if text.startswith(b"C: "):
            return [_command(side, raw, text[3:].decode())]
        if text.startswith(b"M: "):
            _option(raw, 0)
            found: list[Reply | Answer] = list(_all(raw, raw.ask(text[3:]), raw.reply))
            _option(raw, 1)
        elif text.startswith(b"P: "):
            binary = Binary(raw)
            found = list(_all(raw, binary.run(text[3:]), binary.answer))
        else:
            found = list(_all(raw, raw.ask(text), raw.reply))
    except Closed:
        side.sessions.pop(session).close()
        return [("closed",)]
    return [_without_account(told(one)) for one in found]


def _without_account(seen: tuple[object, ...]) -> tuple[object, ...]:
    """Without the name of the account that SHOW CREATE shows: the proxy's own, on the servers behind it."""
    return tuple(_cleaned(one) if isinstance(one, list) else one for one in seen)


def _cleaned(rows: list[object]) -> list[object]:
    return [
        tuple(value and re.sub(rb"DEFINER=`\w+`", b"DEFINER=``", value) for value in row)
        if isinstance(row, tuple)
        else row
        for row in rows
    ]


def _all(raw: Raw, first: Reply | Answer, following: Callable[[], Reply | Answer]) -> list[Reply | Answer]:
    found = [first]
    while found[-1].kind != "err" and found[-1].status & MORE_RESULTS:
        found.append(following())
    return found


def _option(raw: Raw, option: int) -> None:
    raw.write(command(SET_OPTION, struct.pack("<H", option)))
    raw.packet()


def _command(side: Side, raw: Raw, text: str) -> tuple[object, ...]:
    name, _, argument = text.partition(" ")
    if name == "OPTION":
        _option(raw, int(argument))
        return ("option",)
    if name == "USER":
        _, _, user, password = side.login
        return told(raw.change_user(user, password, "scripts"))
    code = {"PING": PING, "RESET": RESET_CONNECTION, "INIT_DB": INIT_DB}[name]
    return told(raw.do(code, argument.encode()))
