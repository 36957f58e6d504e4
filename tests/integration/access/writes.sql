-- Writes, for users of role `read`.
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
LOCK TABLES legacy.customers READ
LOCK TABLES legacy.customers READ LOCAL
SELECT id FROM legacy.customers LIMIT 1 LOCK IN SHARE MODE
SELECT (SELECT id FROM legacy.customers LIMIT 1 LOCK IN SHARE MODE)
(SELECT id FROM legacy.customers LIMIT 1) LOCK IN SHARE MODE
SELECT id FROM demo.pins WHERE id = 241294492511762325 LOCK /* x */ IN SHARE MODE
PREPARE s FROM 'SELECT id FROM legacy.customers LIMIT 1 LOCK IN SHARE MODE'
