"""What a user must be allowed, for statements that one host runs as they are: databases and role."""

from __future__ import annotations

import pytest

from config.flavour import MARIADB, MYSQL
from rewriter.env import Env
from rewriter.plan import Access, Plan, Reject
from rewriter.plans.maintenance import TableMaintenance
from tests.rewriter.support import rewriter

HERE = "legacy"


def plan(sql: str, database: str | None = HERE, *, mariadb: bool = False) -> Plan:
    env = Env(database=database, flavour=MARIADB if mariadb else MYSQL)
    return rewriter().plan(sql.encode(), env)[0]


OTHERS = """
SELECT * FROM other.t
SELECT * FROM `other` . `t`
SELECT * FROM /* x */ other./**/t
SELECT 1 FROM acc, other.t
SELECT 1 FROM (acc, other.t)
SELECT 1 FROM (acc a, (acc b, other.t))
SELECT 1 FROM acc a JOIN acc b ON a.id = b.id, other.t
SELECT 1 FROM acc a JOIN acc b USING (id), other.t
SELECT 1 FROM acc JOIN other.t USING (id)
SELECT 1 FROM acc STRAIGHT_JOIN other.t
SELECT 1 FROM { OJ acc LEFT JOIN other.t ON 1 = 1 }
SELECT 1 AS other, v.* FROM acc, other.v v
SELECT 1 FROM acc other, other.t
SELECT (SELECT COUNT(*) FROM other.t)
SELECT IF(1, (SELECT MAX(id) FROM other.t), 2) FROM acc
SELECT 1 FROM acc WHERE EXISTS (SELECT 1 FROM other.t other)
(SELECT 1) UNION (SELECT id FROM other.t)
((SELECT 1) UNION SELECT id FROM other.t)
WITH x AS (SELECT * FROM other.t) SELECT * FROM x
TABLE other.t
SELECT other.t.id FROM acc
SELECT other.f()
SELECT id FROM acc ORDER BY other.f(id)
DO other.f()
INSERT INTO other.t VALUES (1)
INSERT other.t VALUES (1)
INSERT IGNORE other.t SET id = 1
REPLACE LOW_PRIORITY INTO other.t (id) VALUES (1)
INSERT INTO acc SELECT id FROM other.t
INSERT INTO acc (id) VALUES ((SELECT MAX(id) FROM other.t))
INSERT INTO acc VALUES (1) ON DUPLICATE KEY UPDATE id = (SELECT 1 FROM other.t)
UPDATE other.t SET id = 1
UPDATE LOW_PRIORITY IGNORE other.t SET id = 1
UPDATE acc, other.t SET acc.id = 1
UPDATE acc a JOIN other.t t ON a.id = t.id SET a.id = 1
DELETE FROM other.t
DELETE other.t FROM other.t
DELETE a FROM acc a, other.t b
DELETE FROM a USING acc a, other.t b
EXPLAIN SELECT * FROM other.t
DESCRIBE other.t
DESC other.t
SHOW TABLES FROM other
SHOW FULL TABLES IN other LIKE 'x'
SHOW TABLE STATUS FROM other
SHOW TRIGGERS FROM other
SHOW COLUMNS FROM t FROM other
SHOW INDEX FROM other.t
SHOW CREATE TABLE other.t
SHOW CREATE DATABASE other
SHOW CREATE DATABASE IF NOT EXISTS other
HANDLER other.t OPEN AS other
LOCK TABLES acc READ, other.t WRITE
LOCK TABLES acc AS other READ, other.t WRITE
DROP VIEW other, other.v
RENAME TABLE acc TO other, x TO other.y
CALL other.p()
CALL other.p
CHECKSUM TABLE other.t
CREATE TEMPORARY TABLE other.x (a INT)
CREATE TEMPORARY TABLE x SELECT * FROM other.t
CREATE TEMPORARY TABLE other LIKE other.t
CREATE TABLE x LIKE other.t
CREATE VIEW v AS SELECT 1 AS other FROM other.t
CREATE TRIGGER r AFTER INSERT ON other.t FOR EACH ROW SET NEW.id = 1
RENAME TABLE acc TO other.acc
DROP TABLE acc, other.t
LOAD DATA LOCAL INFILE 'x' INTO TABLE other.t
PREPARE s FROM 'SELECT * FROM other.t'
SET @x = (SELECT MAX(id) FROM other.t)
SET STATEMENT max_statement_time = 1 FOR SELECT 1 AS other FROM other.t
SET STATEMENT max_statement_time = 1 FOR UPDATE other.t SET id = (SELECT 1 AS other)
""".strip().splitlines()


