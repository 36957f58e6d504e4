"""A fixed seed of generated statements, on shards and on one plain server. More of them: `make fuzz`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.differential.arena import Arena, deployed
from tests.differential.generator import Generator
from tests.differential.report import describe, total
from tests.differential.runner import Runner
from tests.differential.world import demo_world, wide_world
from tests.support.demo import Demo
from tests.support.servers import LocalServer

SEED = 2012
CASES = 450
DEMO_CASES = 200
SHARDS = 16
"""On two hosts. `make fuzz` has more: each takes its tables, and its part of every fan-out."""
DEMO_SHARDS = 64


def run(arena: Arena, generator: Generator, cases: int) -> None:
    summary = Runner(arena, generator).run(range(cases), most=3)
    print(total(summary, 0))
    found = "\n".join(describe(finding, generator.seed) for finding in summary.findings)
    assert not summary.findings, f"\n{found}"
    assert summary.cases == cases
    number = sum(summary.statements.values())
    assert sum(summary.refused.values()) < number * 0.06, "too many statements are refused"
    assert sum(summary.failed.values()) < number * 0.06, "too many statements fail on both sides"


@pytest.fixture(scope="module")
def arena(
    flavour: str,
    servers: list[LocalServer],
    plain: LocalServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Arena]:
    world = wide_world([one.address for one in servers], SHARDS)
    with deployed(world, servers, plain, tmp_path_factory.mktemp("differential")) as made:
        yield made


def test_many_kinds_of_columns_and_tables(arena: Arena, flavour: str) -> None:
    catalog = arena.world.catalog(mysql=flavour == "mysql9")
    run(arena, Generator(catalog, SEED), CASES)


def test_reads_of_the_demo_cluster(demo: Demo, plain: LocalServer, flavour: str) -> None:
    world = demo_world([one.address for one in demo.masters], DEMO_SHARDS)
    catalog = world.catalog(mysql=flavour == "mysql9")
    with Arena(world, demo.connect, plain.connect, {}) as arena:
        run(arena, Generator(catalog, SEED, reads_only=True), DEMO_CASES)
