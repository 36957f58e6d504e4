"""INSERTs of many rows are planned by their first one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewriter.env import Env
from rewriter.planner import lift
from rewriter.plans import BindError, Insert, OneHost, Plan

from .support import TOPOLOGY, first, new_id, rewriter, values_of

ENV = Env(database="demo")
LITERALS = [
    str(new_id("boards", 1, 5)),
    str(new_id("pins", 2, 7)),
    "5",
    "0",
    "'a'",
    "'it''s'",
    "'(1), (2)'",
    '"x"',
    "NULL",
    "DEFAULT",
    "-3",
    "1.5",
    "0xff",
    "1e3",
    "NOW()",
    "CONCAT('a', 'b')",
    "LAST_INSERT_ID()",
    "((1))",
    "(1 + 2)",
    "@a",
    "`a`",
    "/* c */ 1",
    "JSON_OBJECT('board_id', 5)",
    f"""'{{"board_id": {new_id("boards", 3, 1)}}}'""",
    "'a@b'",
    "(SELECT 1)",
    "?",
]
HEADS = [
    "INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES ",
    "REPLACE board_has_pins VALUES",
    "INSERT IGNORE INTO demo.board_has_pins VALUE ",
    "INSERT INTO pins (id, data, ts) VALUES\n",
    "INSERT INTO photos (id, user_id, caption) VALUES ",
    "INSERT INTO email_to_user (email, user_id, x) VALUES ",
    "INSERT INTO legacy.t (a, b, c) VALUES ",
    "INSERT INTO usernames VALUES ",
    "INSERT INTO countries VALUES ",
    "insert /* c 5 */ into pins (data) values ",
]
TAILS = ["", " ON DUPLICATE KEY UPDATE sequence = 5", " RETURNING 1", ", (1)", ";", "; SELECT 1", " -- 5"]


@st.composite
def statements(draw: st.DrawFn) -> bytes:
    width = draw(st.integers(1, 4))
    kinds = [draw(st.sampled_from(LITERALS)) for _ in range(width)]
    alike = draw(st.booleans())
    rows = []
    for _ in range(draw(st.integers(2, 5))):
        row = []
        for kind in kinds:
            value = draw(st.sampled_from(LITERALS)) if not alike else kind
            if alike and value.isdigit():
                value = str(draw(st.sampled_from([5, new_id("boards", 2, 9), new_id("pins", 0, 9)])))
            row.append(value)
        rows.append("(" + ", ".join(row) + ")")
    between = draw(st.sampled_from([", ", ",", " ,\n"]))
    return (draw(st.sampled_from(HEADS)) + between.join(rows) + draw(st.sampled_from(TAILS))).encode()


def _run(plan: Plan, literals: tuple[bytes, ...]) -> object:
    values = values_of(plan, literals)
    try:
        wanted = plan.wanted_ids(values, TOPOLOGY) if isinstance(plan, Insert) and plan.timed else {}
        ids = {shard: range(1000, 1000 + count) for shard, count in wanted.items()}
        bound = (
            plan.bind(values, TOPOLOGY, first, ids)
            if isinstance(plan, Insert)
            else plan.bind(values, TOPOLOGY, first)
        )
        probe = plan.to_prepare(values, TOPOLOGY) if isinstance(plan, Insert) else None
    except BindError as error:
        return error.name, error.arguments
    return type(plan), bound, probe, plan.effects, plan.databases, plan.access


@settings(max_examples=500, deadline=None)
@given(statements(), st.sampled_from([ENV, Env(database="legacy"), Env(database="demo", ansi_quotes=True)]))
def test_the_first_row_plans_for_all(sql: bytes, env: Env) -> None:
    planner = rewriter()
    lifted = lift(sql, env)
    plain = planner.make(lifted._replace(folded=None), env)
    folded = planner.make(lifted, env)
    assert _run(folded.plan, lifted.literals) == _run(plain.plan, lifted.literals)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("INSERT INTO board_has_pins VALUES (1, 2, 3)", 0),
        ("INSERT INTO board_has_pins VALUES (1, 2, 3), (4, 5, 6), (7, 8, 9)", 3),
        ("INSERT INTO board_has_pins VALUES (1, 2, 3), (4, 5, NULL), (7, 8, 9), (4, 5, 6)", 4),
        ("INSERT INTO board_has_pins VALUES (1, 2, 3), (4, 5, 6),(7, 8, 9)", 0),
        ("INSERT INTO pins (data) VALUES ('(1), (2)'), ('), (')", 2),
        ("INSERT INTO pins (data) VALUES (NOW()), (NOW())", 2),
        ("INSERT INTO pins () VALUES (), ()", 0),
        ("INSERT INTO pins (data) SELECT * FROM (VALUES (1), (2)) x", 0),
        ("INSERT INTO pins (data) VALUES (1 /* ) */), (2 /* ) */)", 0),
        ("INSERT INTO pins (`)`) VALUES (1), (2)", 0),
        ("SELECT 1 IN (VALUES (1), (2))", 0),
    ],
)
def test_what_folds(sql: str, rows: int) -> None:
    folded = lift(sql.encode(), ENV).folded
    assert (folded is not None) == bool(rows)
    if folded is not None:
        literals = lift(sql.encode(), ENV).literals
        assert len(list(folded.repeat.views(literals, 0))) == rows


def test_one_plan_for_any_number_of_rows() -> None:
    planner = rewriter()
    board = new_id("boards", 1, 1)

    def rows(*kinds: int) -> int:
        made = [b"(%d, 2, 3)" % board if kind else b"(%d, 2, NULL)" % board for kind in kinds]
        plan, literals = planner.plan(b"INSERT INTO board_has_pins VALUES " + b", ".join(made), ENV)
        return sum(one.rows for one in plan.bind(literals, TOPOLOGY, first).inserted)

    assert [rows(1, 1), rows(1, 1, 1), rows(*[1] * 700), rows(1, 1, 1)] == [2, 3, 700, 3]
    assert (planner.misses, planner.hits) == (1, 3)
    assert [rows(1, 0, 0, 1), rows(1, 1, 0), rows(1, 0, 1, 0, 1)] == [4, 3, 5]
    assert (planner.misses, planner.hits) == (2, 5)
    planner = planner.replaced(TOPOLOGY)
    assert rows(1, 1) == 2
    assert planner.misses == 3


def test_a_whole_statement_is_itself() -> None:
    sql = b"INSERT INTO legacy.t VALUES (1, 'a''b'),\n(NULL, 'c'),\n(3, '%') ON DUPLICATE KEY UPDATE a = 7"
    plan, literals = rewriter().plan(sql, ENV)
    assert isinstance(plan, OneHost)
    assert plan.template.render(literals) == sql
