"""What users may reach: everything that a confined or reading user may try, by text and as prepared
statements.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.binary import Answer, Binary, Prepared
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy, log_problems
from tests.integration.raw import Raw
from tests.support.demo import Demo

INIT_DB = 2
CANARY = "CANARY-5150"
DENIED = frozenset({1044, 1142, 1227, 1235, 1370})
"""What the proxy refuses with: a database, a statement, a privilege, not supported, a routine."""

USERS: list[dict[str, object]] = [
    {"name": "demo", "password": "demo", "role": "admin"},
    {"name": "read", "password": "read", "role": "read"},
    {"name": "write", "password": "write", "role": "write"},
    {"name": "read-legacy", "password": "x", "role": "read", "databases": ["legacy"]},
    {"name": "write-legacy", "password": "x", "role": "write", "databases": ["legacy"]},
    {"name": "read-demo", "password": "x", "role": "read", "databases": ["demo"]},
    {"name": "system", "password": "x", "role": "read", "databases": ["mysql", "performance_schema", "sys"]},
]

SETUP = (
    "DROP DATABASE IF EXISTS secret",
    "CREATE DATABASE secret",
    f"CREATE TABLE secret.t (id INT PRIMARY KEY, v VARCHAR(40) DEFAULT '{CANARY}')",
    f"INSERT INTO secret.t VALUES (1, '{CANARY}')",
    f"CREATE FUNCTION secret.f() RETURNS VARCHAR(40) DETERMINISTIC RETURN '{CANARY}'",
    "CREATE FUNCTION legacy.peek(n INT) RETURNS VARCHAR(40) READS SQL DATA"
    " RETURN (SELECT v FROM secret.t LIMIT 1)",
    "CREATE PROCEDURE secret.p() SELECT v FROM secret.t",
    "CREATE PROCEDURE legacy.peek_all() SELECT v FROM secret.t",
)
MARIADB_SETUP = ("CREATE SEQUENCE secret.s", "CREATE SEQUENCE legacy.own_sequence")
TEARDOWN = (
    "DROP DATABASE IF EXISTS secret",
    "DROP FUNCTION IF EXISTS legacy.peek",
    "DROP PROCEDURE IF EXISTS legacy.peek_all",
)

#: Another database, in every place that has one. For a user of `legacy` alone.
ELSEWHERE = r"""
SELECT v FROM secret.t
EXPLAIN ROUTE SELECT v FROM secret.t
EXPLAIN ROUTE SELECT * FROM performance_schema.threads
EXPLAIN ROUTE SELECT * FROM db00000.pins
EXPLAIN ROUTE SELECT * FROM mysql.user
SELECT v FROM `secret` . `t`
SELECT v FROM secret /* x */ . /**/ t
SELECT v FROM/**/secret.t
SELECT v FROM (secret.t)
SELECT v FROM (customers, secret.t)
SELECT v FROM ((customers c, secret.t))
SELECT v FROM customers c JOIN secret.t ON 1 = 1
SELECT v FROM customers c STRAIGHT_JOIN secret.t
SELECT v FROM customers c NATURAL JOIN secret.t
SELECT v FROM { OJ customers c LEFT JOIN secret.t ON 1 = 1 }
SELECT v FROM customers secret, secret.t
SELECT secret.v FROM customers c, secret.t secret
SELECT secret.t.v FROM secret.t
SELECT (SELECT v FROM secret.t)
SELECT 1 FROM customers c WHERE 'x' < (SELECT v FROM secret.t secret)
SELECT 1 FROM customers GROUP BY (SELECT v FROM secret.t)
SELECT 1 FROM customers ORDER BY (SELECT v FROM secret.t)
SELECT 1 FROM customers HAVING (SELECT v FROM secret.t) > ''
SELECT SUM(id) OVER (ORDER BY (SELECT v FROM secret.t)) FROM customers
SELECT 1 UNION SELECT v FROM secret.t
(SELECT 1) UNION ALL (SELECT v FROM secret.t)
((SELECT v FROM secret.t))
WITH secret AS (SELECT 1 t) SELECT v FROM secret.t
WITH x AS (SELECT v FROM secret.t) SELECT * FROM x
WITH RECURSIVE x (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x, secret.t WHERE n < 3) SELECT * FROM x
SELECT * FROM (SELECT v FROM secret.t) secret
SELECT v FROM secret.t USE INDEX (PRIMARY)
SELECT v FROM secret.t AS customers
SELECT v FROM secret.t PROCEDURE ANALYSE()
SELECT /*+ MAX_EXECUTION_TIME(1000) */ v FROM secret.t
/*!SELECT*/ v FROM secret.t
SELECT v FROM /*! secret.*/t
SELECT v FROM /*!50000 secret*/.t
SELECT v INTO @x FROM secret.t
SELECT secret.f()
SELECT `secret`.`f`()
SELECT secret . f ( )
SELECT 1 FROM customers WHERE secret.f() = 'x'
DO secret.f()
SET @x = secret.f()
SET @x = (SELECT v FROM secret.t)
SET @x := (SELECT v FROM customers, secret.t LIMIT 1)
SET sql_select_limit = (SELECT id FROM secret.t)
DESCRIBE secret.t
DESC secret.t v
EXPLAIN secret.t
EXPLAIN SELECT v FROM secret.t
SHOW TABLES FROM secret
SHOW TABLES IN secret
SHOW FULL TABLES FROM `secret`
SHOW TABLE STATUS FROM secret
SHOW OPEN TABLES FROM secret
SHOW OPEN TABLES
SHOW EVENTS FROM secret
SHOW TRIGGERS FROM secret
SHOW COLUMNS FROM t FROM secret
SHOW COLUMNS FROM secret.t
SHOW FULL FIELDS IN t IN secret
SHOW INDEX FROM t FROM secret
SHOW KEYS FROM secret.t
SHOW CREATE TABLE secret.t
SHOW CREATE DATABASE secret
SHOW CREATE SCHEMA IF NOT EXISTS secret
SHOW CREATE FUNCTION secret.f
SHOW CREATE PROCEDURE secret.p
SHOW PROCEDURE STATUS
SHOW FUNCTION STATUS
SHOW FUNCTION STATUS WHERE Db = 'secret'
SHOW PROCEDURE STATUS LIKE 'p'
SHOW TABLES WHERE (SELECT v FROM secret.t) > ''
SHOW VARIABLES WHERE (SELECT v FROM secret.t) > ''
SHOW STATUS WHERE (SELECT v FROM secret.t) > ''
SHOW COLUMNS FROM customers WHERE (SELECT v FROM secret.t) > ''
HANDLER secret.t OPEN
HANDLER secret.t OPEN AS h
CHECKSUM TABLE secret.t
CHECKSUM TABLE customers, secret.t
LOCK TABLES secret.t READ
LOCK TABLES customers READ, secret.t AS c READ
USE secret
CALL secret.p()
CALL secret.p
CALL legacy.peek_all()
CALL peek_all
SELECT legacy.peek(1)
SELECT peek(1)
SELECT `peek`(1)
SELECT peek (id) FROM customers
SELECT 1 FROM customers ORDER BY peek(id)
PREPARE s FROM 'SELECT v FROM secret.t'
PREPARE s FROM @text
SELECT TABLE_NAME FROM information_schema.INNODB_TRX
SELECT * FROM information_schema.USER_PRIVILEGES
SELECT * FROM information_schema.FILES
SELECT * FROM information_schema.PROFILING
SELECT * FROM information_schema.OPTIMIZER_TRACE
SELECT `user` FROM mysql.user
SELECT * FROM mysql . `user`
SELECT * FROM sys.session
SELECT * FROM performance_schema.threads
SELECT @@report_password
""".strip().splitlines()

MARIADB_ELSEWHERE = r"""
EXECUTE IMMEDIATE 'SELECT v FROM secret.t'
EXECUTE IMMEDIATE CONCAT('SELECT v FROM secret', '.t')
SET STATEMENT max_statement_time = 5 FOR SELECT v FROM secret.t
SET STATEMENT max_statement_time = 5 FOR EXECUTE IMMEDIATE 'SELECT v FROM secret.t'
SET STATEMENT max_statement_time = 5 FOR EXECUTE IMMEDIATE CONCAT('SELECT v FROM secret', '.t')
SET STATEMENT max_statement_time = 5 FOR PREPARE s FROM 'SELECT v FROM secret.t'
SET STATEMENT max_statement_time = 5 FOR SET STATEMENT lock_wait_timeout = 1 FOR SELECT v FROM secret.t
SET STATEMENT max_statement_time = 5 FOR BEGIN NOT ATOMIC SELECT v FROM secret.t; END
SET STATEMENT max_statement_time = 5 FOR SHOW TABLES FROM secret
SET STATEMENT max_statement_time = 5 FOR CALL peek_all()
SET STATEMENT max_statement_time = (SELECT 5 FROM customers LIMIT 1 FOR UPDATE) FOR SELECT 1
SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT 1
SET STATEMENT max_statement_time = 5 FOR SHOW CREATE USER root@localhost
BEGIN NOT ATOMIC SELECT v FROM secret.t; END
IF 1 THEN SELECT v FROM secret.t; END IF
x: LOOP SELECT v FROM secret.t; LEAVE x; END LOOP
FOR r IN (SELECT v FROM secret.t) DO SELECT r.v; END FOR
CASE 1 WHEN 1 THEN SELECT v FROM secret.t; END CASE
SELECT NEXTVAL(secret.s)
SELECT nextval ( `secret` . s )
SELECT NEXT VALUE FOR secret.s
SELECT PREVIOUS VALUE FOR secret.s
SELECT LASTVAL(secret.s)
SELECT SETVAL(secret.s, 100)
SELECT * FROM secret.s
DO NEXTVAL(secret.s)
SET @x = NEXTVAL(secret.s)
SELECT 1 FROM customers WHERE id = NEXTVAL(secret.s)
ANALYZE SELECT v FROM secret.t
ANALYZE FORMAT=JSON SELECT v FROM secret.t
SHOW EXPLAIN FOR 1
SHOW EXPLAIN FORMAT=JSON FOR 1
SHOW ANALYZE FOR 1
EXPLAIN FOR CONNECTION 1
SELECT v FROM secret.t FOR SYSTEM_TIME ALL
SELECT * FROM JSON_TABLE((SELECT CONCAT('["', v, '"]') FROM secret.t), '$[*]' COLUMNS (v TEXT PATH '$')) j
SELECT oracle_schema.load_file('/etc/passwd')
SELECT mariadb_schema.load_file('/etc/passwd')
SHOW CREATE SEQUENCE secret.s
SHOW USER_STATISTICS
SELECT * FROM information_schema.USER_VARIABLES
""".strip().splitlines()

MYSQL_ELSEWHERE = r"""
TABLE secret.t
(TABLE secret.t)
TABLE customers UNION TABLE secret.t
SELECT * FROM (TABLE secret.t) x
VALUES ROW((SELECT v FROM secret.t))
SELECT * FROM customers c, LATERAL (SELECT v FROM secret.t) x
SELECT * FROM JSON_TABLE((SELECT CONCAT('["', v, '"]') FROM secret.t), '$[*]' COLUMNS (v TEXT PATH '$')) AS j
EXPLAIN FOR SCHEMA secret SELECT * FROM t
EXPLAIN FORMAT=JSON INTO @x FOR DATABASE secret SELECT * FROM t
EXPLAIN FORMAT=TREE FOR SCHEMA `mysql` SELECT * FROM `user`
EXPLAIN FOR CONNECTION 1
EXPLAIN FORMAT=JSON FOR CONNECTION 1
EXPLAIN ANALYZE SELECT v FROM secret.t
EXPLAIN FORMAT=JSON INTO @x SELECT v FROM secret.t
EXPLAIN TABLE secret.t
SELECT GROUP_CONCAT(v) OVER () FROM secret.t
SELECT v FROM secret.t FOR SHARE OF t
SHOW PARSE_TREE SELECT v FROM secret.t
SHOW LIBRARY STATUS
SELECT sys.version_major()
SELECT sys.ps_thread_account(1)
SELECT CAN_ACCESS_TABLE('secret', 't')
SELECT ROLES_GRAPHML()
SELECT * FROM information_schema.USER_ATTRIBUTES
SELECT * FROM information_schema.INNODB_TABLES
""".strip().splitlines()

#: What nobody but an admin may do, in whatever database.
FOR_ADMINS = r"""
SELECT LOAD_FILE('/etc/passwd')
SELECT `LOAD_FILE`('/etc/passwd')
SELECT `load_file` ('/etc/passwd')
SELECT LOAD_FILE/**/('/etc/passwd')
SELECT 1 INTO OUTFILE '/tmp/shardgate-never'
SELECT 1 INTO DUMPFILE '/tmp/shardgate-never'
(SELECT 1 INTO OUTFILE '/tmp/shardgate-never')
(SELECT 1) INTO OUTFILE '/tmp/shardgate-never'
SELECT 1 UNION SELECT 2 INTO OUTFILE '/tmp/shardgate-never'
SELECT * INTO OUTFILE '/tmp/shardgate-never' FROM legacy.customers
SELECT * FROM legacy.customers PROCEDURE ANALYSE() INTO OUTFILE '/tmp/shardgate-never'
SELECT * FROM legacy.customers LIMIT 1 INTO OUTFILE '/tmp/shardgate-never'
LOAD DATA INFILE '/etc/passwd' INTO TABLE legacy.customers
LOAD DATA LOW_PRIORITY INFILE '/etc/passwd' INTO TABLE legacy.customers
LOAD XML INFILE '/etc/passwd' INTO TABLE legacy.customers
LOAD INDEX INTO CACHE legacy.customers
IMPORT TABLE FROM '/tmp/x.sdi'
CACHE INDEX legacy.customers IN c
ANALYZE TABLE legacy.customers
CHECK TABLE legacy.customers
REPAIR TABLE legacy.customers
OPTIMIZE TABLE legacy.customers
TRUNCATE TABLE legacy.customers
TRUNCATE legacy.customers
FLUSH TABLES legacy.customers FOR EXPORT
FLUSH TABLES WITH READ LOCK
FLUSH LOGS
INSTALL PLUGIN x SONAME 'x.so'
UNINSTALL PLUGIN x
CREATE FUNCTION legacy.udf RETURNS STRING SONAME 'x.so'
CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')
CREATE TABLE legacy.never (a INT)
CREATE TABLE legacy.never (a INT) ENGINE=FEDERATED CONNECTION='mysql://h/d/t'
CREATE TEMPORARY TABLE legacy.never (a INT) ENGINE=CONNECT TABLE_TYPE=CSV FILE_NAME='/etc/passwd'
CREATE TEMPORARY TABLE legacy.never (a INT) ENGINE=FEDERATED CONNECTION='mysql://h/d/t'
CREATE TEMPORARY TABLE legacy.never (a INT) ENGINE=MRG_MyISAM UNION=(legacy.customers)
CREATE TEMPORARY TABLE legacy.never (a INT) ENGINE InnoDB DATA DIRECTORY='/tmp'
CREATE TEMPORARY TABLE legacy.never (a INT) ENGINE=CSV
CREATE TEMPORARY TABLE legacy.never (a INT) TABLESPACE x
CREATE VIEW legacy.never AS SELECT 1
CREATE DEFINER = root@localhost VIEW legacy.never AS SELECT 1
CREATE DEFINER = root@localhost SQL SECURITY DEFINER VIEW legacy.never AS SELECT 1
CREATE ALGORITHM = MERGE VIEW legacy.never AS SELECT 1
CREATE TRIGGER legacy.never BEFORE INSERT ON legacy.customers FOR EACH ROW SET NEW.id = 1
CREATE EVENT legacy.never ON SCHEDULE EVERY 1 DAY DO SELECT 1
CREATE PROCEDURE legacy.never() SELECT 1
CREATE FUNCTION legacy.never() RETURNS INT DETERMINISTIC RETURN 1
CREATE DATABASE never
CREATE USER never
CREATE ROLE never
ALTER DATABASE legacy CHARACTER SET utf8mb4
ALTER TABLE legacy.customers ADD COLUMN never INT
ALTER USER root@localhost IDENTIFIED BY 'x'
DROP TABLE legacy.customers
DROP VIEW legacy.never
DROP DATABASE legacy
DROP USER root@localhost
RENAME TABLE legacy.customers TO legacy.never
RENAME USER root@localhost TO never@localhost
GRANT ALL ON *.* TO read
REVOKE ALL ON *.* FROM root@localhost
BINLOG 'AAAA'
RESET QUERY CACHE
PURGE BINARY LOGS TO 'x'
SHUTDOWN
RESTART
XA RECOVER
XA START 'x'
XA COMMIT 'x'
XA ROLLBACK 'x'
SET PASSWORD = 'x'
SET PASSWORD FOR root@localhost = 'x'
SET ROLE ALL
SET DEFAULT ROLE ALL TO root@localhost
SET RESOURCE GROUP x
SET GLOBAL max_connections = 1
SET @@global.max_connections = 1
SET @x = 1, GLOBAL max_connections = 1
SET time_zone = '+00:00', GLOBAL max_connections = 10
SET SESSION time_zone = '+00:00', @@GLOBAL.max_connections = 10
SET LOCAL sql_select_limit = 10, GLOBAL max_connections = 10
SET sql_mode = '', global max_connections = 10
SET @a = 1, @@global.max_connections = 10
SET @a = (SELECT 1), GLOBAL max_connections = 10
SET NAMES utf8mb4, GLOBAL max_connections = 10
SET time_zone = '+00:00', insert_id = 5
SET time_zone = '+00:00', sql_log_bin = 0
SET innodb_tmpdir = '/tmp'
SET sql_log_bin = 0
SET @@session.sql_log_bin = 0
SHOW BINARY LOGS
SHOW BINLOG EVENTS
SHOW ENGINE INNODB STATUS
SHOW PROXY QUERIES
SHOW PROXY QUERIES LIKE '%'
SHOW CREATE USER root@localhost
SHOW PROFILES
SHOW PROFILE
SHOW RELAYLOG EVENTS
CREATE TABLESPACE x ADD DATAFILE 'x.ibd'
PREPARE s FROM 'TRUNCATE legacy.customers'
PREPARE s FROM "SELECT LOAD_FILE('/etc/passwd')"
PREPARE s FROM @nothing
SELECT * FROM mysql.user
SELECT * FROM performance_schema.events_statements_history
SELECT * FROM sys.processlist
UPDATE mysql.user SET Host = '%'
USE mysql
USE performance_schema
USE sys
SHOW TABLES FROM mysql
DESCRIBE mysql.user
SELECT * FROM information_schema.INNODB_BUFFER_PAGE
SELECT * FROM information_schema.SCHEMA_PRIVILEGES
KILL (SELECT 1 FROM mysql.user)
""".strip().splitlines()

MARIADB_FOR_ADMINS = r"""
SELECT oracle_schema.load_file('/etc/passwd')
EXECUTE IMMEDIATE CONCAT('SELECT ', '1')
EXECUTE IMMEDIATE 'TRUNCATE legacy.customers'
SET STATEMENT max_statement_time = 5 FOR TRUNCATE legacy.customers
SET STATEMENT max_statement_time = 5 FOR SELECT 1 INTO OUTFILE '/tmp/shardgate-never'
SET STATEMENT gtid_domain_id = 7 FOR SELECT 1
SET STATEMENT sql_mode = '' FOR SELECT 1
BEGIN NOT ATOMIC SELECT 1; END
CREATE SEQUENCE legacy.never
CHANGE MASTER TO MASTER_HOST = 'x'
START SLAVE
STOP SLAVE
RESET MASTER
BACKUP STAGE START
SHOW MASTER STATUS
SHOW SLAVE STATUS
SHOW ALL SLAVES STATUS
SHOW EXPLAIN FOR 1
SHOW CLIENT_STATISTICS
INSTALL SONAME 'ha_connect'
CREATE OR REPLACE TABLE legacy.never (a INT)
KILL USER root
""".strip().splitlines()

MYSQL_FOR_ADMINS = r"""
SET PERSIST max_connections = 1
SET PERSIST_ONLY max_connections = 1
SET @@persist.max_connections = 1
RESET PERSIST
CLONE LOCAL DATA DIRECTORY = '/tmp/x'
INSTALL COMPONENT 'file://component_x'
UNINSTALL COMPONENT 'file://component_x'
LOCK INSTANCE FOR BACKUP
CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'x'
START REPLICA
STOP GROUP_REPLICATION
RESET BINARY LOGS AND GTIDS
ALTER INSTANCE ROTATE INNODB MASTER KEY
CREATE RESOURCE GROUP x TYPE = USER
SHOW BINARY LOG STATUS
SHOW REPLICA STATUS
EXPLAIN FOR CONNECTION 1
EXPLAIN ANALYZE FOR CONNECTION 1
SELECT sys.ps_is_account_enabled('localhost', 'root')
SELECT INTERNAL_TABLE_ROWS('a', 'b', 'c', 'd', 1, 1, 1, 1)
""".strip().splitlines()

#: Writes, for users of role `read`.
WRITES = r"""
INSERT INTO legacy.customers (name) VALUES ('x')
INSERT legacy.customers SET name = 'x'
REPLACE INTO legacy.customers (name) VALUES ('x')
UPDATE legacy.customers SET name = 'x'
UPDATE (legacy.customers) SET name = 'x'
DELETE FROM legacy.customers
DELETE c FROM legacy.customers c
WITH x AS (SELECT 1) DELETE FROM legacy.customers
WITH x AS (SELECT 1) UPDATE legacy.customers SET name = 'x'
EXPLAIN DELETE FROM legacy.customers
EXPLAIN ANALYZE DELETE FROM legacy.customers
SELECT * FROM legacy.customers FOR UPDATE
SELECT * FROM (SELECT * FROM legacy.customers FOR UPDATE) x
LOAD DATA LOCAL INFILE 'x' INTO TABLE legacy.customers
CALL legacy.peek_all()
SELECT legacy.peek(1)
CREATE TEMPORARY TABLE legacy.never (a INT)
DROP TEMPORARY TABLE legacy.never
LOCK TABLES legacy.customers WRITE
PREPARE s FROM 'DELETE FROM legacy.customers'
HANDLER legacy.customers READ FIRST FOR UPDATE
DELETE FROM db00001.pins
""".strip().splitlines()

MARIADB_WRITES = r"""
ANALYZE DELETE FROM legacy.customers
ANALYZE FORMAT=JSON DELETE FROM legacy.customers
ANALYZE FORMAT=JSON UPDATE (legacy.customers) SET name = 'x'
SET STATEMENT max_statement_time = 5 FOR DELETE FROM legacy.customers
SET STATEMENT max_statement_time = 5 FOR ANALYZE FORMAT=JSON DELETE FROM legacy.customers
SELECT NEXTVAL(legacy.own_sequence)
SELECT NEXT VALUE FOR legacy.own_sequence
SELECT SETVAL(legacy.own_sequence, 100)
EXECUTE IMMEDIATE 'DELETE FROM legacy.customers'
INSERT INTO legacy.customers (name) VALUES ('x') RETURNING *
""".strip().splitlines()

#: Writes elsewhere, and reads through writes: for the user of `legacy` who writes.
ELSEWHERE_WRITES = r"""
INSERT INTO secret.t VALUES (2, 'x')
INSERT secret.t SET id = 2
INSERT INTO customers (name) SELECT v FROM secret.t
INSERT INTO customers (name) VALUES ((SELECT v FROM secret.t))
INSERT INTO customers (name) VALUES ('x') ON DUPLICATE KEY UPDATE name = (SELECT v FROM secret.t)
INSERT INTO customers SET name = secret.f()
REPLACE INTO secret.t VALUES (1, 'x')
UPDATE secret.t SET v = 'x'
UPDATE customers c, secret.t SET v = 'x'
UPDATE customers c JOIN secret.t s ON 1 = 1 SET s.v = 'x'
UPDATE customers SET name = (SELECT v FROM secret.t) WHERE id = 1
UPDATE customers SET name = 'x' WHERE name = (SELECT v FROM secret.t) OR id = 1
UPDATE customers SET name = 'x' WHERE id = 1 ORDER BY (SELECT v FROM secret.t) LIMIT 1
DELETE FROM secret.t
DELETE secret.t FROM customers, secret.t
DELETE FROM t USING secret.t t
DELETE t FROM customers c, secret.t t
DELETE FROM customers WHERE name = (SELECT v FROM secret.t)
CREATE TEMPORARY TABLE x LIKE secret.t
CREATE TEMPORARY TABLE x (LIKE secret.t)
CREATE TEMPORARY TABLE x SELECT v FROM secret.t
CREATE TEMPORARY TABLE x AS (SELECT v FROM secret.t)
CREATE TEMPORARY TABLE secret.x (a INT)
CREATE TEMPORARY TABLE x (a INT DEFAULT (secret.f()))
CREATE TEMPORARY TABLE x (a INT, FOREIGN KEY (a) REFERENCES secret.t (id))
CREATE OR REPLACE TEMPORARY TABLE x SELECT v FROM secret.t
DROP TEMPORARY TABLE secret.t
LOAD DATA LOCAL INFILE 'x' INTO TABLE secret.t
LOAD DATA LOCAL INFILE 'x' INTO TABLE customers SET name = (SELECT v FROM secret.t)
LOAD XML LOCAL INFILE 'x' INTO TABLE secret.t
LOCK TABLES secret.t WRITE
SELECT id FROM customers WHERE id IN (SELECT id FROM secret.t FOR UPDATE)
INSERT INTO db00001.pins (data) VALUES ('{}')
DELETE FROM demo.pins WHERE id = 5
UPDATE mysql.user SET Host = '%'
""".strip().splitlines()

QUOTED = (
    'SELECT v FROM "secret"."t"',
    'SELECT "secret"."f"()',
    "SELECT v FROM \"secret\" . t WHERE '\"' = '\"'",
    "SELECT \"LOAD_FILE\"('/etc/passwd')",
)

#: What must go on: for the user of `legacy` who reads.
OWN = r"""
SELECT COUNT(*) FROM customers
SELECT c.id, c.name FROM legacy.customers c JOIN orders o ON o.customer_id = c.id LIMIT 1
SELECT legacy.customers.id FROM legacy.customers LIMIT 1
SELECT `c`.`id` AS `secret` FROM `customers` `c` LIMIT 1
SELECT x.n FROM (SELECT c.id AS n FROM customers c LIMIT 1) AS x
WITH x (n) AS (SELECT 1), y (m) AS (SELECT n FROM x) SELECT y.m FROM y
SELECT COUNT(DISTINCT id), MAX(id), GROUP_CONCAT(name SEPARATOR ';'), IF(1, 2, 3) FROM customers
SELECT `CONCAT`('a', 'b'), `UPPER` ( 'x' )
SELECT EXTRACT(YEAR FROM c.created), CAST(c.id AS CHAR(10)), TRIM(BOTH ' ' FROM c.name) FROM customers c
SELECT ROW_NUMBER() OVER w FROM customers WINDOW w AS (ORDER BY id) LIMIT 1
SELECT 'mysql.user', "secret.t"
SELECT 1 FROM DUAL
SHOW TABLES
SHOW FULL TABLES FROM legacy
SHOW CREATE TABLE customers
SHOW COLUMNS FROM customers
SHOW INDEX FROM legacy.customers
SHOW TABLE STATUS LIKE 'customers'
SHOW FUNCTION STATUS WHERE Db = 'legacy'
SHOW PROCEDURE STATUS WHERE Db = 'legacy'
SHOW VARIABLES LIKE 'version'
SHOW STATUS LIKE 'Uptime'
SHOW WARNINGS
SHOW GRANTS
SHOW ENGINES
SHOW CHARACTER SET
SHOW COLLATION
SHOW PROCESSLIST
SHOW DATABASES
DESCRIBE customers
EXPLAIN SELECT * FROM customers
SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'legacy'
SELECT t.TABLE_NAME FROM information_schema.TABLES t JOIN information_schema.COLUMNS c USING (TABLE_NAME)
SELECT * FROM information_schema.COLLATIONS
SELECT @@version, @@session.sql_mode, @@autocommit
SET NAMES utf8mb4
SET @x = 1, sql_mode = REPLACE(@@sql_mode, 'ONLY_FULL_GROUP_BY', '')
SET SESSION TRANSACTION READ WRITE
DO SLEEP(0)
SELECT GET_LOCK('access', 0), RELEASE_LOCK('access')
PREPARE s FROM 'SELECT name FROM customers WHERE id = ?'
DEALLOCATE PREPARE s
BEGIN
SAVEPOINT a
ROLLBACK TO a
RELEASE SAVEPOINT a
COMMIT
START TRANSACTION READ ONLY
ROLLBACK
CHECKSUM TABLE customers
HELP 'UPDATE'
USE legacy
USE information_schema
""".strip().splitlines()

#: And for the one who writes.
OWN_WRITES = r"""
CREATE TEMPORARY TABLE mine (a INT PRIMARY KEY, b VARCHAR(20), KEY k (b(5))) ENGINE=InnoDB CHARSET=utf8mb4
INSERT INTO mine (a, b) VALUES (1, 'x') ON DUPLICATE KEY UPDATE b = VALUES(b)
INSERT INTO legacy.mine SELECT c.id + 1, c.name FROM customers c LIMIT 0
UPDATE mine SET b = UPPER(b) WHERE a = 1
DELETE FROM mine WHERE a = 2
CREATE TEMPORARY TABLE again AS SELECT a, CONCAT(b, 'x') FROM customers, mine LIMIT 0
DROP TEMPORARY TABLE again
DROP TEMPORARY TABLE IF EXISTS mine
SELECT * FROM customers LIMIT 1 FOR UPDATE
""".strip().splitlines()


@pytest.fixture(scope="module")
def proxy(demo: Demo, flavour: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnProxy]:
    setup = SETUP + (MARIADB_SETUP if flavour == "mariadb" else ())
    with demo.direct() as server, server.cursor() as cursor:
        for sql in (*TEARDOWN, *setup):
            cursor.execute(sql)
        try:
            settings = {"users": USERS, "backends": one_account(demo)}
            with OwnProxy(demo, tmp_path_factory.mktemp("access"), settings) as started:
                yield started
                assert not log_problems(started.log.read_text())
        finally:
            for sql in TEARDOWN:
                cursor.execute(sql)
            if flavour == "mariadb":
                cursor.execute("DROP SEQUENCE IF EXISTS legacy.own_sequence")


def one_account(demo: Demo) -> dict[str, object]:
    """Everything runs as root, so that nothing but the proxy's own check stands between users and servers."""
    hosts = {host.address: {"user": host.user, "password": host.password} for host in demo.masters}
    return {"user": "root", "password": "", "accounts": [], "hosts": hosts}


