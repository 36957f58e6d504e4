"""The collation of texts in results, which drivers show: that of the log-in, or of SET NAMES … COLLATE."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from tests.integration.raw import Raw
from tests.integration.replies import lenenc, text
from tests.support.demo import Demo
from tests.support.servers import LocalServer

QUERIES = (
    "SELECT 'a', 1, x'41', CAST(1 AS CHAR), @@version",
    "SELECT @@collation_connection, @@character_set_results, @@character_set_client",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'legacy' LIMIT 1",
    "SHOW TABLES",
    "SHOW WARNINGS",
    "SELECT name FROM customers LIMIT 1",
)
SETS = (
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET NAMES utf8mb4",
    "SET NAMES latin1 COLLATE latin1_bin",
    "SET character_set_results = utf8mb4",
    "SET character_set_results = latin1",
    "SET character_set_results = NULL",
    "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
    "SET collation_connection = utf8mb4_bin",
    "SET CHARACTER SET utf8mb4",
    "SET NAMES DEFAULT",
    "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'",
    "SET sql_mode = 'ANSI', NAMES latin1 COLLATE latin1_bin",
    "SET character_set_results = binary",
    "SET NAMES binary",
)


class Client(Raw):
    """Tells the collations of a result's columns."""

    def login_with(self, user: str, password: str, collation: int) -> None:
        assert self.greeting() is None
        packet = bytearray(self.response(user, password, "legacy"))
        packet[12] = collation
        self.write(bytes(packet))
        assert self._authenticate(password).kind == "ok"

    def collations(self, sql: str) -> list[int]:
        self.heard.clear()
        columns = len(self.ask(sql).columns)
        return [_collation(payload) for _, payload in self.heard[1 : 1 + columns]]


def _collation(definition: bytes) -> int:
    pos = 0
    for _ in range(6):
        _, pos = text(definition, pos)
    _, pos = lenenc(definition, pos)
    return int(struct.unpack_from("<H", definition, pos)[0])


@pytest.fixture
def both(demo: Demo, plain: LocalServer, unharmed: None) -> Iterator[tuple[Client, Client]]:
    with Client(demo.host, demo.port) as through, Client("127.0.0.1", plain.port) as direct:
        yield through, direct


@pytest.mark.parametrize("collation", [45, 255, 8, 33, 46, 224, 83])
def test_the_log_in_names_it(both: tuple[Client, Client], plain: LocalServer, collation: int) -> None:
    through, direct = both
    through.login_with("demo", "demo", collation)
    direct.login_with(plain.user, plain.password, collation)
    for query in QUERIES:
        assert through.collations(query) == direct.collations(query), query


def test_set_changes_it(both: tuple[Client, Client], plain: LocalServer) -> None:
    through, direct = both
    through.login_with("demo", "demo", 45)
    direct.login_with(plain.user, plain.password, 45)
    differences = []
    for sql in SETS:
        assert through.ask(sql).kind == direct.ask(sql).kind == "ok", sql
        for query in QUERIES:
            found, expected = through.collations(query), direct.collations(query)
            if found != expected and "NULL" not in sql:  # columns of their own: SHOW's are the proxy's own
                differences.append((sql, query, found, expected))
    assert not differences


def test_shards_too(demo: Demo, unharmed: None) -> None:
    with Client(demo.host, demo.port) as client:
        client.login_with("demo", "demo", 46)
        client.ask("USE demo")
        ids = [int(row[0] or 0) for row in client.ask("SELECT id FROM users ORDER BY id LIMIT 20").rows]
        listed = ", ".join(map(str, ids))
        for sql in (
            f"SELECT id, 'x' FROM users WHERE id = {ids[0]}",
            f"SELECT id, 'x' FROM users WHERE id IN ({listed})",
        ):
            for _ in range(2):
                client.ask("SET NAMES utf8mb4 COLLATE utf8mb4_bin")
                assert client.collations(sql) == [63, 46]
                client.ask("SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci")
                assert client.collations(sql) == [63, 224]
