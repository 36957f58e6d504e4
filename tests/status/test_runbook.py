"""The runbook in docs/operations.md: what it says that is seen is what the program says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from proxy.cli import app

ROOT = Path(__file__).parents[2]
_TEXT = (ROOT / "docs" / "operations.md").read_text()
RUNBOOK = _TEXT.partition("\n## Runbook\n")[2].partition("\n## ")[0]
PROGRAM = "\n".join(
    path.read_text()
    for room in ("proxy", "config", "fleet")
    for path in sorted((ROOT / room).rglob("*"))
    if path.suffix in (".py", ".html")
)


def quoted(where: str) -> list[str]:
    rows = re.findall(rf"(?m)^\| {where} \| (.*) \|$", RUNBOOK)
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]


def test_every_event_is_there() -> None:
    assert len(re.findall(r"(?m)^### ", RUNBOOK)) == 13


@pytest.mark.parametrize("metric", sorted(set(re.findall(r"shardgate_\w+", RUNBOOK))))
def test_its_metrics_are_documented(metric: str) -> None:
    assert f"| `{metric}` |" in (ROOT / "docs" / "metrics.md").read_text()


def test_its_log_lines_are_the_programs() -> None:
    """The words before what is told of the event."""
    events = [one for one in quoted("log") if not one.startswith(("zookeeper ", "keyspaces."))]
    assert len(events) > 8
    assert [one for one in events if f'"{one}"' not in PROGRAM and f'"{one}' not in PROGRAM] == []


def test_the_words_of_its_links_are_headings() -> None:
    headings = {
        re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in re.findall(r"(?m)^#+ (.*)$", _TEXT)
    }
    assert set(re.findall(r"\]\(#([\w-]+)\)", _TEXT)) <= headings


def test_its_commands_are_the_programs() -> None:
    """With the options that they have there; `C` is --config."""
    rooms = "fleet|topology|check"
    rest = re.sub(r"(?m)^\| log \|.*$", "", RUNBOOK)
    found = re.findall(rf"`(?:shardgate )?((?:{rooms})\b[^`]*)`", rest)
    assert len(found) > 12
    for text in found:
        command: Any = typer.main.get_command(app)
        words = text.split()
        while words and hasattr(command, "commands"):
            assert words[0] in command.commands, text
            command = command.commands[words.pop(0)]
        known = {one for parameter in command.params for one in parameter.opts}
        assert {one for one in words if one.startswith("--")} <= known, text
        assert "C" not in words or "--config" in known, text


def test_what_clients_see_of_too_many_connections() -> None:
    """The words around what is told."""
    section = RUNBOOK.partition("### Too many connections")[2].partition("### ")[0]
    (row,) = re.findall(r"(?m)^\| clients \| (.*) \|$", section)
    texts = re.findall(r"`([^`]+)`", row)
    assert len(texts) == 4
    registry = (ROOT / "docs" / "errors.md").read_text() + PROGRAM
    assert [one for text in texts for one in text.split("…") if one.strip() not in registry] == []


def test_a_backup_can_be_loaded_where_it_came_from() -> None:
    """A server that has mysqldump's GTIDs refuses them, and what comes with them keeps rows from slaves."""
    dumps = re.findall(r"`(mysqldump [^`]*)`", RUNBOOK)
    assert dumps
    assert [one for one in dumps if "--set-gtid-purged=OFF" not in one] == []
