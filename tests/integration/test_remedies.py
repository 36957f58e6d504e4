"""What an error tells to do instead is something that the user may do."""

from __future__ import annotations

from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import Raw

USERS = [
    {"name": "demo", "password": "demo", "role": "admin"},
    {"name": "listed", "password": "x", "role": "write", "databases": ["demo", "legacy"]},
    {"name": "chief", "password": "x", "role": "admin", "databases": ["demo", "legacy"]},
]
STATEMENTS = (
    "PREPARE s FROM 'SELECT * FROM pins'",
    "CREATE TEMPORARY TABLE t (id INT)",
    "HANDLER pins OPEN",
    "CHECKSUM TABLE pins",
    "CREATE VIEW v AS SELECT 1",
    "CREATE TRIGGER t BEFORE INSERT ON pins FOR EACH ROW SET @a = 1",
)


def logged_in(proxy: OwnProxy, name: str) -> Raw:
    client = proxy.raw(login=False)
    assert client.login(name, "x", "demo").kind == "ok"
    return client


def told(client: Raw, sql: str) -> str:
    reply = client.ask(sql)
    assert reply.kind == "err", sql
    return reply.message


def test_no_database_of_a_shard_is_named_to_who_may_not_use_it(own: MakeOwn) -> None:
    proxy = own({"users": USERS})
    free = proxy.raw()
    for name in ("listed", "chief"):
        client = logged_in(proxy, name)
        for sql in STATEMENTS:
            assert "db0" not in told(client, sql), sql
            assert "db00000" in told(free, sql), sql


def test_a_temporary_table_of_rows_of_many_shards(own: MakeOwn) -> None:
    """The remedy works."""
    client = logged_in(own({"users": USERS}), "listed")
    for sql in (
        "CREATE TEMPORARY TABLE t SELECT id FROM pins",
        "CREATE TEMPORARY TABLE legacy.t SELECT id FROM demo.pins",
    ):
        text = told(client, sql)
        assert "the rows are on many" in text
        assert "INSERT … SELECT" in text
    assert client.ask("CREATE TEMPORARY TABLE legacy.t (id BIGINT UNSIGNED)").kind == "ok"
    assert client.ask("INSERT INTO legacy.t SELECT id FROM demo.pins").kind == "ok"
    count = client.ask("SELECT COUNT(*) FROM legacy.t").value
    assert count == client.ask("SELECT COUNT(*) FROM demo.pins").value
    assert client.ask("DROP TEMPORARY TABLE legacy.t").kind == "ok"
