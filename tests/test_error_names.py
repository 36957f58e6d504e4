"""Every error that the code names is in the registry: another would reach the client as an internal error."""

from __future__ import annotations

import re
from pathlib import Path

from proxy.errors import REGISTRY

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"""(?:ProxyError|Refuse|BindError|Notice)\(\s*"(\w+)"|\berror="(\w+)\"""")
FILES = sorted(path for room in ("proxy", "rewriter") for path in (ROOT / room).rglob("*.py"))


def test_named_errors_are_registered() -> None:
    for path in FILES:
        named = {one or other for one, other in NAMED.findall(path.read_text(encoding="utf-8"))}
        assert named <= set(REGISTRY), path


def test_something_is_named() -> None:
    found = {one or other for path in FILES for one, other in NAMED.findall(path.read_text(encoding="utf-8"))}
    assert {"access_denied", "unknown_table", "id_matches_nothing", "not_supported_yet"} <= found