def client(proxy: OwnProxy, user: str, database: str | None = "legacy") -> Raw:
    made = proxy.raw(login=False)
    password = next(str(one["password"]) for one in USERS if one["name"] == user)
    assert made.login(user, password, database).kind == "ok"
    return made


def code_of(side: Raw | Binary, sql: str) -> int:
    """The error's code; 0 for none. A prepared statement is executed, too."""
    if isinstance(side, Raw):
        reply = side.ask(sql)
        assert CANARY.encode() not in b"".join(value or b"" for row in reply.rows for value in row), sql
        return reply.code if reply.kind == "err" else 0
    prepared = side.prepare(sql)
    if isinstance(prepared, Prepared):
        answer = side.execute(prepared.id)
        side.close(prepared.id)
    else:
        answer = prepared
    assert isinstance(answer, Answer)
    assert CANARY.encode() not in b"".join(answer.rows), sql
    return answer.code if answer.kind == "err" else 0


def wrong(
    side: Raw | Binary, statements: list[str], allowed: frozenset[int] = DENIED
) -> list[tuple[str, int]]:
    """Those that are not refused by the proxy. What is no SQL (1064) on this server is none of them; a
    prepared statement may also be of a kind that is not prepared (1295).
    """
    extra = {1064} if isinstance(side, Raw) else {1064, 1295}
    found = [(sql, code_of(side, sql)) for sql in statements]
    return [(sql, code) for sql, code in found if code not in allowed | extra]


