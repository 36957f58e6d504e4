"""The tables that are printed: one a workload, and one of the ratios at the end.

Every number is the median over the rounds, with the least and the greatest in brackets. They fit into 80
columns, or nearly.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from bench.results import Result, Spread
from bench.workloads import OTHERS, Route

ROWS = {
    "proxy CPU µs": "cpu_us",
    "in user mode": "user_share",
    "hosts CPU µs": "servers_cpu_us",
    "statements/s": "per_second",
    "p50 ms": "p50_ms",
    "p95 ms": "p95_ms",
    "p99 ms": "p99_ms",
    "RSS MB": "rss_mb",
}
UNCOMPARED = ("user_share",)


def number(value: float) -> str:
    """Three significant digits, without an exponent: 0.051, 1.35, 27.4, 9,200, 107k."""
    if value >= 10_000:
        return number(value / 1000) + "k"
    if value >= 1000:
        return f"{value:,.0f}"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


def shown(spread: Spread | None, *, extent: bool = True) -> str:
    """A cell's text; empty when there is nothing."""
    if spread is None:
        return ""
    text, low, high = number(spread.median), number(spread.low), number(spread.high)
    return text if low == high or not extent else f"{text} [dim]({low}–{high})[/]"


def _table() -> Table:
    return Table(box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0))


def _titled(title: str, table: Table) -> Group:
    return Group("", Text(title, style="bold"), table)  # a table's own title would wrap at its width


def workload_tables(result: Result) -> list[Group]:
    """All measures of one workload: a column a route, then shardgate compared; the other proxies apart."""
    first = [route for route in result.cells if route not in OTHERS]
    tables = [_workload_table(result, first, [Route.HAPROXY, Route.DIRECT])]
    others = [route for route in result.cells if route in OTHERS]
    return [*tables, _workload_table(result, others, others)] if others else tables


def _workload_table(result: Result, routes: Sequence[Route], compared: Sequence[Route]) -> Group:
    clients = "client" if result.threads == 1 else "clients"
    table = _table()
    table.add_column("a statement")
    for route in routes:
        table.add_column(route.value, justify="right", no_wrap=True)
    bases = [one for one in compared if one in result.cells and Route.SHARDGATE in result.cells]
    for base in bases:
        table.add_column(f"/ {base.value}", justify="right", no_wrap=True)
    for title, measure in ROWS.items():
        cells = [shown(result.spread(route, measure)) for route in routes]
        if measure not in UNCOMPARED:
            cells += [shown(result.ratio(measure, base), extent=False) for base in bases]
        table.add_row(title, *cells)
    return _titled(f"{result.workload.name}: {result.workload.title}, {result.threads} {clients}", table)


def latency_table(results: Sequence[Result]) -> Group:
    """Latencies in milliseconds, median and 99th percentile: a row for a workload and a number of clients."""
    table = _table()
    table.add_column("p50, p99 ms")
    table.add_column("clients", justify="right")
    routes = [route for route in Route if any(route in one.cells for one in results)]
    for route in routes:
        table.add_column(route.value, justify="right", no_wrap=True)
    for result in results:
        cells = []
        for route in routes:
            found = (result.spread(route, measure) for measure in ("p50_ms", "p99_ms"))
            cells.append("  ".join(number(one.median) for one in found if one))
        table.add_row(result.workload.name, str(result.threads), *cells)
    return _titled("latency", table)


def ratio_table(results: Sequence[Result]) -> Group:
    """shardgate beside the others: a row a workload."""
    table = _table()
    table.add_column("")
    for name in ("CPU / HAProxy", "aim", "p50 / direct", "aim", "p99 / direct"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        workload = result.workload
        table.add_row(
            workload.name,
            shown(result.cpu_ratio),
            _aim(result.cpu_ratio, workload.cpu_aim),
            shown(result.latency_ratio),
            _aim(result.latency_ratio, workload.latency_aim),
            shown(result.ratio("p99_ms", Route.DIRECT)),
        )
    return _titled("shardgate compared", table)


def _aim(spread: Spread | None, aim: float | None) -> str:
    if aim is None:
        return ""
    if spread is None:
        return f"≤ {aim}"
    return f"[green]≤ {aim}[/]" if spread.median <= aim else f"[red]≤ {aim}[/]"
