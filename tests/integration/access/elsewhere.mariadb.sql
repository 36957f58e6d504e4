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
SELECT 1 + sql_cache(1)
VALUES (sql_buffer_result(1))
SELECT rank (1)
