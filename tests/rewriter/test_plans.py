"""Statements and their plans, as golden files; see golden.py for how to rewrite them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rewriter import golden

CASES = [
    pytest.param(case, id=f"{path.stem}: {case['sql'][:80]}")
    for path in sorted(golden.FOLDER.glob("*.yaml"))
    for case in golden.load(path)
]


@pytest.mark.parametrize("case", CASES)
def test_plan(case: dict[str, Any]) -> None:
    expected = {name: value for name, value in case.items() if name not in golden.GIVEN}
    assert golden.outcome(case) == expected
