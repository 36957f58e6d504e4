"""Which statements a cache may answer, and what of caches the others invalidate."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from config.flavour import flavour_of
from config.load import load_schema, load_topology
from demo.documents import SCHEMA, topology_document
from rewriter.env import Env
from rewriter.planner import Rewriter
from rewriter.plans.cached import CachedSelect, FlushCache, Touching

PIN, OTHER, BOARD = (5 << 46) | (1 << 36) | 7, (6 << 46) | (1 << 36) | 7, (9 << 46) | (2 << 36) | 3
PINS, LIST = "demo.pins", "demo.board_has_pins"


def make_rewriter(*, cached: bool = True) -> Rewriter:
    document: Any = yaml.safe_load(SCHEMA.read_text())
    tables = document["databases"]["demo"]["tables"]
    if cached:
        tables["pins"]["cache"] = {"memcached": "127.0.0.1:11211"}
        tables["board_has_pins"]["cache"] = {"redis": "127.0.0.1:6379"}
    schema = load_schema(document)
    hosts = [("127.0.0.1:1", None), ("127.0.0.1:2", None)]
    return Rewriter(schema, load_topology(topology_document(64, hosts), schema=schema))


REWRITER = make_rewriter()
ENV = Env(database="demo", server_version=101104, flavour=flavour_of("10.11.4-MariaDB"))


def planned(sql: str, env: Env = ENV) -> tuple[Any, tuple[bytes, ...]]:
    return REWRITER.plan(sql.format(P=PIN, Q=OTHER, B=BOARD).encode(), env)


@pytest.mark.parametrize(
    ("sql", "table", "groups"),
    [
        ("SELECT * FROM pins WHERE id = {P}", PINS, (PIN,)),
        ("SELECT p.id, p.data FROM pins AS p WHERE p.id IN ({P}, {Q}, {P})", PINS, (PIN, OTHER)),
        ("SELECT data->>'$.a' FROM pins WHERE id = {P} AND ts > '2020-01-01'", PINS, (PIN,)),
        ("SELECT CONCAT(data, 'x') FROM demo.pins WHERE {P} = id", PINS, (PIN,)),
        ("SELECT COUNT(*), MAX(sequence) FROM board_has_pins WHERE board_id = {B}", LIST, (BOARD,)),
        (
            "SELECT pin_id FROM board_has_pins WHERE board_id = {B} ORDER BY sequence DESC LIMIT 9",
            LIST,
            (BOARD,),
        ),
    ],
)
def test_reads_that_a_cache_may_answer(sql: str, table: str, groups: tuple[int, ...]) -> None:
    plan, values = planned(sql)
    assert isinstance(plan, CachedSelect)
    assert (plan.cached.name, plan.groups(values), plan.empty) == (table, groups, table == LIST)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM boards WHERE id = {B}",  # has no cache
        "SELECT NOW(), id FROM pins WHERE id = {P}",
        "SELECT CURRENT_DATE, id FROM pins WHERE id = {P}",
        "SELECT RAND() FROM pins WHERE id = {P}",
        "SELECT UUID() FROM pins WHERE id = {P}",
        "SELECT id FROM pins WHERE id = {P} AND ts < CURRENT_TIMESTAMP",
        "SELECT id, @a FROM pins WHERE id = {P}",
        "SELECT id, @@sql_mode FROM pins WHERE id = {P}",
        "SELECT CONNECTION_ID() FROM pins WHERE id = {P}",
        "SELECT DATABASE() FROM pins WHERE id = {P}",
        "SELECT SQL_NO_CACHE id FROM pins WHERE id = {P}",
        "SELECT id FROM pins WHERE id = {P} FOR UPDATE",
        "SELECT id FROM pins WHERE id = {P} LOCK IN SHARE MODE",
        "SELECT COUNT(*) FROM pins WHERE id = {P}",  # 0 when there is no row yet
        "SELECT id FROM pins WHERE id IN ({P}, {Q}) GROUP BY id WITH ROLLUP",  # a row more than there are IDs
        "SELECT id, DATE(TIME'10:00:00') FROM pins WHERE id = {P}",  # that of today
        "SELECT id FROM pins WHERE id = {P} AND ts > TIME'10:00:00'",
        "SELECT id, ROWNUM FROM pins WHERE id = {P}",
        "SELECT id FROM pins WHERE id = {P} OR id = 3",
        "SELECT id FROM pins WHERE id = {P} OR ts IS NULL",
        "SELECT id FROM pins WHERE NOT id = {P}",
        "SELECT id FROM pins WHERE id BETWEEN {P} AND {P}",
        "SELECT /*+ shard(5) */ id FROM pins WHERE id = {P}",
        "SELECT id FROM pins",
        "SELECT pin_id FROM board_has_pins WHERE pin_id = {P}",
        "SELECT pin_id FROM board_has_pins WHERE board_id = {B} AND pin_id IN (SELECT id FROM pins)",
        "SELECT p.* FROM board_has_pins m JOIN pins p ON p.id = m.pin_id WHERE m.board_id = {B}",
        "SELECT a.id FROM pins a JOIN pins b ON a.id = b.id WHERE a.id = {P}",
        "(SELECT id FROM pins WHERE id = {P}) UNION (SELECT id FROM pins WHERE id = {P})",
        "SELECT * FROM (SELECT id FROM pins WHERE id = {P}) d",
        "WITH c AS (SELECT id FROM pins WHERE id = {P}) SELECT * FROM c",
        "SELECT * FROM db00005.pins WHERE local_id = 7",
        "EXPLAIN SELECT * FROM pins WHERE id = {P}",
    ],
)
def test_reads_that_it_may_not(sql: str) -> None:
    assert not isinstance(planned(sql)[0], CachedSelect)


ALL = ((PINS, (), ()), (LIST, (), ()))
_LOCALLY = ((PINS, (), (5,)), (LIST, (), (5,)))


@pytest.mark.parametrize(
    ("sql", "touched"),
    [
        ("UPDATE pins SET data = '{{}}' WHERE id = {P}", ((PINS, (PIN,), ()),)),
        ("UPDATE pins SET data = '{{}}' WHERE id IN ({P}, {Q})", ((PINS, (PIN, OTHER), ()),)),
        ("DELETE FROM pins WHERE id = {P} LIMIT 1", ((PINS, (PIN,), ()),)),
        ("DELETE FROM pins WHERE id = {P} AND ts < NOW()", ((PINS, (PIN,), ()),)),
        ("DELETE FROM pins WHERE id BETWEEN {P} AND {P}", ((PINS, (), (5,)),)),
        ("UPDATE /*+ shard(3) */ pins SET data = 1 WHERE ts = 3", ((PINS, (), (3,)),)),
        ("UPDATE /*+ shard(5) */ pins SET data = 1 WHERE id = {P}", ((PINS, (), (5,)),)),
        ("UPDATE /*+ scatter */ pins SET data = 1 WHERE ts = 3", ((PINS, (), ()),)),
        ("REPLACE INTO pins (id, data) VALUES ({P}, '{{}}')", ((PINS, (), ()),)),
        (
            "INSERT INTO pins (id, data) VALUES ({P}, '{{}}') ON DUPLICATE KEY UPDATE data = 1",
            ((PINS, (), ()),),
        ),
        ("INSERT INTO board_has_pins VALUES ({B}, {P}, 3)", ((LIST, (BOARD,), ()),)),
        (
            "REPLACE INTO board_has_pins (board_id, pin_id) VALUES ({B}, 1), ({Q}, 2)",
            ((LIST, (BOARD, OTHER), ()),),
        ),
        ("DELETE FROM board_has_pins WHERE board_id = {B} AND pin_id = 3", ((LIST, (BOARD,), ()),)),
        ("UPDATE board_has_pins SET sequence = 1 WHERE board_id IN ({B})", ((LIST, (BOARD,), ()),)),
        ("ALTER TABLE pins ADD COLUMN x INT", ((PINS, (), ()),)),
        ("TRUNCATE TABLE board_has_pins", ((LIST, (), ()),)),
        ("DROP TABLE pins", ((PINS, (), ()),)),
        ("UPDATE db00005.pins SET data = 3", _LOCALLY),
        ("INSERT INTO db00005.pins SELECT * FROM db00005.pins", _LOCALLY),
        ("TRUNCATE TABLE db00005.pins", _LOCALLY),
        ("RENAME TABLE db00005.pins TO db00005.b", _LOCALLY),
        ("LOAD DATA INFILE 'x' INTO TABLE db00005.pins", _LOCALLY),
        ("LOAD DATA LOCAL INFILE 'x' INTO TABLE db00005.pins", ALL),
        ("CALL db00005.f()", ALL),
        ("SELECT legacy.f(3)", ALL),
        ("DROP DATABASE foo", ALL),
        # nothing of any cache
        ("INSERT INTO pins (data) VALUES ('{{}}')", ()),
        ("UPDATE boards SET data = 1 WHERE id = {B}", ()),
        ("TRUNCATE boards", ()),
        ("SELECT * FROM db00005.pins", ()),
        ("INSERT INTO countries VALUES ('x', 'y')", ()),
        ("UPDATE legacy.customers SET city = 3", ()),
        ("UPDATE msdb00005.ip_data SET data = 3", ()),
        ("BEGIN", ()),
        ("SET @x = 3", ()),
        ("SET @x = CONCAT('a', 3), sql_mode = ''", ()),
        ("CREATE VIEW legacy.v AS SELECT 1", ()),
    ],
)
def test_what_a_write_invalidates(sql: str, touched: tuple[tuple[str, Any, Any], ...]) -> None:
    plan, values = planned(sql)
    found = plan.touches(values, REWRITER.topology) if isinstance(plan, Touching) else ()
    assert tuple((one.table.name, one.groups, one.shards) for one in found) == touched


@pytest.mark.parametrize(
    "sql",
    ["CALL f()", "EXECUTE s", "XA COMMIT 'a'", "SELECT f(3)", "SET @x = f(3)", "CREATE TABLE t SELECT f(3)"],
)
def test_code_that_nobody_reads_invalidates_everything(sql: str) -> None:
    plan, values = planned(sql, Env(database="legacy", server_version=101104, flavour=ENV.flavour))
    assert isinstance(plan, Touching)
    assert [one.table.name for one in plan.touches(values, REWRITER.topology)] == [PINS, LIST]


def test_flush_cache() -> None:
    plan, values = planned("FLUSH CACHE FOR pins")
    assert isinstance(plan, FlushCache)
    assert plan.touched(values).groups == ()
    plan, values = planned("FLUSH CACHE FOR demo.pins {P}, {Q}")
    assert isinstance(plan, FlushCache)
    assert plan.touched(values).groups == (PIN, OTHER)
    assert planned("FLUSH CACHE FOR boards")[0].error == "no_cache"
    assert planned("FLUSH CACHE FOR nothing")[0].error == "unknown_table"


def test_without_caches_plans_are_the_plain_ones() -> None:
    plain = make_rewriter(cached=False)
    for sql in ("SELECT * FROM pins WHERE id = 3", "UPDATE pins SET data = 1 WHERE id = 3", "TRUNCATE pins"):
        assert not isinstance(plain.plan(sql.encode(), ENV)[0], CachedSelect | Touching)
