"""Every keyword in every place where a server takes it for a name: the reader does, too.

`words.json` says what servers take for a name (words.py). What the reader makes of the bare word must be what
it makes of a word that nobody knows.
"""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import rewriter
from config.flavour import MARIADB, MYSQL
from rewriter.env import Env
from rewriter.plans import Plan
from rewriter.text.facts import Block
from rewriter.text.names import with_plain_names
from rewriter.text.parse import Parser
from rewriter.text.parse_write import WriteParser
from rewriter.text.tokens import Unreadable, read
from tests.rewriter import support, words
from tests.support.demo import Demo

UNKNOWN = "zzqq"
FLAVOURS = {True: "MariaDB", False: "MySQL"}


_NOT_READING = ("native.py", "rights.py", "reachability.py", "views.py", "show.py")
"""They ask for words behind the reader's back: of statements that the reader does not read."""


@cache
def known() -> frozenset[str]:
    """The words that stand anywhere in the rewriter: all others are alike to it."""
    folder = Path(rewriter.__file__).parent
    texts = [path.read_text() for path in folder.rglob("*.py") if path.name not in _NOT_READING]
    return frozenset(word for text in texts for word in re.findall(r"[A-Z][A-Z_0-9]+", text))


def facts(place: str, word: str, *, mariadb: bool) -> object:
    """What the reader says of a statement: UNKNOWN for the word, token indexes for places."""
    sql = place.format(w=word)
    env = Env(database="demo", flavour=MARIADB if mariadb else MYSQL)
    source = with_plain_names(
        read(sql.encode(), _literals(sql, env), env), flavour=MARIADB if mariadb else MYSQL
    )
    first = source.tokens[0].text
    if first in ("INSERT", "REPLACE"):
        return plain(WriteParser(source).insert(), word.upper())
    if first in ("UPDATE", "DELETE"):
        return plain(WriteParser(source).change(), word.upper())
    parser = Parser(source)
    query = parser.query(None)
    if parser.at < parser.end:
        raise parser.unreadable("the end")
    return plain(query, word.upper())


def _literals(sql: str, env: Env) -> tuple[bytes, ...]:
    return tuple(literal for _, literal in env.findall(sql.encode() + b"\0"))


_KINDS = ("form", "verb")  # words of the reader's own


@cache
def fields(kind: type) -> tuple[tuple[str, bool], ...] | None:
    """Those of a dataclass that are shown, and whether one is the reader's own."""
    if not dataclasses.is_dataclass(kind):
        return None
    names = [field.name for field in dataclasses.fields(kind)]
    return tuple(
        (name, name in _KINDS) for name in names if not (issubclass(kind, Block) and name == "outer")
    )


def plain(value: Any, word: str) -> object:
    kind: Any = type(value)
    if kind is str:
        return UNKNOWN if value.upper() == word else value
    if kind is int or kind is bool or value is None:
        return value
    if kind is tuple or kind is list or isinstance(value, list | tuple | set | frozenset):
        return [plain(each, word) for each in value]
    shown = fields(kind)
    if shown is not None:
        return kind.__name__, [plain(getattr(value, name), "" if own else word) for name, own in shown]
    if isinstance(value, dict):
        return [(plain(key, word), plain(each, word)) for key, each in value.items()]
    return UNKNOWN if isinstance(value, str) and value.upper() == word else value


@cache
def expected(place: str, mariadb: bool) -> object:
    return facts(place, UNKNOWN, mariadb=mariadb)


def reading(word: str, place: str, mariadb: bool) -> object:
    try:
        return facts(place, word, mariadb=mariadb)
    except Unreadable as error:
        return f"unreadable: {error}"


BOTH_WAYS = {
    "SELECT x FROM k {w} JOIN j ON z = x": {"CROSS", "INNER", "LEFT", "RIGHT", "NATURAL"},
    "DELETE {w} FROM k {w} WHERE x = 1": {"QUICK"},
    "SELECT COUNT(*) FROM k GROUP BY {w} WITH ROLLUP": {"ROLLUP"},
}
"""Where a statement does the same whether the word is a name or not."""


@pytest.mark.parametrize("mariadb", FLAVOURS, ids=FLAVOURS.values())
def test_names_are_read_as_names(mariadb: bool) -> None:
    some = {"ACCOUNT", "CHECKSUM", "XID"}  # of those that the rewriter does not know
    wrong = [
        (word, place)
        for word, place in words.cases(mariadb)
        if word not in BOTH_WAYS.get(place, ())
        if (word in known() or word in some) and reading(word, place, mariadb) != expected(place, mariadb)
    ]
    assert wrong == []


