"""The bench of large topologies: what it makes, and what it prints. It is not run here."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from bench.topologies import MOST, Cost, document_of, ranges_of, table, write
from config.load import load_topology
from demo.documents import topology_document


@pytest.mark.parametrize("as_yaml", [False, True])
@pytest.mark.parametrize("count", [3, 100])
def test_its_topology_has_all_shards(tmp_path: Path, count: int, as_yaml: bool) -> None:
    hosts = ("127.0.0.1:1", "127.0.0.1:2")
    base = json.loads(json.dumps(topology_document(64, [(host, None) for host in hosts])))
    ranges = ranges_of(count, hosts)
    assert len(ranges) == count
    path = tmp_path / "topology.json"
    assert write(path, document_of(base, ranges), as_yaml=as_yaml) == path.stat().st_size
    main = load_topology(path).keyspaces["main"]
    assert main.all_shards == tuple(range(MOST))
    assert main.open_shards == tuple(range(64))  # those that exist
    assert [main.host_of(shard) for shard in (0, 31, 32, 63)] == [hosts[0], hosts[0], hosts[1], hosts[1]]


def test_the_table_has_every_figure() -> None:
    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(table([Cost(65474, 10_100_000, 1.5, 1.25, 0.75, 0.5, 0.016, 0.003, 33.5, 90.0)]))
    printed = console.export_text()
    for figure in ("65,474", "10.1", "1.5", "1.2", "0.75", "0.50", "16", "3", "33.5", "90"):
        assert figure in printed
