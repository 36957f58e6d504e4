-- What nobody but an admin may do, in whatever database.
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
KILL (SELECT 1 FROM mysql.user)
SET default_storage_engine = FEDERATED
SET default_tmp_storage_engine = 'FEDERATED'
SELECT * FROM shardgate_scratch.g1
SHOW TABLES FROM shardgate_scratch
DESCRIBE shardgate_scratch.g1
USE shardgate_scratch
USE shardgate_ddl
INSERT INTO shardgate_scratch.g1 VALUES (1)
INSERT IGNORE INTO `ShardGate_Scratch`.g1 VALUES (1)
CREATE TEMPORARY TABLE shardgate_scratch.never (a INT)
HANDLER shardgate_scratch.g1 OPEN
LOCK TABLES shardgate_scratch.g1 READ
