"""Lists of IDs over several shards: the short way of binding them, and its two forms, Python's and C's."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from config.layout import PINTEREST
from rewriter.bound import BindError, Bound
from rewriter.planner import Rewriter
from rewriter.plans import Env, ShardSelect
from rewriter.route import id_lists
from rewriter.route.id_lists import BASE, CONSTANTS, DATABASE, Bits, Most, Texts
from tests.rewriter.support import SCHEMA_MODEL, TOPOLOGY, bind, first, new_id, shards_of
from tests.support.compiler import may_compile

Texter = Callable[..., Texts | None]
FORMS: dict[str, Texter] = {"Python": id_lists.PYTHON[0]}
LISTS: dict[str, Callable[[bytes], bool]] = {"Python": id_lists.PYTHON[1]}
if id_lists.COMPILED:
    FORMS["C"] = id_lists.texts_by_host
    LISTS["C"] = id_lists.is_list

WHOLE = (1 << 64) - 1
PINS = Bits(
    WHOLE & ~(0xFFFF << 46 | PINTEREST.local_mask),
    1 << 36,
    PINTEREST.shard_shift,
    0xFFFF,
    PINTEREST.local_mask,
)
PLACES = {0: ("a", b"db0"), 1: ("a", b"db1"), 2: ("b", b"db2"), 4: ("a", b"db4"), 65535: ("c", b"db65535")}
MOST = Most(99, 64, 1000)
PIECES = (b"{", DATABASE, b" ", BASE, b": ", CONSTANTS, b"}")

both = pytest.mark.skipif(not id_lists.COMPILED, reason="no compiler: the twin in C is NOT tested")


@pytest.mark.skipif(not may_compile(), reason="no compiler, or no headers of Python")
def test_where_it_can_be_compiled_the_twin_is_used() -> None:
    assert id_lists.COMPILED, "run: make setup"


@pytest.fixture(params=list(FORMS.values()), ids=list(FORMS))
def form(request: pytest.FixtureRequest) -> Texter:
    chosen: Texter = request.param
    return chosen


def pin(shard: int, local: int) -> int:
    return PINTEREST.compose(shard=shard, type=1, local=local)


def ids(*numbers: int) -> bytes:
    return b", ".join([b"%d" % number for number in numbers])


# -- what it does
# ----------------------------------------------------------------------------------------------------------


def test_each_host_gets_its_shards_in_order(form: Texter) -> None:
    raw = ids(pin(2, 7), pin(4, 1), pin(0, 3), pin(4, 9), pin(4, 1))
    assert form(raw, PINS, PLACES, PIECES, b" + ", MOST) == [
        ("a", (0, 4), b"{db0 %d: 3} + {db4 %d: 1, 9, 1}" % (pin(0, 0), pin(4, 0))),
        ("b", (2,), b"{db2 %d: 7}" % pin(2, 0)),
    ]


@pytest.mark.parametrize(
    "number",
    [
        PINTEREST.compose(shard=2, type=2, local=5),
        1 << 62 | pin(2, 5),
        -pin(2, 5),
        -1,
        1 << 64 | pin(2, 5),
        10**59,
        int(b"9" * 300),
    ],
)
def test_what_is_no_row_s_id_is_left_out(form: Texter, number: int) -> None:
    for raw in (ids(number, pin(2, 1)), ids(pin(2, 1), number)):
        assert form(raw, PINS, PLACES, (CONSTANTS,), b"", MOST) == [("b", (2,), b"1")]
    assert form(ids(number), PINS, PLACES, (CONSTANTS,), b"", MOST) == []


def test_an_id_of_a_shard_that_there_is_not_is_left_to_who_tells_the_error(form: Texter) -> None:
    for raw in (ids(pin(3, 5), pin(2, 1)), ids(pin(2, 1), pin(4, 2), pin(3, 5)), ids(pin(3, 5))):
        assert form(raw, PINS, PLACES, (CONSTANTS,), b"", MOST) is None


def test_spaces_and_zeros_before_a_number_mean_nothing(form: Texter) -> None:
    raw = b"%s,\t\n \r\x0b\x0c%d ,%s%d" % (ids(pin(2, 1)), pin(2, 2), b" " * 100 + b"0" * 100, pin(2, 3))
    assert form(raw, PINS, PLACES, (CONSTANTS,), b"", MOST) == [("b", (2,), b"1, 2, 3")]


def test_the_largest_number(form: Texter) -> None:
    every = Bits(0, 0, 0, 0, WHOLE)
    assert form(ids(WHOLE, WHOLE + 1, 0) + b", -0", every, {0: ("a", b"")}, (CONSTANTS,), b"", MOST) == [
        ("a", (0,), b"%d, 0, 0" % WHOLE)
    ]


def test_texts_are_cut_by_the_number_of_their_shards(form: Texter) -> None:
    raw = ids(pin(4, 1), pin(2, 1), pin(1, 1), pin(0, 1))
    assert form(raw, PINS, PLACES, (DATABASE,), b"+", MOST._replace(shards=2)) == [
        ("a", (0, 1), b"db0+db1"),
        ("a", (4,), b"db4"),
        ("b", (2,), b"db2"),
    ]


def test_more_numbers_or_bytes_are_for_others(form: Texter) -> None:
    raw = ids(pin(2, 1), pin(1, 1), pin(0, 1))
    assert form(raw, PINS, PLACES, (DATABASE,), b"+", Most(3, 9, 7)) is not None
    assert form(raw, PINS, PLACES, (DATABASE,), b"+", Most(3, 9, 6)) is None
    assert form(raw, PINS, PLACES, (DATABASE,), b"+", Most(2, 9, 7)) is None


@pytest.mark.parametrize(
    "raw", [b"", b" ", b",", b"1,", b",1", b"1,,2", b"- 1", b"+1", b"1 2", b"1_0", b"x", b"1\0", b"--1"]
)
def test_what_is_no_list_is_an_error(form: Texter, raw: bytes) -> None:
    with pytest.raises(ValueError, match="no list of integers"):
        form(raw, PINS, PLACES, PIECES, b"", MOST)


@pytest.mark.parametrize("check", LISTS.values(), ids=list(LISTS))
def test_what_is_lifted_as_a_list(check: Callable[[bytes], bool]) -> None:
    for raw in (b"0", b"12", b"1,2", b"1 ,\t-2", b"1,\n\r\x0b\x0c 22 , 333"):
        assert check(raw), raw
    for raw in (
        b"",
        b"-1",
        b" 1",
        b"1 ",
        b"1,",
        b",1",
        b"1,,2",
        b"1 2",
        b"1;2",
        b"1, - 2",
        b"1_0",
        b"1,x",
        b"1\0",
    ):
        assert not check(raw), raw


@both
@given(st.text("0123456789,- \n_+x\0", max_size=30).map(str.encode))
def test_both_take_the_same_for_liftable(raw: bytes) -> None:
    assert LISTS["C"](raw) == LISTS["Python"](raw)


# -- the two forms
# ----------------------------------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.builds(pin, st.sampled_from([0, 1, 2, 3, 4, 65535]), st.integers(0, PINTEREST.local_mask)),
    st.integers(0, WHOLE),
    st.integers(-(1 << 70), 1 << 70),
    st.sampled_from([0, WHOLE, WHOLE + 1, 10**19, 10**20, (1 << 64) + (1 << 36), 1 << 36]),
)
SPACES = st.text(" \t\n\r\x0b\x0c", max_size=3)
ELEMENTS = st.builds(
    lambda before, zeros, number, behind: (
        f"{before}{'-' * (number < 0)}{'0' * zeros}{abs(number)}{behind}".encode()
    ),
    SPACES,
    st.sampled_from([0, 0, 0, 1, 40, 100]),
    NUMBERS,
    SPACES,
)
PIECE = st.one_of(st.binary(max_size=5), st.sampled_from([DATABASE, BASE, CONSTANTS]))


@both
@given(
    st.lists(ELEMENTS, min_size=1, max_size=40).map(b",".join),
    st.sampled_from([PINS, PINS._replace(stored_mask=WHOLE), Bits(0, 0, 62, 3, WHOLE)]),
    st.lists(PIECE, max_size=6).map(tuple),
    st.binary(max_size=4),
    st.builds(Most, st.sampled_from([1, 20, 99]), st.integers(1, 5), st.integers(0, 200)),
)
@example(b"68719476736", PINS, (), b"", Most(1, 1, 0))
def test_both_say_the_same(
    raw: bytes, bits: Bits, pieces: tuple[bytes | int, ...], between: bytes, most: Most
) -> None:
    arguments: Any = (raw, bits, PLACES, pieces, between, most)
    assert FORMS["C"](*arguments) == FORMS["Python"](*arguments)


@both
@given(st.text("0123456789,- \n_+x\0", max_size=30).map(str.encode))
def test_both_take_the_same_for_a_list(raw: bytes) -> None:
    def says(form: Texter) -> object:
        try:
            return form(raw, PINS, PLACES, PIECES, b"|", MOST)
        except ValueError as error:
            return str(error)

    assert says(FORMS["C"]) == says(FORMS["Python"])


@both
@pytest.mark.parametrize(
    "changes",
    [
        {1: (1, 2)},
        {1: (1, 2, 64, 3, 4)},
        {2: {0: ("a", "text")}},
        {2: {0: ("a",)}},
        {2: {0: 5}},
        {2: [1]},
        {3: (7,)},
        {3: (-9,)},
        {3: ("text",)},
        {4: "text"},
        {5: 7},
        {5: (1, 2)},
    ],
)
def test_wrong_arguments_are_refused(changes: dict[int, Any]) -> None:
    with pytest.raises(TypeError):
        LISTS["C"]("1")  # type: ignore[arg-type]
    arguments: list[Any] = [ids(pin(0, 1)), PINS, PLACES, PIECES, b"", MOST]
    for number, value in changes.items():
        arguments[number] = value
    with pytest.raises((TypeError, ValueError)):
        FORMS["C"](*arguments)


# -- binding
# ----------------------------------------------------------------------------------------------------------

STATEMENTS = [
    "SELECT id, data FROM pins WHERE id IN ({})",
    "SELECT * FROM pins WHERE id IN ({}) AND data <> 'x'",
    "SELECT 'a' AS word, id FROM pins AS p WHERE 3 < local_id AND p.id IN ( {} ) AND @pin > 5",
    "SELECT id FROM pins WHERE id IN ({}) ORDER BY ts DESC",
    "SELECT id FROM pins WHERE id IN ({}) ORDER BY id LIMIT 7",
    "SELECT id FROM pins WHERE id IN ({}) LIMIT 2, 3",
    "SELECT ts, 5 AS `100%` FROM pins WHERE id IN ({}) ORDER BY 1 DESC, id LIMIT 4",
    "SELECT pin_id FROM board_has_pins WHERE board_id IN ({}) ORDER BY sequence DESC LIMIT 5",
]
ENV = Env(database="demo")


def outcome(plan: ShardSelect, values: tuple[bytes, ...]) -> object:
    """All that binding gives, with what is made of it later."""

    def whole(bound: Bound) -> list[object]:
        each = bound.per_shard
        later = [bound.refers_to(), None if each is None else whole(each.make())]
        return [bound._replace(reference=None, per_shard=None), *later]

    try:
        return whole(plan.bind(values, TOPOLOGY, first))
    except BindError as error:
        return error.name, error.arguments


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_short_way_gives_what_the_long_one_gives(sql: str) -> None:
    rewriter, table = Rewriter(SCHEMA_MODEL, TOPOLOGY, in_list=60), "boards" if "board_id" in sql else "pins"
    chance, short = random.Random(sql), 0
    for count in (1, 2, 3, 5, 20, 60, 61):
        numbers = [new_id(table, chance.randrange(4), chance.randrange(9)) for _ in range(count)]
        numbers[0] = chance.choice([numbers[0], 5, 1 << 63, new_id("users", 1, 1)])
        plan, literals = rewriter.plan(sql.format(", ".join(map(str, numbers))).encode(), ENV)
        assert isinstance(plan, ShardSelect)
        assert plan.listed is not None
        values = literals + (b"7",) * len(plan.session_slots)
        assert outcome(plan, values) == outcome(replace(plan, listed=None), values)
        short += plan._bind_list(values, TOPOLOGY) is not None
    assert short >= 3


@pytest.mark.parametrize("verb", ["SELECT id", "DELETE"])
@pytest.mark.parametrize("before", ["", " " * 70, "0" * 70, f" {'0' * 40}"])
def test_nothing_before_a_number_hides_it(verb: str, before: str) -> None:
    ids = new_id("pins", 2, 7), new_id("pins", 3, 8), new_id("pins", 3, 9)
    for listed in (ids[:1], ids[1:], ids):
        found = bind(f"{verb} FROM pins WHERE id IN (1, {', '.join(before + str(id) for id in listed)})")
        assert shards_of(found) == sorted({2 if id == ids[0] else 3 for id in listed})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM pins WHERE id = 5",
        "SELECT id FROM pins WHERE id IN (5, 6) AND id > 3",
        "SELECT id FROM pins WHERE id IN ('5', '6')",
        "SELECT id FROM pins WHERE id IN (5, 6) OR id = 7",
        "SELECT p.id FROM pins p JOIN board_has_pins b ON b.board_id = p.id WHERE p.id IN (5, 6)",
        "SELECT user_id FROM email_to_user WHERE email IN (5, 6)",
        "SELECT COUNT(*) FROM pins WHERE id IN (5, 6)",
        "SELECT board_id, COUNT(*) FROM board_has_pins WHERE board_id IN (5, 6) GROUP BY board_id",
        "SELECT COUNT(DISTINCT data) FROM pins WHERE id IN (5, 6)",
        "EXPLAIN SELECT id FROM pins WHERE id IN (5, 6)",
    ],
)
def test_it_is_only_for_one_list_of_ids(sql: str) -> None:
    plan = Rewriter(SCHEMA_MODEL, TOPOLOGY).plan(sql.encode(), ENV)[0]
    assert getattr(plan, "listed", None) is None
