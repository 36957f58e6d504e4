"""Reading the state of a process, and of several as one."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proxy.backends.refusals import AccountRefused
from proxy.engine.handed_on import statements as statements_kept
from proxy.engine.seen import NOTHING, hosts_seen, queries_seen
from proxy.errors import ProxyError, told_to_operators
from proxy.kept import Kept, Past
from proxy.peers import Peers
from proxy.stats import BUCKETS
from proxy.status import page
from proxy.status.combine import everyone, silent_ones
from proxy.status.figures import mean, quantile, total
from proxy.status.keeping import Keeper
from proxy.status.snapshot import Snapshot, Statements, take, why_not_ready
from rewriter.plan import Plan
from rewriter.planner import Rewriter
from rewriter.plans.builtins import Empty

from .conftest import FIRST, SECOND, THIRD, add_client, make_services


def snapshot_of(services: Any, pid: int = 1) -> Snapshot:
    taken = take(services, ready=True, started=10.0, now=20.0, source="file topology.json")
    taken["process"]["pid"] = pid
    return taken


def statements(**seconds: float) -> Statements:
    """So many statements in the buckets of those times, one each."""
    stats = make_services().stats
    for one in seconds.values():
        stats.observe("select", "ok", one)
    kind = stats.kinds["select"]
    return {"plan": "select", "outcomes": {}, "buckets": kind.counts, "seconds": kind.seconds}


def test_a_snapshot_is_plain_data(services: Any) -> None:
    taken = snapshot_of(services)
    assert json.loads(json.dumps(taken)) == taken


def test_hosts_come_in_the_topologys_order_then_those_that_leave(services: Any) -> None:
    leaving = services.backends.pool("db9.example:3306")
    leaving.state.busy[1] = ""
    hosts = snapshot_of(services)["hosts"]
    assert [one["host"] for one in hosts] == [FIRST, SECOND, THIRD, "db9.example:3306"]
    assert [one["in_topology"] for one in hosts] == [True, True, True, False]
    assert hosts[0]["shards"] == {"main": 2048, "lookup": 2048}
    assert [one["up"] for one in hosts] == [True, True, False, False]


def test_the_error_of_a_host_that_is_back_is_not_shown(services: Any) -> None:
    pool = services.backends.pool(THIRD)
    pool.failures, pool.opened_total = 0, 1
    third = snapshot_of(services)["hosts"][2]
    assert (third["error"], third["up"]) == ("", True)


def test_the_newest_change_comes_first(services: Any) -> None:
    topology = snapshot_of(services)["topology"]
    assert topology is not None
    assert [one["text"][:9] for one in topology["recent"]] == ["refused: ", "version 7", "version 6"]


def test_keyspaces(services: Any) -> None:
    topology = snapshot_of(services)["topology"]
    assert topology is not None
    main, lookup, unsharded = topology["keyspaces"]
    assert [one["rule"] for one in topology["keyspaces"]] == ["layout pinterest", "md5 % 4096", "unsharded"]
    assert (main["shards"], lookup["shards"], unsharded["shards"]) == (4096, 4096, 0)
    assert [one["state"] for one in main["segments"]] == [
        "serving", "serving", "serving", "frozen", "read_only", "offline",
    ]  # fmt: skip
    assert unsharded["segments"] == [
        {"first": None, "last": None, "host": FIRST, "slave": None, "state": "serving", "open": True}
    ]


@pytest.mark.parametrize(
    ("draining", "ready", "word"),
    [(False, True, ""), (False, False, "not listening"), (True, False, "draining")],
)
def test_why_not_ready(services: Any, draining: bool, ready: bool, word: str) -> None:
    services.clients.draining = draining
    assert word in why_not_ready(services, ready)
    assert bool(why_not_ready(services, ready)) is not ready


def test_what_operators_are_told_ends_without_a_point() -> None:
    away = ProxyError("host_unreachable", host=FIRST, reason="Connection refused")
    assert told_to_operators(away) == f"Can't connect to MySQL server {FIRST}: Connection refused"
    refused = AccountRefused(FIRST, "shardgate", "Access denied", own=True)
    assert told_to_operators(refused).endswith("shows the operator what is missing")


def test_why_not_ready_at_the_start() -> None:
    assert why_not_ready(None, False, loaded=False) == "starting: there is no topology yet"
    assert why_not_ready(None, False, loaded=True) == (
        "starting: no server of the topology has let the proxy in yet; the log says why"
    )


def test_times_of_no_statement() -> None:
    none: Statements = {"plan": "select", "outcomes": {}, "buckets": [0] * (len(BUCKETS) + 1), "seconds": 0.0}
    assert (total(none), mean(none), quantile(none, 0.95)) == (0, 0.0, 0.0)


def test_times() -> None:
    some = statements(a=0.0004, b=0.0004, c=0.0009, d=0.2)
    assert total(some) == 4
    assert mean(some) == pytest.approx(0.050425)
    assert quantile(some, 0.5) == pytest.approx(0.0005)  # both in the bucket from 0.25 to 0.5 ms
    assert quantile(some, 0.25) == pytest.approx(0.000375)
    assert 0.1 < quantile(some, 0.95) <= 0.25


def test_times_above_the_last_bound_count_as_it() -> None:
    assert quantile(statements(a=1000.0), 0.5) == BUCKETS[-1]


# -- several workers
# ------------------------------------------------------------------------------------------------------------


def test_workers_are_summed(services: Any) -> None:
    other = make_services()
    add_client(other, ready=False)
    other.stats.started_connections = 7
    other.stats.refused("access_denied")
    other.stats.observe("single", "ok", 0.0008)
    other.stats.observe("insert", "ok", 0.02)
    other.backends.pool(FIRST).state.busy.update(dict.fromkeys(range(5), ""))
    together = everyone(snapshot_of(services, 1), [snapshot_of(other, 2)], [])
    assert together["workers"] == 2
    clients = together["clients"]
    assert clients is not None
    assert (clients["connections"], clients["busy"], clients["total"]) == (50, 17, 1210)
    assert clients["limit"] == 20_000
    assert clients["refused"] == {"access_denied": 2}
    by_plan = {one["plan"]: one["outcomes"] for one in together["statements"]}
    assert by_plan == {
        "insert": {"ok": 1},
        "scatter": {"ok": 20},
        "single": {"ok": 96, "error": 4, "host_unreachable": 1},
    }
    first = together["hosts"][0]
    assert (first["busy"], first["limit"], first["waiting"]) == (17, 200, 4)
    assert together["plan_cache"] == {
        "entries": 4,
        "limit": 20_000,
        "hits": 197_530,
        "misses": 246,
        "differences": 4,
        "second_reader": True,
    }


class Keeping(Rewriter):
    """Its cache has these plans, with their digests."""

    def __init__(self, like: Rewriter, plans: dict[Plan, str]) -> None:
        super().__init__(like.schema, like.topology)
        self.plans = plans

    def kept(self, only: Container[Plan] | None = None) -> Iterator[tuple[Plan, str, str]]:
        return ((one, digest, "demo") for one, digest in self.plans.items() if only is None or one in only)


def slow(services: Any, *uses: tuple[str, float, int]) -> None:
    """Statements whose plans are kept: digest, seconds each time, times."""
    plans: dict[Plan, str] = {}
    for digest, seconds, times in uses:
        plan = Empty()
        plans[plan] = digest
        for _ in range(times):
            services.stats.observe("builtin", "ok", seconds, plan)
    snapshot = services.serving.snapshot
    services.serving.snapshot = replace(snapshot, rewriter=Keeping(snapshot.rewriter, plans))


def test_the_slowest_statements_of_all_workers(services: Any) -> None:
    slow(services, ("SELECT ?", 0.5, 2), *((f"fast {number}", 0.001, 1) for number in range(30)))
    other = make_services()
    slow(other, ("SELECT ?", 2.0, 2), ("SELECT <b>, ?", 9.0, 1), ("x" * 999, 1.0, 1))
    together = everyone(snapshot_of(services, 1), [snapshot_of(other, 2)], [])
    first, second, third, *rest = together["slowest"]
    assert (first["digest"], first["count"]) == ("SELECT <b>, ?", 1)
    assert (first["rows"], first["shards"], first["hosts"]) == (0, 0, {})
    assert (second["digest"], second["count"], second["seconds"], second["longest"]) == (
        "SELECT ?",
        4,
        5.0,
        2.0,
    )
    assert len(third["digest"]) < 310
    assert len(rest) == 30
    assert "SELECT &lt;b&gt;, ?" in page.render(together)


def test_one_worker_alone_is_itself(services: Any) -> None:
    own = snapshot_of(services)
    assert everyone(own, [], []) == own


def test_a_host_as_several_workers_see_it(services: Any) -> None:
    """One that has never needed it knows nothing; what each has found is told."""

    def seen(*workers: tuple[int, int, str]) -> tuple[bool, int, str]:
        taken = []
        for pid, (opened, failures, error) in enumerate(workers, 1):
            other = make_services(topology=services.serving.topology)
            pool = other.backends.pool(FIRST)
            pool.opened_total, pool.failures, pool.last_error = opened, failures, error
            taken.append(snapshot_of(other, pid))
        first = everyone(taken[0], taken[1:], [])["hosts"][0]
        return first["up"], first["failures"], first["error"]

    assert seen((0, 0, ""), (3, 0, "")) == seen((3, 0, ""), (0, 0, "")) == (True, 0, "")
    assert seen((0, 0, ""), (0, 0, "")) == (False, 0, "")
    assert seen((1, 0, ""), (0, 2, "no route")) == (False, 2, "no route")
    assert seen((1, 4, "full"), (1, 2, "no route"), (1, 1, "full")) == (False, 4, "full; no route")


def keeper(kept: Kept, number: int = 1) -> Keeper:
    return Keeper(Peers(Path("/nowhere"), number, 2, kept), Past(10.0))


def test_counters_survive_a_worker_and_gauges_do_not(services: Any) -> None:
    kept = Kept(2)
    for pid in range(2, 60):  # one after the other, each with one statement
        other = make_services(topology=services.serving.topology)
        add_client(other)
        other.stats.started_connections = 1
        other.stats.observe("insert", "ok", 0.02)
        other.backends.pool(FIRST).opened_total = 1
        other.backends.pool("gone.example:3306").opened_total = 1
        keeper(kept).whole(snapshot_of(other, pid), other)
    together = everyone(snapshot_of(services), [], silent_ones([kept.get(1)]))
    assert together["workers"] == 1
    clients = together["clients"]
    assert clients is not None
    assert (clients["connections"], clients["total"], clients["limit"]) == (49, 1203 + 58, 10_000)
    inserts = next(one for one in together["statements"] if one["plan"] == "insert")
    assert (inserts["outcomes"], sum(inserts["buckets"])) == ({"ok": 58}, 58)
    assert [one["host"] for one in together["hosts"]] == [FIRST, SECOND, THIRD]
    first = together["hosts"][0]
    assert (first["opened"], first["busy"], first["limit"], first["up"]) == (42 + 58, 12, 100, True)
    cache = together["plan_cache"]
    assert cache is not None
    assert (cache["entries"], cache["hits"]) == (2, 98_765 * 59)


def test_a_worker_that_is_silent_for_once_is_not_counted_twice(services: Any) -> None:
    kept = Kept(2)
    own, other = snapshot_of(services, 1), keeper(kept).whole(snapshot_of(services, 2), services)
    silent = silent_ones([kept.get(1)])
    seen = [everyone(own, [other], [])["clients"], everyone(own, [], silent)["clients"]]
    assert [one["total"] for one in seen if one is not None] == [2406] * 2
    assert [one["connections"] for one in seen if one is not None] == [98, 49]


def test_a_successor_counts_on(services: Any) -> None:
    """Statements by their digests, hosts, and what became of documents; also a successor's successor."""
    kept, like = Kept(2), services.serving.topology
    for times in (1, 2, 3):
        other = make_services(topology=like)
        mine = keeper(kept)
        mine.begin(other)
        assert other.stats.topology_changes == times - 1
        assert other.earlier_hosts.get(FIRST, NOTHING)[NOTHING._fields.index("total")] == times - 1
        slow(other, ("SELECT ?", 0.5, 1))
        other.stats.topology_changes += 1
        other.stats.remember("a change")
        other.serving.problems.note(1146, "shard 3", "is not there")
        other.backends.loads.host(FIRST).add(0.1, 1, 3)
        other.keep()
        (query,) = queries_seen(other)
        assert query[1][0] == times
        assert hosts_seen(other)[FIRST].total == times
        assert other.serving.problems.counts == {1146: times}
        assert len(other.stats.recent_changes) == times
    (silent,) = silent_ones([kept.get(1)])
    assert [(one["digest"], one["count"]) for one in silent["slowest"]] == [("SELECT ?", 3)]


def test_what_nobody_asks_for_is_kept_now_and_then(services: Any) -> None:
    now = [100.0]
    kept = Kept(2)
    mine = Keeper(Peers(Path("/nowhere"), 1, 2, kept), Past(10.0), lambda: now[0])
    mine.begin(services)
    found = []
    for _ in range(3):
        mine.tick(services)
        found.append(kept.get(1)[0]["clients"]["total"])
        services.stats.started_connections += 1
        now[0] += 1.5
    assert found == [1203, 1203, 1205]


def test_long_digests_are_not_handed_on_without_end(services: Any) -> None:
    slow(services, *(("x" * 300_000 + str(number), 1.0, 1) for number in range(9)))
    assert len(statements_kept(services)) == 3
