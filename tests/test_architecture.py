"""ARCHITECTURE.md and docs/decisions/ speak of what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "decisions").glob("*.md"))
FILE = re.compile(
    r"`((?:proxy|rewriter|config|fleet|demo|tests|execute|engine|text|route|reads)/[\w/]+\.py)`"
)


def exists(name: str) -> bool:
    return any((ROOT / room / name).exists() for room in ("", "proxy", "rewriter"))


@pytest.mark.parametrize("page", [ROOT / "ARCHITECTURE.md", *PAGES], ids=lambda page: str(page.stem))
def test_files_that_are_named(page: Path) -> None:
    missing = [name for name in FILE.findall(page.read_text()) if not exists(name)]
    assert not missing


def test_every_decision_is_listed() -> None:
    listed = re.findall(r"\(docs/decisions/([\w-]+)\.md\)", (ROOT / "ARCHITECTURE.md").read_text())
    assert sorted(listed) == [page.stem for page in PAGES]
