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
SELECT DEFAULT(id) FROM customers LIMIT 1
