"""Calling sysbench and reading what it says. A shell script stands in for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import sysbench
from bench.sysbench import Output, Target, command, percentile
from bench.tools import BenchError
from bench.workloads import WORKLOADS, Sizes

SAID = """\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 2

Initializing worker threads...

Threads started!

Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       1.007 |                                         1
       1.082 |**************************************** 90
       1.102 |***                                      8
       5.183 |                                         1

bench {"events": 100, "seconds": 2.001586}
"""


def output(text: str) -> Output:
    said = Output()
    for line in text.splitlines():
        said.add(line)
    return said


def test_a_good_run_is_read() -> None:
    said = output(SAID)
    assert said.histogram == [(1.007, 1), (1.082, 90), (1.102, 8), (5.183, 1)]
    assert said.summary == {"events": 100, "seconds": 2.001586}
    assert not said.errors


@pytest.mark.parametrize(
    ("share", "latency"),
    [(0.0, 1.007), (0.01, 1.007), (0.5, 1.082), (0.95, 1.102), (0.99, 1.102), (1, 5.183)],
)
def test_percentiles_are_of_the_nearest_rank(share: float, latency: float) -> None:
    assert percentile(output(SAID).histogram, share) == latency


def test_no_statements_have_no_percentile() -> None:
    assert percentile([], 0.5) == 0.0


@pytest.mark.parametrize(
    ("line", "failure"),
    [
        ("FATAL: `thread_init' function failed: error 1045: Access denied", "error 1045: Access denied"),
        ("FATAL: `event' function failed: an answer of 0 rows, not 1", "an answer of 0 rows, not 1"),
        ("FATAL: Cannot find benchmark 'x.lua'", "Cannot find benchmark 'x.lua'"),
        ("anything else", "sysbench said nothing"),
    ],
)
def test_a_failure_is_told_without_its_wrapping(line: str, failure: str) -> None:
    assert output(line).failure == failure


def test_the_command_names_targets_and_sizes() -> None:
    target = Target((("127.0.0.1", 3306), ("127.0.0.1", 3308)), "bench", "x", physical=True)
    argv = command(
        "/usr/bin/sysbench",
        WORKLOADS["point"],
        target,
        shards="0-31,32-63",
        sizes=Sizes(),
        threads=16,
        seconds=5,
    )
    assert argv[0] == "/usr/bin/sysbench"
    assert Path(argv[1]).name == "point.lua"
    assert argv[-1] == "run"
    assert {"--targets=127.0.0.1:3306,127.0.0.1:3308", "--physical=on", "--time=5", "--pins=200"} <= set(argv)


def test_start_and_end_are_told_in_time() -> None:
    told: list[str] = []
    said = sysbench.run(
        ["/bin/sh", "-c", f"cat <<'E'\n{SAID}\nE"],
        1,
        lambda: told.append("start"),
        lambda: told.append("end"),
    )
    assert told == ["start", "end"]
    assert said.summary is not None


def test_a_failed_run_raises_what_it_said() -> None:
    script = "echo 'Threads started!'; echo \"FATAL: \\`event' function failed: no\"; exit 1"
    with pytest.raises(BenchError, match=r"^no$"):
        sysbench.run(["/bin/sh", "-c", script], 1, lambda: None, lambda: None)


def test_a_run_that_hangs_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysbench, "GRACE", 0.1)
    with pytest.raises(BenchError, match="no answer"):
        sysbench.run(["/bin/sh", "-c", "sleep 60 & wait"], 0, lambda: None, lambda: None)
