"""Creating databases and tables: what goes where, on real hosts, again, and with a host that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import fleet.create
from config.load import load_schema, load_topology
from config.schema import Schema, quote
from config.topology import Host, Topology
from demo.documents import SCHEMA, topology_document
from demo.servers import hosts_of
from fleet.core.journal import Operation
from fleet.core.steps import Planned
from fleet.create import Created, wanted
from tests.support.servers import LocalServer

SHARDS = 4


@pytest.fixture(scope="module")
def schema() -> Schema:
    return load_schema(SCHEMA)


def topology_on(*hosts: Host) -> Topology:
    return load_topology(topology_document(SHARDS, [(host, None) for host in hosts]))


@pytest.fixture
def topology(servers: list[LocalServer]) -> Iterator[Topology]:
    """Two hosts, left as empty as they were."""
    made = topology_on(*(one.address for one in servers))
    yield made
    for server in servers:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW DATABASES")
            for (name,) in cursor.fetchall():
                if name not in ("information_schema", "mysql", "performance_schema", "sys"):
                    cursor.execute(f"DROP DATABASE {quote(name)}")


def create(schema: Schema, topology: Topology, servers: list[LocalServer]) -> Created:
    """What is missing, made."""

    async def make() -> Created:
        async with hosts_of(servers) as hosts:
            return await fleet.create.create(schema, topology, hosts)

    return asyncio.run(make())


def ask(server: LocalServer, statement: str) -> list[object]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return [row[0] for row in cursor.fetchall()]


def test_a_table_of_any_name_is_looked_for_rows(topology: Topology, servers: list[LocalServer]) -> None:
    """Who may make tables may not have the tool, which may do everything, run what their names say."""
    server = servers[0]
    name = "a', b` LIMIT 1); CREATE DATABASE taken; #"
    ask(server, "CREATE DATABASE `b``c`")
    ask(server, f"CREATE TABLE `b``c`.{quote(name)} SELECT 1 AS one")
    ask(server, "CREATE TABLE `b``c`.`empty` (one INT)")
    key = f"database\t{server.address}\tb`c"
    operation = Operation(1, planned={key: Planned(key, "make it", server.address)})

    async def look() -> set[tuple[str, str]]:
        async with hosts_of(servers) as hosts:
            return (await fleet.create.with_rows(hosts, operation))[1]

    assert asyncio.run(look()) == {(server.address, f"b`c.{name}")}
    assert ask(server, "SHOW DATABASES LIKE 'taken'") == []


def test_wanted_spreads_the_shards_and_repeats_reference_tables(schema: Schema) -> None:
    plan = wanted(schema, topology_on("a:1", "b:2"))
    names = {host: [one.name for one in databases] for host, databases in plan.items()}
    assert sorted(names["a:1"]) == sorted(
        ["db00000", "db00001", "msdb00000", "msdb00001", "shard00000", "shard00001", "global", "legacy"]
    )
    assert sorted(names["b:2"]) == sorted(
        ["db00002", "db00003", "msdb00002", "msdb00003", "shard00002", "shard00003", "global"]
    )
    held = {
        host: {table.name for one in databases if one.name == "global" for table in one.tables}
        for host, databases in plan.items()
    }
    assert held == {"a:1": {"usernames", "countries"}, "b:2": {"countries"}}


def test_a_keyspace_that_the_topology_lacks(schema: Schema) -> None:
    topology = load_topology({"version": 1, "keyspaces": {"global": {"master": "a:1"}}})
    with pytest.raises(ValueError, match="keyspace main of the schema is not in the topology"):
        wanted(schema, topology)


def test_create_is_idempotent(schema: Schema, topology: Topology, servers: list[LocalServer]) -> None:
    first = create(schema, topology, servers)
    assert first.problems == []
    assert first.databases == 3 * SHARDS + 3
    assert first.tables == 14 * SHARDS + 3  # one of them for the sequences of timed tables
    again = create(schema, topology, servers)
    assert (again.problems, again.databases, again.tables) == ([], 0, 0)


def test_create_makes_only_what_is_missing(
    schema: Schema, topology: Topology, servers: list[LocalServer]
) -> None:
    create(schema, topology, servers)
    host = servers[1]
    for statement in ("INSERT INTO db00002.pins (data) VALUES ('{}')", "DROP TABLE db00002.boards"):
        ask(host, statement)
    ask(host, "DROP DATABASE msdb00003")
    report = create(schema, topology, servers)
    assert (report.databases, report.tables) == (1, 3)
    assert ask(host, "SELECT COUNT(*) FROM db00002.pins") == [1]
    assert ask(host, "SELECT COUNT(*) FROM db00002.boards") == [0]


def test_a_key_that_is_not_binary_is_reported(
    schema: Schema, topology: Topology, servers: list[LocalServer]
) -> None:
    ask(servers[0], "CREATE DATABASE msdb00001")
    ask(
        servers[0],
        "CREATE TABLE msdb00001.ip_data (ip VARCHAR(45) COLLATE utf8mb4_bin PRIMARY KEY, data JSON)",
    )
    (problem,) = create(schema, topology, servers).problems
    assert (
        "msdb00001.ip_data: the key ip has collation utf8mb4_bin, which is not binary and NO PAD" in problem
    )


def test_text_keys_tell_case_and_trailing_spaces_apart(
    schema: Schema, topology: Topology, servers: list[LocalServer]
) -> None:
    create(schema, topology, servers)
    host = servers[0]
    ask(host, "INSERT INTO msdb00000.email_to_user VALUES ('a', 1), ('A', 2), ('a ', 3), ('á', 4)")
    assert ask(host, "SELECT user_id FROM msdb00000.email_to_user WHERE email = 'a'") == [1]


def test_a_host_that_fails_does_not_stop_the_others(schema: Schema, servers: list[LocalServer]) -> None:
    topology = topology_on(servers[0].address, "nowhere:1")
    try:
        report = create(schema, topology, servers[:1])
        assert report.problems == ["nowhere:1: cannot be reached: no way to nowhere:1 (2003)"]
        assert report.tables == 14 * SHARDS / 2 + 2
    finally:
        for database in wanted(schema, topology)[servers[0].address]:
            ask(servers[0], f"DROP DATABASE {quote(database.name)}")


def test_a_table_that_cannot_be_made_is_a_problem_of_its_database(
    schema: Schema, topology: Topology, servers: list[LocalServer]
) -> None:
    ask(servers[0], "CREATE DATABASE db00001")
    ask(servers[0], "CREATE VIEW db00001.other AS SELECT 1")
    bad = load_schema(
        {
            "databases": {
                "demo": {
                    "tables": {
                        "pins": {
                            "kind": "object",
                            "keyspace": "main",
                            "type": 1,
                            "columns": {"data": "JSON", "wrong": "INT DEFAULT 'x'"},
                        }
                    }
                }
            }
        }
    )
    problems = create(bad, topology, servers).problems
    assert len(problems) == SHARDS
    assert all("wrong" in problem and "(1067)" in problem for problem in problems)


def test_a_reference_table_is_not_made_empty_beside_full_ones(
    schema: Schema, topology: Topology, servers: list[LocalServer]
) -> None:
    """Joins on the new host would find nothing and say nothing. The copy makes it."""
    first, second = servers
    assert create(schema, topology, servers).problems == []
    ask(first, "INSERT INTO global.countries (code, name) VALUES ('DE', 'Germany')")
    ask(second, "DROP DATABASE global")
    report = create(schema, topology, servers)
    (problem,) = report.problems
    assert problem.startswith(
        f"{second.address}: global.countries is missing, but has rows on {first.address}. "
    )
    assert problem.endswith(f"| mysql --host=127.0.0.1 --port={second.port} global")
    assert (report.databases, report.tables) == (1, 0)
    assert ask(second, "SHOW TABLES FROM global") == []
    definition = first.connect()
    with definition, definition.cursor() as cursor:
        cursor.execute("SHOW CREATE TABLE global.countries")
        ((_, sql),) = cursor.fetchall()
    ask(second, "CREATE TABLE global.countries" + sql[sql.index(" (") :])
    (problem,) = create(schema, topology, servers).problems
    assert "global.countries has no rows, but has rows on" in problem
    ask(second, "INSERT INTO global.countries (code, name) VALUES ('DE', 'Germany')")
    assert create(schema, topology, servers).problems == []
