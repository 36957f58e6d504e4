"""The metrics page: what Prometheus reads, and that docs/metrics.md explains each metric."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from proxy.caching.server import COUNTS
from proxy.status.metrics import Metrics, families
from proxy.status.snapshot import Snapshot, take
from rewriter import plans

from .conftest import FIRST, SECOND, THIRD, make_services

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


def taken(services: Any, *, ready: bool = True) -> Snapshot:
    return take(services, ready=ready, started=1000.0, now=1060.5)


def scraped(snapshot: Snapshot) -> list[Metric]:
    """The families, as Prometheus would read them."""
    return list(text_string_to_metric_families(Metrics().render(snapshot).decode()))


def value(found: list[Metric], sample: str, **labels: str) -> float:
    """The one sample of that name and those labels."""
    (match,) = [
        one.value for family in found for one in family.samples if one.name == sample and one.labels == labels
    ]
    return match


def test_metrics_of_a_running_proxy(services: Any) -> None:
    found = scraped(taken(services))
    expected = [
        ("shardgate_uptime_seconds", {}, 60.5),
        ("shardgate_ready", {}, 1),
        ("shardgate_draining", {}, 0),
        ("shardgate_workers", {}, 1),
        ("shardgate_client_connections", {}, 49),
        ("shardgate_client_connections_total", {}, 1203),
        ("shardgate_client_sessions", {}, 48),
        ("shardgate_client_sessions_busy", {}, 16),
        ("shardgate_client_sessions_in_transaction", {}, 6),
        ("shardgate_statements_waiting", {}, 0),
        ("shardgate_statements_waiting_limit", {}, 10_000),
        ("shardgate_statements_waited_total", {"outcome": "ran"}, 5),
        ("shardgate_statements_waited_total", {"outcome": "timeout"}, 1),
        ("shardgate_statements_waited_seconds_total", {}, 7.5),
        ("shardgate_distributed_commits_total", {"outcome": "committed"}, 3),
        ("shardgate_distributed_resolved_total", {"outcome": "committed"}, 1),
        ("shardgate_distributed_prepared", {"state": "prepared"}, 1),
        ("shardgate_connections_refused_total", {"error": "access_denied"}, 1),
        ("shardgate_statements_total", {"plan": "single", "outcome": "ok"}, 95),
        ("shardgate_statements_total", {"plan": "single", "outcome": "error"}, 4),
        ("shardgate_statements_total", {"plan": "single", "outcome": "host_unreachable"}, 1),
        ("shardgate_plan_cache_entries", {}, 2),
        ("shardgate_plan_cache_hits_total", {}, 98_765),
        ("shardgate_plan_cache_misses_total", {}, 123),
        ("shardgate_plan_differences_total", {}, 2),
        ("shardgate_second_reader", {}, 1),
        ("shardgate_topology_version", {}, 7),
        ("shardgate_topology_changes_total", {}, 2),
        ("shardgate_topology_refused_total", {}, 1),
        ("shardgate_schema_changes_total", {}, 4),
        ("shardgate_schema_refused_total", {}, 0),
        ("shardgate_shard_problems_total", {"code": "1146"}, 1),
        ("shardgate_shards", {"keyspace": "main", "host": SECOND, "state": "frozen"}, 512),
        ("shardgate_shards", {"keyspace": "main", "host": FIRST, "state": "serving"}, 1024),
        ("shardgate_shards", {"keyspace": "lookup", "host": SECOND, "state": "serving"}, 2048),
        ("shardgate_errors_total", {"code": "1690"}, 1),
        ("shardgate_host_seconds_count", {"host": FIRST}, 3),
        ("shardgate_host_seconds_sum", {"host": FIRST}, 0.503),
        ("shardgate_host_seconds_bucket", {"host": FIRST, "le": "0.001024"}, 1),
        ("shardgate_host_seconds_bucket", {"host": FIRST, "le": "+Inf"}, 3),
        ("shardgate_host_errors_total", {"host": FIRST}, 1),
        ("shardgate_host_rows_total", {"host": FIRST}, 30),
        ("shardgate_host_waits_total", {"host": FIRST}, 2),
        ("shardgate_host_wait_seconds_total", {"host": FIRST}, 0.25),
        ("shardgate_host_seconds_count", {"host": SECOND}, 0),
        ("shardgate_pool_connections", {"host": FIRST, "state": "busy"}, 12),
        ("shardgate_pool_connections", {"host": FIRST, "state": "idle"}, 30),
        ("shardgate_pool_connections", {"host": FIRST, "state": "opening"}, 2),
        ("shardgate_pool_waiting", {"host": FIRST}, 4),
        ("shardgate_pool_limit", {"host": FIRST}, 100),
        ("shardgate_pool_opened_total", {"host": FIRST}, 42),
        ("shardgate_host_up", {"host": FIRST}, 1),
        ("shardgate_host_up", {"host": THIRD}, 0),
        ("shardgate_host_failures", {"host": THIRD}, 17),
    ]
    assert [(name, labels, value(found, name, **labels)) for name, labels, _ in expected] == expected


def test_the_histogram_is_cumulative_and_complete(services: Any) -> None:
    found = scraped(taken(services))
    name = "shardgate_statement_seconds"
    assert value(found, f"{name}_bucket", plan="single", le="0.0005") == 0
    assert value(found, f"{name}_bucket", plan="single", le="0.001") == 95
    assert value(found, f"{name}_bucket", plan="single", le="10") == 99
    assert value(found, f"{name}_bucket", plan="single", le="+Inf") == 100
    assert value(found, f"{name}_count", plan="single") == 100
    assert value(found, f"{name}_sum", plan="single") == pytest.approx(95 * 0.0008 + 4 * 0.003 + 30)


def test_before_there_are_services() -> None:
    found = scraped(taken(None, ready=False))
    assert value(found, "shardgate_ready") == 0
    assert value(found, "shardgate_memory_bytes") > 1e6
    assert value(found, "shardgate_cpu_seconds_total") > 0
    assert not any(one.name.startswith(("shardgate_pool", "shardgate_topology")) for one in found)


def test_right_after_the_start() -> None:
    found = scraped(taken(make_services()))
    assert value(found, "shardgate_pool_connections", host=FIRST, state="busy") == 0
    assert [one.samples for one in found if one.name == "shardgate_statement_seconds"] == [[]]


def test_odd_label_values_survive(services: Any) -> None:
    services.stats.refused('a"b\\c\nd')
    found = scraped(taken(services))
    assert value(found, "shardgate_connections_refused_total", error='a"b\\c\nd') == 1


def documented() -> dict[str, tuple[str, set[str]]]:
    """Metrics in the tables of the document: type and labels by name."""
    rows = re.findall(r"^\| `(shardgate_\w+)` \| (\w+) \|([^|]*)\|", DOCUMENT.read_text(), re.M)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def exported(snapshot: Snapshot) -> dict[str, tuple[str, set[str]]]:
    """What the proxy really gives: type and labels by name as in a query (counters end in _total)."""
    found: dict[str, tuple[str, set[str]]] = {}
    for family in families(snapshot):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = (family.type, labels)
    return found


def test_every_metric_is_documented(services: Any) -> None:
    snapshot = taken(services)
    snapshot["caches"] = [
        {"cache": "redis a:1", "used": True, "error": "", "counts": dict.fromkeys(COUNTS, 1)}
    ]
    assert exported(snapshot) == documented()


def test_the_document_speaks_of_no_other_metric(services: Any) -> None:
    named = set(re.findall(r"shardgate_\w+", DOCUMENT.read_text()))
    ends = [f"{of}_seconds_{end}" for of in ("statement", "host") for end in ("bucket", "sum", "count")]
    histograms = {f"shardgate_{end}" for end in ends}
    assert named <= set(exported(taken(services))) | histograms


def test_every_kind_of_plan_is_documented() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \| [A-Z]", DOCUMENT.read_text(), re.M))
    kinds = {one.kind for one in vars(plans).values() if isinstance(one, type) and hasattr(one, "kind")}
    assert {kind for kind in kinds if isinstance(kind, str)} | {"command", "prepare", "unplanned"} == rows
