"""The rewriter's answers about 3,000 statements on each kind of server, as recorded in `answers.txt`."""

from __future__ import annotations

from tests.statements.answers import given, recorded


def test_the_rewriter_answers_as_recorded() -> None:
    """Where an answer is meant to change, `python -m tests.statements.answers` records it anew."""
    before, now = recorded(), given()
    assert before.keys() == now.keys()
    assert {title: (before[title], answer) for title, answer in now.items() if before[title] != answer} == {}
