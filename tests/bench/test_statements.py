"""What the workloads send: to the hosts the very statements that shardgate would send them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.sysbench import Target, command
from bench.tools import find_tool
from bench.workloads import FOLDER, SHARDS, WORKLOADS, Sizes, Workload
from config.load import load_schema, load_topology
from config.schema import Schema
from config.topology import Topology
from demo.documents import SCHEMA, topology_document
from rewriter.env import Env
from rewriter.planner import Rewriter

PRINTING = Path(__file__).with_name("printing.lua")
HOSTS = ("127.0.0.1:3306", "127.0.0.1:3308")
EVENTS = 5
SHARDED = [one for one in WORKLOADS.values() if one.name != "passthrough" and not one.standard]


@pytest.fixture
def schema() -> Schema:
    return load_schema(SCHEMA)


@pytest.fixture
def topology(schema: Schema, tmp_path: Path) -> Topology:
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(topology_document(SHARDS, [(host, None) for host in HOSTS])))
    return load_topology(file, schema=schema)


def printed(workload: Workload, *, physical: bool, **more: object) -> list[tuple[int, str]]:
    """(number of the connection, statement), always by the same random numbers; `more`: its options."""
    program = find_tool("sysbench")
    if program is None:
        pytest.skip("sysbench is not installed")
    target = Target((("127.0.0.1", 1), ("127.0.0.1", 2)), "", "", physical)
    argv = command(
        program,
        workload,
        target,
        shards="0-31,32-63",
        sizes=replace(Sizes(), text=50),
        threads=1,
        seconds=60,
        more=more,
    )
    argv[1] = str(PRINTING)
    done = subprocess.run(
        [*argv[:-1], f"--events={EVENTS}", "--rand-seed=7", "run"],
        env=os.environ | {"LUA_PATH": f"{FOLDER}/?.lua;;", "WORKLOAD": str(workload.script)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = (line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith("sql "))
    return [(int(host), sql) for _, host, sql in lines]


def parts(statements: Iterator[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """The members of UNION ALL come in no order that would matter."""
    return [(host, sorted(sql.split(" UNION ALL "))) for host, sql in statements]


@pytest.mark.parametrize("workload", SHARDED, ids=lambda one: one.name)
def test_hosts_get_what_shardgate_would_send(workload: Workload, schema: Schema, topology: Topology) -> None:
    compare(workload, schema, topology)


@pytest.mark.parametrize("ids", [1, 3, 70, 500])
def test_lists_of_any_length(ids: int, schema: Schema, topology: Topology) -> None:
    compare(WORKLOADS["ids"], schema, topology, ids=ids)
    for _, sql in printed(WORKLOADS["ids"], physical=False, ids=ids):
        assert len(set(sql.partition(" IN (")[2].rstrip(")").split(", "))) == ids


def test_scatters_over_another_table(schema: Schema, topology: Topology) -> None:
    compare(WORKLOADS["scatter"], schema, topology, table="comments")


def compare(workload: Workload, schema: Schema, topology: Topology, **more: object) -> None:
    rewriter = Rewriter(schema, topology)
    sent: list[tuple[str, list[str]]] = []
    for connection, sql in printed(workload, physical=False, **more):
        assert connection == 1
        plan, literals = rewriter.plan(sql.encode(), Env(database="demo"))
        bound = plan.bind(literals, topology, min)
        sent += parts((one.host, one.sql.decode()) for one in bound.statements)
    own = printed(workload, physical=True, **more)
    assert len(own) >= EVENTS
    assert parts((HOSTS[number - 1], sql) for number, sql in own) == sent


def test_the_list_names_50_shards(topology: Topology) -> None:
    layout = topology.keyspaces["main"].layout
    assert layout is not None
    for _, sql in printed(WORKLOADS["ids"], physical=False):
        ids = sql.partition(" IN (")[2].rstrip(")").split(", ")
        assert len({layout.shard_of(int(one)) for one in ids}) == 50


def test_a_database_that_is_not_sharded_gets_the_same(schema: Schema) -> None:
    workload = WORKLOADS["passthrough"]
    statements = printed(workload, physical=False)
    assert statements == printed(workload, physical=True)
    assert schema.databases["legacy"].passes_through
    assert all("legacy.items" in sql for _, sql in statements)
