"""The differences between the two kinds of servers have names, and nobody asks for the brand."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from config.flavour import FLAVOURS, MARIADB, MYSQL, MYSQL_WITHOUT_DIGESTS, Flavour, flavour_of

ROOT = Path(__file__).parents[2]
ROOMS = ("config", "rewriter", "proxy", "fleet", "demo")
REASONS = {
    "config/flavour.py": "the place",
    "rewriter/env.py": "what is read without a server is MySQL's",
    "rewriter/sql/statements/function_names.py": "the words that each kind has, as the servers were asked",
    "rewriter/text/names_apart.py": "words that each kind has, as the servers were asked",
    **{
        f"rewriter/sql/statements/{name}.py": "which of the servers has a statement, as their manuals say"
        for name in ("administration", "data", "definitions", "forms", "sessions", "shows")
    },
    "fleet/binlog/stream.py": "an option of the library that reads binary logs is called so",
    "demo/programs.py": "which program of this machine is which: found by what it is called and says",
    "demo/servers.py": "how its own servers are set up before anybody logs in",
    "demo/tour.py": "which command line client is installed",
    "fleet/starter/__init__.py": "its statements are for either, each marked for whom it is",
}
"""Files that know the brands, and why."""


def brands(tree: ast.AST) -> Iterator[int]:
    """The lines where a name, or a text that something is compared with, is a brand. (A text that is the key
    of a list of words, or stands in a message, is none.)
    """
    for node in ast.walk(tree):
        names = [getattr(node, one, None) for one in ("id", "attr", "arg")]
        if any(isinstance(name, str) and "mariadb" in name.lower().split("_") for name in names):
            yield getattr(node, "lineno", 0)
        if isinstance(node, ast.alias) and node.name in ("MARIADB", "MYSQL"):
            yield node.lineno
        if isinstance(node, ast.Compare):
            texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
            if any(isinstance(text, str) and text.lower() in ("mariadb", "mysql") for text in texts):
                yield node.lineno


def test_nobody_asks_for_the_brand() -> None:
    found = {
        f"{path.relative_to(ROOT)}": sorted(set(lines))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        # without the words, there is nothing to find
        if re.search("mariadb|mysql", text := path.read_text(), re.IGNORECASE)
        and (lines := list(brands(ast.parse(text))))
    }
    assert {name: lines for name, lines in found.items() if name not in REASONS} == {}
    assert {name for name in REASONS if not (ROOT / name).exists()} == set()


def test_each_difference_is_one() -> None:
    """A field that is the same for both is none; one that nobody asks for is dead."""
    texts = [
        path.read_text()
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if path.name != "flavour.py"
    ]
    for one in fields(MARIADB):
        values = {getattr(flavour, one.name) for flavour in (MARIADB, MYSQL, MYSQL_WITHOUT_DIGESTS)}
        assert len(values) > 1, one.name
        assert any(f".{one.name}" in text for text in texts), one.name


@pytest.mark.parametrize("version", ["10.11.6-MariaDB-1", "5.5.5-10.6.4-mariadb", "9.7.0", "8.0.36-log"])
def test_the_flavour_of_a_version(version: str) -> None:
    assert flavour_of(version).name == ("mariadb" if "mariadb" in version.lower() else "mysql")


@pytest.mark.parametrize("known", FLAVOURS.values(), ids=FLAVOURS)
def test_each_is_there_once(known: Flavour) -> None:
    assert pickle.loads(pickle.dumps(known)) is known


def test_a_server_without_digests_keeps_its_kind() -> None:
    assert flavour_of("9.7.0", digests=False) is MYSQL_WITHOUT_DIGESTS
    assert flavour_of("11.8.2-MariaDB", digests=False) is MARIADB


def test_what_transactions_were_called() -> None:
    assert [MARIADB.old_transaction_names(one) for one in (101106, 110101)] == [True, False]
    assert not MYSQL.old_transaction_names(80036)
