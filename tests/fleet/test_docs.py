"""docs/fleet.md has every command of the fleet tools with its options, and every kind of fault."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

import proxy.cli  # which has commands of rooms beside fleet.cli, too
from fleet import cli, faults, schema_cli, topology_cli

TEXT = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text()


assert proxy.cli.app is not None


def commands() -> dict[str, Any]:
    """By how they are called."""
    found: dict[str, Any] = {}
    for name, app in (("fleet", cli.app), ("topology", topology_cli.app), ("schema", schema_cli.app)):
        group: Any = typer.main.get_command(app)
        found |= {f"shardgate {name} {one}": command for one, command in group.commands.items()}
    return found


def is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


SHOWN = {
    " ".join(line.split()[:3]): line.strip()
    for line in re.findall(r"^### \w+\n\n    (shardgate .*)$", TEXT, re.M)
}


def test_every_command_is_documented_and_no_other() -> None:
    assert SHOWN.keys() == commands().keys()


@pytest.mark.parametrize("name", commands())
def test_options_are_documented(name: str) -> None:
    command = commands()[name]
    options = {max(one.opts, key=len) for one in command.params if not is_argument(one)} - {"--help"}
    assert set(re.findall(r"--[a-z-]+", SHOWN[name])) == options
    arguments = [one.metavar for one in command.params if is_argument(one)]
    plain = re.sub(r"\[.*?\]|--[a-z-]+ \S+", "", SHOWN[name].removeprefix(name))
    assert plain.split() == arguments


def test_every_kind_of_fault_is_documented() -> None:
    kinds = set(re.findall(r"^    (\w+) {2,}", faults.__doc__ or "", re.M))
    assert set(re.findall(r"^\| `(\w+)` \| ", TEXT, re.M)) == kinds
