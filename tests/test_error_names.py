"""Every error that the code names is in the registry: another would reach the client as an internal error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proxy.errors import REGISTRY

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"""(?:ProxyError|Refuse|BindError|Notice)\(\s*"(\w+)"|\berror="(\w+)\"""")
FILES = sorted(path for room in ("proxy", "rewriter") for path in (ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_errors_are_registered(path: Path) -> None:
    named = {one or other for one, other in NAMED.findall(path.read_text(encoding="utf-8"))}
    assert named <= set(REGISTRY)


def test_something_is_named() -> None:
    found = {one or other for path in FILES for one, other in NAMED.findall(path.read_text(encoding="utf-8"))}
    assert {"access_denied", "unknown_table", "id_matches_nothing", "not_supported_yet"} <= found
