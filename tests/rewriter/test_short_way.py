"""The planner's short ways: a statement known but for a number at its end, or a string, is not cut again."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriter.around import MAX_AROUND, Around
from rewriter.enclosed import enclosed
from rewriter.fingerprint import findall
from rewriter.planner import MAX_SHORT, Rewriter
from rewriter.plans import BindError, Env
from tests.rewriter.support import SCHEMA_MODEL, TOPOLOGY, new_id

ENV = Env(database="demo")
HEADS = [
    "SELECT * FROM pins WHERE id =",
    "SELECT id, data FROM demo.pins p WHERE p.id IN (1) OR id =",
    "UPDATE boards SET data = NULL WHERE id =",
    "SELECT COUNT(*) FROM pins ORDER BY",
    "SELECT * FROM pins WHERE id = 70437463654407 LIMIT",
    "SELECT * FROM user_likes_pins WHERE user_id =",
    "SELECT 'a' , /* 1 */",
    "SELECT @@x, 1 -- 5",
    "USE",
]
TAILS = [str(new_id("pins", 1, 5)), str(new_id("boards", 3, 1 << 33)), "0", "1", "007", "9" * 45]


def outcome(rewriter: Rewriter, sql: str, env: Env) -> object:
    plan, literals = rewriter.plan(sql.encode("utf-8", "surrogatepass"), env)
    values = literals + (b"NULL",) * len(plan.session_slots)
    try:
        return plan.kind, literals, plan.bind(values, TOPOLOGY, lambda shards: shards[0])
    except BindError as error:
        return plan.kind, literals, error.name, error.arguments


STEMS = [
    "SELECT 0x", "SELECT 1e", "SELECT 1.", "SELECT .", "SELECT -", "SELECT a", "SELECT @v", "SELECT a.b",
    "SELECT 'a", "SELECT `a", "SELECT 1 /*", "SELECT 1 --", "SELECT 1 #", "SELECT 3, 4,", "SELECT 1 LIMIT",
    "SELECT * FROM t WHERE a BETWEEN 3 AND", "SELECT * FROM t WHERE a IN (1) AND b>", "SELECT 1 AS",
    "SELECT * FROM t1 WHERE a=3 LIMIT",
]  # fmt: skip


@pytest.mark.parametrize("head", HEADS + STEMS)
def test_it_gives_what_the_long_way_gives(head: str) -> None:
    used = Rewriter(SCHEMA_MODEL, TOPOLOGY)
    for env in (ENV, Env(database="legacy"), ENV):
        for tail, space in product([*TAILS, *TAILS], (" ", "")):
            sql = f"{head}{space}{tail}"
            assert outcome(used, sql, env) == outcome(Rewriter(SCHEMA_MODEL, TOPOLOGY), sql, env)


QUOTED = [
    ("INSERT INTO comments (data) VALUES (", ")"),
    ("insert ignore into user_likes_pins (data) values (", ")"),
    ("SELECT user_id FROM email_to_user WHERE email = ", ""),
    ("SELECT user_id FROM email_to_user WHERE email IN (", ") AND 1"),
    ("SELECT user_id FROM email_to_user WHERE email IN (", " ) LIMIT 1"),
    ("SELECT 5, ", " AS a"),
    ("SELECT @", ""),
    ("SELECT x", ", 1"),
    ("SELECT _utf8mb4", ""),
    ("SELECT 1 -- ", ""),
    ("SELECT 1 # ", "\n"),
    ("SELECT /* ", " */ 1"),
    ("SELECT `a ", "` FROM pins"),
    ('SELECT "a ', '" FROM pins'),
    ("SELECT N", " 'a'"),
    ("UPDATE pins SET data = ", f" WHERE id = {new_id('pins', 1, 5)}"),
]
STRINGS = [
    f'{{"pin_id": {new_id("pins", 2, 7)}}}', "a", "", "a@b.c", "5", "--", "/*", "*/", "#", '"', '""', "`",
    "a\0b",
    "it''s", r"it\'s", r"a\\", r"\n", "', '", "' + '", ") AND (", "/*!50000 x */", "\n-- ", "ä", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize(("opened", "behind"), QUOTED)
def test_strings_give_what_the_long_way_gives(opened: str, behind: str) -> None:
    for env in (ENV, replace(ENV, ansi_quotes=True), replace(ENV, no_backslash_escapes=True)):
        used = Rewriter(SCHEMA_MODEL, TOPOLOGY)
        for string in [*STRINGS, *STRINGS]:
            sql = f"{opened}'{string}'{behind}"
            assert outcome(used, sql, env) == outcome(Rewriter(SCHEMA_MODEL, TOPOLOGY), sql, env), string


LISTED = [
    ("SELECT id FROM pins WHERE id IN (", ")"),
    ("SELECT id FROM pins WHERE id in ( ", " ) ORDER BY ts"),
    ("SELECT id FROM pins WHERE id NOT IN (", ") LIMIT 5"),
    ("SELECT id FROM pins WHERE (id) IN (", ") AND id > 5"),
    ("SELECT id, 5 FROM pins WHERE id IN (", ")"),
    ("SELECT CONCAT(", ")"),
    ("SELECT /* IN (", ")*/ 1"),
    ("SELECT 1 -- IN (", ")"),
    ("SELECT `IN (", ")` FROM pins"),
    ("SELECT id FROM pins WHERE id IN (SELECT pin_id FROM board_has_pins WHERE board_id IN (", "))"),
    ("INSERT INTO user_likes_pins (user_id, pin_id) VALUES (", ")"),
]
LISTS = [
    "5",
    "5, 6",
    f"{new_id('pins', 1, 5)},{new_id('pins', 2, 5)}",
    "5,-6",
    "-5, 6",
    "5, 6 ",
    " 5",
    "5,",
    "",
    "1 2",
]


@pytest.mark.parametrize(("opened", "behind"), LISTED)
def test_lists_give_what_the_long_way_gives(opened: str, behind: str) -> None:
    used = Rewriter(SCHEMA_MODEL, TOPOLOGY)
    for ids in [*LISTS, *LISTS]:
        sql = f"{opened}{ids}{behind}"
        assert outcome(used, sql, ENV) == outcome(Rewriter(SCHEMA_MODEL, TOPOLOGY), sql, ENV), ids


PARTS = [
    "'",
    '"',
    "`",
    "(",
    ")",
    "IN (",
    " in ( ",
    "@",
    "N",
    "x",
    "_utf8",
    "0x",
    "/*",
    "*/",
    "-- ",
    "#",
    "\n",
    "\\",
]
FRAGMENTS = st.lists(
    st.sampled_from([*PARTS, "\0", ",", " ", "5", "5.", ".5", "e", ";", "a", "/*+"]), max_size=5
)
STRING = st.lists(st.sampled_from([*PARTS, "\0", "", "ab", "5", ", "]), max_size=3).map("".join)
NUMBERS = st.lists(st.sampled_from(["5", "66", "-7", " 8", "\n9"]), min_size=1, max_size=3).map(",".join)


@given(
    FRAGMENTS.map("".join),
    st.one_of(
        st.tuples(st.just("'"), STRING, STRING, st.just("'")),
        st.tuples(st.just("("), NUMBERS, NUMBERS, st.just(")")),
        st.tuples(st.just("IN ("), NUMBERS, NUMBERS, st.just(")")),
    ),
    FRAGMENTS.map("".join),
    st.booleans(),
    st.booleans(),
)
def test_another_literal_is_cut_alike(
    before: str, literals: tuple[str, str, str, str], behind: str, ansi: bool, raw: bool
) -> None:
    opens, one, other, closes = literals
    cut = findall(ansi, raw)
    sqls = [f"{before}{opens}{inside}{closes}{behind}".encode() for inside in (one, other)]
    cuts = [tuple(zip(*cut(sql + b"\0"), strict=True)) for sql in sqls]
    (texts, literal), (same, another) = map(enclosed, sqls)
    if texts and texts == same and cuts[0] == (texts, (literal, b"")):
        assert cuts[1] == (texts, (another, b""))


def test_what_is_known_is_not_cut_again() -> None:
    rewriter, blind = Rewriter(SCHEMA_MODEL, TOPOLOGY), replace(ENV)
    object.__setattr__(blind, "findall", None)
    for sql, literal in (
        ("SELECT user_id FROM email_to_user WHERE email = '%s'", "7'"),
        ("SELECT id FROM pins WHERE id IN (5, %s) ORDER BY ts", "5, 7"),
    ):
        before = rewriter.hits
        for number in range(2):
            rewriter.plan((sql % number).encode(), ENV)
        assert rewriter.hits == before + 1
        assert rewriter.plan((sql % 7).encode(), blind)[1] == (literal.encode(), b"")
        assert rewriter.hits == before + 2
    assert not rewriter.replaced(TOPOLOGY)._enclosed
    assert not rewriter._enclosed


def test_it_is_taken_counted_bounded_and_forgotten() -> None:
    rewriter = Rewriter(SCHEMA_MODEL, TOPOLOGY)
    plans = [rewriter.plan(b"SELECT * FROM pins WHERE id = %d" % number, ENV)[0] for number in range(4)]
    assert len(set(map(id, plans))) == 1
    assert (rewriter.hits, rewriter.misses) == (3, 1)
    rewriter = rewriter.replaced(TOPOLOGY)
    assert (rewriter.hits, rewriter.misses) == (3, 1)
    assert rewriter.plan(b"SELECT * FROM pins WHERE id = 5", ENV)[0] is not plans[0]
    for number in range(2 * MAX_SHORT):
        sql = b"SELECT data AS c%d FROM pins WHERE id = 5" % number
        assert rewriter.plan(sql, ENV)[0] is rewriter.plan(sql, ENV)[0]
    assert len(rewriter._short) <= MAX_SHORT


AROUND = [
    ("SELECT * FROM board_has_pins WHERE board_id = ", " ORDER BY sequence DESC LIMIT 50"),
    ("SELECT * FROM board_has_pins WHERE board_id = ", " ORDER BY sequence DESC LIMIT 20"),
    ("SELECT * FROM board_has_pins WHERE board_id=", " ORDER BY 2 LIMIT 1, 5"),
    ("SELECT 7, 'a' FROM pins WHERE id IN (", ") AND ts > '2024-01-01' /* 3 */ LIMIT 1"),
    ("SELECT * FROM pins WHERE id = ", ".5 LIMIT 1"),
    ("SELECT * FROM pins WHERE id = ", "e1 LIMIT 1"),
    ("SELECT * FROM pins WHERE id = 0x", " LIMIT 1"),
    ("SELECT * FROM pins WHERE id = 0", "x41 LIMIT 1"),
    ("SELECT * FROM pins WHERE id = '", "' LIMIT 1"),
    ("SELECT * FROM pins WHERE id = -", " LIMIT 1"),
    ("SELECT * FROM pins AS p", " WHERE id = 70437463654407 LIMIT 1"),
    ("SELECT * FROM pins WHERE id = 70437463654407 AND local_id < ", " OR 1 = 2"),
    ("UPDATE boards SET data = NULL, ts = ts WHERE id = ", " -- 5"),
    ("DELETE FROM pins WHERE `id` = ", " AND data = '{\"a\": 1}'"),
    ("(SELECT * FROM pins WHERE id = ", " LIMIT 1)"),
    ("SELECT c FROM legacy.t1 WHERE a = 3 AND b = ", ""),
    ("SELECT c FROM legacy.t2 WHERE a BETWEEN ", " AND 9 ORDER BY c"),
    ("UPDATE legacy.t SET a = a + 1 WHERE b IN (5) AND c=", ""),
]
MIDDLES = [*TAILS[::2], "", "1, 2", "1 OR id = 2", "5 -- ", "5'", "0x1", "1.5", *TAILS[1::2]]


@pytest.mark.parametrize(("head", "tail"), AROUND)
def test_a_statement_known_but_for_its_id_is_not_cut(head: str, tail: str) -> None:
    used = Rewriter(SCHEMA_MODEL, TOPOLOGY)
    for env in (ENV, Env(database="legacy")):
        for middle in MIDDLES:
            sql = f"{head}{middle}{tail}"
            expected = outcome(Rewriter(SCHEMA_MODEL, TOPOLOGY), sql, env)
            assert [outcome(used, sql, env) for _ in range(3)] == [expected] * 3


def test_those_are_counted_bounded_and_forgotten() -> None:
    rewriter = Rewriter(SCHEMA_MODEL, TOPOLOGY)
    text = b"SELECT data FROM pins WHERE id = %d LIMIT 1"
    plans = [rewriter.plan(text % number, ENV)[0] for number in range(4)]
    assert len(set(map(id, plans))) == 1
    assert (rewriter.hits, rewriter.misses, len(rewriter._around)) == (3, 1, 1)
    around = Around()
    for number in range(MAX_AROUND + 10):
        name = f"{number:b}".replace("0", "a").replace("1", "b").encode()
        around.put(b"SELECT " + name + b" 5", b"", plans[0], (b"SELECT " + name + b" ", b"\0"), (b"5", b""))
    assert len(around) == 10
    rewriter = rewriter.replaced(TOPOLOGY)
    assert len(rewriter._around) == 0
    assert rewriter.plan(text % 5, ENV)[0] is not plans[0]


def test_plans_in_use_stay_in_the_cache() -> None:
    """What is found by a short way is looked for in the cache again when a part of that goes."""
    rewriter = Rewriter(SCHEMA_MODEL, TOPOLOGY, cache_size=8)
    texts = (b"SELECT data FROM pins WHERE id = %d LIMIT 1", b"SELECT data FROM pins WHERE id = %d")
    for number in range(100):
        for text in texts:
            plan = rewriter.plan(text % number, ENV)[0]
            assert plan in [kept for kept, _, _ in rewriter.kept()]
        rewriter.plan(b"SELECT data AS c%d FROM pins WHERE id = 5" % number, ENV)
    assert rewriter.misses == 102


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM pins WHERE id = x'%s'", "SELECT * FROM email_to_user WHERE email = x'%s'"]
)
def test_what_is_no_number_is_an_error_of_syntax(sql: str) -> None:
    """Also behind one that is, which it is cut like."""
    used = Rewriter(SCHEMA_MODEL, TOPOLOGY)
    outcome(used, sql % "41", ENV)
    for inside in ("(5)", "1,2", "g1", " 5 "):
        found = outcome(used, sql % inside, ENV)
        assert isinstance(found, tuple)
        assert found[2] == "syntax_error"
