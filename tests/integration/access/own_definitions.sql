-- What must go on: for the administrator of `legacy`.
CREATE TABLE own_definition (id INT PRIMARY KEY, engine INT, `type` VARCHAR(10)) ENGINE = InnoDB COMMENT = 'x'
ALTER TABLE own_definition ADD COLUMN directory INT, ADD INDEX by_engine (engine)
ALTER TABLE legacy.own_definition DROP COLUMN engine, COMMENT = 'y', ENGINE = InnoDB
CREATE UNIQUE INDEX by_type ON own_definition (`type`)
DROP INDEX by_type ON own_definition
RENAME TABLE own_definition TO own_renamed
TRUNCATE TABLE own_renamed
ANALYZE TABLE own_renamed
OPTIMIZE TABLE legacy.own_renamed
CREATE OR REPLACE VIEW own_view AS SELECT id FROM own_renamed
CREATE OR REPLACE SQL SECURITY INVOKER VIEW own_view AS SELECT id FROM own_renamed
SHOW CREATE VIEW own_view
DROP VIEW own_view
DROP TABLE own_renamed
CREATE TABLE own_definition AS SELECT id FROM customers
DROP TABLE IF EXISTS own_definition
PREPARE s FROM 'CREATE TEMPORARY TABLE own_temporary (a INT)'
EXECUTE s
PREPARE s FROM 'SELECT COUNT(*) FROM customers'
EXECUTE s
DEALLOCATE PREPARE s
SHOW CREATE PROCEDURE peek_all
SHOW CREATE FUNCTION legacy.peek
SHOW TOPOLOGY
SHOW SHARDS
SHOW HOT SHARDS
SHOW PROXY STATUS
SHOW PROXY SESSIONS
SHOW GRANTS
SET SESSION sql_mode = ''
LOCK TABLES customers WRITE
UNLOCK TABLES
SET default_storage_engine = InnoDB
SET default_storage_engine = 'InnoDB', default_tmp_storage_engine = DEFAULT
SET SESSION default_storage_engine = MyISAM
CREATE TABLE own_definition (engine INT, tablespace INT, KEY by_tablespace (tablespace))
ALTER TABLE own_definition DROP COLUMN tablespace
DROP TABLE own_definition
SET default_storage_engine = DEFAULT
