"""COMMIT over two hosts with transaction_mode = 'xa', and what is killed meanwhile: once through the steps,
of which `python -m tests.faults.xa_runs` makes hundreds of runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.programs import Program
from tests.faults.bank import Bank
from tests.faults.xa_runs import RUNS, run


@pytest.fixture(scope="module")
def bank(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    with Bank(program, tmp_path_factory.mktemp("bank")) as made:
        yield made


def test_killed_at_every_step(bank: Bank) -> None:
    """The proxy at each, and a server where there is something to be lost."""
    chosen = [one for one in RUNS if one.victim == "proxy" and (not one.left or not one.before)]
    chosen += [
        one
        for one in RUNS
        if (one.left, one.step, one.before, one.victim)
        in {
            ("", "prepare", False, "branch"),
            ("", "commit", False, "first"),
            ("commit", "finish", False, "branch"),
        }
    ]
    for number, one in enumerate(chosen):
        run(bank, one, number % 2, clients=2)
