"""Statements that clauses alone do not narrow, and the shards that are asked for each table.

`{table alias: shards}`: "all" for a scatter, "link" for rows that are read by the values of another table.
"""

from __future__ import annotations

import pytest

from config.load import load_schema, load_topology
from demo.documents import topology_document
from rewriter.explain import explain
from rewriter.planner import Rewriter
from rewriter.plans import BindError, Env, Gather, Plan, Reject, ShardSelect
from tests.rewriter.support import TOPOLOGY, expand, first, rewriter, shards_of, values_of

ENV = Env(database="demo")
ALL, LINK, WIDE = "all", "a link", "a link that may scatter"

B = "board_has_pins"
COUNTED = f"SELECT board_id, COUNT(*) AS n FROM {B} GROUP BY board_id"

#: A statement, and its shards: of the whole, or of each piece that is gathered.
STATEMENTS: list[tuple[str, object]] = [
    # outer joins that WHERE makes inner
    (
        f"SELECT p.* FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id WHERE m.board_id = <boards 1 5>",
        {"m": [1], "p": LINK},
    ),
    (
        f"SELECT p.id FROM {B} m RIGHT JOIN pins p ON m.pin_id = p.id WHERE m.board_id = <boards 1 5>",
        {"m": [1], "p": LINK},
    ),
    (
        f"SELECT p.id FROM {B} m RIGHT JOIN pins p ON m.pin_id = p.id WHERE p.id = <pins 1 5>",
        {"p": [1], "m": ALL},
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id WHERE m.board_id <=> <boards 1 5>",
        {"m": [1], "p": ALL},  # not NULL, but <=> is no operator that says so
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id WHERE NOT (m.board_id <> <boards 1 5>)",
        {"m": [1], "p": LINK},
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id WHERE m.board_id IS NULL",
        {"m": ALL, "p": ALL},
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id"
        " WHERE (m.sequence, m.board_id) = (5, <boards 1 5>)",
        {"m": [1], "p": LINK},
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id"
        " WHERE (m.pin_id, m.board_id) IN ((5, <boards 1 5>), (6, <boards 2 5>))",
        {"m": [1, 2], "p": LINK},
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id"  # (5, NULL) <> (6, 7) is true
        " WHERE (p.ts, m.board_id) <> (5, 6) AND m.board_id <=> <boards 1 5>",
        {"m": [1], "p": ALL},
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id WHERE m.board_id = <boards 1 5> AND p.ts > 5",
        {"m": [1], "p": LINK},
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id"
        " WHERE (m.board_id = 5 OR p.ts > 5) AND m.board_id <=> <boards 1 5>",
        {"m": [1], "p": ALL},
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id"
        " WHERE NOT (m.board_id <> 5 OR p.ts > 5) AND m.board_id <=> <boards 1 5>",
        {"m": [1], "p": LINK},
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id"
        " WHERE NOT (m.board_id <> 5 AND p.ts > 5) AND m.board_id <=> <boards 1 5>",
        {"m": [1], "p": ALL},
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id"
        " WHERE (m.pin_id IS NULL) IS FALSE AND m.board_id <=> <boards 1 5>",
        {"m": [1], "p": LINK},
    ),
    (
        f"SELECT p.id FROM pins p LEFT JOIN {B} m ON m.pin_id = p.id"
        " WHERE (m.pin_id IS NULL) IS TRUE AND m.board_id <=> <boards 1 5>",
        {"m": [1], "p": ALL},
    ),
    ("SELECT COUNT(*) FROM pins p LEFT JOIN users u ON u.ts = p.ts WHERE u.id = <users 1 5>", {"u": [1], "p": ALL}),
    # equal columns
    (
        "SELECT p.id FROM user_likes_pins l JOIN pins p ON p.id = l.pin_id WHERE l.pin_id = <pins 1 5>",
        {"p": [1], "l": ALL},
    ),
    ("SELECT p.id FROM pins p, boards b WHERE p.id = b.id + 0 AND b.id = <boards 1 5>", [1]),
    ("SELECT p.id FROM pins p, pins q WHERE p.id - 1 = q.id + 2 AND q.id = <pins 1 5>", [1]),
    ("SELECT p.id FROM pins p, pins q WHERE p.id = 3 + q.id AND q.id = <pins 1 5>", [1]),
    ("SELECT p.id FROM pins p, pins q WHERE p.id = 3 - q.id AND q.id = <pins 1 5>", {"p": ALL, "q": [1]}),
    (
        "SELECT p.id FROM user_likes_pins l JOIN pins p ON p.id - 70368744177664 = l.pin_id"  # the next shard
        " WHERE l.pin_id = <pins 1 5> AND l.user_id = <users 2 5>",
        [2],
    ),
    ("SELECT p.id FROM pins p, boards b WHERE p.id = b.ts AND b.ts = <pins 1 5>", {"p": WIDE, "b": ALL}),
    ("SELECT p.id FROM pins p JOIN (SELECT <pins 1 5> AS id UNION ALL SELECT <pins 2 7>) w ON w.id = p.id", [1, 2]),
    ("SELECT p.id FROM pins p JOIN (VALUES ROW(<pins 1 5>), ROW(<pins 2 7>)) w(id) ON w.id = p.id", [1, 2]),
    ("SELECT p.id FROM pins p JOIN (VALUES ROW(1, <pins 1 5>)) w ON w.column_1 = p.id", [1]),
    ("SELECT p.id FROM pins p JOIN (SELECT '<pins 1 5>' AS id) w ON w.id = p.id", [0, 1, 2, 3]),
    ("SELECT p.id FROM pins p LEFT JOIN (SELECT <pins 1 5> AS id) w ON w.id = p.id", [0, 1, 2, 3]),
    (
        "SELECT u.id FROM user_likes_pins l JOIN users u ON u.id = l.user_id JOIN pins p ON p.id = l.pin_id"
        " WHERE l.user_id = <users 1 5> AND p.ts > '2020-01-01'",
        {"l": [1], "u": LINK, "p": LINK},
    ),
    (  # when the user is left out, the pin joins with nothing, and passes WHERE
        "SELECT c.pin_id FROM email_to_user a LEFT JOIN users b ON b.id = a.user_id"
        " RIGHT JOIN user_likes_pins c ON c.user_id = b.id WHERE NOT (a.user_id <=> <users 1 5>)",
        {"a": ALL, "b": WIDE, "c": ALL},
    ),
    # groups, DISTINCT, windows
    (f"SELECT * FROM ({COUNTED}) g WHERE g.board_id = <boards 1 5>", {B: [1]}),
    (f"SELECT * FROM ({COUNTED}) g WHERE g.n = 5", {B: ALL}),
    (f"SELECT * FROM ({COUNTED} WITH ROLLUP) g WHERE g.board_id = <boards 1 5>", {B: ALL}),
    (f"SELECT * FROM ({COUNTED} HAVING n > 2) g WHERE g.board_id = <boards 1 5>", {B: [1]}),
    (f"SELECT * FROM ({COUNTED} LIMIT 5) g WHERE g.board_id = <boards 1 5>", {B: ALL}),
    (f"SELECT * FROM (SELECT DISTINCT board_id, pin_id FROM {B}) g WHERE g.board_id = <boards 1 5>", {B: [1]}),
    (f"SELECT * FROM (SELECT MIN(board_id) AS k FROM {B}) g WHERE g.k = <boards 1 5>", {B: ALL}),
    (f"SELECT * FROM (SELECT board_id + 1 AS k FROM {B}) g WHERE g.k = <boards 1 5>", {B: ALL}),
    (
        "SELECT t.id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts) r FROM pins) t"
        " WHERE t.id = <pins 1 5> AND t.r = 1",
        {"pins": [1]},
    ),
    (
        f"SELECT r FROM (SELECT board_id, RANK() OVER (PARTITION BY pin_id, board_id ORDER BY sequence) r FROM {B}) t"
        " WHERE t.board_id = <boards 1 5>",
        {B: [1]},
    ),
    (
        f"SELECT r FROM (SELECT board_id, RANK() OVER (ORDER BY sequence) r FROM {B}) t"
        " WHERE t.board_id = <boards 1 5>",
        {B: ALL},
    ),
    (
        f"SELECT r FROM (SELECT board_id, RANK() OVER (PARTITION BY board_id ORDER BY sequence) r,"
        f" COUNT(*) OVER () c FROM {B}) t WHERE t.board_id = <boards 1 5>",
        {B: ALL},
    ),
    (
        f"SELECT r FROM (SELECT board_id, RANK() OVER w r FROM {B} WINDOW w AS (PARTITION BY board_id)) t"
        " WHERE t.board_id = <boards 1 5>",
        {B: ALL},
    ),
    # HAVING
    ("SELECT id, COUNT(*) FROM pins GROUP BY id HAVING id = <pins 1 5>", [1]),
    ("SELECT id, ts FROM pins HAVING id = <pins 1 5>", [1]),
    (f"SELECT board_id, COUNT(*) FROM {B} GROUP BY board_id HAVING board_id IN (<boards 1 5>, <boards 2 5>)", [1, 2]),
    (f"SELECT COUNT(*) FROM {B} GROUP BY board_id HAVING board_id = <boards 1 5> AND COUNT(*) > 1", [1]),
    (f"SELECT COUNT(*) FROM {B} GROUP BY board_id HAVING board_id = <boards 1 5> OR COUNT(*) > 1", [0, 1, 2, 3]),
    (f"SELECT pin_id AS board_id, COUNT(*) FROM {B} GROUP BY board_id HAVING board_id = <boards 1 5>", [0, 1, 2, 3]),
    (f"SELECT MAX(board_id) AS k FROM {B} GROUP BY board_id HAVING k = <boards 1 5>", [0, 1, 2, 3]),
    (f"SELECT AVG(pin_id) FROM {B} GROUP BY pin_id, board_id HAVING board_id = <boards 1 5>", [1]),
    # UNION
    (
        "SELECT * FROM (SELECT id FROM pins UNION ALL SELECT id FROM boards) x WHERE x.id = <pins 1 5>",
        {"pins": [1], "boards": []},
    ),
    (
        f"SELECT * FROM (SELECT id AS k, 1 FROM boards UNION SELECT board_id, 2 FROM {B}) x WHERE x.k = <boards 2 5>",
        {"boards": [2], B: [2]},
    ),
    (
        "SELECT * FROM (SELECT id FROM pins UNION SELECT ts FROM boards) x WHERE x.id = <pins 1 5>",
        {"pins": ALL, "boards": ALL},
    ),
    (
        "SELECT * FROM (SELECT id FROM pins UNION SELECT id FROM boards LIMIT 5) x WHERE x.id = <pins 1 5>",
        {"pins": ALL, "boards": ALL},
    ),
    (
        f"SELECT * FROM ({COUNTED} UNION ALL SELECT id, 5 FROM boards) x WHERE x.board_id = <boards 1 5>",
        {B: [1], "boards": [1]},
    ),
    # … signed and unsigned ones: a DECIMAL, which MySQL compares with texts in a list as doubles
    (
        "SELECT * FROM (SELECT id FROM pins UNION ALL SELECT 5) x WHERE x.id IN (<pins 1 5>, <pins 2 5>)",
        {"pins": [1, 2]},
    ),
    (
        "SELECT * FROM (SELECT id FROM pins UNION ALL SELECT 5) x WHERE x.id IN ('<pins 1 5>', '<pins 2 5>')",
        {"pins": ALL},
    ),
    ("SELECT * FROM (SELECT id FROM pins UNION ALL SELECT 5) x WHERE x.id = @v", {"pins": ALL}),
    (
        "SELECT * FROM (SELECT id FROM pins UNION ALL SELECT 5) x WHERE x.id = GREATEST(5, <pins 2 5>)",
        {"pins": ALL},
    ),
    (
        "SELECT b.id FROM (SELECT id FROM pins UNION ALL SELECT 5) x JOIN boards b ON b.id = x.id"
        " WHERE x.id IN ('<boards 1 5>', '<boards 2 5>')",
        {"pins": ALL, "b": ALL},
    ),
    (
        "SELECT * FROM (SELECT id FROM pins UNION ALL SELECT id FROM boards) x"
        " WHERE x.id IN ('<pins 1 5>', '<pins 2 5>')",
        {"pins": [1, 2], "boards": []},
    ),
    # CTEs
    (
        "WITH c AS (SELECT * FROM pins) SELECT a.id FROM c a JOIN c b ON a.id = b.id"
        " WHERE a.id = <pins 1 5> AND b.id = <pins 2 5>",
        {"pins": [1, 2]},
    ),
    (
        "WITH c AS (SELECT * FROM pins) SELECT a.id FROM c a, c b WHERE a.id = <pins 1 5>",
        {"pins": ALL},
    ),
    (
        f"WITH c AS ({COUNTED}) SELECT b.id, c.n FROM boards b JOIN c ON c.board_id = b.id WHERE b.id = <boards 1 5>",
        {"b": [1], B: LINK},
    ),
    (
        f"WITH c AS ({COUNTED} HAVING n > 2) SELECT n FROM c WHERE board_id IN (<boards 1 5>, <boards 2 5>)",
        {B: [1, 2]},
    ),
    (
        "WITH RECURSIVE c AS (SELECT user_id, followed_id FROM user_follows_user WHERE user_id = <users 1 5>"
        " UNION SELECT f.user_id, f.followed_id FROM user_follows_user f JOIN c ON f.user_id = c.followed_id)"
        " SELECT * FROM c WHERE c.user_id = <users 2 7>",
        {"user_follows_user": [1], "f": ALL},  # the first ones lead to all others
    ),
    # links into derived tables
    (
        f"SELECT b.id, x.n FROM boards b LEFT JOIN ({COUNTED}) x ON x.board_id = b.id WHERE b.id = <boards 1 5>",
        {"b": [1], B: LINK},
    ),
    (
        f"SELECT g.n, b.ts FROM boards b JOIN ({COUNTED}) g ON g.board_id = b.id WHERE g.board_id = <boards 1 5>",
        {"b": [1], B: LINK},
    ),
    (
        "SELECT b.id FROM boards b WHERE b.id IN"
        f" (SELECT z.board_id FROM (SELECT board_id, pin_id FROM {B}) z WHERE z.board_id = <boards 1 5>)",
        {B: [1], "b": LINK},
    ),
    (
        f"SELECT m.board_id FROM {B} m WHERE m.board_id = <boards 1 5>"
        f" AND EXISTS (SELECT 1 FROM (SELECT * FROM {B}) z WHERE z.board_id = m.board_id)",
        {"m": [1], B: LINK},
    ),
    (
        f"SELECT b.id, x.n FROM boards b JOIN ({COUNTED} LIMIT 3) x ON x.board_id = b.id WHERE b.id = <boards 1 5>",
        {"b": [1], B: ALL},
    ),
    # what shards and clauses did before
    ("SELECT id FROM pins WHERE id = <pins 1 5> UNION SELECT id FROM pins WHERE id = <pins 1 6>", [1]),
    (
        f"SELECT * FROM pins WHERE id NOT IN (SELECT pin_id FROM {B} WHERE board_id = <boards 1 5>) AND id = <pins 1 9>",
        [1],
    ),
    # changes
    (f"DELETE FROM {B} WHERE (board_id, pin_id) IN ((<boards 1 5>, 5), (<boards 2 5>, 7))", [1, 2]),
    ("UPDATE pins SET ts = ts WHERE (id, ts) IN ((<pins 1 5>, '2020-01-01'))", [1]),
    ("UPDATE pins SET ts = ts WHERE (id = <pins 1 5>) IS TRUE OR 1 = 0", [1]),
    ("UPDATE pins SET ts = ts WHERE id = <pins 1 5> OR 1 = 1", "scatter_denied"),
]  # fmt: skip


