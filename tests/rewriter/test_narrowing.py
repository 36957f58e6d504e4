"""Routing by both readers is sound: no row that could matter is left out, whatever the condition or the join.

The answer over the rows of the shards that are asked is the answer over all rows. Both are computed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.flavour import MARIADB
from rewriter.planner import Rewriter
from rewriter.plans import BindError, Env, Gather, Plan, Reject, ShardSelect
from tests.rewriter.conditions import BOARDS, PINS, Drawn, Row, conditions, plain_conditions
from tests.rewriter.support import LAYOUT, SHARDS, TOPOLOGY, first, new_id, rewriter, shards_of, values_of
from tests.rewriter.test_soundness import Truth, compare, conjunction, truth

assert LAYOUT is not None
ENVS = (Env(database="demo"), Env(database="demo", flavour=MARIADB, server_version=101106))
SMALL = (0, 1, None)

#: Rows of `pins p`, with a column of 0, 1 or NULL, and of the mapping `m`.
P_ROWS: list[Row] = [{"p.id": id, "p.ts": small} for id, small in product(PINS, SMALL)]
M_ROWS: list[Row] = [
    {"m.board_id": board, "m.pin_id": pin}
    for board, pin in product(BOARDS[::2], [PINS[0], PINS[3], new_id("pins", 2, 9)])
]


def asked(sql: str, env: Env) -> dict[str, set[int]]:
    """The shards that are asked for the rows of each table, by its alias; those of a link are all. A
    statement with an ID of a shard that the topology lacks is an error, so it leaves nothing out.
    """
    try:
        return _asked(sql, env)
    except BindError as error:
        if error.name == "shard_missing" and int(error.arguments["shard"]) >= SHARDS:
            return {"p": set(range(SHARDS)), "m": set(range(SHARDS))}
        raise


def _asked(sql: str, env: Env) -> dict[str, set[int]]:
    planner = rewriter()
    plan, literals = planner.plan(sql.encode(), env)
    assert not isinstance(plan, Reject), (sql, plan.arguments)
    if isinstance(plan, ShardSelect):
        keyspace = TOPOLOGY.keyspaces["main"]
        values = values_of(plan, literals)
        found = plan.routing.shards(plan.routing.place(values, keyspace), values, keyspace)
        routes = [set(range(SHARDS)) if some is None else some for some in found]
        return dict(zip(("p", "m"), routes, strict=False))  # as they stand in the text
    assert isinstance(plan, Gather), sql
    return _gathered(planner, plan, literals, env)


def _gathered(planner: Rewriter, plan: Gather, literals: tuple[bytes, ...], env: Env) -> dict[str, set[int]]:
    found = {}
    for piece in plan.pieces:
        text = piece.sql(values_of(plan, literals), b"*")
        inner: Plan
        inner, mine = planner.plan(text, env)
        shards = set(shards_of(inner.bind(values_of(inner, mine), TOPOLOGY, first)))
        found[piece.label.rpartition(" ")[2]] = shards
    return found


def on(rows: list[Row], column: str, shards: set[int]) -> list[Row]:
    return [row for row in rows if row[column] is not None and (row[column] or 0) >> 46 & 0xFFFF in shards]


def one_table(drawn: Drawn) -> None:
    sql, value = drawn
    for env in ENVS:
        shards = asked(f"SELECT p.id FROM pins p WHERE {sql}", env)["p"]
        missed = [row for row in P_ROWS if truth(value(row)) == 1 and row not in on(P_ROWS, "p.id", shards)]
        assert not missed, (sql, env.flavour.name)


def joined(side: str, left: list[Row], right: list[Row], drawn: Drawn) -> list[Row]:
    """The rows of LEFT, RIGHT or INNER JOIN."""
    value = drawn[1]
    nothing: tuple[Row, Row] = (dict.fromkeys(P_ROWS[0]), dict.fromkeys(M_ROWS[0]))
    found = [(one, other) for one, other in product(left, right) if truth(value({**one, **other})) == 1]
    rows = [{**one, **other} for one, other in found]
    if side == "LEFT":
        with_one = [id(one) for one, _ in found]
        rows += [{**one, **nothing[1]} for one in left if id(one) not in with_one]
    if side == "RIGHT":
        with_one = [id(other) for _, other in found]
        rows += [{**nothing[0], **other} for other in right if id(other) not in with_one]
    return rows


COLUMNS = {"p.id": PINS, "m.board_id": BOARDS[::2], "m.pin_id": [PINS[0], PINS[3]]}


def linked(row: Row) -> Truth:
    return compare("=", row["m.pin_id"], row["p.id"])


LINKS: list[Drawn] = [("m.pin_id = p.id", linked), ("p.id = m.pin_id + 0", linked)]


def also(one: Drawn, other: Drawn) -> Drawn:
    return f"({one[0]} AND {other[0]})", lambda row: conjunction(truth(one[1](row)), truth(other[1](row)))


on_conditions = st.one_of(
    st.sampled_from(LINKS),
    st.tuples(st.sampled_from(LINKS), conditions(COLUMNS, "p.ts")).map(lambda pair: also(*pair)),
    conditions(COLUMNS, "p.ts"),
)


def two_tables(side: str, join: Drawn, where: Drawn) -> None:
    sql = f"SELECT p.id, m.board_id FROM pins p {side} JOIN board_has_pins m ON {join[0]} WHERE {where[0]}"
    left, right = P_ROWS[::2], M_ROWS

    def answer(rows: list[Row]) -> Counter[str]:
        return Counter(str(row) for row in rows if truth(where[1](row)) == 1)

    whole = answer(joined(side, left, right, join))
    for env in ENVS:
        shards = asked(sql, env)
        some = joined(side, on(left, "p.id", shards["p"]), on(right, "m.board_id", shards["m"]), join)
        assert answer(some) == whole, (sql, env.flavour.name)


THEIRS = {"LEFT": {"m.board_id": BOARDS[::2], "m.pin_id": [PINS[0], PINS[3]]}, "RIGHT": {"p.id": PINS}}
NARROW: dict[str, list[Drawn]] = {
    "LEFT": [(f"p.id = {PINS[3]}", lambda row: compare("=", row["p.id"], PINS[3]))],
    "RIGHT": [(f"m.board_id = {BOARDS[2]}", lambda row: compare("=", row["m.board_id"], BOARDS[2]))],
}


OUTER = st.one_of(
    *(
        st.tuples(
            st.just(side),
            st.sampled_from(NARROW[side]).map(lambda one: also(LINKS[0], one)),
            plain_conditions(THEIRS[side]),
        )
        for side in ("LEFT", "RIGHT")
    )
)
"""An ON condition of an outer join narrows the table that all rows come from only if WHERE says so."""
TWO = st.tuples(st.sampled_from(["LEFT", "RIGHT", "INNER"]), on_conditions, conditions(COLUMNS, "p.ts"))

Property = Callable[[], None]
PROPERTIES: dict[str, Callable[[], Property]] = {
    "one table": lambda: given(conditions({"p.id": PINS}, "p.ts"))(one_table),
    "two tables": lambda: given(TWO)(lambda drawn: two_tables(*drawn)),
    "outer joins": lambda: given(OUTER)(lambda drawn: two_tables(*drawn)),
}
"""Each made anew: settings are given to one once."""


@pytest.mark.parametrize(("name", "count"), [("one table", 200), ("two tables", 120), ("outer joins", 240)])
def test_no_row_that_matters_is_left_out(name: str, count: int) -> None:
    settings(max_examples=count, deadline=None)(PROPERTIES[name]())()