@pytest.mark.parametrize("sql", OTHERS)
def test_another_database(sql: str) -> None:
    assert "other" in plan(sql, mariadb="STATEMENT" in sql).databases


OWN = """
SELECT a.id, b.id FROM acc a, acc b WHERE a.id = b.id AND (a.x, b.y) IN (SELECT c.x, c.y FROM acc c)
SELECT acc.id, EXTRACT(DAY FROM acc.ts), TRIM(acc.x FROM acc.y) FROM acc
SELECT STRAIGHT_JOIN a.id, a.x FROM acc a JOIN acc b ON a.id = b.id AND b.x IN (a.y, a.z)
SELECT a.x FROM acc a JOIN JSON_TABLE(a.doc, '$' COLUMNS (x INT PATH '$.x')) j ON a.id = j.x
SELECT a.id FROM acc a GROUP BY a.x, a.y HAVING a.x > 1 ORDER BY a.x DESC, a.y LIMIT 1 FOR UPDATE OF a
SELECT SUM(a.x) OVER (PARTITION BY a.y, a.z ORDER BY a.id) FROM acc a WINDOW w AS (ORDER BY a.id)
SELECT legacy.acc.id FROM legacy.acc
SELECT a.* FROM acc a
INSERT INTO acc (id, x) VALUES (1, 2) ON DUPLICATE KEY UPDATE acc.x = acc.x + 1, acc.y = VALUES(acc.y)
INSERT INTO acc SELECT a.id, a.x FROM acc a ON DUPLICATE KEY UPDATE x = a.x, y = a.y
UPDATE acc a, acc b SET a.x = b.x, a.y = b.y WHERE a.id = b.id ORDER BY a.id
DELETE a.*, b.* FROM acc a JOIN acc b ON a.id = b.id
DELETE FROM a.* USING acc a WHERE a.id = 1
CREATE VIEW v AS SELECT a.id, a.x FROM acc a WHERE a.id = 1 AND a.y IN (a.x, a.z)
CREATE TRIGGER r BEFORE INSERT ON acc FOR EACH ROW SET NEW.x = OLD.y
SHOW COLUMNS FROM acc
SHOW INDEX FROM acc WHERE Key_name = 'x'
SELECT * FROM information_schema.KEYWORDS
SELECT * FROM information_schema.COLLATIONS c JOIN information_schema.ENGINES e
""".strip().splitlines()


@pytest.mark.parametrize("sql", OWN)
def test_no_other_database(sql: str) -> None:
    assert set(plan(sql).databases) <= {HERE}


def test_information_schema_is_everybody_s() -> None:
    assert plan("USE information_schema").databases == ()
    assert plan("SELECT WORD FROM KEYWORDS", "information_schema").databases == ()
    assert plan("SELECT * FROM information_schema.COLLATIONS", None).databases == ()


@pytest.mark.parametrize("database", [HERE, "information_schema", "demo", None])
def test_but_for_views_that_tell_of_others(database: str | None) -> None:
    assert "information_schema" in plan("SELECT * FROM information_schema.INNODB_TRX", database).databases


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT legacy.f(ts) FROM pins WHERE id = 68719476737",
        "SELECT `f`(ts) FROM pins WHERE id = 68719476737",
        "SELECT f (ts) FROM pins",
        "SELECT COUNT(*), MAX(legacy . f(ts)) FROM pins GROUP BY ts",
        "UPDATE pins SET ts = f() WHERE id = 68719476737",
        "INSERT INTO pins (data, ts) VALUES ('{}', legacy.f())",
    ],
)
def test_stored_functions_on_sharded_tables(sql: str) -> None:
    """Each shard would run one of its own, if there is any, on connections that all share."""
    found = plan(sql, "demo")
    assert isinstance(found, Reject)
    assert found.error == "function_not_on_shards"


def test_which_databases_are_named() -> None:
    assert "mysql" in plan("SHOW TABLES FROM mysql", "demo").databases


FOR_ADMINS = """
SELECT LOAD_FILE('/etc/passwd')
SELECT id FROM pins WHERE data = load_file ('/etc/passwd')
SELECT `load_file`('/etc/passwd')
SET @x = LOAD_FILE('/etc/passwd')
DO LOAD_FILE('/etc/passwd')
SHOW VARIABLES WHERE LOAD_FILE('/etc/passwd') = 'x'
INSERT INTO pins (data) VALUES (LOAD_FILE('x'))
PREPARE s FROM 'SELECT LOAD_FILE(1)'
SET sql_log_bin = 0
SET SESSION sql_log_bin = 0
SET @@session.sql_log_bin = 0
SET NAMES utf8mb4, @@sql_log_bin = 0
SET STATEMENT gtid_domain_id = 7 FOR SELECT 1
SHOW BINLOG EVENTS
SHOW CREATE USER root@localhost
SHOW ENGINE INNODB STATUS
UPDATE mysql.user SET x = 1
INSERT INTO mysql.db VALUES (1)
""".strip().splitlines()