def asked(sql: str) -> object:
    planner = rewriter()
    plan, literals = planner.plan(expand(sql).encode(), ENV)
    return _asked(planner, plan, literals)


def _asked(planner: Rewriter, plan: Plan, literals: tuple[bytes, ...]) -> object:
    if isinstance(plan, Reject):
        return plan.error
    if isinstance(plan, Gather):
        return {piece.label.rpartition(" ")[2].removeprefix("demo."): _piece(planner, plan, literals, at)
                for at, piece in enumerate(plan.pieces)}  # fmt: skip
    try:
        bound = plan.bind(values_of(plan, literals), TOPOLOGY, first)
    except BindError:
        assert isinstance(plan, ShardSelect)
        assert plan.gather is not None
        return _asked(planner, plan.gather, literals)
    return shards_of(bound)


def _piece(planner: Rewriter, plan: Gather, literals: tuple[bytes, ...], at: int) -> object:
    piece = plan.pieces[at]
    if piece.link is not None:
        return LINK if piece.link.bounded else WIDE
    text = piece.sql(values_of(plan, literals), b"*")
    inner, mine = planner.plan(text, Env(database="demo", each_shard=piece.each_shard))
    bound = inner.bind(values_of(inner, mine), TOPOLOGY, first)
    if bound.scatter:
        return ALL
    return [] if bound.warnings else shards_of(bound)


@pytest.mark.parametrize(("sql", "expected"), STATEMENTS)
def test_statement(sql: str, expected: object) -> None:
    assert asked(sql) == expected


def test_zeros_in_front_are_no_integers_to_a_condition() -> None:
    """`CONCAT(u.z) = '005'` says nothing of a column that is as a number equal to `u.z`."""
    columns = {"k": "BIGINT UNSIGNED PRIMARY KEY", "z": "INT(3) ZEROFILL", "n": "INT UNSIGNED"}
    table = {"kind": "hashed", "keyspace": "lookup", "key": "k", "columns": columns}
    schema = load_schema({"databases": {"demo": {"tables": {"t": table, "u": table}}}})
    topology = load_topology(topology_document(4, [("a:3306", None)]), schema=schema)
    planner = Rewriter(schema, topology)
    for column, passes in (("z", False), ("n", True)):
        sql = f"SELECT * FROM t JOIN u ON u.{column} = t.k WHERE CONCAT(u.{column}) = '005'"
        told = explain(planner, sql.encode(), ENV, topology, lambda name: b"NULL")
        assert any("(CONCAT(`t`.`k`) = '005')" in row for _, row in told) is passes