@pytest.mark.parametrize("how", [Raw, Binary])
@pytest.mark.parametrize("user", ["read-legacy", "write-legacy"])
def test_a_confined_user_reaches_no_other_database(
    proxy: OwnProxy, flavour: str, user: str, how: type
) -> None:
    raw = client(proxy, user)
    side = raw if how is Raw else Binary(raw)
    more = MARIADB_ELSEWHERE if flavour == "mariadb" else MYSQL_ELSEWHERE
    # a server's own refusal: no subqueries in SET STATEMENT
    assert wrong(side, ELSEWHERE + more, DENIED | {1970}) == []
    assert raw.ask("SELECT COUNT(*) FROM customers").kind == "rows"


@pytest.mark.parametrize("how", [Raw, Binary])
def test_nor_by_writing(proxy: OwnProxy, demo: Demo, how: type) -> None:
    raw = client(proxy, "write-legacy")
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute("CHECKSUM TABLE secret.t, legacy.customers")
        before = cursor.fetchall()
        assert wrong(raw if how is Raw else Binary(raw), ELSEWHERE_WRITES) == []
        cursor.execute("CHECKSUM TABLE secret.t, legacy.customers")
        assert cursor.fetchall() == before


def test_nor_by_other_quotes_and_commands(proxy: OwnProxy) -> None:
    raw = client(proxy, "read-legacy")
    for mode in ("ANSI_QUOTES", "ANSI_QUOTES,IGNORE_SPACE", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"):
        assert raw.ask(f"SET sql_mode = '{mode}'").kind == "ok"
        assert wrong(raw, list(QUOTED)) == []
    for database in (b"secret", b"mysql", b"sys", b"demo", b"db00001", b"performance_schema"):
        assert raw.do(INIT_DB, database).code == 1044, database
    unconfined = client(proxy, "read")
    for database in (b"mysql", b"sys", b"performance_schema"):
        assert unconfined.do(INIT_DB, database).code == 1044, database
        made = proxy.raw(login=False)
        assert made.login("read", "read", database.decode()).code == 1044


@pytest.mark.parametrize("database", ["demo", "information_schema", None])
def test_nor_from_another_place(proxy: OwnProxy, flavour: str, database: str | None) -> None:
    raw = client(proxy, "read-demo", database)
    more = MARIADB_ELSEWHERE if flavour == "mariadb" else MYSQL_ELSEWHERE
    statements = [sql for sql in ELSEWHERE + more if "customers" not in sql and "peek" not in sql]
    found = wrong(raw, statements, DENIED | {1046, 1146, 1105})
    assert found == []


@pytest.mark.parametrize("how", [Raw, Binary])
@pytest.mark.parametrize("user", ["read", "write", "read-legacy", "write-legacy"])
def test_what_is_for_admins(proxy: OwnProxy, flavour: str, user: str, how: type) -> None:
    raw = client(proxy, user)
    side = raw if how is Raw else Binary(raw)
    more = MARIADB_FOR_ADMINS if flavour == "mariadb" else MYSQL_FOR_ADMINS
    assert wrong(side, FOR_ADMINS + more, DENIED | {1094}) == []


#: Texts that MySQL reads otherwise, since it keeps a prepared text in UTF-8 and reads that in the client's
#: character set: a backslash goes with the character before it.
MOVED = (
    b"PREPARE s FROM 'SELECT ''a\\'' /*'', ''\xc4\xe3\\'' , v FROM secret.t x -- '' -- */'",
    b"PREPARE s FROM 'SELECT ''\xc4\xe3\\'' , v FROM secret.t x -- ''",
    b"PREPARE s FROM 'SELECT \xc4\xa0, v FROM customers'",
)
CHARACTER_SETS = ("gbk", "gb18030", "big5", "sjis", "cp932", "euckr", "ujis", "latin1", "utf8mb4")


@pytest.mark.parametrize("charset", CHARACTER_SETS)
def test_prepared_texts_that_change_their_meaning(proxy: OwnProxy, flavour: str, charset: str) -> None:
    if charset == "gb18030" and flavour == "mariadb":
        return  # which it does not have
    raw = client(proxy, "read-legacy")
    assert raw.ask(f"SET NAMES {charset}").kind == "ok"
    for text in MOVED:
        assert raw.ask(text).kind == "err", text
        assert raw.ask("EXECUTE s").code == 1243
    raw.ask("SET collation_connection = swe7_swedish_ci")
    assert raw.ask("SELECT @@character_set_connection").value != b"swe7"
    assert raw.ask("PREPARE s FROM 'SELECT ` , v FROM secret.t -- `'").kind != "rows"
    assert raw.ask("EXECUTE s").kind == "err"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("", "NO_BACKSLASH_ESCAPES", r"SELECT 'a\' UNION SELECT v FROM secret.t -- ' FROM customers"),
        ("ANSI_QUOTES", "", "SELECT 1 AS \"'\" UNION SELECT v FROM secret.t -- ' FROM customers"),
    ],
)
def test_statements_read_again(
    proxy: OwnProxy, demo: Demo, flavour: str, before: str, after: str, text: str
) -> None:
    """When a table has changed MySQL reads a prepared text again, as the session reads texts then."""
    raw = client(proxy, "read-legacy")
    assert raw.ask(f"SET sql_mode = '{before}'").kind == "ok"
    side = Binary(raw)
    prepared = side.prepare(text)
    if not isinstance(prepared, Prepared):
        return  # it is refused as it is
    first = side.execute(prepared.id)
    assert raw.ask(f"SET sql_mode = '{after}'").kind == "ok"
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute("ALTER TABLE legacy.customers COMMENT = 'changed'")
        cursor.execute("ALTER TABLE legacy.customers COMMENT = ''")
    answer = side.execute(prepared.id)
    assert isinstance(first, Answer)
    assert isinstance(answer, Answer)
    assert CANARY.encode() not in b"".join(answer.rows)
    assert answer.code == (0 if flavour == "mariadb" else 1615)
    assert raw.ask(f"SET sql_mode = '{before}'").kind == "ok"
    again = side.execute(prepared.id)
    assert isinstance(again, Answer)
    assert again.rows == first.rows


