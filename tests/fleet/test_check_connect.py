"""`shardgate check --connect` and `shardgate fleet create` on real servers: each fault is found, with what
mends it, and mended by that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
from typer.testing import CliRunner

from config.load import load_topology
from demo.process import free_port
from demo.programs import Program
from proxy.cli import app
from tests.support.demo import Demo, running_demo
from tests.support.servers import Connection


@pytest.fixture(scope="module")
def small(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo whose accounts may be spoilt."""
    folder = tmp_path_factory.mktemp("small")
    with running_demo(program, folder, "--shards", "4", "--no-page", "--empty") as running:
        yield running


def run(*arguments: str) -> tuple[int, str]:
    """Exit status and all that was printed."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def check(config: Path) -> tuple[int, str]:
    return run("check", "--connect", "--config", str(config))


def execute(connection: Connection, *statements: str) -> None:
    with connection, connection.cursor() as cursor:
        for sql in statements:
            cursor.execute(sql)


def remedies(output: str, address: str = "") -> list[str]:
    """The statements that were printed: for all hosts, or for one."""
    found, host = [], ""
    for line in output.splitlines():
        if line.startswith("        "):
            found += [line.strip().removesuffix(";")] if address in host else []
        else:
            host = line
    return found


#: By name: the statements that plant it on the first host, and what is said of it there.
FAULTS = {
    "a right missing": (
        ["REVOKE INSERT ON `%`.* FROM shardgate_write@'%'"],
        r"shardgate_write lacks INSERT on `%`\.\*",
    ),
    "a right of the proxy's own missing": (
        ["REVOKE TRIGGER ON `%`.* FROM shardgate@'%'"],
        r"shardgate lacks TRIGGER on `%`\.\*",
    ),
    "FILE": (["GRANT FILE ON *.* TO shardgate_read@'%'"], r"shardgate_read has FILE on all databases"),
    "SUPER and PROCESS": (
        ["GRANT SUPER, PROCESS ON *.* TO shardgate_write@'%'"],
        r"shardgate_write has PROCESS, SUPER on all databases",
    ),
    "everything": (
        ["GRANT ALL PRIVILEGES ON *.* TO shardgate_read@'%' WITH GRANT OPTION"],
        r"shardgate_read has ALL PRIVILEGES and GRANT OPTION on all databases",
    ),
    "more than the role": (
        ["GRANT DELETE ON `%`.* TO shardgate_read@'%'"],
        r"shardgate_read has DELETE on `%`\.\*",
    ),
    "a fence that is gone": (
        ["REVOKE LOCK TABLES ON `mysql`.* FROM shardgate_read@'%'"],
        r"shardgate_read gets into mysql",
    ),
    "into mysql": (["GRANT SELECT ON `mysql`.* TO shardgate_write@'%'"], r"shardgate_write gets into mysql"),
    "a table of mysql": (
        ["GRANT SELECT ON `mysql`.`user` TO shardgate_write@'%'"],
        r"shardgate_write has SELECT on `mysql`\.`user`",
    ),
    "the scratch database": (
        [r"REVOKE CREATE TEMPORARY TABLES ON `shardgate\_scratch`.* FROM shardgate_read@'%'"],
        r"shardgate_read lacks CREATE TEMPORARY TABLES on `shardgate\\_scratch`",
    ),
    "passing a fence": (
        ["GRANT READ_ONLY ADMIN ON *.* TO shardgate_admin@'%'"],
        r"shardgate_admin has READ_ONLY ADMIN, and so writes on servers that are read_only",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_mended(small: Demo, flavour: str, name: str) -> None:
    if name == "passing a fence" and flavour == "mysql9":
        pytest.skip("its fence is super_read_only, which nobody passes")
    plant, said = FAULTS[name]
    assert check(small.settings)[0] == 0
    execute(small.direct(), *plant)
    status, output = check(small.settings)
    assert status == 1, output
    address = small.hosts[0].address
    assert re.search(rf"{re.escape(address)}: {said}", output), output
    assert re.search(rf"ok +host +{re.escape(small.hosts[1].address)}", output), output
    assert remedies(output)
    execute(small.direct(), *remedies(output))
    status, output = check(small.settings)
    assert status == 0, output


def test_a_routing_column_by_which_rows_would_be_left_out_is_found(small: Demo) -> None:
    """Whoever altered it past the proxy."""
    topology = load_topology(small.directory / "topology.json")
    lookup = topology.keyspaces["lookup"]
    shard = next(one for one in lookup.all_shards if lookup.host_of(one) == small.hosts[0].address)
    database, column = (
        lookup.database_of(shard).decode(),
        "email_to_user MODIFY email VARCHAR(255) {} NOT NULL",
    )
    with small.direct() as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW FULL COLUMNS FROM {database}.email_to_user LIKE 'email'")
        ((_, _, sound, *_),) = cursor.fetchall()
        cursor.execute(f"ALTER TABLE {database}.{column.format('COLLATE utf8mb4_general_ci')}")
        try:
            status, output = check(small.settings)
        finally:
            cursor.execute(f"ALTER TABLE {database}.{column.format(f'COLLATE {sound}')}")
    assert status == 1
    shown = "'email' of email_to_user is varchar(255) COLLATE utf8mb4_general_ci"
    assert f"{small.hosts[0].address}: {database}: {shown}" in output, output
    assert "It must be VARCHAR(255) with the collation utf8mb4_0900_bin or utf8mb4_nopad_bin." in output
    assert check(small.settings)[0] == 0


def test_an_account_that_is_missing(small: Demo) -> None:
    """The very statements that make it are printed, but for its password."""
    settings = json.loads(small.settings.read_text())
    (password,) = [one["password"] for one in settings["backends"]["accounts"] if one["role"] == "write"]
    execute(small.direct(1), "DROP USER shardgate_write@'%'")
    status, output = check(small.settings)
    assert status == 1
    assert "shardgate_write cannot log in: " in output
    assert "1045" in output or "or there is no such user" in output, output
    assert password not in output
    execute(small.direct(1), *(sql.replace("…", password) for sql in remedies(output)))
    assert check(small.settings)[0] == 0


def changed(small: Demo, folder: Path, **backends: Any) -> Path:
    """The demo's settings with other `backends`, in a file of their own."""
    settings = json.loads(small.settings.read_text())
    settings["backends"] |= backends
    settings["schema"] = str(small.schema)
    settings["topology"] = {"file": str(small.directory / "topology.json")}
    path = folder / "shardgate.yaml"
    path.write_text(json.dumps(settings))
    return path