SHARDED = (
    "DELETE FROM board_has_pins WHERE board_id = {id} AND {w} < 5 OR pin_id = 7",
    "DELETE FROM board_has_pins WHERE board_id = {id} AND {w} + 5 OR pin_id = 7",
    "UPDATE board_has_pins SET sequence = 1 WHERE board_id = {id} AND {w} > 5 OR pin_id = 7",
    "SELECT pin_id FROM board_has_pins WHERE board_id = {id} AND {w} < 5 OR pin_id = 7",
    "SELECT pin_id FROM board_has_pins WHERE board_id = {id} AND {w} * 5 OR pin_id = 7",
    "SELECT pin_id AS {w} FROM board_has_pins WHERE board_id = {id}",
    "SELECT pin_id {w} FROM board_has_pins WHERE board_id = {id}",
    "SELECT pin_id FROM board_has_pins {w} WHERE {w}.board_id = {id}",
    "SELECT pin_id FROM board_has_pins AS {w} WHERE board_id = {id} OR {w}.pin_id = 7",
    "SELECT pin_id FROM board_has_pins WHERE board_id = {id} ORDER BY {w} LIMIT 1",
)
ALIKE = dict(zip(SHARDED, (words.PLACES.index(place) for place in (
    "DELETE FROM k WHERE x = 1 AND {w} < 6 OR x = 3",
    "DELETE FROM k WHERE x = 1 AND {w} + 1 OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND {w} > 5 OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND {w} < 5 OR x = 3",
    "SELECT x FROM k WHERE x = 1 AND {w} * 5 OR x = 3",
    "SELECT x AS {w} FROM k",
    "SELECT x {w} FROM k",
    "SELECT x FROM k {w} WHERE x = 1",
    "SELECT {w}.x FROM k AS {w}",
    "SELECT x FROM k ORDER BY {w} LIMIT 1",
)), strict=True))  # fmt: skip
"""Statements on a sharded table, and the place of words.py that stands for each."""


@pytest.mark.parametrize("mariadb", FLAVOURS, ids=FLAVOURS.values())
def test_names_do_not_route(mariadb: bool) -> None:
    """The plan of a sharded statement is the one with an unknown word in the word's place."""
    planner = support.rewriter()
    env = Env(database="demo", flavour=MARIADB if mariadb else MYSQL)
    wrong = []
    for sql, place in ALIKE.items():
        texts = {word: sql.format(w=word, id=support.new_id("boards", 1, 5)) for word in (UNKNOWN,)}
        want = shown(planner.plan(texts[UNKNOWN].encode(), env)[0])
        for profile, each in words.profiles(mariadb).items():
            for word in each if profile[place] == "1" else ():
                if word not in known():
                    continue
                text = sql.format(w=word, id=support.new_id("boards", 1, 5))
                got = re.sub(rf"\b{word}\b", UNKNOWN, shown(planner.plan(text.encode(), env)[0]))
                if got != want:
                    wrong.append((word, sql, got))
    assert wrong == []


def shown(plan: Plan) -> str:
    """A plan's kind and how it finds its shards."""
    routes = getattr(getattr(plan, "routing", None), "routes", "")
    return (
        f"{plan.kind} {getattr(plan, 'error', '')} {getattr(plan, 'arguments', '')} {routes} {plan.scatter}"
    )


@pytest.mark.slow
def test_servers_say_the_same_today(demo: Demo) -> None:
    """The file is what servers say: asked again for every fifth of the words that the rewriter knows."""
    server = words.Asked(
        {"socket": demo.masters[0].socket, "user": demo.masters[0].user, "password": demo.masters[0].password}
    )
    try:
        said = {word: profile for profile, each in words.profiles(server.mariadb).items() for word in each}
        changed = {
            word: [
                place for place, was, now in zip(words.PLACES, said[word], profile, strict=True) if was != now
            ]
            for word in sorted(said.keys() & known())[::5]
            if (profile := server.profile(word)) != said[word]
        }
    finally:
        server.close()
    assert changed == {}


def test_the_file_is_whole() -> None:
    for mariadb in FLAVOURS:
        found = words.profiles(mariadb)
        assert all(len(profile) == len(words.PLACES) for profile in found)
        assert sum(len(each) for each in found.values()) > 800
    assert set(json.loads(words.FILE.read_text())) == {"mariadb", "mysql"}
