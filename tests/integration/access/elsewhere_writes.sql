-- Writes elsewhere, and reads through writes: for the user of `legacy` who writes.
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
