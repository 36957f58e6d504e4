"""docs/quickstart.md is followed literally, on two fresh servers: its blocks are run by one shell, and print
what the page shows. Replaced is what the page says, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from demo.process import free_port
from demo.programs import Program
from demo.servers import start_all, stop_servers
from tests.support.pages import BLOCK, Shell, blocks, matches, programs_of
from tests.support.servers import LocalServer

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
SECONDS = 300


@pytest.fixture
def fresh(program: Program, template: Path, tmp_path: Path, kind: str) -> Iterator[list[LocalServer]]:
    """Two servers with a binary log, as the page asks for, and one administrator."""
    made = [
        LocalServer(program, tmp_path / f"db{n}", name=f"db{n}", template=template, server_id=n, binlog=True)
        for n in (1, 2)
    ]
    for one in made:
        one.password = "administrator"
    try:
        start_all(made)
        yield made
    finally:
        stop_servers(made)


def replaced(text: str, servers: list[LocalServer], ports: tuple[int, int]) -> str:
    """With what the first table of the page says is to be replaced."""
    for name, server in zip(("db1", "db2"), servers, strict=True):
        text = text.replace(f"{name}:3306", server.address)
        text = text.replace(f"host = {name}\nport = 3306", f"host = 127.0.0.1\nport = {server.port}")
        text = re.sub(
            rf"_HOST = '{name}', (\w+)_PORT = 3306", rf"_HOST = '127.0.0.1', \1_PORT = {server.port}", text
        )
    text = text.replace("ROOT-PASSWORD", servers[0].password).replace("REPLICA-PASSWORD", "a password")
    return text.replace("3307", str(ports[0])).replace("9307", str(ports[1]))


def assert_as_asked_for(server: LocalServer, kind: str) -> None:
    """It has the options of the page."""
    inis = [
        text for language, only, text in BLOCK.findall(PAGE.read_text()) if (language, only) == ("ini", kind)
    ]
    asked = dict(re.findall(r"^(\w+) = (\w+)$", inis[0], re.M))
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"@@GLOBAL.{name}" for name in asked))
        found = [str(one) for row in cursor.fetchall() for one in row]
    assert [{"ON": "1", "binlog": "1"}.get(one, one) for one in asked.values()] == [
        {"ON": "1"}.get(one, one) for one in found
    ]


def test_the_page_is_right(fresh: list[LocalServer], program: Program, tmp_path: Path, kind: str) -> None:
    ports = (free_port(), free_port())
    shell = Shell(tmp_path, programs_of(program, kind, as_users_do=kind == "mariadb"))
    assert_as_asked_for(fresh[0], kind)
    try:
        for block in blocks(PAGE, kind):
            lines = replaced(block.shell, fresh, ports)
            if "APP-PASSWORD" in lines:
                settings = yaml.safe_load((tmp_path / "fleet" / "shardgate.yaml").read_text())
                lines = lines.replace("APP-PASSWORD", settings["users"][0]["password"])
            printed = shell.run(lines)
            shown = replaced(block.shown, fresh, ports)
            assert not shown or matches(shown, printed), f"{lines}\nprinted:\n{printed}\nthe page:\n{shown}"
            if "shardgate init" in lines:
                for name in ("topology.yaml", "shardgate.yaml"):
                    path = tmp_path / "fleet" / name
                    path.write_text(replaced(path.read_text(), fresh, ports))
    finally:
        shell.end()
