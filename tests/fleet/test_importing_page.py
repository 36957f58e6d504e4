"""docs/importing.md is followed literally, from a forum on one server to a fleet on another: its blocks are
run by one shell, and print what the page shows. Replaced is what the page says, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.programs import Program
from tests.support.forum import Forum
from tests.support.pages import Shell, blocks, matches, programs_of
from tests.support.servers import LocalServer

PAGE = Path(__file__).parents[2] / "docs" / "importing.md"


@pytest.fixture
def source(servers: list[LocalServer]) -> Iterator[LocalServer]:
    """With a forum."""
    with servers[0].connect() as connection, connection.cursor() as cursor:
        Forum(connection, size=300).make()
        yield servers[0]
        for sql in ("SET GLOBAL read_only = OFF", "DROP DATABASE forum", "DROP USER import"):
            cursor.execute(sql)


@pytest.fixture
def fleet(servers: list[LocalServer], tmp_path: Path, kind: str, program: Program) -> Iterator[Shell]:
    """In the folder of a fleet without tables, on one server."""
    host = servers[1]
    shell = Shell(tmp_path, programs_of(program, kind))
    shell.run("shardgate init fleet\ncd fleet")
    topology = tmp_path / "fleet" / "topology.yaml"
    text = topology.read_text().replace(', slave: "db2:3306"', "").replace("db1:3306", host.address)
    topology.write_text(text.replace("[0, 15]", "[0, 3]").replace("shards: 16", "shards: 4"))
    option_file = tmp_path / "fleet" / "host.cnf"
    option_file.write_text(
        f'[client]\nhost = 127.0.0.1\nport = {host.port}\nuser = root\npassword = "{host.password}"\n'
    )
    shell.run("mysql --defaults-extra-file=host.cnf < accounts.sql")
    yield shell
    shell.end()
    with host.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT User, Host FROM mysql.user WHERE User LIKE 'shardgate%'")
        for user, where in cursor.fetchall():
            cursor.execute(f"DROP USER '{user}'@'{where}'")
        for name in databases(host):
            cursor.execute(f"DROP DATABASE {name}")


def databases(host: LocalServer) -> list[str]:
    with host.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        return [name for (name,) in cursor.fetchall() if name.startswith(("db0", "lookup0", "global"))]


def replaced(text: str, source: LocalServer) -> str:
    """With what the table of the page says is to be replaced."""
    text = text.replace("host = old-db\nport = 3306", f"host = 127.0.0.1\nport = {source.port}")
    text = text.replace("old-db:3306", source.address)
    return text.replace("ROOT-PASSWORD", source.password).replace("'IMPORT-PASSWORD'", "'a password'")


def test_the_page_is_right(fleet: Shell, source: LocalServer, servers: list[LocalServer], kind: str) -> None:
    for block in blocks(PAGE, kind):
        printed = fleet.run(replaced(block.shell, source))
        shown = replaced(block.shown, source)
        assert not shown or matches(shown, printed), f"{block.shell}\nprinted:\n{printed}\nthe page:\n{shown}"
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.read_only")
        assert cursor.fetchone() == (1,)
    posts = count(source, "forum.posts")
    assert posts > 100
    assert posts == sum(
        count(servers[1], f"{name}.posts") for name in databases(servers[1]) if name[:2] == "db"
    )


def count(host: LocalServer, table: str) -> int:
    with host.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {table}")
        return int((cursor.fetchone() or (0,))[0])
