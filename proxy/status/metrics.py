"""A snapshot as Prometheus metrics. docs/metrics.md explains each; a test compares.

prometheus-client's own counters lock at every increment, so there are none: the data path counts in plain
integers, and `Metrics` is a collector that turns a snapshot into metric families when it is scraped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy.load import BOUNDS as HOST_BOUNDS
from proxy.stats import BUCKETS

from .snapshot import CacheState, Clients, Host, PlanCache, Snapshot, Statements, TopologyState

#: OpenMetrics, the other format, would have no room for both client_connections and client_connections_total.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_HOST_BOUNDS = (*(f"{bound:g}" for bound in HOST_BOUNDS), "+Inf")
_BOUNDS = (*(f"{bound:g}" for bound in BUCKETS), "+Inf")

Samples = Iterable[tuple[tuple[str, ...], float]]


class Metrics(Collector):
    """A registry that shows one snapshot."""

    def __init__(self) -> None:
        self._shown: Snapshot | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def render(self, taken: Snapshot) -> bytes:
        """The metrics in Prometheus' text format, `CONTENT_TYPE`."""
        self._shown = taken
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        """Nothing is said in advance: registering must not take a snapshot."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All families of the snapshot at hand."""
        if self._shown is not None:
            yield from families(self._shown)


def families(taken: Snapshot) -> Iterator[Metric]:
    """The metric families of a snapshot. Before there are services, only the process's own."""
    yield _gauge("build_info", "Always 1; the proxy's version.", ("version",), [((taken["version"],), 1)])
    yield _plain("uptime_seconds", "Seconds since the proxy started.", taken["uptime"])
    yield _plain("ready", "1 when clients are welcome, as /readyz says.", taken["ready"])
    yield _plain(
        "draining", "1 while the proxy takes no new client and lets the others end.", taken["draining"]
    )
    yield from _process(taken)
    if taken["clients"] is not None:
        yield from _clients(taken["clients"])
        yield from _statements(taken["statements"])
        codes = (((code,), count) for code, count in sorted(taken["errors"].items()))
        yield _counter("errors", "Errors that clients got, by MySQL's code.", ("code",), codes)
    if taken["plan_cache"] is not None:
        yield from _plan_cache(taken["plan_cache"])
        yield from _caches(taken["caches"])
        yield from _traces(taken["traces"])
    if taken["topology"] is not None:
        yield from _topology(taken["topology"])
        yield from _hosts(taken["hosts"])


