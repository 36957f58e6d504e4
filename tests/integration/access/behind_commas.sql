-- tables of another database behind a comma, with names that look as if the list had ended
SELECT v FROM customers secret JOIN customers value, secret.t LIMIT 1
SELECT v FROM customers secret JOIN customers AS value, secret.t LIMIT 1
SELECT v FROM customers secret LEFT JOIN customers value ON 1, secret.t LIMIT 1
SELECT v, 'secret' FROM customers value, secret.t LIMIT 1
SELECT v FROM (customers secret, customers value, secret.t) LIMIT 1
WITH value AS (SELECT 1) SELECT v FROM value secret, secret.t
WITH window AS (SELECT 1) SELECT v FROM window secret, secret.t
SELECT v FROM (SELECT 1 value) x JOIN customers secret ON value IS NOT NULL, secret.t LIMIT 1
SELECT v FROM (SELECT 1) value (a), customers secret, secret.t LIMIT 1
SELECT v FROM customers window, customers secret, secret.t LIMIT 1
SELECT v FROM customers returning, customers secret, secret.t LIMIT 1
SELECT v FROM customers secret USE INDEX FOR ORDER BY (PRIMARY), secret.t LIMIT 1
SELECT v FROM customers secret IGNORE KEY FOR GROUP BY (PRIMARY), secret.t LIMIT 1
SELECT v FROM customers secret FORCE INDEX FOR JOIN (PRIMARY), secret.t LIMIT 1
SELECT v FROM customers secret, /*!50000 customers value*/, /*! secret.*/t LIMIT 1
SET @x=(SELECT v FROM customers value, customers secret, secret.t LIMIT 1)
PREPARE p FROM 'SELECT v FROM customers value, customers secret, secret.t LIMIT 1'
VALUES ROW((SELECT v FROM customers value, customers secret, secret.t LIMIT 1))
SELECT {x (SELECT v FROM customers value, customers secret, secret.t LIMIT 1)}
SET STATEMENT max_statement_time=5 FOR SELECT v FROM customers secret, customers AS value, secret.t LIMIT 1
SHOW TABLES WHERE (SELECT v FROM legacy.customers value, legacy.customers secret, secret.t LIMIT 1)='CANARY-5150'
SHOW VARIABLES WHERE (SELECT v FROM legacy.customers value, legacy.customers secret, secret.t LIMIT 1)='CANARY-5150'
DO (SELECT v FROM customers value, customers secret, secret.t LIMIT 1)
EXPLAIN SELECT v FROM customers value, customers secret, secret.t LIMIT 1
CHECKSUM TABLE value, secret, secret.t
LOCK TABLES customers AS value READ, customers AS secret READ, secret.t READ
UPDATE customers value, customers secret, secret.t SET t.v='CHANGED' WHERE t.id=1 AND value.id=1
CREATE TEMPORARY TABLE y1 AS SELECT v FROM customers value, customers secret, secret.t LIMIT 1
SELECT COUNT(*) FROM customers value, customers secret, secret.t FOR UPDATE
DELETE value, secret FROM customers value, customers secret, secret.t WHERE 0
DROP TEMPORARY TABLE IF EXISTS value, secret, secret.t
SHOW COLUMNS IN secret.t WHERE EXISTS (SELECT 1 secret)
SHOW FULL FIELDS IN secret.t WHERE EXISTS (SELECT 1 secret)
SHOW INDEX IN secret.t WHERE EXISTS (SELECT 1 secret)
SHOW KEYS FROM secret.t WHERE EXISTS (SELECT 1 secret)
PREPARE p FROM 'SHOW COLUMNS IN secret.t WHERE EXISTS (SELECT 1 secret)'
PREPARE p FROM 'SHOW GRANTS'
PREPARE p FROM 'SHOW FULL PROCESSLIST'
PREPARE p FROM 'SHOW DATABASES'
PREPARE p FROM 'SHOW PROCEDURE STATUS'
PREPARE p FROM 'SHOW FUNCTION STATUS WHERE Db=''secret'''
PREPARE p FROM 'SHOW OPEN TABLES'
PREPARE p FROM 'SELECT COLUMN_DEFAULT FROM information_schema.columns WHERE table_schema=''secret'''
EXECUTE IMMEDIATE 'SHOW DATABASES'
SET STATEMENT max_statement_time=5 FOR SELECT COLUMN_DEFAULT FROM information_schema.columns WHERE table_schema='secret'
SELECT COLUMN_DEFAULT FROM {oj information_schema.columns LEFT JOIN customers ON 0} WHERE table_schema='secret'
SELECT info FROM {oj information_schema.processlist LEFT JOIN (SELECT 1) x ON 0}
SET @z=(SELECT COLUMN_DEFAULT FROM information_schema.columns WHERE table_schema='secret' LIMIT 1)
DO (SELECT SLEEP(0) FROM information_schema.columns WHERE table_schema='secret' LIMIT 1)
CREATE TEMPORARY TABLE z1 AS SELECT COLUMN_DEFAULT FROM information_schema.columns WHERE table_schema='secret'
SHOW DATABASES WHERE EXISTS (SELECT 1 FROM information_schema.columns WHERE column_default LIKE '%CANARY%')
SHOW VARIABLES WHERE EXISTS (SELECT 1 FROM information_schema.columns WHERE column_default LIKE '%CANARY%')
SHOW STATUS WHERE EXISTS (SELECT 1 FROM information_schema.columns WHERE column_default LIKE '%CANARY%')
SHOW COLLATION WHERE EXISTS (SELECT 1 FROM information_schema.columns WHERE column_default LIKE '%CANARY%')
SHOW COLUMNS FROM customers WHERE EXISTS (SELECT 1 FROM information_schema.columns WHERE column_default LIKE '%CANARY%')
SELECT (1,'CANARY-5150') IN ((SELECT 1 secret, 2) UNION TABLE secret.t)
SELECT ((SELECT 1 secret, 2 LIMIT 0) UNION TABLE secret.t) > (1,'CANARY-5149')
SELECT ((SELECT 1 LIMIT 0) UNION SELECT v FROM customers secret JOIN (SELECT 1 duplicate) x ON duplicate=1, secret.t LIMIT 1)
VALUES ROW(((SELECT 1 LIMIT 0) UNION SELECT v FROM customers secret JOIN (SELECT 1 duplicate) x ON duplicate=1, secret.t LIMIT 1))
SET @x=((SELECT 1 LIMIT 0) UNION SELECT v FROM customers secret JOIN (SELECT 1 duplicate) x ON duplicate=1, secret.t LIMIT 1)
SELECT ((SELECT 1 FROM DUAL WHERE 0) UNION SELECT v FROM customers secret JOIN (SELECT 1 duplicate) x ON duplicate=1, secret.t WHERE secret.id=1)
SELECT ((SELECT 1 LIMIT 0) UNION SELECT v FROM customers oa JOIN customers secret ON VALUES(oa.id) IS NULL, secret.t LIMIT 1)
SELECT v FROM {oj customers oa LEFT JOIN customers ob ON 0} JOIN customers secret JOIN (SELECT 1 duplicate) d ON duplicate = 1, secret.t LIMIT 1
SELECT v FROM {oj customers oa LEFT JOIN customers ob ON 0}, customers oc JOIN customers secret JOIN (SELECT 1 duplicate) d ON duplicate = 1, secret.t LIMIT 1
SELECT v FROM {oj customers oa LEFT JOIN customers ob ON 0} JOIN customers secret ON VALUES(oa.id) IS NULL, secret.t LIMIT 1
SET @x=(SELECT v FROM {oj customers oa LEFT JOIN customers ob ON 0} JOIN customers secret ON VALUES(oa.id) IS NULL, secret.t LIMIT 1)
SET @x=(SELECT v FROM {oj customers oa LEFT JOIN customers ob ON 0}, customers oc JOIN customers secret JOIN (SELECT 1 duplicate) d ON duplicate = 1, secret.t LIMIT 1)
PREPARE p FROM 'SELECT v FROM {oj customers oa LEFT JOIN customers ob ON 0} JOIN customers secret ON VALUES(oa.id) IS NULL, secret.t LIMIT 1'
EXECUTE IMMEDIATE 'SELECT v FROM {oj customers oa LEFT JOIN customers ob ON 0}, customers oc JOIN customers secret JOIN (SELECT 1 duplicate) d ON duplicate = 1, secret.t LIMIT 1'
CREATE TEMPORARY TABLE y2 AS SELECT v FROM {oj customers oa LEFT JOIN customers ob ON 0} JOIN customers secret ON VALUES(oa.id) IS NULL, secret.t LIMIT 1
DO (SELECT v FROM {oj customers oa LEFT JOIN customers ob ON 0} JOIN customers secret ON VALUES(oa.id) IS NULL, secret.t LIMIT 1)
SHOW TABLES WHERE (SELECT v FROM {oj customers oa LEFT JOIN customers ob ON 0} JOIN customers secret ON VALUES(oa.id) IS NULL, secret.t LIMIT 1)='CANARY-5150'
UPDATE {oj customers oa LEFT JOIN customers ob ON 0} JOIN customers b ON INSERT('a',1,1,'b')<>'q', customers value, customers secret, secret.t SET t.v='CHANGED3'
UPDATE {oj customers oa LEFT JOIN customers ob ON 0} JOIN customers secret JOIN (SELECT 1 duplicate) d ON duplicate = 1, secret.t SET t.v='CHANGED6'
SELECT v FROM customers oa USE INDEX (PRIMARY), customers oc JOIN customers secret JOIN (SELECT 1 duplicate) d ON duplicate = 1, secret.t LIMIT 1
SELECT v FROM {oj customers oa LEFT JOIN customers ob ON 0}, customers oc JOIN customers secret ON PREVIOUS VALUE FOR own_sequence IS NULL, secret.t LIMIT 1
