"""Killed at every step between PREPARE and COMMIT: runs of transfers between accounts on two servers.

    python -m tests.faults.xa_runs --runs 200 [--flavour mariadb] [--seed 1]

A run kills the proxy, a server or the proxy that resolves what another has left, with SIGKILL, when a chosen
statement is about to reach its server or when it has done it. What was killed is started again; then the sum
of all accounts must be right, each transfer on both servers or on none, and nothing prepared.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.faults.bank import Bank
from tests.support.programs import FLAVOURS, need_program
from tests.support.waiting import wait_until

_DECISION = b"INSERT INTO `shardgate_xa`"
#: A client's, to commit; what the resolver writes of a branch that was left is the other.
DECISION = (_DECISION, b"', 1, X'")
ABORTED = (_DECISION, b"', 0, X'")
#: A client's: the proxy's own COMMIT, when it deletes old decisions, has no decision before it.
COMMIT = (*DECISION, b"COMMIT AND NO CHAIN")
#: Statements of a COMMIT (see `Trap`), and at which of the hosts.
STEPS: dict[str, tuple[tuple[bytes, ...], str]] = {
    "prepare": ((b"XA PREPARE",), "branch"),
    "decide": (DECISION, "first"),
    "commit": (COMMIT, "first"),
    "finish": ((b"XA COMMIT",), "branch"),
}
#: Statements of the resolver, by what there is to be resolved.
LEFT: dict[str, dict[str, tuple[tuple[bytes, ...], str]]] = {
    "commit": {
        "recover": ((b"XA RECOVER",), "branch"),
        "look": ((b"SELECT committed",), "first"),
        "finish": ((b"XA COMMIT",), "branch"),
    },
    "prepare": {
        "look": ((b"SELECT committed",), "first"),
        "abort": (ABORTED, "first"),
        "undo": ((b"XA ROLLBACK",), "branch"),
    },
}


class Run(NamedTuple):
    """`left`: the step at which a proxy was killed before, for the resolver to find; "" for none."""

    left: str
    step: str
    before: bool
    victim: str

    def __str__(self) -> str:
        when = "before" if self.before else "after"
        who = f"resolver of {self.left}: " if self.left else ""
        return f"{who}{self.victim} killed {when} {self.step}"


RUNS: Sequence[Run] = [
    *(
        Run("", step, before, victim)
        for step in STEPS
        for before in (True, False)
        for victim in ("proxy", "first", "branch")
    ),
    *(
        Run(left, step, before, victim)
        for left, steps in LEFT.items()
        for step in steps
        for before in (True, False)
        for victim in ("proxy", "first", "branch")
    ),
]


def run(bank: Bank, one: Run, first: int, *, clients: int = 3) -> float:
    """Do it; the seconds from all being up again until all was settled. AssertionError when it is wrong."""
    others = 1 - first
    at = {"first": bank.traps[first], "branch": bank.traps[others]}
    running = contextmanager(bank.clients)
    if one.left:
        patterns, place = STEPS[one.left]
        with running(clients, first):
            at[place].arm(*patterns, then=bank.kill_proxy, before=False)
            assert at[place].sprung.wait(30), f"no {one.left}"
        patterns, place = LEFT[one.left][one.step]
    else:
        patterns, place = STEPS[one.step]
    trap = at[place]
    trap.arm(*patterns, then=partial(bank.kill, one.victim, first), before=one.before)
    if one.left:
        bank.wait_killed()
        bank.proxy.spawn()  # which may not live until it is ready
        assert trap.sprung.wait(30), f"no {one}"
        bank.revive()
    else:
        with running(clients, first):
            assert trap.sprung.wait(30), f"no {one}"
            bank.revive()
    bank.revive()
    bank.proxy.wait()
    took = bank.check()
    with bank.connect() as connection, connection.cursor() as cursor:
        wait_until(partial(bank.serves, cursor, first), "it serves")
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--flavour", choices=FLAVOURS, default=FLAVOURS[0])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    queue: list[Run] = []
    times: list[float] = []
    counts: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory(prefix="sg-xa-") as folder,
        Bank(need_program(options.flavour), Path(folder)) as bank,
    ):
        for number in range(1, options.runs + 1):
            queue = queue or dice.sample(RUNS, len(RUNS))
            one, first, begun = queue.pop(), dice.randrange(2), time.monotonic()
            try:
                times.append(run(bank, one, first))
            except AssertionError as error:
                print(f"run {number}: {one}, first host {first}: {error}")
                print(bank.proxy.log.read_text()[-6000:])
                return 1
            counts[one.victim] += 1
            if number % 10 == 0 or number == options.runs:
                print(f"{number} runs, the last took {time.monotonic() - begun:.1f} s", flush=True)
        there, known = len(bank.rows(0, "SELECT n FROM here.done")), len(bank.acknowledged)
        print(
            f"{options.flavour}: {options.runs} runs of {len(RUNS)} kinds; killed: {dict(counts)};"
            f" {there} transfers done, {known} acknowledged, {len(bank.refused)} refused;"
            f" settled after {sorted(times)[len(times) // 2]:.2f} s (median), {max(times):.2f} s (most)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
