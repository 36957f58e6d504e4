"""What the charts and the map show: samples of several workers, cells, hot shards."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import load_topology
from proxy.engine.seen import NOTHING, Seen, queries_seen, queries_together, shards_seen, usual
from proxy.load import bucket_of
from proxy.status.live import CELLS, KEPT, STEP, History, Live, cells_of, hot_of, merged, own_part, point
from rewriter.env import Env

from .conftest import DOCUMENT, FIRST, make_services


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def seen(per_second: float, mean: float, errors: int = 0, oldest: float = 0.0) -> Seen:
    statements = int(per_second * 10)
    return NOTHING._replace(
        per_second=per_second, statements=statements, errors=errors, seconds=mean * statements, oldest=oldest
    )


def run(services: Any, *seconds: float, outcome: str = "ok") -> None:
    load = services.backends.pool(FIRST).load
    load = services.backends.loads.host(FIRST)
    services.backends.pool(FIRST).load = load
    for one in seconds:
        services.stats.observe("select", outcome, one)
        load.add(one, 1, bucket_of(one))


@pytest.fixture
def services() -> Any:
    return make_services()


def test_a_sample_has_what_came_since_the_last(services: Any) -> None:
    clock = Clock()
    history = History(clock)
    run(services, 0.001)
    history.tick(services)
    assert history.after(0) == []  # nobody knows since when
    run(services, 0.002, 0.002)
    run(services, 0.2, outcome="error")
    history.tick(services)
    clock.now += STEP
    history.tick(services)
    history.tick(services)
    (sample,) = history.after(0)
    shown = point(sample)
    assert (shown["statements"], shown["errors"], shown["at"]) == (1.5, 0.5, clock.now)
    assert 0.001 <= shown["p50"] <= 0.0025 < 0.1 <= shown["p99"] <= 0.25
    assert shown["hosts"][FIRST]["statements"] == 1.5
    assert shown["hosts"][FIRST]["mean"] == pytest.approx(0.204 / 3)
    clock.now += STEP
    history.tick(services)
    assert point(history.after(sample[0])[0])["statements"] == 0
    assert history.after(history.after(0)[-1][0]) == []


def test_ten_minutes_are_kept(services: Any) -> None:
    clock = Clock()
    history = History(clock)
    for _ in range(KEPT + 20):
        history.tick(services)
        clock.now += STEP
    assert len(history.after(0)) == KEPT


async def test_samples_of_several_workers_are_added() -> None:
    clock, parts = Clock(), []
    for count in (1, 3):
        services, history = make_services(), History(clock)
        clock.now = 1000.0
        history.tick(services)
        run(services, *[0.01] * count)
        clock.now += STEP
        history.tick(services)
        parts.append(await own_part(services, history, 0))
    (sample,) = merged([*parts[0][0], *parts[1][0]])
    assert point(sample)["statements"] == 2
    assert point(sample)["hosts"][FIRST]["statements"] == 2


async def test_news_are_made_once_for_all_who_look(services: Any) -> None:
    clock, asked = Clock(), []

    class Others:
        async def ask_others(self, what: str, **details: Any) -> list[Any]:
            asked.append(details["after"])
            return []

    history = History(clock)
    live = Live(lambda: services, history, Others(), clock)  # type: ignore[arg-type]
    for _ in range(6):
        history.tick(services)
        await live.state(0)
        await live.state(0)
        clock.now += STEP
    assert len(asked) == 6
    state = await live.state(0)
    assert [one["at"] for one in state["points"]] == [1002, 1004, 1006, 1008, 1010]
    assert [one["at"] for one in (await live.state(1008))["points"]] == [1010]


async def test_shards_are_seen(services: Any) -> None:
    topology = services.serving.topology
    loads = services.backends.loads
    loads.shard(b"db00003", topology).add(0.5, 1, bucket_of(0.5))
    found = await shards_seen(services)
    assert list(found) == ["db00003"]
    assert found["db00003"].statements == 1
    for _ in range(3):
        loads.shards[b"db00003"].mark(found["db00003"].oldest + 1e9)
    assert await shards_seen(services) == {}
    assert (await shards_seen(services, all=True))["db00003"].total == 1


def test_hot_shards_begin_with_the_worst() -> None:
    topology = load_topology(DOCUMENT)
    found = {
        "db00001": seen(100, 0.001),
        "db00002": seen(1, 0.1),
        "db00003": seen(10, 0.001, errors=50),
        "db00004": seen(500, 0.001),
        "db00005": seen(0, 0.0, oldest=5.0),
        "elsewhere": seen(1, 1.0),
    }
    usually = {"main": usual(found.values()), "lookup": 0.0, "global": 0.0}
    hot = hot_of(topology, found, usually)
    assert [(one["shard"], one["state"]) for one in hot] == [
        (3, "failing"), (2, "slow"), (5, "slow"), (4, ""), (1, ""),
    ]  # fmt: skip
    assert hot[0]["host"] == FIRST


def test_a_few_errors_or_a_busy_shard_are_nothing_to_worry_about() -> None:
    assert seen(100, 0.001, errors=10).state(0.001) == ""
    assert seen(100, 0.0015).state(0.0001) == ""
    assert seen(100, 0.003).state(0.0001) == "slow"
    assert seen(0, 0.0, errors=1).state(0.0) == "failing"


def test_a_cell_of_several_shards_is_as_bad_as_the_worst() -> None:
    ranges = [{"range": [0, 16383], "master": FIRST}]
    main = {"layout": "pinterest", "database": "db{shard:05d}", "ranges": ranges}
    document = {"version": 1, "keyspaces": {"main": main}}
    keyspace = load_topology(document).keyspaces["main"]
    cells = cells_of(keyspace, {5: seen(10, 0.001, errors=90), 6: seen(30, 0.001)}, 0.001)
    assert (cells["count"], cells["size"]) == (16384, 16384 // CELLS)
    (cell,) = cells["cells"]
    assert cell[:4] == [1, 2, pytest.approx(0.04), 40]


def test_what_was_counted_of_statements_survives_other_plans(services: Any) -> None:
    """Of those that took most time; and together with what new plans count."""
    stats, serving = services.stats, services.serving
    env = Env()

    def ran(seconds: float) -> None:
        plan, _ = serving.snapshot.rewriter.plan(b"SELECT 1", env)
        stats.observe(plan.kind, "ok", seconds, plan)

    ran(0.5)
    ran(0.25)
    serving.set_topology(load_topology(DOCUMENT | {"version": 8}))
    ran(1.0)
    (query,) = queries_together([queries_seen(services)])
    assert (query.digest, query.use.count, query.use.seconds, query.use.longest) == ("SELECT ?", 3, 1.75, 1.0)
    both = queries_together([queries_seen(services), queries_seen(services)])
    assert (len(both), both[0].use.count, both[0].within(1.0)) == (1, 6, 1.0)
