"""docs/seeds.md is followed literally on one demo: its statements and commands are run from top to bottom,
and print what the page shows. One kind of server is enough: the others are compared elsewhere.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Self

import pytest

from demo.programs import Flavour
from tests.support import commands
from tests.support.demo import Demo, running_demo
from tests.support.pages import Shell, matches
from tests.support.programs import FLAVOURS, need_program, program_of

PAGE = Path(__file__).parents[2] / "docs" / "seeds.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.M | re.S)
END = "--- done"
OPTIONS = ("--slaves", "--spares", "2", "--shards", "8")
PAIRS = {"MySQL001": ("host1", "host1-slave"), "MySQL002": ("host2", "host2-slave")}
PAIRS["MySQL009"] = ("spare1", "spare2")


class Block(NamedTuple):
    """Lines for `mysql` or the shell ("sql", "shell"), and what they print."""

    language: str
    lines: str
    shown: str


def blocks() -> list[Block]:
    """Those of the page, in their order."""
    return [Block(*found) for found in BLOCK.findall(PAGE.read_text())]


class Client:
    """One session of `mysql` with the demo's proxy, which goes on after errors."""

    def __init__(self, demo: Demo) -> None:
        login = [f"--host={demo.host}", f"--port={demo.port}", "--user=demo", "--password=demo"]
        self._process = subprocess.Popen(
            ["mysql", "--no-defaults", *login, "--batch", "--unbuffered", "--comments", "--force", "demo"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, lines: str) -> str:
        """What the statements print, errors with the others."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{lines}\nSELECT '{END}' AS `{END}`;\n")
        self._process.stdin.flush()
        printed = ""
        while not printed.endswith(f"{END}\n{END}\n"):
            line = self._process.stdout.readline()
            assert line, f"mysql has ended:\n{lines}\n{printed}"
            printed += line
        # Of a file of statements it also tells which one failed, and in which line
        printed = re.sub(r"^-+\n.*?^-+\n\n", "", printed.removesuffix(f"{END}\n{END}\n"), flags=re.M | re.S)
        return re.sub(r"^(ERROR \d+ \(\w+\)) at line \d+", r"\1", printed, flags=re.M)


class Page:
    """The page at work on a demo."""

    def __init__(self, demo: Demo, folder: Path) -> None:
        self._addresses = {}
        by_name = {one.name: one.address for one in demo.hosts}
        for label, pair in PAIRS.items():
            for side, name in zip("AB", pair, strict=True):
                self._addresses[f"{label}{side}"] = by_name[name]
        self._client = Client(demo)
        self._shell = Shell(folder, [commands.folder(), Path(sys.executable).parent])
        self._shell.run(f"cd '{demo.directory}'")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.__exit__()
        self._shell.end()

    def run(self, block: Block) -> str:
        """What a block prints, with the page's names of servers."""
        lines = block.lines
        if "published/" not in lines:  # there the names are all there is
            for label, address in self._addresses.items():
                lines = lines.replace(f"{label}:3306", address)
        printed = self._client.run(lines) if block.language == "sql" else self._shell.run(lines)
        for label, address in self._addresses.items():
            printed = printed.replace(address, f"{label}:3306")
        return printed


def test_every_row_is_as_the_page_says(tmp_path: Path) -> None:
    found = [program for one in FLAVOURS if (program := program_of(one)) is not None]
    program = found[0] if found else need_program(FLAVOURS[0])
    if program.flavour is not Flavour.MARIADB:
        pytest.skip("the page's statements on JSON are written for MariaDB")
    with running_demo(program, tmp_path / "demo", *OPTIONS) as demo, Page(demo, tmp_path) as page:
        for block in blocks():
            printed = page.run(block)
            assert matches(block.shown, printed), f"{block.lines}\nprinted:\n{printed}"


def test_every_link_leads_somewhere() -> None:
    text = PAGE.read_text()
    for name, anchor in re.findall(r"\]\(([\w.]*)#([\w-]+)\)", text):
        page = (PAGE.parent / name).read_text() if name else text
        found = re.findall(r"^#+ (.*)$", page, re.M)
        titles = [re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in found]
        assert anchor in titles, f"{name}#{anchor}"
    assert all((PAGE.parent / name).exists() for name in re.findall(r"\]\(([\w.]+)[)#]", text))
