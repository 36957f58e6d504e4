"""Growth: the points that are measured, and the document that is kept of them. Nothing is measured here."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench import figures, growth
from bench.cluster import Cluster, Server
from bench.growth import FLEETS, LISTS, SUBJECTS, Figures
from bench.results import Cell
from bench.rounds import Way
from bench.stage import Stage
from bench.sysbench import Target
from bench.usage import Usage
from bench.workloads import SHARDS, Route, Sizes
from config.load import load_schema, load_topology
from demo.documents import SCHEMA, topology_document

PROXY = Target((("127.0.0.1", 3307),), "demo", "demo", physical=False, database="demo")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    half = SHARDS // 2
    servers = tuple(
        Server("127.0.0.1", 3306 + n, "bench", "x", n, tuple(range(n * half, (n + 1) * half))) for n in (0, 1)
    )
    pairs = [(one.address, None) for one in servers]
    (tmp_path / "topology.json").write_text(json.dumps(topology_document(SHARDS, pairs)))
    ways = {route: Way(PROXY) for route in (Route.DIRECT, Route.HAPROXY, Route.SHARDGATE)}
    return Stage(Cluster(servers, PROXY, 7, tmp_path), Sizes(), "sysbench", ways)


def cell(round: int, cpu: float, p50: float) -> Cell:
    return Cell(round, 1000, 2.0, p50, p50, p50, Usage(cpu / 1000, 0.1, 0.1, 80_000_000), Usage(0.1))


@pytest.mark.parametrize("shards", FLEETS)
def test_a_topology_of_so_many_shards_is_served(stage: Stage, shards: int, tmp_path: Path) -> None:
    file = tmp_path / "grown.json"
    file.write_text(json.dumps(growth.topology(stage, shards)))
    main = load_topology(file, schema=load_schema(SCHEMA)).keyspaces["main"]
    assert len(main.all_shards) == shards
    assert main.host_of(5) == "127.0.0.1:3306"
    assert main.host_of(SHARDS - 1) == "127.0.0.1:3307"


def test_lists_of_all_lengths_on_all_routes(stage: Stage) -> None:
    with ExitStack() as stack:
        cases = SUBJECTS["ids"].cases(stage, stack)
    assert {(one.x, one.more["ids"]) for one in cases} == {(count, count) for count in LISTS}
    assert [one.line for one in cases[:3]] == ["direct", "HAProxy", "shardgate"]


def test_a_shard_has_its_part_of_the_rows() -> None:
    parts = [growth._copy(shard, "comments", 1000).rpartition(" ")[2] for shard in range(SHARDS)]
    assert sum(map(int, parts)) == 1000


@pytest.fixture
def found() -> Figures:
    found = Figures(SUBJECTS["ids"])
    for x in (10.0, 1.0):
        found.cells["HAProxy", x] = [cell(1, 20 * x, 1.0), cell(2, 30 * x, 2.0)]
        found.cells["shardgate", x] = [cell(1, 40 * x, 2.0), cell(2, 45 * x, 3.0)]
    found.cells["shardgate, 2 workers", 1.0] = [cell(1, 1.0, 1.0)]
    found.failures["direct", 10.0] = "error 1040: Too many connections"
    return found


@pytest.fixture
def document(found: Figures) -> figures.Document:
    return found.document(
        loads=[1.5, 8.0, 3.0],
        date=datetime(2026, 1, 2, tzinfo=UTC).isoformat(),
        commit="0123abcd",
        versions={
            "server": "MariaDB 10.11.19",
            "haproxy": "HAProxy version 2.6.12-1 2026/10/17",
            "uvloop": "0.23",
        },
        machine={"cores": 2, "cpu": "Some CPU", "kernel": "6.1", "python": "3.11.2"},
        options={"rounds": 2, "seconds": 3, "threads": 16},
    )


def test_points_are_kept_in_order_with_their_extent(document: figures.Document) -> None:
    points = document["lines"]["shardgate"]
    assert [one["x"] for one in points] == [1.0, 10.0]
    assert points[0]["cpu_us"] == [42.5, 40.0, 45.0]
    assert document["load"] == [1.5, 8.0]
    assert document["failures"] == ["direct, 10: error 1040: Too many connections"]


def test_ratios_are_of_neighbours_in_time(document: figures.Document) -> None:
    assert document["ratios"] == {
        "cpu_to_haproxy": [{"x": 1.0, "ratio": [1.75, 1.5, 2.0]}, {"x": 10.0, "ratio": [1.75, 1.5, 2.0]}]
    }


def test_notes_tell_when_where_and_how(document: figures.Document) -> None:
    assert figures.notes(document) == (
        "2026-01-02, 2 × Some CPU, kernel 6.1, load 1.5–8; commit 0123abcd",
        "MariaDB 10.11.19; HAProxy 2.6.12; Python 3.11.2; uvloop 0.23",
        "2 rounds of 3 s, 16 clients; medians, whiskers from the least to the greatest;"
        " everything on loopback of one machine",
    )


def test_plots_and_page_are_made_of_what_is_kept(document: figures.Document, tmp_path: Path) -> None:
    figures.save(document, tmp_path)
    assert figures.documents(tmp_path) == [document]
    names = {path.name for path in figures.draw(tmp_path)}
    assert names == {"ids-cpu.svg", "ids-p50.svg", "figures.md"}
    page = (tmp_path / "figures.md").read_text()
    assert "| 1 | 25.0 (20.0–30.0) | 42.5 (40.0–45.0) | 1.00 |" in page
    assert "Not measured: direct, 10: error 1040" in page