@pytest.mark.parametrize("first", ["gbk", "sjis", "big5", "utf8mb4"])
@pytest.mark.parametrize("second", ["latin1", "gbk", "utf8mb4"])
def test_names_of_variables_are_no_code(proxy: OwnProxy, first: str, second: str) -> None:
    raw = client(proxy, "read-legacy")
    for charset in (first, second):
        assert raw.ask(f"SET NAMES {charset}").kind == "ok"
        assert raw.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    for last in (b"\xbf", b"\x81", b"\xc4\xe3", "中".encode()):
        raw.ask(b"SET @`0" + last + b"`='x', @`=1,@stolen=(select v from secret.t limit 1) -- x`='y'")
        raw.ask(b"SELECT 1, 2 INTO @`0" + last + b"`, @`=1,@stolen=(select v from secret.t limit 1) -- x`")
        assert raw.ask("SELECT COUNT(*) FROM customers").kind == "rows"
        assert raw.ask("SELECT @stolen, COUNT(*) FROM customers").value is None


@pytest.mark.parametrize("user", ["read", "read-legacy"])
def test_who_reads_writes_nothing(proxy: OwnProxy, flavour: str, user: str, demo: Demo) -> None:
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute("CHECKSUM TABLE legacy.customers")
        before = cursor.fetchall()
        more = MARIADB_WRITES if flavour == "mariadb" else []
        raw = client(proxy, user)
        assert wrong(raw, WRITES + more) == []
        assert wrong(Binary(raw), WRITES + more) == []
        cursor.execute("CHECKSUM TABLE legacy.customers")
        assert cursor.fetchall() == before


