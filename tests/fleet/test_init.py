"""`shardgate init`, and what `shardgate check --connect` says to who begins with it and errs."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from demo.process import free_port
from fleet.starter import FILES, accounts_sql
from proxy.cli import app
from proxy.reachability import ask_hosts
from tests.support.servers import LocalServer

SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")


def run(*arguments: str) -> tuple[int, str]:
    """Exit status and all that was printed."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_what_is_written_is_sound_private_and_never_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "etc"
    assert run("init", str(folder))[0] == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes.keys() == set(FILES)
    assert modes["shardgate.yaml"] == modes["accounts.sql"] == 0o600
    for name in ("schema.yaml", "topology.yaml"):
        assert "password" not in (folder / name).read_text()
    assert run("check", "--config", str(folder / "shardgate.yaml"))[0] == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    status, output = run("init", str(folder))
    assert (status, "nothing was written" in output) == (2, True)
    (folder / "accounts.sql").unlink()
    (folder / "accounts.sql").symlink_to("nowhere")
    assert run("init", str(folder))[0] == 2
    assert {name: (folder / name).read_bytes() for name in before if name != "accounts.sql"} == {
        name: text for name, text in before.items() if name != "accounts.sql"
    }
    other = tmp_path / "other"
    run("init", str(other))
    mine, theirs = ((one / "shardgate.yaml").read_text() for one in (folder, other))
    assert not set(re.findall(r'password: "(.+?)"', mine)) & set(re.findall(r'password: "(.+?)"', theirs))
    status, output = run("init", str(folder / "shardgate.yaml"))
    assert (status, "cannot be written" in output) == (2, True)


def test_check_names_what_is_hardly_meant(tmp_path: Path) -> None:
    """With exit status 0: it can be used."""
    assert run("init", str(tmp_path))[0] == 0
    settings = tmp_path / "shardgate.yaml"
    settings.write_text(settings.read_text() + "\nlimits: {user_variables: 1G, session_memory: 1M}\n")
    status, output = run("check", "--config", str(settings))
    assert status == 0, output
    assert "--  settings  limits.user_variables: 1GB is never reached" in output
    text = settings.read_text()
    settings.write_text(text.replace("fleet: {", "fleet: {hosts: {'nowhere:1': {password: x}}, "))
    status, output = run("check", "--config", str(settings))
    assert status == 0, output
    assert "--  settings  fleet.hosts.nowhere:1: the topology has no such host" in output


def test_accounts_of_distributed_transactions(tmp_path: Path) -> None:
    """Who switches them on and makes the accounts anew gets what these need then."""
    assert run("init", str(tmp_path))[0] == 0
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert "shardgate_xa" not in accounts_sql(texts)
    text = texts["shardgate.yaml"].replace("# xa:", "xa:")
    granted = accounts_sql(texts | {"shardgate.yaml": text})
    assert "XA_RECOVER_ADMIN ON *.* TO 'shardgate'@'%'" in granted
    assert granted.count("ON `shardgate\\_xa`.*") == 2  # its own, and who writes


class Begun:
    """A first configuration for the `servers`: the first is the master, with all that it needs."""

    def __init__(self, folder: Path, servers: list[LocalServer]) -> None:
        self.servers = servers
        self.folder = folder
        assert run("init", str(folder))[0] == 0
        self.edit("topology.yaml", "db1:3306", servers[0].address)
        self.edit("topology.yaml", "db2:3306", servers[1].address)
        self.make_accounts(0)

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def make_accounts(self, index: int) -> None:
        sql = re.sub(r"^--.*\n", "", (self.folder / "accounts.sql").read_text(), flags=re.M)
        self.execute(index, *filter(None, (one.strip() for one in sql.split(";\n"))))

    def execute(self, index: int, *statements: str) -> list[str]:
        """The first column of the last."""
        with self.servers[index].connect() as connection, connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
            return [str(row[0]) for row in cursor.fetchall()]

    def run(self, *arguments: str) -> tuple[int, str]:
        return run(*arguments, "--config", str(self.folder / "shardgate.yaml"))

    def check(self) -> tuple[int, str]:
        return self.run("check", "--connect")

    def replicate(self) -> None:
        """The second server gets the databases and tables of the first."""
        for database in self.execute(0, "SHOW DATABASES"):
            if database not in SYSTEM:
                names = self.execute(0, f"SHOW TABLES IN `{database}`")
                made = [f"CREATE TABLE `{database}`.`{name}` (a INT)" for name in names]
                self.execute(1, f"CREATE DATABASE IF NOT EXISTS `{database}`", *made, "DO 0")

    def clear(self) -> None:
        for index in range(len(self.servers)):
            names = [one for one in self.execute(index, "SHOW DATABASES") if one not in SYSTEM]
            self.execute(index, "DO 0", *(f"DROP DATABASE `{one}`" for one in names))
            users = self.execute(index, "SELECT User FROM mysql.user WHERE User LIKE 'shardgate%'")
            self.execute(index, "DO 0", *(f"DROP USER '{one}'@'%'" for one in users))