def test_a_wrong_password(small: Demo, tmp_path: Path) -> None:
    host = small.hosts[0].address
    path = changed(small, tmp_path, hosts={host: {"accounts": {"shardgate_read": {"password": "wrong"}}}})
    status, output = check(path)
    assert status == 1
    assert f"{host}: shardgate_read cannot log in: " in output
    assert "its password is another one" in output
    assert small.hosts[1].address + ": " in output


def test_a_host_that_cannot_be_reached(small: Demo, tmp_path: Path) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    path = changed(small, tmp_path)
    settings = json.loads(path.read_text())
    topology = (small.directory / "topology.json").read_text()
    (tmp_path / "topology.json").write_text(topology.replace(small.hosts[1].address, nowhere))
    path.write_text(json.dumps(settings | {"topology": {"file": str(tmp_path / "topology.json")}}))
    status, output = check(path)
    assert status == 1
    assert f"{nowhere}: cannot be reached: " in output
    assert re.search(rf"ok +host +{re.escape(small.hosts[0].address)}", output)


def test_a_pattern_that_matches_another_database(small: Demo) -> None:
    """`dbadmin` looks like a shard to GRANT. It is kept away from, or renamed."""
    execute(small.direct(1), "CREATE DATABASE dbadmin")
    try:
        status, output = check(small.settings)
        assert status == 1
        for user in ("shardgate_read", "shardgate_write"):
            assert f"{user} gets into dbadmin: the pattern for shards, `db_____`.*, matches it" in output
        execute(small.direct(1), *remedies(output))
        assert check(small.settings)[0] == 0
    finally:
        execute(
            small.direct(1),
            "DROP DATABASE dbadmin",
            "REVOKE LOCK TABLES ON `dbadmin`.* FROM shardgate_read@'%'",
            "REVOKE LOCK TABLES ON `dbadmin`.* FROM shardgate_write@'%'",
        )
    assert check(small.settings)[0] == 0


