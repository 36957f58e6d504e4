"""Medians, ratios and what is made of them: tables and history."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from bench import history, report, tables
from bench.results import Cell, Result, Spread, failed
from bench.sysbench import Output
from bench.usage import Usage
from bench.workloads import WORKLOADS, Route

POINT = WORKLOADS["point"]


def cell(round: int, *, cpu: float | None = None, p50: float = 1.0, events: int = 1000) -> Cell:
    """`cpu`: microseconds of the proxy a statement."""
    proxy = None if cpu is None else Usage(cpu * events / 1e6, 0.3, 0.7, 80_000_000)
    return Cell(round, events, 2.0, p50, 2 * p50, 3 * p50, proxy, Usage(0.1, 0.0, 0.1, 0))


@pytest.fixture
def result() -> Result:
    return Result(
        POINT,
        16,
        {
            Route.DIRECT: [cell(1, p50=1.0), cell(2, p50=2.0), cell(3, p50=4.0)],
            Route.HAPROXY: [cell(1, cpu=20), cell(2, cpu=40), cell(3, cpu=30)],
            Route.SHARDGATE: [cell(1, cpu=30, p50=2), cell(2, cpu=50, p50=3), cell(3, cpu=42, p50=4)],
        },
    )


def test_a_cell_is_counted_by_statement() -> None:
    said = Output({"events": 1000, "seconds": 2.0}, [(1.0, 990), (9.0, 10)])
    one = Cell.of(1, said, Usage(0.03, 0.1, 0.3, 5), Usage(0.1))
    assert one.cpu == pytest.approx(30)
    assert (one.rate, one.p50, one.p99, one.user_share) == (500.0, 1.0, 1.0, 0.25)
    assert one.each(one.servers.cpu) == pytest.approx(100)


def test_no_statement_has_no_cost() -> None:
    assert cell(1, cpu=1, events=0).cpu == 0.0


def test_ratios_are_taken_round_by_round(result: Result) -> None:
    assert result.cpu_ratio is not None
    assert result.cpu_ratio.as_list() == [1.4, 1.25, 1.5]
    assert result.latency_ratio == Spread(1.5, 1.0, 2.0)


def test_rounds_that_one_of_the_two_lacks_are_left_out(result: Result) -> None:
    del result.cells[Route.HAPROXY][1:]
    assert result.cpu_ratio == Spread(1.5, 1.5, 1.5)
    del result.cells[Route.HAPROXY]
    assert result.cpu_ratio is None


def test_the_direct_route_has_no_proxy(result: Result) -> None:
    assert result.spread(Route.DIRECT, "cpu_us") is None
    assert result.spread(Route.HAPROXY, "cpu_us") == Spread(30, 20, 40)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0512, "0.051"),
        (1.349, "1.35"),
        (27.44, "27.4"),
        (340.2, "340"),
        (9200.4, "9,200"),
        (107_400, "107k"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert report.number(value) == text


def drawn(*tables: RenderableType) -> str:
    file = io.StringIO()
    Console(file=file, width=110).print(*tables, sep="")
    return file.getvalue()


def test_the_table_shows_routes_medians_and_extent(result: Result) -> None:
    text = drawn(*report.workload_tables(result))
    assert "42.0 (30.0–50.0)" in text
    assert all(route.value in text for route in result.cells)
    assert "16 clients" in text


def test_other_proxies_have_a_table_of_their_own(result: Result) -> None:
    result.cells[Route.ROUTER] = [cell(1, cpu=60), cell(2, cpu=25)]
    first, second = report.workload_tables(result)
    assert "MySQL Router" not in drawn(first)
    text = drawn(second)
    assert "/ MySQL Router" in text
    assert "42.5 (25.0–60.0)" in text
    assert "1.25" in text  # the median of 30 / 60 and 50 / 25


def test_latencies_stand_together_by_clients(result: Result) -> None:
    alone = Result(POINT, 1, {Route.DIRECT: [cell(1, p50=0.125)]})
    lines = drawn(report.latency_table([alone, result])).splitlines()
    assert [line.split() for line in lines[-2:]] == [
        ["point", "1", "0.125", "0.375"],
        ["point", "16", "2.00", "6.00", "1.00", "3.00", "3.00", "9.00"],
    ]


def test_the_tables_do_without_what_is_missing(result: Result) -> None:
    bare = Result(POINT, 1, {}, {Route.DIRECT: "no"})
    del result.cells[Route.HAPROXY]
    assert "1 client" in drawn(*report.workload_tables(bare))
    text = drawn(report.ratio_table([bare, result]))
    assert "≤ 1.15" in text
    assert "1.50 (1.00–2.00)" in text
    assert failed([result, bare])
    assert not failed([result])


def test_the_history_keeps_everything_on_one_line(result: Result, tmp_path: Path) -> None:
    result.failures[Route.HAPROXY] = "it died"
    line = history.entry(
        [result],
        options={"rounds": 3},
        versions={"server": "MariaDB 10.11", "haproxy": None},
        load=0.123,
        now=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )
    file = tmp_path / "history.jsonl"
    history.append(line, file)
    history.append(line, file)
    first, second = file.read_text().splitlines()
    assert first == second
    read = json.loads(first)
    assert read["date"] == "2026-01-02T03:04:05+00:00"
    assert read["versions"]["server"] == "MariaDB 10.11"
    assert "haproxy" not in read["versions"]
    assert {"cores", "cpu", "kernel", "python", "load_before"} == set(read["machine"])
    point = read["workloads"]["point"]
    assert point["routes"]["shardgate"]["cpu_us"] == [42.0, 30.0, 50.0]
    assert "cpu_us" not in point["routes"]["direct"]
    assert point["p50_to_direct"] == [1.5, 1.0, 2.0]
    assert point["failures"] == {"HAProxy": "it died"}


def test_the_last_run_becomes_tables(result: Result, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    versions = {"server": "MariaDB 10.11", "haproxy": "HAProxy version 2.6 - https://haproxy.org"}
    for day, threads in ((1, 8), (2, 1), (2, 16)):
        line = history.entry(
            [Result(POINT, threads, result.cells)],
            options={"rounds": 3, "seconds": 2, "threads": threads, "workers": 1},
            versions=versions,
            load=0.5,
            now=datetime(2026, 1, day, tzinfo=UTC),
        )
        history.append(line, file)
    history.append({"date": "2026-01-03", "streams": {}}, file)
    assert [one["options"]["threads"] for one in tables.last_runs(2, file)] == [8, 1, 16]
    run = tables.last_runs(file=file)
    assert [one["options"]["threads"] for one in run] == [1, 16]
    text = tables.markdown(run)
    assert "`point`: 2026-01-02 00:00 UTC, commit" in text
    assert "MariaDB 10.11, HAProxy version 2.6;" in text
    row = "| 30.0 (20.0–40.0) | 42.0 (30.0–50.0) | 1.40 (1.25–1.50) |"
    assert f"| `point` | 1 {row}" in text
    assert f"| `point` | 16 {row}" in text
    assert "| `point` | 16 | 2.00 (1.00–4.00) | 1.00 | 3.00 (2.00–4.00) |" in text


def test_the_processor_is_named() -> None:
    assert history.cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n") == "Some CPU @ 2 GHz"
    assert history.cpu_model("processor\t: 0\n")