@pytest.fixture
def begun(servers: list[LocalServer], tmp_path: Path) -> Iterator[Begun]:
    made = Begun(tmp_path / "etc", servers)
    yield made
    made.clear()


def test_who_errs_is_told_what_where_and_what_to_do(begun: Begun) -> None:
    """From the first file on, one mistake after another."""
    master, slave = (one.address for one in begun.servers)
    status, output = begun.check()
    assert status == 1
    missing = "db00000 … global (33 databases): the database is missing"
    assert f"{master}: {missing}; make it, empty: shardgate fleet create" in output, output
    for user in ("shardgate", "shardgate_write", "shardgate_admin"):  # no rights on one host of two
        assert f"{slave}: {user} cannot log in: " in output

    begun.make_accounts(1)
    assert begun.run("fleet", "create", "--yes")[0] == 0
    status, output = begun.check()
    assert status == 1
    assert f"ok  host      {master}: {begun.execute(0, 'SELECT VERSION()')[0]}, 3 accounts" in output
    assert f"{slave}: does not replicate: let it replicate from {master}" in output
    assert f"{slave}: takes writes, though it is a slave\n        SET GLOBAL read_only = ON;" in output
    assert f"{slave}: {missing}, which {master} has; does it replicate all?" in output, output

    begun.edit("topology.yaml", f', slave: "{slave}"', "")
    status, output = begun.check()
    assert (status, slave in output) == (0, False), output

    (begun.folder / "schema.yaml").open("a").write("      tags: {kind: object, keyspace: main, type: 9}\n")
    status, output = begun.check()
    assert status == 1
    text = "db00000 … db00015 (16 databases): the table tags is missing; make it: shardgate fleet create"
    assert f"{master}: {text}" in output
    assert begun.run("fleet", "create", "--yes")[0] == 0

    begun.execute(0, "REVOKE SELECT ON `%`.* FROM shardgate@'%'")
    status, output = begun.check()
    assert status == 1
    assert f"{master}: shardgate lacks SELECT on `%`.*" in output
    assert "is missing" not in output, "it cannot see them"
    begun.execute(0, "GRANT SELECT ON `%`.* TO shardgate@'%'")

    begun.execute(0, "ALTER USER shardgate_fleet@'%' IDENTIFIED BY 'another'")
    status, output = begun.check()
    assert status == 1
    assert f"{master}: shardgate_fleet, the account of the fleet tools, cannot log in: " in output
    assert "It is not there, or its password is another one" in output
    assert "ALTER USER 'shardgate_fleet'@'%' IDENTIFIED BY '…'" in output
    begun.edit("shardgate.yaml", "\nfleet: {", "\n# {")
    status, output = begun.check()
    assert (status, "replication is not looked at: the settings name no account" in output) == (0, True)

    nowhere = f"127.0.0.1:{free_port()}"
    begun.edit("topology.yaml", master, nowhere)
    status, output = begun.check()
    assert (status, f"{nowhere}: cannot be reached: " in output) == (1, True)
    begun.edit("topology.yaml", nowhere, "no-such-host.invalid:3306")
    status, output = begun.check()
    assert (status, "no-such-host.invalid:3306: cannot be reached: " in output) == (1, True)


def test_a_slave_that_is_behind_by_a_moment(begun: Begun, monkeypatch: pytest.MonkeyPatch) -> None:
    """As right after `fleet create`: it has what its master has when it is looked at again."""
    slave = begun.servers[1].address
    begun.make_accounts(1)
    assert begun.run("fleet", "create", "--yes")[0] == 0
    asked = 0

    def ask(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        answers = ask_hosts(*arguments)
        if asked == 2:
            begun.replicate()
        return answers

    monkeypatch.setattr("proxy.reachability.ask_hosts", ask)
    output = begun.check()[1]
    assert asked == 3
    assert f"{slave}: does not replicate" in output
    assert "is missing" not in output
