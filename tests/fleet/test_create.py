"""Creating databases and tables: what goes where, on real hosts, again, and with a host that fails."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from config.load import load_schema, load_topology
from config.schema import Schema, quote
from config.topology import Host, Topology
from demo.documents import SCHEMA, topology_document
from demo.servers import LocalServer
from fleet.create import Connection, create, wanted

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


class Hosts:
    """Connects to the servers by their address, and remembers the statements it was asked for."""

    def __init__(self, servers: list[LocalServer]) -> None:
        self.by_address = {one.address: one for one in servers}

    def __call__(self, host: Host, client_flags: int) -> Connection:
        if host not in self.by_address:
            raise pymysql.err.OperationalError(2003, f"no way to {host}")
        return self.by_address[host].connect(client_flag=client_flags)

    def ask(self, host: Host, statement: str) -> list[object]:
        with self(host, 0) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return [row[0] for row in cursor.fetchall()]


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
    hosts, seen = Hosts(servers), []
    first = create(schema, topology, hosts, progress=lambda done, total: seen.append((done, total)))
    assert first.problems == []
    assert first.databases_created == 3 * SHARDS + 3
    assert first.tables_created == 14 * SHARDS + 3  # one of them for the sequences of timed tables
    assert seen[-1] == (15, 15)
    again = create(schema, topology, hosts)
    assert (again.problems, again.databases_created, again.tables_created) == ([], 0, 0)
    assert sum(one.tables_found for one in again.hosts) == first.tables_created


def test_create_makes_only_what_is_missing(
    schema: Schema, topology: Topology, servers: list[LocalServer]
) -> None:
    hosts = Hosts(servers)
    create(schema, topology, hosts)
    host = servers[1].address
    for statement in ("INSERT INTO db00002.pins (data) VALUES ('{}')", "DROP TABLE db00002.boards"):
        hosts.ask(host, statement)
    hosts.ask(host, "DROP DATABASE msdb00003")
    report = create(schema, topology, hosts)
    assert (report.databases_created, report.tables_created) == (1, 3)
    assert hosts.ask(host, "SELECT COUNT(*) FROM db00002.pins") == [1]
    assert hosts.ask(host, "SELECT COUNT(*) FROM db00002.boards") == [0]


def test_a_key_that_is_not_binary_is_reported(
    schema: Schema, topology: Topology, servers: list[LocalServer]
) -> None:
    hosts = Hosts(servers)
    hosts.ask(servers[0].address, "CREATE DATABASE msdb00001")
    hosts.ask(
        servers[0].address,
        "CREATE TABLE msdb00001.ip_data (ip VARCHAR(45) COLLATE utf8mb4_bin PRIMARY KEY, data JSON)",
    )
    (problem,) = create(schema, topology, hosts).problems
    assert (
        "msdb00001.ip_data: the key ip has collation utf8mb4_bin, which is not binary and NO PAD" in problem
    )


def test_text_keys_tell_case_and_trailing_spaces_apart(
    schema: Schema, topology: Topology, servers: list[LocalServer]
) -> None:
    hosts = Hosts(servers)
    create(schema, topology, hosts)
    host = servers[0].address
    hosts.ask(host, "INSERT INTO msdb00000.email_to_user VALUES ('a', 1), ('A', 2), ('a ', 3), ('á', 4)")
    assert hosts.ask(host, "SELECT user_id FROM msdb00000.email_to_user WHERE email = 'a'") == [1]


def test_a_host_that_fails_does_not_stop_the_others(schema: Schema, servers: list[LocalServer]) -> None:
    hosts = Hosts(servers[:1])
    topology = topology_on(servers[0].address, "nowhere:1")
    try:
        report = create(schema, topology, hosts)
        assert report.problems == ["nowhere:1: cannot be read: no way to nowhere:1 (2003)"]
        assert report.hosts[0].tables_created == 14 * SHARDS / 2 + 2
    finally:
        for database in wanted(schema, topology)[servers[0].address]:
            hosts.ask(servers[0].address, f"DROP DATABASE {quote(database.name)}")


def test_a_table_that_cannot_be_made_is_a_problem_of_its_database(
    schema: Schema, topology: Topology, servers: list[LocalServer]
) -> None:
    hosts = Hosts(servers)
    hosts.ask(servers[0].address, "CREATE DATABASE db00001")
    hosts.ask(servers[0].address, "CREATE VIEW db00001.other AS SELECT 1")
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
    problems = create(bad, topology, hosts).problems
    assert len(problems) == SHARDS
    assert all("wrong" in problem and "(1067)" in problem for problem in problems)


def test_a_reference_table_is_not_made_empty_beside_full_ones(
    schema: Schema, topology: Topology, servers: list[LocalServer]
) -> None:
    """Joins on the new host would find nothing and say nothing. The copy makes it."""
    hosts = Hosts(servers)
    first, second = (one.address for one in servers)
    assert create(schema, topology, hosts).problems == []
    hosts.ask(first, "INSERT INTO global.countries (code, name) VALUES ('DE', 'Germany')")
    hosts.ask(second, "DROP DATABASE global")
    for dry_run in (True, False):
        report = create(schema, topology, hosts, dry_run=dry_run)
        (problem,) = report.problems
        assert problem.startswith(f"{second}: global.countries is missing, but has rows on {first}. ")
        assert problem.endswith(f"| mysql --host=127.0.0.1 --port={second.rpartition(':')[2]} global")
        assert (report.databases_created, report.tables_created) == (1, 0)
    assert hosts.ask(second, "SHOW TABLES FROM global") == []
    definition = hosts.by_address[first].connect()
    with definition, definition.cursor() as cursor:
        cursor.execute("SHOW CREATE TABLE global.countries")
        ((_, sql),) = cursor.fetchall()
    hosts.ask(second, "CREATE TABLE global.countries" + sql[sql.index(" (") :])
    (problem,) = create(schema, topology, hosts).problems
    assert "global.countries has no rows, but has rows on" in problem
    hosts.ask(second, "INSERT INTO global.countries (code, name) VALUES ('DE', 'Germany')")
    assert create(schema, topology, hosts).problems == []
