"""Each rule of the algebra by itself: a condition, and the shards that it leaves.

`{0}` … `{3}` are pins on the shards 0 to 3; `None`: nothing is narrowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rewriter.plans import BindError, Env, Gather, Reject, ShardSelect
from rewriter.route.algebra import MAX_STEPS
from tests.rewriter.support import SHARDS, SLOTS, TOPOLOGY, first, new_id, rewriter, shards_of, values_of

IDS = [new_id("pins", shard, 7) for shard in range(SHARDS)]
ALL = set(range(SHARDS))


def shards(
    where: str, env: dict[str, Any] | None = None, slots: Mapping[str, bytes] = SLOTS
) -> set[int] | None:
    """The shards of a SELECT with this WHERE; None when it is a scatter."""
    sql = f"SELECT p.id FROM pins p WHERE {where.format(*IDS)}"
    settings = Env(**{"database": "demo", **(env or {})})
    plan, literals = rewriter().plan(sql.encode(), settings)
    assert not isinstance(plan, Reject), plan.arguments
    if isinstance(plan, Gather):
        (piece,) = plan.pieces
        plan, literals = rewriter().plan(piece.sql(literals, b"*"), settings)
    bound = plan.bind(values_of(plan, literals, slots), TOPOLOGY, first)
    return None if bound.scatter else {shard for one in bound.statements for shard in one.shards}


#: Conditions that are true, or not, for rows of these shards only. An empty set is asked of one shard.
CONDITIONS: list[tuple[str, set[int] | None]] = [
    # three values: what is not true need not be false
    ("NOT (id <> {1})", {1}),
    ("NOT (id = {1})", None),
    ("NOT NOT (id = {1})", {1}),
    ("NOT (id <> {1} OR ts IS NULL)", {1}),
    ("NOT (id <> {1} AND ts IS NULL)", None),
    ("NOT (id NOT IN ({1}, {2}))", {1, 2}),
    ("NOT (id NOT BETWEEN {1} AND {1} + 5)", {1}),
    ("! (id != {1})", {1}),
    # IS
    ("(id = {1}) IS TRUE", {1}),
    ("(id = {1}) IS NOT TRUE", None),
    ("(id = {1}) IS FALSE", None),
    ("(id <> {1}) IS FALSE", {1}),
    ("(id <> {1}) IS NOT FALSE", None),
    ("(id = {1}) IS NULL", None),
    ("(id = {1}) IS UNKNOWN", None),
    ("NOT ((id = {1}) IS TRUE)", None),
    ("NOT ((id <> {1}) IS NOT FALSE)", {1}),
    ("NOT ((id = {1}) IS FALSE)", None),
    # compared with a truth value
    ("(id = {1}) = TRUE", {1}),
    ("(id = {1}) = 1", {1}),
    ("TRUE = (id = {1})", {1}),
    ("id = {1} = 1", {1}),
    ("(id = {1}) = 2", None),
    ("(id <> {1}) = 0", {1}),
    ("(id = {1}) <> 0", {1}),
    ("(id <> {1}) <> 1", {1}),
    ("(id = {1}) <=> 1", {1}),
    ("(id = {1}) <=> NULL", None),
    ("(id = {1}) = FALSE", None),
    ("(id = {1}) > 0", None),
    # XOR
    ("id = {1} XOR FALSE", {1}),
    ("id = {1} XOR TRUE", None),
    ("id <> {1} XOR TRUE", {1}),
    ("id = {1} XOR id = {2}", {1, 2}),
    ("id = {1} XOR id <> {2}", None),
    ("NOT (id <> {1} XOR FALSE)", {1}),
    ("NOT (id = {1} XOR TRUE)", {1}),
    # constants
    ("id = {1} OR 1 = 0", {1}),
    ("id = {1} OR 1 = 1", None),
    ("id = {1} OR 'a' = 'A'", None),
    ("id = {1} OR FALSE", {1}),
    ("id = {1} OR NULL", {1}),
    ("id = {1} OR 0", {1}),
    ("id = {1} OR 2 < 1", {1}),
    ("id = {1} OR 1 <= 1", None),
    ("id = {1} OR 1 > 2", {1}),
    ("id = {1} OR 2 >= 2", None),
    ("id = {1} OR -1 = 1", {1}),
    ("id = {1} OR 1 <> 1", {1}),
    ("id = {1} OR 1 <=> 2", {1}),
    ("id = {1} OR 0.0", None),
    ("1 = 0", set()),
    ("FALSE", set()),
    ("0", set()),
    ("NULL", set()),
    ("ts > 5 AND 0", set()),
    # an empty list, as SQLAlchemy (of one column, of several, negated), Hibernate, Rails and Laravel write it
    ("id IN (NULL) AND (1 != 1)", set()),
    ("ts IN (NULL) AND (1 != 1) AND ts > 5", set()),
    ("(id, ts) IN ((NULL, NULL)) AND (1 != 1)", set()),
    ("(id NOT IN (NULL) OR (1 = 1))", None),
    ("(id NOT IN (NULL) OR (1 = 1)) AND id = {1}", {1}),
    ("id IN ({1}, {2}) AND (ts IN (NULL) AND (1 != 1))", {1, 2}),  # as far as both readers see
    ("(1=0)", set()),
    ("0 = 1 AND id > 0", set()),
    ("1 = 1", None),
    ("NOT (1 = 1)", set()),
    ("NOT NULL", set()),
    # AND and OR of what both readers, or only one, can use
    ("(id = {1} AND ts > 1) OR (ts < 1 AND (id = {2}) IS TRUE)", {1, 2}),
    ("(id = {1}) IS TRUE AND NOT (id <> {2})", set()),
    ("id = {1} OR ts > 5", None),
    # CASE, IF
    ("CASE WHEN id = {1} THEN 1 ELSE 0 END", {1}),
    ("CASE WHEN id = {1} THEN 1 END", {1}),
    ("CASE WHEN id = {1} THEN 1 WHEN id = {2} THEN 1 ELSE 0 END", {1, 2}),
    ("CASE WHEN id = {1} THEN 0 ELSE 1 END", None),
    ("CASE WHEN ts THEN id = {1} ELSE id = {2} END", {1, 2}),
    ("CASE id WHEN {1} THEN 1 ELSE 0 END", {1}),
    ("CASE id WHEN '{1}' THEN 1 ELSE 0 END", None),  # compared as doubles by MySQL
    ("CASE '{1}' WHEN id THEN 1 ELSE 0 END", None),
    ("NOT CASE WHEN id = {1} THEN 0 ELSE 1 END", {1}),
    ("IF(id = {1}, 1, 0)", {1}),
    ("IF(id = {1}, 0, 1)", None),
    ("IF(id = {1}, ts, NULL)", {1}),
    ("COALESCE(id = {1}, 0)", {1}),
    ("COALESCE(id = {1}, 1)", None),
    ("IFNULL(id = {1}, FALSE)", {1}),
    ("NOT COALESCE(id <> {1}, 1)", {1}),
    # tuples
    ("(id, ts) = ({1}, 5)", {1}),
    ("({1}, 5) = (id, ts)", {1}),
    ("(ts, id) IN ((5, {1}), (6, {2}))", {1, 2}),
    ("(id, ts) IN (({1}, 5), ({2}, NULL))", {1, 2}),
    ("(id, ts) IN (({1}, 5), (ts, 6))", None),
    ("(id, ts) NOT IN (({1}, 5))", None),
    ("NOT ((id, ts) NOT IN (({1}, 5)))", {1}),
    ("(id, ts) <> ({1}, 5)", None),
    ("NOT ((id, ts) <> ({1}, 5))", {1}),
    ("(id, ts) <=> ({1}, 5)", {1}),
    ("(id, ts) <=> (NULL, 5)", None),
    ("((id, ts), ts) = (({1}, 5), 6)", {1}),
    ("(id, ts) = ('{1}', 5)", None),  # a row's texts are compared as doubles
    ("(id, ts) > ({1}, 5)", None),
    # pairs of bounds
    ("id >= {1} AND id <= {1} + 9", {1}),
    ("{1} < id AND {1} + 9 > id", {1}),
    ("id > {1} AND ts AND id < {1} + 9", {1}),
    ("id >= {1} AND id <= {3}", None),
    ("id >= {1} AND ts <= {1}", None),
    ("id >= {1} AND id >= {1} + 9", None),
    ("id >= {2} AND id <= {1}", set()),
    ("NOT (id < {1} OR id > {1} + 9)", {1}),
    ("NOT (id < {1} AND id > {1} + 9)", None),
    ("NOT (id NOT BETWEEN {1} AND {1} + 9)", {1}),
    ("id >= {1} AND id <= 1e3", None),
    ("id + 0 >= {1} AND id + 0 <= {1} + 9", None),
    # what is equal to a column
    ("id = IF(1 = 1, {1}, {2})", {1}),
    ("id = IF(1 = 2, {1}, {2})", {2}),
    ("id = IF(ts, {1}, {2})", {1, 2}),
    ("id = IF(ts, {1}, NULL)", {1}),
    ("id = IF(ts, {1}, 'x')", None),  # a text with the others
    ("id = IF(1 = 1, {1}, 'x')", None),
    ("id = IF(ts, {1}, 1e0)", None),
    ("id = CASE WHEN ts THEN {1} WHEN NULL THEN {2} ELSE {3} END", {1, 3}),
    ("id = CASE 2 WHEN 1 THEN {1} WHEN 2 THEN {2} END", {2}),
    ("id = COALESCE(NULL, {1}, {2})", {1}),
    ("id = COALESCE({1}, 'x')", None),
    ("id = IFNULL(NULL, {1})", {1}),
    ("id = (SELECT {1})", {1}),
    ("id = (SELECT '{1}')", None),
    ("id IN ({1}, (SELECT {2}))", {1, 2}),
    ("id IN ({1}, (SELECT ts))", None),
    ("id = NULL", set()),
    ("id <=> NULL", None),
    ("id <=> COALESCE(NULL, NULL)", None),
    ("id <=> IF(ts, {1}, NULL)", None),
    ("id <=> IF(ts, {1}, {2})", {1, 2}),
    ("NOT (id <> IF(ts, {1}, {2}))", {1, 2}),
    # CAST
    ("id = CAST('{1}' AS UNSIGNED)", {1}),
    ("id = CAST({1} AS SIGNED)", {1}),
    ("id = CONVERT('{1}', UNSIGNED)", {1}),
    ("id = CAST('{1}x' AS UNSIGNED)", None),  # servers take the beginning
    ("id = CAST('1e3' AS UNSIGNED)", None),
    ("id = CAST(' {1}' AS UNSIGNED)", None),
    ("id = CAST('-{1}' AS UNSIGNED)", None),
    ("id = CAST('{1}' AS CHAR)", None),
    ("id = CAST('{1}' AS DECIMAL(20))", None),
    ("id = CAST(NULL AS UNSIGNED)", set()),
    ("CAST(id AS UNSIGNED) = {1}", {1}),
    ("CAST(id AS CHAR) = '{1}'", None),
    ("CAST(id AS UNSIGNED) = '{1}'", None),
    ("CAST(id AS UNSIGNED) IN ({1}, {2})", {1, 2}),
    ("CAST(id AS UNSIGNED) IN ('{1}', '{2}')", None),
    ("id + 0 IN ('{1}', '{2}')", None),
    # arithmetic
    ("id + 0 = {1}", {1}),
    ("0 + id = {1}", {1}),
    ("id - 1 = {1} - 1", {1}),
    ("id + 5 = {1} + 5", {1}),
    ("id - 3 + 5 = {1} + 2", {1}),
    ("id + 5 IN ({1} + 5, {2} + 5)", {1, 2}),
    ("id + 70368744177664 = {2}", {1}),  # the shard before
    ("70368744177664 + id = {2}", {1}),
    ("id - 70368744177664 = {1}", {2}),
    ("5 - id = 5 - {1}", None),
    ("id * 1 = {1}", None),
    ("id + ts = {1}", None),
    ("id + '0' = {1}", None),
    ("id + 0 = '{1}'", None),  # as doubles
    ("id + 0 = 1e0", None),
    ("-id = -{1}", None),
    ("id | 0 = {1}", None),
    # what is none of these
    ("id LIKE {1}", None),
    ("id = {1} COLLATE utf8mb4_bin", None),
    ("BINARY id = {1}", None),
    ("id = {1} AND @x := 1 OR 1", None),
    ("(@x := id) = {1}", None),
    ("(id = {1}) IS TRUE AND @x := 1", None),
    ("id SOUNDS LIKE {1}", None),
    ("(SELECT id = {1}) OR FALSE", None),
    ("GREATEST(id, {1}) = {1}", None),
    ("NULLIF(id, 5) = {1}", None),
]  # fmt: skip


@pytest.mark.parametrize(("where", "expected"), CONDITIONS)
def test_condition(where: str, expected: set[int] | None) -> None:
    found = shards(where)
    if expected == set():
        assert found is not None
        assert len(found) == 1  # some shard tells the columns of an empty result
    else:
        assert found == expected


MODES: list[tuple[str, dict[str, Any], set[int] | None]] = [
    ("NOT id <> {1}", {}, {1}),
    ("NOT id <> {1}", {"high_not_precedence": True}, None),  # (NOT id) <> …
    ("(id = {1}) IS TRUE || 0", {}, {1}),
    ("(id = {1}) IS TRUE || 0", {"pipes_as_concat": True}, None),
    ("(id = {1}) IS TRUE && ts", {}, {1}),
    ("(id = {1}) = \"1\"", {"ansi_quotes": True}, None),
]  # fmt: skip


@pytest.mark.parametrize(("where", "env", "expected"), MODES)
def test_sql_mode(where: str, env: dict[str, Any], expected: set[int] | None) -> None:
    assert shards(where, env) == expected


@pytest.mark.parametrize(
    ("where", "value", "expected"),
    [
        ("(id, ts) = (@v, 5)", b"%d", {1}),
        ("(id, ts) = (@v, 5)", b"'%d'", None),
        ("id = IF(ts, @v, {2})", b"%d", {1, 2}),
        ("id = IF(ts, @v, {2})", b"'%d'", None),
        ("id = CAST(@v AS UNSIGNED)", b"'%d'", {1}),
        ("id = CAST(@v AS UNSIGNED)", b"%d", {1}),
        ("id = CAST(@v AS UNSIGNED)", b"'%d.5'", None),
        ("id >= @v AND id < @v + 3", b"%d", {1}),
        ("id >= @v AND id < @v + 3", b"'x%d'", None),
        ("id = COALESCE(@v, {2})", b"%d", {1, 2}),
        ("id = COALESCE(@v, {2})", b"NULL", None),
        # what is never chosen says of which type the others are
        ("id = COALESCE({2}, @v)", b"%d", {1, 2}),
        ("id = COALESCE({2}, @v)", b"'%d'", None),
        ("id = IFNULL({2}, @v + 0)", b"1e0", None),
        ("id = IFNULL({2}, CAST(@v AS SIGNED))", b"'x'", {2}),
        ("id = IF(1 = 1, {2}, @v)", b"1e0", None),
        ("id = IF(1 = 0, @v, {2})", b"1e0", None),
        ("id IN ({2}, CASE WHEN NULL THEN @v ELSE {2} END)", b"1.5", None),
    ],
)
def test_values_of_the_session(where: str, value: bytes, expected: set[int] | None) -> None:
    """What a variable holds is known when the plan is bound: what is no integer then does not narrow."""
    given = value % IDS[1] if b"%" in value else value
    assert shards(where, None, {"@v": given}) == expected


PARAMETERS: list[tuple[str, tuple[bytes, ...], set[int] | None]] = [
    ("(board_id, pin_id) IN ((?, ?), (?, ?))", (b"%(1)d", b"5", b"%(2)d", b"6"), {1, 2}),
    ("(board_id, pin_id) IN ((?, ?), (?, ?))", (b"'%(1)d'", b"5", b"%(2)d", b"6"), None),
    ("(board_id, pin_id) = (?, ?)", (b"%(3)d", b"5"), {3}),
    ("board_id >= ? AND board_id <= ?", (b"%(1)d", b"%(1)d"), {1}),
    ("board_id = CAST(? AS UNSIGNED)", (b"'%(1)d'",), {1}),
    ("NOT (board_id <> ?)", (b"'%(1)d'",), {1}),
]


@pytest.mark.parametrize(("where", "values", "expected"), PARAMETERS)
def test_parameters(where: str, values: tuple[bytes, ...], expected: set[int] | None) -> None:
    ids = {b"%d" % shard: new_id("boards", shard, 7) for shard in range(SHARDS)}
    sql = f"SELECT pin_id FROM board_has_pins WHERE {where}".encode()
    plan, literals = rewriter().plan(sql, Env(database="demo", parameters=True))
    slots = {f"?{number}": value % ids for number, value in enumerate(values)}
    bound = plan.bind(values_of(plan, literals, dict(slots)), TOPOLOGY, first)
    assert (None if bound.scatter else set(shards_of(bound))) == expected


def test_writes_that_were_refused_are_routed() -> None:
    for where in ("(id, ts) IN (({1}, 5))", "NOT (id <> {1})", "id >= {1} AND id < {1} + 9"):
        sql = f"DELETE FROM pins WHERE {where.format(*IDS)}"
        plan, literals = rewriter().plan(sql.encode(), Env(database="demo"))
        assert shards_of(plan.bind(values_of(plan, literals), TOPOLOGY, first)) == [1]


def test_a_plan_depends_on_the_constants_that_it_was_made_with() -> None:
    planner, env = rewriter(), Env(database="demo")
    found = []
    for number in (0, 1, 0, 2):
        sql = f"SELECT id FROM pins WHERE id = {IDS[1]} OR {number} = 1"
        plan, literals = planner.plan(sql.encode(), env)
        found.append(plan.bind(values_of(plan, literals), TOPOLOGY, first).scatter)
    assert found == [False, True, False, False]


def test_many_terms() -> None:
    """ANDs and ORs of any length; a XOR asks twice for each of its sides, so of many nothing is known."""
    ors = " OR ".join([f"(id = {IDS[1]}) IS TRUE"] * 400)
    assert shards(ors) == {1}
    ands = " AND ".join(["ts > 5"] * 400) + f" AND NOT (id <> {IDS[2]})"
    assert shards(ands) == {2}
    assert MAX_STEPS < 2**25
    assert shards(f"NOT (id <> {IDS[1]}) XOR " + " XOR ".join(["FALSE"] * 25)) == {1}
    assert shards(f"NOT (id <> {IDS[1]}) XOR " + " XOR ".join(["ts"] * 25)) is None


def test_an_outer_joins_null_side_is_not_narrowed_by_what_is_true_for_nulls() -> None:
    ids = {"board": new_id("boards", 1, 7), "pin": new_id("pins", 2, 7)}
    cases = [
        ("m.board_id <=> NULL", False),
        ("m.board_id <=> COALESCE(NULL, NULL)", False),
        ("(m.board_id = {board}) IS NOT TRUE", False),
        ("COALESCE(m.board_id, {board}) = {board}", False),
        ("m.board_id IS NULL OR m.board_id = {board}", False),
        ("NOT (m.board_id <> {board})", True),
        ("m.board_id + 0 = {board}", True),
        ("(m.board_id, m.pin_id) = ({board}, {pin})", True),
    ]
    for where, narrows in cases:
        sql = f"SELECT p.id FROM pins p LEFT JOIN board_has_pins m ON m.pin_id = p.id WHERE {where}"
        plan, literals = rewriter().plan(sql.format(**ids).encode(), Env(database="demo"))
        gather = plan.gather if isinstance(plan, ShardSelect) else plan
        assert isinstance(gather, Gather), where
        [piece] = [one for one in gather.pieces if one.label.endswith(" AS m")]
        text = piece.sql(values_of(plan, literals), b"*")
        inner, literals = rewriter().plan(text, Env(database="demo"))
        bound = inner.bind(values_of(inner, literals), TOPOLOGY, first)
        assert bound.scatter is not narrows, where
        if narrows:
            assert shards_of(bound) == [1], where


def test_text_keys() -> None:
    """A text key is equal to texts only, each by itself: what CASE makes of them may compare otherwise."""
    for where, one in (
        ("NOT (email <> 'a@b.c')", True),
        ("(email, user_id) = ('a@b.c', 5)", True),
        ("(email, user_id) IN (('a@b.c', 5), ('a@b.c', 6))", True),
        ("email IN ('a@b.c')", True),
        ("email IN (5, 6)", False),
        ("email IN (5)", False),
        ("email = IF(user_id, 'a@b.c', 'a@b.c')", False),
        ("email = (SELECT 'a@b.c')", False),
        ("email >= 'a' AND email <= 'a'", False),
        ("email = CAST('a@b.c' AS CHAR)", False),
    ):
        sql = f"SELECT user_id FROM email_to_user WHERE {where}"
        plan, literals = rewriter().plan(sql.encode(), Env(database="demo"))
        try:
            bound = plan.bind(values_of(plan, literals), TOPOLOGY, first)
        except BindError as error:
            pytest.fail(f"{where}: {error}")
        assert (len(shards_of(bound)) == 1) is one, where
