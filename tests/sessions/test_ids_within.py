"""LAST_INSERT_ID() in a function, view or trigger is the session's, on whatever connection."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeOwn
from tests.support.demo import Demo

SETUP = (
    "DROP TABLE IF EXISTS legacy.numbered, legacy.audit",
    "CREATE TABLE legacy.numbered (id INT AUTO_INCREMENT PRIMARY KEY, who VARCHAR(10))",
    "CREATE TABLE legacy.audit (seen INT)",
    "DROP FUNCTION IF EXISTS legacy.lid",
    "CREATE FUNCTION legacy.lid() RETURNS INT NOT DETERMINISTIC NO SQL RETURN LAST_INSERT_ID()",
    "CREATE OR REPLACE VIEW legacy.vlid AS SELECT LAST_INSERT_ID() AS x",
    "CREATE TRIGGER legacy.numbering BEFORE INSERT ON legacy.audit"
    " FOR EACH ROW SET NEW.seen = LAST_INSERT_ID()",
)
TEARDOWN = (
    "DROP TABLE legacy.numbered, legacy.audit",
    "DROP FUNCTION legacy.lid",
    "DROP VIEW legacy.vlid",
)


@pytest.mark.parametrize(
    "sql", ["SELECT lid()", "SELECT x FROM vlid", "SELECT LAST_INSERT_ID(), lid() FROM vlid"]
)
def test_reading_it(own: MakeOwn, demo: Demo, sql: str) -> None:
    with demo.direct() as server, server.cursor() as cursor:
        for text in SETUP:
            cursor.execute(text)
        try:
            proxy = own({"backends": {"max_connections": 1}})
            one, two, fresh = (proxy.raw(database="legacy") for _ in range(3))
            for _ in range(2):
                insert = "INSERT INTO numbered (who) VALUES ('a')"
                ids = [client.ask(insert).insert_id for client in (one, two)]
                assert one.ask(sql).value == str(ids[0]).encode()
                assert two.ask(sql).value == str(ids[1]).encode()
                assert fresh.ask(sql).value == b"0"
                assert one.ask("INSERT INTO audit VALUES (0)").kind == "ok"
                assert two.ask("SELECT MAX(seen) FROM audit").value == str(ids[0]).encode()
                assert one.ask("SELECT LAST_INSERT_ID()").value == str(ids[0]).encode()
        finally:
            for text in TEARDOWN:
                cursor.execute(text)
