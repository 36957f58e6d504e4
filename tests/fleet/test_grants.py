"""Which GRANTs each account needs on each host: a table of what is expected."""

from __future__ import annotations

import pytest

from config import flavour
from config.backends import Account
from config.credentials import Role
from config.load import load_schema, load_topology
from config.schema import Schema
from config.topology import Topology
from demo.documents import SCHEMA, topology_document
from fleet.grants import Server, grants, is_wild, literal, matches, most_specific, quoted_account

MARIADB, MYSQL = Server(flavour.MARIADB), Server(flavour.MYSQL)
PARTIAL = Server(
    flavour.MYSQL, patterns=False, databases=("information_schema", "mysql", "sys", "legacy", "new")
)
FIRST, SECOND, SLAVE = "a:1", "b:1", "b:2"

READ = "LOCK TABLES, SELECT, SHOW VIEW"
WRITE = "CREATE TEMPORARY TABLES, DELETE, EXECUTE, INSERT, LOCK TABLES, SELECT, SHOW VIEW, UPDATE"
GATHER = r"CREATE, CREATE TEMPORARY TABLES, DROP, INSERT, SELECT ON `shardgate\_scratch`.*"
FENCES = [f"LOCK TABLES ON `{name}`.*" for name in ("mysql", r"performance\_schema", "sys")]
SHARDS = ["db_____", "msdb_____", "shard_____"]


@pytest.fixture(scope="module")
def schema() -> Schema:
    return load_schema(SCHEMA)


@pytest.fixture(scope="module")
def topology() -> Topology:
    return load_topology(topology_document(8, [("a:1", "a:2"), ("b:1", "b:2")]))


def account(role: str, databases: object = "*") -> Account:
    return Account.model_validate({"user": "sg", "role": role, "databases": databases})


def shown(
    schema: Schema, topology: Topology, host: str, of: Account | None, server: Server = MARIADB
) -> list[str]:
    """The statements without what is the same in all of them."""
    texts = [one.sql("'sg'@'%'") for one in grants(schema, topology, host, of, server)]
    return [
        text.replace(" TO 'sg'@'%'", "").removeprefix("GRANT ").replace(" FROM 'sg'@'%'", "")
        for text in texts
    ]


@pytest.mark.parametrize(("role", "rights"), [("read", READ), ("write", WRITE)])
def test_roles_on_the_default_host(schema: Schema, topology: Topology, role: str, rights: str) -> None:
    """Everything that is or will be there, but for the server's own."""
    for host in (FIRST, "a:2"):
        found = shown(schema, topology, host, account(role))
        assert found == [f"{rights} ON `%`.*", *FENCES, GATHER]


@pytest.mark.parametrize(("role", "rights"), [("read", READ), ("write", WRITE)])
def test_roles_on_other_hosts(schema: Schema, topology: Topology, role: str, rights: str) -> None:
    """The keyspaces' databases, each by one pattern; `global` has a reference table, so all hosts have it."""
    for host in (SECOND, SLAVE):
        found = shown(schema, topology, host, account(role))
        assert sorted(found) == sorted(f"{rights} ON `{name}`.*" for name in [*SHARDS, "global"])


def test_confined_users(schema: Schema, topology: Topology) -> None:
    legacy = account("write", ["legacy"])
    assert shown(schema, topology, FIRST, legacy) == [f"{WRITE} ON `legacy`.*", GATHER]
    assert shown(schema, topology, SECOND, legacy) == []
    demo = shown(schema, topology, FIRST, account("read", ["demo"]))
    assert sorted(demo) == sorted([*(f"{READ} ON `{name}`.*" for name in [*SHARDS, "global"]), GATHER])
    other = shown(schema, topology, FIRST, account("read", ["my_own%"]))
    assert other == [READ + r" ON `my\_own\%`.*", GATHER]
    assert shown(schema, topology, SECOND, account("read", ["my_own%"])) == []


def test_admins_pass_no_fence(schema: Schema, topology: Topology) -> None:
    """On MySQL it is `super_read_only`, which nobody passes."""
    everything = "ALL PRIVILEGES ON *.* WITH GRANT OPTION"
    found = shown(schema, topology, SECOND, account("admin"), MARIADB)
    assert found[:2] == ["ALL PRIVILEGES ON `%`.* WITH GRANT OPTION", everything]
    assert len(found) == 3
    taken = set(found[2].removeprefix("REVOKE ").removesuffix(" ON *.*").split(", "))
    fenced = {"READ_ONLY ADMIN", "SELECT", "INSERT", "UPDATE", "DELETE", "DROP"}
    assert taken > fenced, "a database can be fenced off"
    assert not taken & {"PROCESS", "CREATE USER"}
    assert shown(schema, topology, SECOND, account("admin"), MYSQL) == [everything]


def test_a_confined_admin(schema: Schema, topology: Topology) -> None:
    found = shown(schema, topology, FIRST, account("admin", ["legacy"]))
    assert found == ["ALL PRIVILEGES ON `legacy`.*", GATHER]


