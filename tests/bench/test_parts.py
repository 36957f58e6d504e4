"""The pure parts around a run: rows, HAProxy's configuration, the cluster's description, usage, profiles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench import rows, usage
from bench.cluster import describe
from bench.profiling import Profile
from bench.workloads import FOLDER, SHARDS, WORKLOADS, Sizes
from config.load import load_schema, load_topology
from demo.documents import SCHEMA, topology_document
from tests.support.waiting import wait_until

SIZES = Sizes()


def test_every_workload_has_its_script_and_is_documented() -> None:
    text = (FOLDER.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for workload in WORKLOADS.values():
        assert workload.script.is_file()
        assert f"`{workload.name}`" in text


def test_threads_are_limited_where_a_statement_is_large() -> None:
    assert WORKLOADS["point"].threads(16) == 16
    assert WORKLOADS["scatter"].threads(16) == 2
    assert WORKLOADS["scatter"].threads(1) == 1


def test_the_scattered_rows_add_up() -> None:
    counts = [rows.users_of(shard, SIZES) for shard in range(SHARDS)]
    assert sum(counts) == SIZES.scatter
    assert counts == sorted(counts, reverse=True)  # a shard is copied from an earlier one, which has enough
    assert len(list(rows.users(counts[0]))) == counts[0]


def test_pins_have_about_1100_bytes() -> None:
    made = list(rows.pins(5, SIZES))
    assert [row[0] for row in made] == list(range(1, SIZES.pins + 1))
    for _, data in made:
        assert 1050 <= len(str(data)) <= 1150
        assert rows.LAYOUT.shard_of(json.loads(str(data))["board_id"]) == 5


def test_items_have_about_as_many() -> None:
    assert {len(str(body)) for _, body in rows.items(SIZES)} == {1100}


def test_a_board_has_more_pins_than_are_read() -> None:
    made = list(rows.mapping(9, SIZES))
    assert len(made) == len(set(made)) == SIZES.boards * SIZES.board_pins
    assert {rows.LAYOUT.shard_of(int(str(one))) for row in made for one in row[:2]} == {9}
    assert SIZES.board_pins >= 50


def test_copies_move_ids_to_their_shard() -> None:
    _, mapping, users = rows.copies(0, 3, SIZES)
    assert f"board_id + {3 << 46}" in mapping
    assert "INSERT INTO db00003.board_has_pins" in mapping
    assert users.endswith(f"<= {rows.users_of(3, SIZES)}")


def test_the_ready_file_becomes_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "topology.json"
    file.write_text(
        json.dumps(topology_document(SHARDS, [("127.0.0.1:3306", None), ("127.0.0.1:3308", None)]))
    )
    topology = load_topology(file, schema=load_schema(SCHEMA))
    account = {"host": "127.0.0.1", "user": "root", "password": "x"}
    ready = {
        "proxy": {"host": "127.0.0.1", "port": 3307, "user": "demo", "password": "demo", "pid": 7},
        "hosts": [account | {"port": 3306, "pid": 8}, account | {"port": 3308, "pid": 9}],
    }
    cluster = describe(ready, topology)
    assert cluster.shards == "0-31,32-63"
    assert cluster.proxy_pid == 7
    assert cluster.proxy.addresses == (("127.0.0.1", 3307),)
    assert not cluster.proxy.physical
    assert cluster.direct().addresses == (("127.0.0.1", 3306), ("127.0.0.1", 3308))
    assert cluster.direct((1, 2)).addresses == (("127.0.0.1", 1), ("127.0.0.1", 2))
    assert cluster.direct().physical


def test_a_process_with_an_odd_name_is_read() -> None:
    fields = " ".join(["S", "17", *["0"] * 9, "12", "34", *["0"] * 8, "567", "0"])
    assert usage.parse_stat(f"4711 (a) b (c)) {fields}") == usage.Stat(17, 12, 34, 567)


def test_usage_sees_a_process_at_work() -> None:
    before = usage.usage([os.getpid()])
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    used = usage.usage([os.getpid()]).since(before)
    assert used.cpu >= 0.05
    assert used.rss > 1_000_000
    assert usage.cpu_seconds(os.getpid()) == pytest.approx(time.process_time(), abs=0.05)


def test_a_family_is_a_process_with_its_descendants() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'], stdin=sys.stdin)"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as child:
        wait_until(lambda: len(usage.family(child.pid)) == 2, "the child has a child", 10)
        family = usage.family(child.pid)
        assert family[0] == child.pid
        assert usage.busiest(family) in family
        child.communicate(b"\n")
    with pytest.raises(OSError, match="No such"):
        usage.usage([child.pid])


def test_a_profile_counts_self_time_once_a_stack() -> None:
    profile = Profile(
        [
            "main (cli.py:3);run (a.py:1);run (a.py:1);send (b.py:2) 6",
            "main (cli.py:3);run (a.py:1) 3",
            "Thread.run (threading.py:9);Condition.wait (threading.py:295) 9",
            "Thread.run (threading.py:9);Condition.wait (threading.py:295);futex_wait (libc.so.6) 9",
            "",
            "garbage",
        ]
    )
    assert profile.total == 9
    assert profile.own == {"send (b.py:2)": 6, "run (a.py:1)": 3}
    assert profile.all["run (a.py:1)"] == 9
    assert profile.table().row_count == 2
