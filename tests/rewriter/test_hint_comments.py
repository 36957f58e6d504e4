"""What looks like a hint is a comment where no hint may stand: who looks at neighbours does not see it."""

from __future__ import annotations

import dataclasses

import pytest

from rewriter.env import Env
from rewriter.fingerprint import lift
from rewriter.text.tokens import HINT, Source, Unreadable, read
from tests.rewriter.corpus import statements

_HINTED = {"SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE"}


def read_as(sql: str, env: Env) -> Source:
    text = sql.encode("utf-8", "surrogateescape")
    env = dataclasses.replace(env, parameters=False)
    return read(text, lift(text)[1], env)


def texts(source: Source) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in source.tokens if token.kind != HINT]


def test_at_each_place_of_the_corpus() -> None:
    """Tokens are as with a comment in its place, but for hints behind the words that take them."""
    tried = 0
    for sql, env in statements()[::20]:
        try:
            source = read_as(sql, env)
        except Unreadable:
            continue
        for before, token in zip(source.tokens, source.tokens[1:], strict=False):
            if not sql.isascii() or token.kind == HINT:
                continue
            hinted, told = (
                read_as(f"{sql[: token.start]} {comment} {sql[token.start :]}", env)
                for comment in ("/*+ x */", "/* x */")
            )
            assert texts(hinted) == texts(told), sql
            if not (before.kind == HINT or before.text in _HINTED):
                assert len(hinted.tokens) == len(told.tokens), (sql, token)
            tried += 1
    assert tried > 1000


@pytest.mark.parametrize(
    ("sql", "hints"),
    [
        ("SELECT /*+ a */ 1 FROM (SELECT /*+ b */ 2) t", 2),
        ("INSERT /*+ a */ /*+ b */ INTO t VALUES (1)", 2),
        ("SELECT /* c */ /*+ a */ (1)", 1),
        ("SELECT REPLACE/*+ a */('a', 'b', f(1))", 0),
        ("SELECT INSERT /*+ a */ /*+ b */ ('a', 1, 1, 'b')", 0),
        ("SELECT 1 FROM t FOR UPDATE /*+ a */", 0),
        ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE /*+ a */ b = 1", 0),
        ("SELECT t.select/*+ a */ FROM t", 0),
        ("TABLE /*+ a */ t", 0),
    ],
)
def test_where_hints_stand(sql: str, hints: int) -> None:
    assert [token.kind for token in read_as(sql, Env()).tokens].count(HINT) == hints
