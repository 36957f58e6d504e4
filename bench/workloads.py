"""What is measured, and on how many rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

FOLDER = Path(__file__).parent

SHARDS = 64
"""Shards of the cluster. The Lua scripts count on IDs below 2^53, so there cannot be more."""


class Route(StrEnum):
    """How a statement travels."""

    DIRECT = "direct"
    HAPROXY = "HAProxy"
    ROUTER = "MySQL Router"
    PROXYSQL = "ProxySQL"
    KINGSHARD = "kingshard"
    SHARDGATE = "shardgate"


OTHERS = (Route.ROUTER, Route.PROXYSQL, Route.KINGSHARD)
"""Proxies that not everybody has; they are measured by some workloads only."""


@dataclass(frozen=True)
class Sizes:
    """Rows of the tables that are read; `pins`, `boards` a shard, each board with `board_pins` pins."""

    pins: int = 200
    boards: int = 20
    board_pins: int = 60
    items: int = 10_000
    scatter: int = 100_000
    sbtest_tables: int = 2
    sbtest_rows: int = 20_000
    """Tables of sysbench's own transactions, and rows of each."""
    text: int = 1000
    """Bytes of text in a pin, an item and an inserted comment: with the rest of the row, 1.1 KB."""


@dataclass(frozen=True)
class Workload:
    """One kind of statement, run by `script` of this folder."""

    name: str
    title: str
    max_threads: int | None = None
    """The most clients at once; None: as many as asked for."""
    writes: str | None = None
    """The sharded table that grows; it is emptied after each run."""
    cpu_aim: float | None = None
    """The proxy's CPU time may be so many times HAProxy's."""
    latency_aim: float | None = None
    """The median latency may be so many times the direct one."""
    usual: bool = True
    """Measured when no workload is named."""
    others: tuple[Route, ...] = ()
    """The proxies of `OTHERS` that it is measured through."""
    like: str | None = None
    """The workload whose script it runs, with other `options`."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Further ones for sysbench."""

    @property
    def script(self) -> Path:
        return FOLDER / f"{self.like or self.name}.lua"

    @property
    def standard(self) -> bool:
        """Whether it is one of sysbench's own, an event of which is a transaction."""
        return self.name.startswith("oltp-")

    def takes(self, route: Route) -> bool:
        """Whether it is measured on this route."""
        return route in self.others or route not in OTHERS

    def threads(self, asked: int) -> int:
        """How many clients run it at once."""
        return asked if self.max_threads is None else min(asked, self.max_threads)


TEXT: Mapping[str, object] = {"db-ps-mode": "disable"}
"""For sysbench's own driver: statements as text. Without it they are prepared."""

WORKLOADS = {
    one.name: one
    for one in (
        Workload("oltp-rw", "sysbench oltp_read_write, prepared, not sharded", cpu_aim=1.5),
        Workload("oltp-ro", "sysbench oltp_read_only, prepared, not sharded", cpu_aim=1.5),
        Workload("oltp-wo", "sysbench oltp_write_only, prepared, not sharded", cpu_aim=1.5),
        Workload(
            "oltp-rw-text", "oltp_read_write as text, not sharded", cpu_aim=1.5, like="oltp-rw", options=TEXT
        ),
        Workload(
            "oltp-ro-text", "oltp_read_only as text, not sharded", cpu_aim=1.5, like="oltp-ro", options=TEXT
        ),
        Workload(
            "oltp-wo-text", "oltp_write_only as text, not sharded", cpu_aim=1.5, like="oltp-wo", options=TEXT
        ),
        Workload("point", "point SELECT by ID of a 1.1 KB row", cpu_aim=1.15, others=OTHERS),
        Workload(
            "prepared",
            "the same by a prepared statement with a bound ID",
            cpu_aim=1.4,
            others=(Route.ROUTER, Route.PROXYSQL),
        ),
        Workload("ids", "50 IDs over 50 shards, one IN list", cpu_aim=2.0, latency_aim=1.2, others=OTHERS),
        Workload(
            "mapping", "50-row mapping read, ORDER BY sequence DESC LIMIT 50", cpu_aim=1.35, others=OTHERS
        ),
        Workload(
            "insert",
            "INSERT of a 1.1 KB object, colocated by an ID in its JSON",
            writes="comments",
            cpu_aim=1.6,
        ),
        Workload("scatter", "scatter read of 100,000 rows over 64 shards", max_threads=2, cpu_aim=2.0),
        Workload(
            "passthrough", "point SELECT of a 1.1 KB row from a database that is not sharded", usual=False
        ),
    )
}
