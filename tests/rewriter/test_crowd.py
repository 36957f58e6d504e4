"""How many tables a statement joins."""

from __future__ import annotations

import pytest

from rewriter.env import Env
from rewriter.fingerprint import lift
from rewriter.plans import Reject
from rewriter.text.crowd import MAX_TABLES, most_tables
from rewriter.text.tokens import read
from tests.rewriter.support import rewriter

ENV = Env(database="demo")
PAD = " /* */ AND 1 IN (" + "1 + " * 70 + "1)"


def count(sql: str) -> int:
    """With enough words that it is counted at all."""
    text = sql.encode()
    return most_tables(read(text, lift(text + b"")[1], ENV))


def list_of(number: int, before: str = "t") -> str:
    return ", ".join(f"pins {before}{n}" for n in range(number))


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT 1 FROM {list}", 70),
        ("SELECT 1 FROM a WHERE x IN (1+{many})", 1),
        ("SELECT 1 FROM pins p {joins}", 71),
        ("SELECT 1 FROM ({list}) JOIN b", 71),
        ("SELECT 1 FROM pins p USE INDEX FOR JOIN (a, b) {joins}", 71),
        ("SELECT 1 FROM pins p USE INDEX FOR ORDER BY (a), b {joins}", 72),
        ("SELECT * FROM (SELECT 1 FROM {list}) x", 70),
        ("SELECT {columns} FROM pins", 1),
        ("SELECT 1 FROM pins ORDER BY {columns}", 1),
        ("SELECT EXTRACT(YEAR FROM ts), {columns} FROM pins p", 1),
        ("SELECT f({columns}) FROM pins p JOIN pins q ON f({columns})", 2),
        ("UPDATE {list} SET ts = 1", 70),
        ("DELETE t0 FROM {list}", 70),
        ("DELETE FROM {names} USING {list} WHERE 1", 70),
        ("INSERT INTO pins (data) SELECT 1 FROM {list}", 70),
        ("SELECT 1 FROM pins WHERE ts IN (SELECT 1 FROM {list})", 70),
        ("WITH c AS (SELECT 1 FROM {list}) SELECT 1 FROM c", 70),
    ],
)
def test_counted(sql: str, tables: int) -> None:
    filled = sql.format(
        list=list_of(70),
        many="1+" * 80 + "1",
        joins=" ".join(f"JOIN pins j{n} ON 1" for n in range(70)),
        columns=", ".join(["ts"] * 80),
        names=", ".join(f"t{n}" for n in range(70)),
    )
    assert count(filled) == tables


def test_a_union_is_no_join() -> None:
    assert count(" UNION ALL ".join(["SELECT id FROM pins"] * 200)) == 1


def test_more_than_a_server_takes_are_refused_before_any_work() -> None:
    for number in (MAX_TABLES, MAX_TABLES + 1, 5000):
        plan, _ = rewriter().plan(f"SELECT 1 FROM {list_of(number)} WHERE t0.id = 1".encode(), ENV)
        refused = isinstance(plan, Reject) and plan.error == "too_many_tables"
        assert refused == (number > MAX_TABLES)
