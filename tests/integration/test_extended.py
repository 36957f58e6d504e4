"""MariaDB's extended metadata: offered when the servers have it, and definitions say what they say there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.integration.fixtures import Connect, Things
from tests.integration.raw import FIELD_LIST, FOUND_ROWS, STMT_PREPARE, Raw, command, query
from tests.integration.replies import is_eof
from tests.support.demo import Demo

BULK, METADATA, MYSQL = 4, 8, 1
JSON = b"\6\1\4json"

OnLegacy = Callable[..., tuple[Raw, Raw]]


@pytest.fixture
def pair(demo: Demo, unharmed: None) -> Iterator[OnLegacy]:
    """Clients in `legacy` with extended metadata: of the server, and of the proxy."""
    host = demo.masters[0]
    with ExitStack() as stack:

        def connected(extended: int = METADATA, flags: int = 0) -> tuple[Raw, Raw]:
            direct = stack.enter_context(Raw(host.host, host.port))
            reply = direct.login(host.user, host.password, "legacy", extended=extended, flags=flags)
            assert reply.kind == "ok", reply
            proxy = stack.enter_context(Raw(demo.host, demo.port))
            assert proxy.login(database="legacy", extended=extended, flags=flags).kind == "ok"
            return direct, proxy

        yield connected


def definitions(client: Raw, packets: bytes) -> list[bytes]:
    """The column definitions of a reply, parameters' before them."""
    client.heard.clear()
    client.write(packets)
    prepared, fields = packets[4] == STMT_PREPARE, packets[4] == FIELD_LIST
    first = client.packet() if not fields else b"\0"
    assert first[:1] != b"\xff", first
    blocks = (first[7] > 0) + (first[5] > 0) if prepared else 1 if fields else 2
    found = []
    while blocks:
        payload = client.packet()
        if is_eof(payload):
            blocks -= 1
        elif prepared or fields or blocks == 2:
            found.append(payload)
    return found


def test_offered(pair: OnLegacy, flavour: str) -> None:
    direct, proxy = pair()
    mariadb = flavour == "mariadb"
    for one in (direct, proxy):
        assert bool(one.server_capabilities & MYSQL) != mariadb
    ours = BULK | METADATA if mariadb else 0
    assert proxy.server_extended == direct.server_extended & (BULK | METADATA) == ours


def test_as_the_server_has_them(pair: OnLegacy, connect: Connect, flavour: str) -> None:
    if flavour != "mariadb":
        pytest.skip("MariaDB's own")
    admin = connect(database="legacy").cursor()
    admin.execute("CREATE TABLE marked (a INT PRIMARY KEY, j JSON, i INET6, u UUID, p POINT, l LONGTEXT)")
    try:
        for flags in (0, FOUND_ROWS):
            direct, proxy = pair(flags=flags)
            for packets in (
                query("SELECT * FROM marked"),
                query("SELECT JSON_OBJECT('a', 1), CAST(j AS CHAR), JSON_EXTRACT(j, '$'), a FROM marked"),
                query("SELECT j FROM marked UNION ALL SELECT j FROM marked"),
                query("SELECT JSON_OBJECT('a', 1)"),
                query("SHOW COLUMNS FROM marked"),
                query("SHOW TABLES LIKE 'marked'"),
                command(STMT_PREPARE, b"SELECT *, ? FROM marked WHERE a = ? AND j = ?"),
                command(FIELD_LIST, b"marked\0j"),
            ):
                assert definitions(direct, packets) == definitions(proxy, packets), packets
        assert any(JSON in one for one in definitions(proxy, query("SELECT * FROM marked")))
        _, other = pair(extended=0)
        assert not any(JSON in one for one in definitions(other, query("SELECT * FROM marked")))
    finally:
        admin.execute("DROP TABLE marked")


def test_of_sharded_tables(pair: OnLegacy, things: Things, flavour: str) -> None:
    if flavour != "mariadb":
        pytest.skip("MariaDB's own")
    one, two = (things.insert("users", {"name": name}) for name in "ab")
    several = f"IN ({one}, {two})"
    _, proxy = pair()
    _, other = pair(extended=0)
    for sql in (
        f"SELECT data FROM demo.users WHERE id = {one}",
        f"SELECT data FROM demo.users WHERE id {several}",
        f"SELECT data FROM demo.users WHERE id {several} ORDER BY id",
        f"SELECT DISTINCT a.data FROM demo.users a JOIN demo.users b ON a.id = b.id WHERE a.id {several}",
    ):
        for client, marked in ((proxy, True), (other, False), (proxy, True)):
            for packets in (query(sql), command(STMT_PREPARE, sql.encode())):
                (found,) = definitions(client, packets)
                assert (JSON in found) == marked, (sql, found)


def test_the_proxys_own(pair: OnLegacy, flavour: str) -> None:
    """Nothing is known of their types, but the field is there."""
    if flavour != "mariadb":
        pytest.skip("MariaDB's own")
    _, proxy = pair()
    for packets in (
        query("SHOW SHARDS"),
        query("EXPLAIN ROUTE SELECT * FROM demo.users"),
        query("SHOW WARNINGS"),
        query("SHOW DATABASES"),
        query("SHOW FULL COLUMNS FROM demo.users"),
        query("SHOW PROCESSLIST"),
        query("SELECT DATABASE(), @@version"),
        query("SELECT * FROM information_schema.tables LIMIT 1"),
        command(STMT_PREPARE, b"SHOW SHARDS"),
        command(STMT_PREPARE, b"SELECT id FROM demo.users WHERE id = ?"),
        command(STMT_PREPARE, b"SET @a = ?"),
    ):
        for one in definitions(proxy, packets):
            assert one[-14:-12] == b"\0\x0c", (packets, one)
    proxy.ask("USE demo")
    for one in definitions(proxy, command(FIELD_LIST, b"users\0")):
        assert one[-15:-13] == b"\0\x0c" or JSON in one, one
    reply = proxy.change_user("demo", "demo", "legacy")
    assert reply.kind == "ok"
    (found,) = definitions(proxy, query("SELECT JSON_OBJECT('a', 1)"))
    assert JSON in found