def test_one_account_for_all_is_warned_of(small: Demo, tmp_path: Path) -> None:
    path = changed(small, tmp_path, accounts=[])
    status, output = check(path)
    assert status == 0
    assert "all statements run as shardgate" in output
    assert "backends.accounts" in output


def test_fleet_create(small: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavour: str) -> None:
    """Accounts of other names, for other users: said, made, verified; and made once only."""
    accounts = [
        {"user": "sg_admin", "role": "admin", "password": "a'\\b"},
        {"user": "sg_read", "role": "read", "password": "r"},
        {"user": "sg_legacy", "role": "write", "databases": ["legacy"], "password": "l"},
    ]
    path = changed(small, tmp_path, user="sg", password="own", accounts=accounts)
    assert check(path)[0] == 1
    passwords = {one.password for one in small.hosts}
    for index, host in enumerate(small.hosts):  # one administrator for all hosts
        execute(
            small.direct(index),
            "CREATE USER fleet@'%' IDENTIFIED BY 'f'",
            "GRANT ALL PRIVILEGES ON *.* TO fleet@'%' WITH GRANT OPTION",
        )
        assert host.password in passwords
    create = ["fleet", "create", "--config", str(path), "--user", "fleet", "--password-env", "FLEET"]
    status, output = run(*create, "--yes")
    assert (status, "FLEET is not set" in output) == (2, True)
    monkeypatch.setenv("FLEET", "f")
    status, output = run(*create)
    assert (status, "nothing was changed" in output) == (2, True)
    status, output = run(*create, "--dry-run")
    assert status == 0
    assert "CREATE USER IF NOT EXISTS 'sg_legacy'@'%' IDENTIFIED BY '…'" in output
    assert "ON `legacy`.* TO 'sg_legacy'@'%'" in output
    assert check(path)[0] == 1
    execute(small.direct(), "DROP TABLE db00001.pins")
    status, output = run(*create, "--yes")
    assert status == 0, output
    assert f"{small.hosts[0].address}: made 0 databases and 1 tables" in output
    assert f"{small.hosts[1].address}: made 4 accounts with their rights; 0 are there" in output
    status, output = check(path)
    assert status == 0, output
    status, output = run(*create, "--yes")
    assert (status, "made 0 databases and 0 tables" in output) == (0, True)
    assert "made 0 accounts with their rights; 4 are there" in output
    assert "would make 0 accounts with their rights; 4 are there" in run(*create, "--dry-run")[1]
    if flavour == "mariadb":  # its `mariadb-install-db` makes such
        execute(small.direct(), "CREATE USER ''@'somewhere'")
        output = run(*create, "--yes")[1]
        assert f"{small.hosts[0].address}: ''@'somewhere' goes before the accounts made for '%'" in output
        execute(small.direct(), "DROP USER ''@'somewhere'")
    monkeypatch.setenv("FLEET", "wrong")
    status, output = run(*create, "--yes")
    assert status == 1
    assert "1045" in output
    assert "made" not in output, "nothing is known of what is there"


def test_what_everybody_may_is_one_finding(small: Demo, flavour: str) -> None:
    """As `mariadb-install-db` leaves it: PUBLIC may do all in `test`, and only from PUBLIC it is revoked."""
    if flavour == "mysql9":
        pytest.skip("it has no PUBLIC")
    scopes = ("`test`.*", r"`test\_%`.*", "`%`.*", "`global`.`countries`")
    privileges = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP"
    execute(small.direct(), *(f"GRANT {privileges} ON {scope} TO PUBLIC" for scope in scopes))
    status, output = check(small.settings)
    assert status == 1
    assert output.count("!!") == len(scopes), output
    assert "PUBLIC, and so every account, has CREATE, DELETE" in output
    assert remedies(output) == [f"REVOKE ALL PRIVILEGES ON {scope} FROM PUBLIC" for scope in scopes]
    execute(small.direct(), *remedies(output))
    assert check(small.settings)[0] == 0


def test_a_locked_account_is_unlocked(small: Demo) -> None:
    execute(small.direct(), "ALTER USER shardgate_read@'%' ACCOUNT LOCK")
    status, output = check(small.settings)
    assert status == 1
    assert "shardgate_read cannot log in: " in output
    assert "locked" in output
    assert remedies(output) == ["ALTER USER 'shardgate_read'@'%' ACCOUNT UNLOCK"]
    execute(small.direct(), *remedies(output))
    assert check(small.settings)[0] == 0


