-- Another database, in every place that has one. For a user of `legacy` alone.
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
SELECT * FROM information_schema.FILES
SELECT * FROM information_schema.PROFILING
SELECT * FROM information_schema.OPTIMIZER_TRACE
SELECT `user` FROM mysql.user
SELECT * FROM mysql . `user`
SELECT * FROM sys.session
SELECT * FROM performance_schema.threads
SELECT @@report_password
SELECT * FROM shardgate_scratch.g1
SHOW TABLES FROM shardgate_scratch
SHOW TABLES FROM shardgate_ddl
USE shardgate_scratch
USE shardgate_ddl
EXPLAIN ROUTE PREPARE s FROM 'SELECT v FROM secret.t'
SELECT count (1)
SELECT max/**/(1)
SET @x = now ()
SELECT 1 + substring (1)
CREATE TEMPORARY TABLE x1 LIKE new.t
CREATE TEMPORARY TABLE x1 LIKE old.t
SET @q = type_of(1)
SHOW STATUS WHERE shard_of(1)
SHOW TABLES FROM demo WHERE type_of(1)
DESC value.t value
DESC quick.t quick
CREATE TEMPORARY TABLE `select` LIKE select.mi
HANDLER select.t OPEN AS `select`