def _gauge(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    family = GaugeMetricFamily(f"shardgate_{name}", text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _counter(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    family = CounterMetricFamily(f"shardgate_{name}", text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _plain(name: str, text: str, value: float) -> Metric:
    return _gauge(name, text, (), [((), value)])


def _process(taken: Snapshot) -> Iterator[Metric]:
    process = taken["process"]
    yield _plain("workers", "Worker processes that answer.", taken["workers"])
    yield _plain("workers_wanted", "Worker processes that the settings ask for.", taken["workers_wanted"])
    yield _counter(
        "workers_replaced",
        "Worker processes that have died and were replaced.",
        (),
        [((), taken["replaced"])],
    )
    yield _counter(
        "cpu_seconds", "CPU time the worker processes have used.", (), [((), process["cpu_seconds"])]
    )
    yield _plain("memory_bytes", "Resident memory of the worker processes.", process["memory_bytes"])
    yield _plain("open_files", "Open file descriptors of the worker processes.", process["open_files"])
    yield _plain("tasks", "Tasks at work in the worker processes.", process["tasks"])
    yield _counter(
        "log_lines_lost", "Lines that nobody read from the log.", (), [((), process["lost_log_lines"])]
    )


def _clients(clients: Clients) -> Iterator[Metric]:
    yield _plain("client_connections", "Clients connected, logged in or not.", clients["connections"])
    yield _plain("client_connections_limit", "Clients that may connect.", clients["limit"])
    yield _plain("client_sessions", "Clients logged in.", clients["sessions"])
    yield _plain("client_sessions_busy", "Sessions with a statement at work.", clients["busy"])
    yield _plain(
        "client_sessions_in_transaction", "Sessions with an open transaction.", clients["in_transaction"]
    )
    yield _counter(
        "client_connections", "Clients that have connected since the start.", (), [((), clients["total"])]
    )
    yield _plain("client_logins", "Clients that have not logged in yet.", clients["logins"])
    yield _plain("client_memory_bytes", "Bytes kept for clients, by limits.client_memory.", clients["memory"])
    yield _counter(
        "client_memory_refused",
        "Packets and statements refused by limits.client_memory.",
        (),
        [((), clients["memory_refused"])],
    )
    yield _plain("statements_waiting", "Statements that wait for another topology.", clients["waiting"])
    yield _plain("statements_waiting_limit", "limits.buffered, of all workers.", clients["waiting_limit"])
    yield _counter(
        "statements_waited",
        "Statements that have waited for another topology, by what became of them.",
        ("outcome",),
        (((outcome,), count) for outcome, count in sorted(clients["waited"].items())),
    )
    waited = [((), clients["waited_seconds"])]
    yield _counter("statements_waited_seconds", "Seconds that they have waited, in all.", (), waited)
    yield _counter(
        "distributed_commits",
        "COMMITs of distributed transactions, by outcome.",
        ("outcome",),
        (((outcome,), count) for outcome, count in sorted(clients["distributed"].items())),
    )
    yield _counter(
        "distributed_resolved",
        "Branches of transactions that others had left, by outcome.",
        ("outcome",),
        (((outcome,), count) for outcome, count in sorted(clients["resolved"].items())),
    )
    yield _gauge(
        "distributed_prepared",
        "Branches that are prepared on the masters, by what is known of their transactions.",
        ("state",),
        (((state,), count) for state, count in sorted(clients["prepared"].items())),
    )
    yield _counter(
        "connections_refused",
        "Connections refused before they became a session, by the error they got.",
        ("error",),
        (((error,), count) for error, count in clients["refused"].items()),
    )


def _statements(statements: list[Statements]) -> Iterator[Metric]:
    yield _counter(
        "statements",
        "Statements answered, by kind of plan and outcome (ok, error of a server, or the proxy's error).",
        ("plan", "outcome"),
        (((one["plan"], outcome), count) for one in statements for outcome, count in one["outcomes"].items()),
    )
    histogram = HistogramMetricFamily(
        "shardgate_statement_seconds",
        "Time from a statement's arrival to the end of its answer, by kind of plan.",
        labels=("plan",),
    )
    for one in statements:
        buckets = list(zip(_BOUNDS, accumulate(one["buckets"]), strict=True))
        histogram.add_metric((one["plan"],), buckets, one["seconds"])
    yield histogram


def _plan_cache(cache: PlanCache) -> Iterator[Metric]:
    yield _plain("plan_cache_entries", "Plans kept by statement shape.", cache["entries"])
    yield _plain("plan_cache_limit", "plan_cache_size.", cache["limit"])
    yield _counter("plan_cache_hits", "Statements whose plan was kept.", (), [((), cache["hits"])])
    yield _counter("plan_cache_misses", "Statements that had to be planned.", (), [((), cache["misses"])])
    yield _plain("second_reader", "Whether statements are read by two readers.", int(cache["second_reader"]))
    differences = [((), cache["differences"])]
    yield _counter("plan_differences", "Statements that the two readers read otherwise.", (), differences)


def _traces(traces: Mapping[str, int]) -> Iterator[Metric]:
    outcomes = (((name,), count) for name, count in traces.items() if name != "waiting")
    yield _counter(
        "trace_spans", "Spans of traced statements, by what became of them.", ("outcome",), outcomes
    )
    yield _plain("trace_spans_waiting", "Spans that wait to be exported.", traces["waiting"])


def _caches(caches: list[CacheState]) -> Iterator[Metric]:
    """Of tables: there are none as a rule."""
    yield _gauge(
        "cache_used",
        "1 while all workers answer reads from a table's cache.",
        ("cache",),
        (((one["cache"],), one["used"]) for one in caches),
    )
    outcomes = (("hit", "hits"), ("miss", "misses"), ("bypassed", "bypassed"))
    yield _counter(
        "cache_reads",
        "Reads that a cache may answer, by what became of them.",
        ("cache", "outcome"),
        (((one["cache"], word), one["counts"][name]) for one in caches for word, name in outcomes),
    )
    for name, text in (
        ("puts", "Answers put into a cache."),
        ("invalidations", "Writes that have invalidated something in a cache."),
        ("errors", "Times that a cache has not answered in time."),
    ):
        counts = (((one["cache"],), one["counts"][name]) for one in caches)
        yield _counter(f"cache_{name}", text, ("cache",), counts)


def _topology(topology: TopologyState) -> Iterator[Metric]:
    yield _plain("topology_version", "Version of the topology in use.", topology["version"])
    yield _counter(
        "topology_changes", "Topologies taken into use since the start.", (), [((), topology["changes"])]
    )
    yield _counter(
        "topology_refused", "Topologies refused; the old one stayed.", (), [((), topology["refused"])]
    )
    yield _counter(
        "schema_changes", "Schemas taken into use since the start.", (), [((), topology["schema_changes"])]
    )
    yield _counter(
        "schema_refused", "Schemas refused; the old one stayed.", (), [((), topology["schema_refused"])]
    )
    yield _counter(
        "settings_refused",
        "Settings files refused on SIGHUP; the users from before stayed.",
        (),
        [((), topology["settings_refused"])],
    )
    yield _counter(
        "shard_problems",
        "Tables, columns or databases that single shards were found to lack, by MySQL's error code.",
        ("code",),
        (((code,), count) for code, count in topology["problem_counts"].items()),
    )
    shards: Iterator[tuple[tuple[str, ...], float]] = (
        ((keyspace["name"], host, state), count)
        for keyspace in topology["keyspaces"]
        for host, states in keyspace["held"].items()
        for state, count in states.items()
    )
    yield _gauge("shards", "Shards on a host, by their state.", ("keyspace", "host", "state"), shards)


def _hosts(hosts: list[Host]) -> Iterator[Metric]:
    yield _gauge(
        "pool_connections",
        "Connections to a host: busy, idle, being opened, or for gathering.",
        ("host", "state"),
        (
            ((one["host"], state), count)
            for one in hosts
            for state, count in (
                ("busy", one["busy"]),
                ("idle", one["idle"]),
                ("opening", one["opening"]),
                ("gathering", one["gathering"]),
            )
        ),
    )
    yield _of_hosts("pool_waiting", "Statements waiting for a connection.", hosts, "waiting")
    yield _of_hosts("pool_limit", "The most connections to a host.", hosts, "limit")
    yield _counter(
        "pool_opened",
        "Connections opened to a host since the start.",
        ("host",),
        (((one["host"],), one["opened"]) for one in hosts),
    )
    yield _of_hosts(
        "host_up",
        "1 when the last attempt to connect succeeded, or it has answered all the same.",
        hosts,
        "up",
    )
    yield _of_hosts("host_failures", "Attempts to connect that failed in a row.", hosts, "failures")
    histogram = HistogramMetricFamily(
        "shardgate_host_seconds",
        "Time of statements on a host, from their bytes that went out to the last that came back.",
        labels=("host",),
    )
    for one in hosts:
        buckets = list(zip(_HOST_BOUNDS, accumulate(one["buckets"]), strict=True))
        histogram.add_metric((one["host"],), buckets, one["seconds"])
    yield histogram
    for name, text, key in (
        ("host_errors", "Statements on a host that failed, or that were given up.", "errors"),
        ("host_rows", "Rows that statements on a host gave or changed.", "rows"),
        ("host_waits", "Statements that had to wait for a connection to a host.", "waits"),
        ("host_wait_seconds", "Seconds that they have waited, in all.", "waited"),
    ):
        yield _counter(name, text, ("host",), (((one["host"],), one[key]) for one in hosts))  # type: ignore[literal-required]


def _of_hosts(name: str, text: str, hosts: list[Host], key: str) -> Metric:
    return _gauge(name, text, ("host",), (((one["host"],), one[key]) for one in hosts))  # type: ignore[literal-required]
