"""The generator: the same seed gives the same cases, and they cover what they should."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.differential.catalog import Catalog
from tests.differential.generator import Generator
from tests.differential.parts import Case
from tests.differential.refusals import REFUSABLE
from tests.differential.world import World, demo_world, wide_world

HOSTS = ("a:1", "b:2")


@pytest.fixture(scope="module")
def world() -> World:
    return wide_world(HOSTS, 16)


@pytest.fixture(scope="module")
def catalog(world: World) -> Catalog:
    return world.catalog(mysql=True)


@pytest.fixture(scope="module")
def cases(catalog: Catalog) -> list[Case]:
    return [Generator(catalog, 1).case(number) for number in range(2000)]


def test_a_case_depends_on_seed_and_number_only(catalog: Catalog, cases: list[Case]) -> None:
    again = Generator(catalog, 1)
    assert [again.case(number) for number in (1999, 3, 700)] == [cases[number] for number in (1999, 3, 700)]
    assert Generator(catalog, 2).case(3) != cases[3]


def test_every_kind_of_statement_on_every_kind_of_table(cases: list[Case]) -> None:
    kinds = Counter(statement.kind for case in cases for statement in case.statements)
    for kind in ("object", "mapping", "hashed"):
        for what in (
            "rows, few",
            "rows, list",
            "rows, scatter",
            "aggregates, list",
            "insert",
            "update",
            "delete",
        ):
            assert kinds[f"{kind} {what}"] >= 5, f"{kind} {what}"
    assert kinds["object insert, placed"] >= 5
    assert kinds["transaction"] >= 50


def test_most_statements_must_not_be_refused(cases: list[Case]) -> None:
    statements = [statement for case in cases for statement in case.statements]
    beyond = [one for one in statements if one.features]
    assert len(beyond) < len(statements) * 0.1
    assert {feature for one in beyond for feature in one.features} <= set(REFUSABLE)


def test_rows_go_where_their_ids_say(world: World) -> None:
    pins = world.tables["pins"]
    for row in world.rows["pins"][:50]:
        [(host, database)] = world.physical(pins, row[0])
        assert isinstance(row[0], int)
        shard = row[0] >> 46
        assert database == f"wm{shard:05d}"
        assert host == world.topology.keyspaces["main"].host_of(shard)
        assert world.stored(pins, row)[0] == row[0] & 0xFFFFFFFFF


def test_shrinking_ends(cases: list[Case]) -> None:
    for case in cases[:40]:
        steps = 0
        while (simpler := next(case.smaller(), None)) is not None:
            assert simpler != case
            case, steps = simpler, steps + 1
            assert steps < 200


def test_the_demo_can_be_read_too() -> None:
    catalog = demo_world(HOSTS).catalog(mysql=False)
    found = [Generator(catalog, 1, reads_only=True).case(number) for number in range(300)]
    assert not any(case.tables for case in found)
    assert len({case.kind for case in found}) > 10
