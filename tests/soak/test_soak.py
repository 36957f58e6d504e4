"""Some seconds of the soak with the faults that cost little: that it works, and that it would tell."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import pytest

from demo.programs import Program
from tests.soak.evidence import Watchdog
from tests.soak.faults import FAULTS, Scene, Schedule
from tests.soak.figures import MB, grown
from tests.soak.journal import Journal, name_of
from tests.soak.ledger import PURSES, START, Ledger
from tests.soak.run import Plan, soak
from tests.support.waiting import wait_until


@pytest.mark.one_server
@pytest.mark.slow
def test_some_seconds(program: Program, tmp_path: Path) -> None:
    cheap = [one for one in FAULTS if one.cheap]
    outcome = soak(program, tmp_path, Plan(6, seed=1, faults=cheap, each=1, warm_up=1))
    assert outcome.problems == []
    assert outcome.faults
    assert outcome.traffic.ledger.done


def test_errors_have_names() -> None:
    assert name_of(1158, "Lost connection to MySQL server db1:3306 during query: x. The stat") == "host_lost"
    assert (
        name_of(1105, "The transaction was rolled back: gone. Run the whole transaction again.")
        == "transaction_lost"
    )
    assert name_of(1213, "Deadlock found when trying to get lock") == "server 1213"
    assert name_of(1062, "Duplicate entry '1' for key 'PRIMARY'") == "server 1062"


def test_an_error_without_a_fault_is_a_problem() -> None:
    journal = Journal()
    began = time.monotonic()
    with journal.fault("cut", frozenset({"host_lost"})):
        journal.done("plain 0", "plain", began, "SELECT 1", "host_lost", "1158: …")
        assert journal.problems == []
        journal.done("plain 0", "plain", began, "SELECT 1", "internal", "1105: …")
    journal.done("plain 0", "plain", began, "SELECT 1", "host_lost", "1158: …")  # under way when it ended
    journal.done("plain 0", "plain", time.monotonic(), "SELECT 2", "host_lost", "1158: …")
    found = [one.splitlines() for one in journal.problems]
    assert [(one[0].split(" after ")[0], one[1].strip()) for one in found] == [
        ("plain 0, fault cut: internal", "SELECT 1"),
        ("plain 0, fault none: host_lost", "SELECT 2"),
    ]
    assert journal.errors == {("cut", "host_lost"): 2, ("cut", "internal"): 1, ("none", "host_lost"): 1}


def test_what_the_ledger_tells() -> None:
    ledger = Ledger(done={(1, 1), (1, 2)}, refused={(1, 3)}, unknown={(1, 4)}, together=[(1, 2)])
    right = {1: START * PURSES + 5, 2: START * PURSES - 5}
    assert list(Ledger(ledger.done, ledger.refused, ledger.unknown).check(Counter(ledger.done), {})) == []
    found = Counter({(1, 1): 2, (1, 3): 1, (1, 5): 1})
    assert [one.split(":")[0] for one in ledger.check(found, right)] == [
        "acknowledged and not there",
        "there more than once",
        "there, though the error said that it was not done",
        "there, and never written or not committed",
        "in one of (1, 2) only",
    ]
    assert list(ledger.check(Counter({(1, 1): 1, (2, 1): 1, (1, 2): 1, (2, 2): 1}), {1: START}))[-1] == (
        f"the purses of (1, 2) hold {START}, not {2 * START * PURSES}"
    )


def test_memory_that_grows_is_told() -> None:
    assert list(grown({7: (80 * MB, 87 * MB)})) == []
    assert len(list(grown({7: (80 * MB, 89 * MB)}))) == 1


def test_who_waits_for_too_long_is_a_problem_that_leaves_evidence(tmp_path: Path) -> None:
    code = "\n".join(
        [
            "import pathlib, signal",
            "from tests.support.stacks import listen",
            f"listen(pathlib.Path({str(tmp_path)!r}))",
            "print('listens', flush=True)",
            "while True: signal.pause()",
        ]
    )
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"listens\n"
        journal = Journal()
        journal.done("lists 1", "lists", journal.begins("lists 1", "SELECT 1"), "SELECT 1")
        journal.begins("plain 0", "SELECT 'never'")
        proxy = SimpleNamespace(proxy=SimpleNamespace(pid=child.pid), status=lambda: {"clients": 1})
        scene = SimpleNamespace(
            traffic=SimpleNamespace(journal=journal),
            proxy=proxy,
            servers=SimpleNamespace(demo=SimpleNamespace(hosts=[])),
        )
        nobody = Mock(side_effect=OSError("is not there"))
        watchdog = Watchdog(cast("Scene", scene), tmp_path, nobody, overdue=0.0)
        wait_until(lambda: journal.problems, "the problem")
        watchdog.close()
        child.kill()
    assert [one.splitlines()[:2] for one in journal.problems] == [
        ["plain 0 has waited for 0 s", "    SELECT 'never'"]
    ]
    assert "thread MainThread" in (tmp_path / f"stacks-{child.pid}.txt").read_text()
    assert "thread MainThread" in (tmp_path / "stacks-soak.txt").read_text()
    told = (tmp_path / "statements.txt").read_text()
    assert "waits: SELECT 'never'" in told
    assert "SELECT 1" in told
    assert (tmp_path / "servers.txt").read_text() == "plain\n  OSError('is not there')\n"
    assert json.loads((tmp_path / "status.json").read_text()) == {"clients": 1}


def test_all_faults_come_before_one_comes_again() -> None:
    one, other = (Schedule(FAULTS, 3) for _ in range(2))
    first = [one.next() for _ in FAULTS]
    assert {fault.name for fault in first} == {fault.name for fault in FAULTS}
    assert [other.next() for _ in FAULTS] == first
