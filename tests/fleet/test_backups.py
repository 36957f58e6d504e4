"""docs/backups.md is followed literally on one demo of each kind: its blocks are run from top to bottom, and
print what the page shows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.programs import Program
from tests.fleet.test_seeds import PAIRS, Client
from tests.support.demo import Demo, running_demo
from tests.support.pages import BLOCK, Shell, matches, programs_of

PAGE = Path(__file__).parents[2] / "docs" / "backups.md"
OPTIONS = ("--slaves", "--spares", "2", "--shards", "8")
PASSWORD = "Replica-1"


@pytest.fixture
def kind(flavour: str) -> str:
    """As the page calls it."""
    return "mariadb" if flavour == "mariadb" else "mysql"


def servers(demo: Demo) -> dict[str, int]:
    """The index of each, by its name in the page."""
    names = [one.name for one in demo.hosts]
    return {
        f"{label}{side}": names.index(name)
        for label, pair in PAIRS.items()
        for side, name in zip("AB", pair, strict=True)
    }


def prepare(demo: Demo) -> None:
    """The option files, and an account that may replicate."""
    for label, index in servers(demo).items():
        one = demo.hosts[index]
        login = f"user = {one.user}\npassword = {one.password}"
        text = f"[client]\nhost = {one.host}\nport = {one.port}\n{login}\n"
        (demo.directory / f"{label}.cnf").write_text(text)
        if one.role == "master":
            with demo.direct(index) as connection, connection.cursor() as cursor:
                cursor.execute(f"CREATE USER 'replica'@'%' IDENTIFIED BY '{PASSWORD}'")
                cursor.execute("GRANT REPLICATION SLAVE ON *.* TO 'replica'@'%'")


def replaced(demo: Demo, lines: str) -> str:
    """With the addresses of the demo."""
    for label, index in servers(demo).items():
        one = demo.hosts[index]
        lines = lines.replace(f"{label}:3306", one.address)
        lines = lines.replace(f"follow {label} 3306", f"follow {one.host} {one.port}")
    return lines.replace("REPLICA-PASSWORD", PASSWORD)


def test_the_page_is_right(program: Program, tmp_path: Path, kind: str) -> None:
    with running_demo(program, tmp_path / "demo", *OPTIONS) as demo, Client(demo) as client:
        prepare(demo)
        shell = Shell(tmp_path, programs_of(program, kind))
        try:
            shell.run(f"cd '{demo.directory}'")
            for language, text, shown in blocks(kind):
                text = replaced(demo, text)
                printed = shell.run(text) if language == "shell" else client.run(text)
                assert matches(shown, printed), f"{text}\nprinted:\n{printed}\nthe page:\n{shown}"
        finally:
            shell.end()


def blocks(kind: str) -> list[tuple[str, str, str]]:
    """For one kind of server: "shell" or "sql", what is run, and what it prints."""
    found: list[tuple[str, str, str]] = []
    ours = True
    for language, only, text in BLOCK.findall(PAGE.read_text()):
        if language != "text":
            ours = only in ("", kind)
        if ours and language == "text":
            found[-1] = (*found[-1][:2], text)
        elif ours:
            found.append((language, text, ""))
    return found
