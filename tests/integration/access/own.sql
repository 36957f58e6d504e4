-- What must go on: for the user of `legacy` who reads.
SELECT c.id FROM customers c JOIN customers o USE INDEX (PRIMARY), customers d WHERE c.id = o.id AND d.id = c.id LIMIT 1
SET @own = (SELECT MAX(c.id) FROM customers c JOIN customers o ON o.id = c.id)
SET @own = (SELECT COUNT(*) FROM customers c WHERE c.name LIKE c.name)
SELECT 1 IN ((SELECT c.id FROM customers c) UNION (SELECT d.id FROM customers d))
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
SELECT COUNT(1), MAX( 1 ), NOW(), SUBSTRING('abc', 2)
SELECT SQL_NO_CACHE (1)
