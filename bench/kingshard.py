"""kingshard, which shards by itself: its configuration, and tables of its own with the rows of the others.

Its rule `range` puts row n of a table into the sub-table n / table_row_limit, and a composed ID divided by
2^46 is the shard. So its sub-tables hold the rows of shardgate's shards on the same servers, under the IDs
that clients see, and it gets the very statements that shardgate gets. Prepared ones it does not route: it
sends them to its default host.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import yaml

from bench.cluster import Cluster, Server
from bench.rows import LAYOUT, PINS
from bench.setup import Setup
from bench.sysbench import Target
from bench.tools import BenchError
from demo.process import free_port

DATABASE: Final = "ks"
POOL: Final = 512
"""Connections to a host; a quarter is made at the start."""
TABLES: Final = {"pins": "id", "board_has_pins": "board_id"}
"""By the column that routes."""


def configuration(setup: Setup) -> Mapping[str, str]:
    """ks.yaml. It can be told nothing of threads: see `arguments`."""
    servers = setup.cluster.servers
    user, password = servers[0].user, servers[0].password
    names = [f"node{number}" for number in range(1, len(servers) + 1)]
    nodes = [
        {
            "name": name,
            "max_conns_limit": POOL,
            "user": server.user,
            "password": server.password,
            "master": server.address,
            "slave": "",
            "down_after_noalive": 0,
        }
        for name, server in zip(names, servers, strict=True)
    ]
    shards = [
        {
            "db": DATABASE,
            "table": table,
            "key": key,
            "nodes": names,
            "type": "range",
            "locations": [len(server.shards) for server in servers],
            "table_row_limit": LAYOUT.base(1),
        }
        for table, key in TABLES.items()
    ]
    document = {
        "addr": f"127.0.0.1:{setup.ports[0]}",
        "prometheus_addr": f"127.0.0.1:{free_port()}",
        "web_addr": f"127.0.0.1:{free_port()}",
        "web_user": "admin",
        "web_password": password,
        "log_level": "error",
        "log_sql": "off",
        "proxy_charset": "utf8mb4",
        "user_list": [{"user": user, "password": password}],
        "nodes": nodes,
        "schema_list": [{"user": user, "nodes": names, "default": names[0], "shard": shards}],
    }
    return {"ks.yaml": yaml.safe_dump(document, sort_keys=False)}


def arguments(setup: Setup) -> Sequence[str]:
    """It takes as many threads as it may use cores when it starts; `widen` gives it back the others."""
    taskset = shutil.which("taskset")
    if taskset is None:
        raise BenchError("taskset, which keeps kingshard to one thread, is missing: install util-linux")
    cores = ",".join(str(one) for one in sorted(os.sched_getaffinity(0))[: setup.threads])
    return [taskset, "-c", cores, setup.program, "-config", str(setup.folder / "ks.yaml")]


def widen(pid: int) -> None:
    """Let all threads of a process run on every core: how many work at once was decided at its start."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), os.sched_getaffinity(0))


def target(cluster: Cluster, port: int) -> Target:
    """Where clients connect."""
    first = cluster.servers[0]
    return Target((("127.0.0.1", port),), first.user, first.password, physical=False, database=DATABASE)


def statements(server: Server) -> list[str]:
    """What makes and fills the sub-tables of a server from its shards."""
    made = [f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE}"]
    for shard in server.shards:
        here = f"db{shard:05d}"
        pins, boards = (f"{DATABASE}.{table}_{shard:04d}" for table in TABLES)
        made += [
            f"CREATE TABLE {pins} LIKE {here}.pins",
            f"ALTER TABLE {pins} CHANGE local_id id BIGINT UNSIGNED NOT NULL",
            f"INSERT INTO {pins} (id, data, ts)"
            f" SELECT local_id + {LAYOUT.base(shard, PINS)}, data, ts FROM {here}.pins",
            f"CREATE TABLE {boards} LIKE {here}.board_has_pins",
            f"INSERT INTO {boards} SELECT * FROM {here}.board_has_pins",
        ]
    return made


def fill(cluster: Cluster) -> None:
    """Make its tables on all servers, in parallel."""

    def on(server: Server) -> None:
        with server.connect() as connection, connection.cursor() as cursor:
            for statement in statements(server):
                cursor.execute(statement)

    with ThreadPoolExecutor(len(cluster.servers), thread_name_prefix="kingshard") as pool:
        for future in [pool.submit(on, server) for server in cluster.servers]:
            future.result()