@pytest.mark.parametrize("user", ["read-legacy", "write-legacy", "read", "write", "demo"])
def test_what_everybody_may(proxy: OwnProxy, user: str) -> None:
    raw = client(proxy, user)
    assert [(sql, reply.message) for sql in OWN if (reply := raw.ask(sql)).kind == "err"] == []
    if "write" in user:
        raw.ask("USE legacy")
        assert [(sql, reply.message) for sql in OWN_WRITES if (reply := raw.ask(sql)).kind == "err"] == []


def test_routines_under_an_account_of_ones_own(own: MakeOwn, proxy: OwnProxy) -> None:
    """The account's EXECUTE is in its own databases only; there an admin has said what a routine does."""
    started = own({"users": USERS})
    raw = started.raw(login=False)
    assert raw.login("write-legacy", "x", "legacy").kind == "ok"
    assert raw.ask("SELECT peek(1)").value == CANARY.encode()
    assert raw.ask("CALL secret.p()").code == 1044
    raw = started.raw(login=False)
    assert raw.login("read-legacy", "x", "legacy").kind == "ok"
    assert raw.ask("SELECT peek(1)").code == 1142


def test_the_system_databases_for_who_lists_them(proxy: OwnProxy) -> None:
    raw = client(proxy, "system", None)
    for sql in ("SELECT COUNT(*) FROM mysql.user", "USE mysql", "SELECT COUNT(*) FROM user", "SHOW TABLES"):
        assert raw.ask(sql).kind != "err", sql
    assert raw.ask("DELETE FROM mysql.user").code == 1142
    assert raw.ask("SELECT * FROM legacy.customers").code == 1044
