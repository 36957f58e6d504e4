"""What the proxy asks for itself: no session's settings reach it, on whatever connection it asks."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeOwn
from tests.integration.test_access import one_account
from tests.support.demo import Demo

LIMITS = "SET sql_select_limit = 1, max_join_size = 1, sql_big_selects = 0"


@pytest.mark.parametrize("view", ["tables", "schemata", "columns", "statistics"])
def test_the_catalogs_are_whole(own: MakeOwn, view: str) -> None:
    client = own({}).raw()
    sql = f"SELECT COUNT(*) FROM information_schema.{view} WHERE table_schema <> 'x'"
    sql = sql.replace("table_schema", "schema_name") if view == "schemata" else sql
    whole = client.ask(sql).value
    assert client.ask("SET sql_select_limit = 1").kind == "ok"
    assert client.ask(sql).value == whole
    for sql in ("SHOW TABLES", "SHOW DATABASES"):
        assert len(client.ask(sql).rows) == 1, "as on a server"
    assert client.ask("SET sql_select_limit = DEFAULT").kind == "ok"
    assert len(client.ask("SHOW TABLES").rows) > 1
    assert len(client.ask("SHOW DATABASES").rows) > 1


def test_looking_at_tables(own: MakeOwn, demo: Demo) -> None:
    """With one account its connections are everybody's: the one that there is comes from a session that
    wanted one row.
    """
    proxy = own({"backends": one_account(demo) | {"max_connections": 1}})
    client, other = proxy.raw(database="legacy"), proxy.raw()
    assert client.ask(LIMITS).kind == "ok"
    for _ in range(3):
        assert client.ask("SELECT 1 FROM customers WHERE id = 1").kind == "rows"
        # a column that the schema does not have: the proxy looks at the tables
        assert other.ask("SELECT no_such_column FROM pins WHERE id = 351912440365057").code == 1054
        assert client.ask("SELECT 1 FROM customers WHERE id = 1").kind == "rows"
        assert other.ask("REPLACE INTO email_to_user (email, user_id) VALUES ('a@looked', 1)").kind == "ok"
    assert "it has no table" not in proxy.log.read_text()