@pytest.mark.parametrize("database", [HERE, "demo"])
@pytest.mark.parametrize("sql", FOR_ADMINS)
def test_for_admins(sql: str, database: str) -> None:
    found = plan(sql, database, mariadb="STATEMENT" in sql)
    assert found.access == Access.ADMIN or found.kind == "reject"


@pytest.mark.parametrize(
    "sql", ["SET NAMES utf8mb4", "SET sql_mode = ''", "SELECT 'LOAD_FILE(1)'", "SHOW ENGINES"]
)
def test_for_everybody(sql: str) -> None:
    assert plan(sql).access <= Access.READ


@pytest.mark.parametrize("database", ["demo", None])
@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE legacy.a, b",
        "DROP TABLE IF EXISTS `legacy`.`a`, `pins`",
        "DROP TABLE legacy.a, legacy.b, c",
        "DROP TABLE a, legacy.b",
        "DROP VIEW legacy.a, b",
        "DROP TEMPORARY TABLE legacy.a, b",
        "RENAME TABLE legacy.a TO legacy.b, c TO legacy.d",
        "FLUSH TABLES legacy.a, b",
        "CACHE INDEX legacy.a, b IN hot",
        "LOCK TABLES legacy.a READ, b READ",
        "CREATE VIEW legacy.v AS SELECT 1 FROM legacy.a, b",
        "CREATE TABLE legacy.n AS SELECT 1 FROM legacy.a JOIN b",
        "CALL legacy.p((SELECT 1 FROM b))",
        "DROP TABLE db00000.pins, users",
    ],
)
def test_a_name_without_a_database_beside_one_with(sql: str, database: str | None) -> None:
    """A server would take it for the connection's current database, which may be anybody's."""
    found = plan(sql, database)
    assert isinstance(found, Reject), found
    assert found.error in ("not_supported_yet", "no_database", "unknown_table")


@pytest.mark.parametrize("verb", ["ANALYZE", "CHECK", "OPTIMIZE", "REPAIR", "CHECKSUM"])
def test_maintenance_looks_for_each_table_in_its_own_database(verb: str) -> None:
    sql = f"{verb} TABLE legacy.a, b"
    assert isinstance(found := plan(sql, "demo"), TableMaintenance)
    assert found.databases == ("legacy", "demo")
    assert isinstance(refused := plan(sql, None), Reject)
    assert refused.error in ("not_supported_yet", "no_database")


@pytest.mark.parametrize("database", ["demo", None])
@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE IF EXISTS legacy.a, legacy.b",
        "RENAME TABLE legacy.a TO legacy.b, legacy.c TO legacy.d",
        "ALTER TABLE legacy.a ADD COLUMN b INT, ADD COLUMN c INT",
        "ALTER TABLE legacy.a CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "ALTER TABLE legacy.a RENAME COLUMN b TO c, RENAME INDEX d TO e",
        "ANALYZE TABLE legacy.a UPDATE HISTOGRAM ON b, c",
        "CREATE INDEX i ON legacy.a (b, c)",
        "CREATE TABLE legacy.n (a INT, b INT, KEY (a, b))",
        "CREATE VIEW legacy.v AS SELECT a, b FROM legacy.a x, legacy.b y",
        "CREATE TRIGGER legacy.t BEFORE INSERT ON legacy.a FOR EACH ROW SET NEW.a = 1, NEW.b = 2",
        "CREATE PROCEDURE legacy.p() SELECT a, b FROM c, d",
        "FLUSH TABLES legacy.a, legacy.b WITH READ LOCK",
        "GRANT SELECT (a, b) ON legacy.a TO x, y",
        "CALL legacy.p(1, 2)",
    ],
)
def test_what_is_of_one_database(sql: str, database: str | None) -> None:
    assert plan(sql, database).kind == "passthrough"


@pytest.mark.parametrize("name", ["unknown", "demo", "legacy", "db00003"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT X.a FROM own.t AS X",
        "CREATE VIEW own.v AS SELECT X.a FROM own.t AS X",
        "DELETE X FROM own.t AS X JOIN own.u ON X.a = u.a",
    ],
)
def test_an_alias_needs_no_right_on_the_database_of_its_name(sql: str, name: str) -> None:
    """And whether there is a database of that name cannot be told from the answer."""
    plan, _ = rewriter().plan(sql.replace("X", name).encode(), Env(database="own"))
    assert (plan.kind, set(plan.databases)) == ("passthrough", {"own"})
