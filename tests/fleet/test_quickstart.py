"""docs/quickstart.md is followed literally, on two fresh servers: its blocks are run by one shell, and print
what the page shows. Replaced is what the page says, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from demo.process import free_port
from demo.programs import Program
from demo.servers import start_all, stop_servers
from tests.support.servers import LocalServer

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
BLOCK = re.compile(r"^```(\w+)(?: (mariadb|mysql))?\n(.*?)^```$", re.M | re.S)
SECONDS = 300


@dataclass
class Block:
    """Some lines for the shell, and what they print, as the page shows it ("": nothing is shown)."""

    shell: str
    shown: str = ""


def blocks(kind: str) -> list[Block]:
    """Those of the page, for one kind of server."""
    found: list[Block] = []
    for language, only, text in BLOCK.findall(PAGE.read_text()):
        if language == "shell" and only in ("", kind):
            found.append(Block(text))
        elif language == "text":
            found[-1].shown = text
    return found


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


@pytest.fixture
def kind(flavour: str) -> str:
    """As the page calls it."""
    return "mariadb" if flavour == "mariadb" else "mysql"


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


class Shell:
    """One bash in `folder`, which ends with the first command that fails."""

    def __init__(self, folder: Path, programs: list[Path]) -> None:
        path = os.pathsep.join([*(str(one) for one in programs), os.environ["PATH"]])
        self._errors = (folder / "errors").open("w+")
        self._process = subprocess.Popen(
            ["bash", "-e", "-o", "pipefail"],
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )

    def run(self, lines: str) -> str:
        """What they print."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{lines}\necho '--- done'\n")
        self._process.stdin.flush()
        printed = ""
        while not printed.endswith("--- done\n"):
            line = self._process.stdout.readline()
            assert line, f"{lines}\n{printed}\n{Path(self._errors.name).read_text()}"
            printed += line
        return printed.removesuffix("--- done\n")

    def end(self) -> None:
        """It, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._errors.close()


def matches(shown: str, printed: str) -> bool:
    """`…` stands for anything within a line."""
    pattern = "[^\n]*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, printed) is not None


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
    programs = [Path(sys.executable).parent, *([program.path.parent] if kind == "mysql" else [])]
    shell = Shell(tmp_path, programs)
    assert_as_asked_for(fresh[0], kind)
    try:
        for block in blocks(kind):
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
