"""The runbook in docs/operations.md: what it says that is seen is what the program says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
    assert len(re.findall(r"(?m)^### ", RUNBOOK)) == 11


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
