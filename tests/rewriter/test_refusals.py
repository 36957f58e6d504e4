"""docs/sql.md lists refusals as they are."""

from __future__ import annotations

from .refusals import DOCUMENT, document


def test_the_table_is_what_is_refused() -> None:
    current = DOCUMENT.read_text()
    assert current == document(current), "run: python -m tests.rewriter.refusals"