@pytest.mark.parametrize(
    ("server", "bodies"), [(MARIADB, "SELECT ON `mysql`.`proc`"), (MYSQL, "SHOW_ROUTINE ON *.*")]
)
def test_the_proxys_own(schema: Schema, topology: Topology, server: Server, bodies: str) -> None:
    """It looks, and counts the IDs of timed tables: it writes nowhere else."""
    found = shown(schema, topology, SECOND, None, server)
    look = "SELECT, SHOW VIEW, TRIGGER"
    count = "INSERT, SELECT, SHOW VIEW, TRIGGER, UPDATE ON `shard_____`.*"
    assert found == [f"{look} ON `%`.*", *FENCES, bodies, count]


def test_without_patterns(schema: Schema, topology: Topology) -> None:
    """MySQL's partial_revokes takes wildcards away: each database by its name, as it is."""
    found = shown(schema, topology, FIRST, account("read"), PARTIAL)
    scratch = GATHER.replace("\\", "")
    assert found == [f"{READ} ON `legacy`.*", f"{READ} ON `new`.*", scratch]
    shards = shown(schema, topology, SECOND, account("write", ["demo"]), PARTIAL)
    assert f"{WRITE} ON `db00004`.*" in shards
    assert len(shards) == 3 * 4 + 1


def test_databases_that_share_a_keyspace(topology: Topology) -> None:
    """Where others' tables lie in the same physical databases, rights are given by table."""
    table = {"kind": "object", "keyspace": "main", "type": 1}
    both = load_schema(
        {"databases": {"one": {"tables": {"a": table}}, "two": {"tables": {"b": table | {"type": 2}}}}}
    )
    found = shown(both, topology, SECOND, account("write", ["one"]))
    assert found[0] == "CREATE TEMPORARY TABLES, LOCK TABLES ON `db_____`.*"
    assert found[1:] == [
        f"DELETE, INSERT, SELECT, SHOW VIEW, UPDATE ON `db0000{shard}`.`a`" for shard in range(4, 8)
    ]
    whole = shown(both, topology, SECOND, account("write", ["one", "two"]))
    assert whole == [f"{WRITE} ON `db_____`.*"]


def test_single_tables_are_on_one_host_and_reference_tables_on_all(topology: Topology) -> None:
    both = load_schema(
        {
            "databases": {
                "one": {
                    "tables": {
                        "a": {
                            "kind": "reference",
                            "keyspace": "global",
                            "columns": {"id": "INT PRIMARY KEY"},
                        },
                        "b": {"kind": "single", "keyspace": "global"},
                    }
                },
                "two": {"tables": {"c": {"kind": "single", "keyspace": "global"}}},
            }
        }
    )
    rights = "DELETE, INSERT, SELECT, SHOW VIEW, UPDATE"
    found = [shown(both, topology, host, account("write", ["one"])) for host in (FIRST, SECOND)]
    assert [[one for one in every if one.startswith(rights)] for every in found] == [
        [f"{rights} ON `global`.`a`", f"{rights} ON `global`.`b`"],
        [f"{rights} ON `global`.`a`"],
    ]


def test_databases_of_the_servers_are_read_only(schema: Schema, topology: Topology) -> None:
    for role in ("read", "write", "admin"):
        found = shown(schema, topology, FIRST, account(role, ["legacy", "mysql"]))
        assert "SELECT ON `mysql`.*" in found, role


def test_names_are_patterns() -> None:
    assert matches("db_____", "db00417")
    assert matches("db_____", "dbadmin")
    assert not matches("db_____", "db004170")
    assert not matches(r"my\_db", "my1db")
    assert matches(r"my\_db", "my_db")
    assert matches("%", "anything")
    assert [is_wild(one) for one in ("db_", r"db\_", "%", r"\%", "db")] == [True, False, True, False, False]
    assert literal(r"a_b%c\d") == r"a\_b\%c\\d"
    assert most_specific(["%", "db_____", "mysql"], "mysql") == "mysql"
    assert most_specific(["%", "db_____"], "db00001") == "db_____"
    assert most_specific(["db_____"], "other") is None
    assert quoted_account("it's", "10.%") == "'it''s'@'10.%'"


def test_no_account_of_others_has_rights_of_administrators(schema: Schema, topology: Topology) -> None:
    """FILE, SUPER, PROCESS, RELOAD, replication, DDL outside of the scratch database: never."""
    ddl = {"CREATE", "DROP", "ALTER", "INDEX", "CREATE VIEW", "CREATE ROUTINE", "TRIGGER", "EVENT"}
    for role in (Role.READ, Role.WRITE):
        for databases in ("*", ["demo"], ["legacy"], ["demo", "legacy"], ["elsewhere"]):
            for server in (MARIADB, MYSQL, PARTIAL):
                for host in (FIRST, SECOND, SLAVE):
                    for one in grants(schema, topology, host, account(role.value, databases), server):
                        assert one.database, one
                        assert not one.option
                        assert "scratch" in one.database or not one.privileges & ddl, one
                        assert "ALL PRIVILEGES" not in one.privileges