def test_an_account_of_another_password(small: Demo) -> None:
    """The same statements mend one that is missing and one whose password is another."""
    settings = json.loads(small.settings.read_text())
    (password,) = [one["password"] for one in settings["backends"]["accounts"] if one["role"] == "read"]
    execute(small.direct(), "ALTER USER shardgate_read@'%' IDENTIFIED BY 'another'")
    status, output = check(small.settings)
    assert status == 1
    assert "ALTER USER 'shardgate_read'@'%' IDENTIFIED BY '…'" in remedies(output)
    execute(small.direct(), *(sql.replace("…", password) for sql in remedies(output)))
    assert check(small.settings)[0] == 0


def test_a_wrong_password_too_often(small: Demo, flavour: str) -> None:
    """MariaDB blocks the account then, until its privileges are read anew."""
    if flavour == "mysql9":
        pytest.skip("it locks accounts, by ALTER USER … FAILED_LOGIN_ATTEMPTS")
    execute(small.direct(), "SET GLOBAL max_password_errors = 1")
    try:
        with pytest.raises(pymysql.MySQLError, match="1045"):
            small.direct(user="shardgate_read", password="wrong")
        status, output = check(small.settings)
        assert status == 1
        assert f"{small.hosts[0].address}: shardgate_read cannot log in: " in output
        assert remedies(output) == ["FLUSH PRIVILEGES"]
        execute(small.direct(), *remedies(output))
        assert check(small.settings)[0] == 0
    finally:
        execute(small.direct(), "SET GLOBAL max_password_errors = 4294967295", "FLUSH PRIVILEGES")


def test_statements_are_the_servers_though_nobody_is_let_in(
    small: Demo, tmp_path: Path, flavour: str
) -> None:
    """Its greeting says what it is."""
    accounts = [{"user": f"no_{role}", "role": role, "password": "n"} for role in ("read", "write", "admin")]
    path = changed(small, tmp_path, user="no_own", password="n", accounts=accounts)
    status, output = check(path)
    assert status == 1
    statements = remedies(output)
    assert any("SHOW_ROUTINE" in sql for sql in statements) == (flavour == "mysql9")
    assert any("READ_ONLY ADMIN" in sql for sql in statements) == (flavour == "mariadb")
    for index, host in enumerate(small.hosts):
        of_host = remedies(output, f" {host.address}: ")
        execute(small.direct(index), *(sql.replace("…", "n") for sql in of_host))
    status, output = check(path)
    assert status == 0, output


def test_an_anonymous_account_in_front(small: Demo, tmp_path: Path, flavour: str) -> None:
    """As `mariadb-install-db` leaves it: ''@'localhost' takes log-ins from there. Both tools name it."""
    if flavour == "mysql9":
        pytest.skip("it makes none")
    execute(small.direct(), "CREATE USER ''@'127.0.0.1'", "CREATE USER ''@'localhost'")
    try:
        status, output = check(small.settings)
        assert status == 1
        assert "If both are right, an account for " in output
        assert "DROP USER ''@'" in output
    finally:
        execute(small.direct(), "DROP USER ''@'127.0.0.1'", "DROP USER ''@'localhost'")
    assert check(small.settings)[0] == 0


def test_reference_tables_that_differ(small: Demo) -> None:
    first, second = (one.address for one in small.hosts[:2])
    execute(small.direct(), "INSERT INTO global.countries (code, name) VALUES ('DE', 'Germany')")
    try:
        status, output = check(small.settings)
        assert status == 1
        assert f"{second}: global.countries has 0 rows, but has 1 on {first}. " in output
        assert f"| mysql --host=127.0.0.1 --port={small.hosts[1].port} global" in output
        execute(small.direct(1), "DROP TABLE global.countries")
        assert f"{second}: global.countries is missing, but has 1 on {first}. " in check(small.settings)[1]
    finally:
        execute(small.direct(), "DELETE FROM global.countries")
        execute(
            small.direct(1),
            "CREATE TABLE IF NOT EXISTS global.countries (code CHAR(2) PRIMARY KEY, name VARCHAR(100))",
        )
    assert check(small.settings)[0] == 0
