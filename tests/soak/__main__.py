"""``python -m tests.soak``: the options, and what is said at the end."""

from __future__ import annotations

import argparse
import faulthandler
import logging
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from demo.programs import Program
from tests.soak.evidence import leave
from tests.soak.faults import FAULTS
from tests.soak.figures import told
from tests.soak.run import Outcome, Plan, soak
from tests.support.programs import FLAVOURS, program_of


def main() -> int:
    options = _options()
    program = program_of(options.flavour)
    if program is None:
        print(f"soak: there is no {options.flavour} here", file=sys.stderr)
        return 2
    plan = Plan(
        options.minutes * 60,
        random.randrange(1 << 20) if options.seed is None else options.seed,
        [one for one in FAULTS if not options.only or one.name in options.only],
        each=options.clients,
        warm_up=min(60.0, options.minutes * 6),
        pause=options.pause,
        rest=options.rest * 60,
    )
    _print(_head(plan, program))
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # what a cut network makes it say
    folder = Path(tempfile.mkdtemp(prefix="sg-soak-"))
    # Should it hang itself, it says where and ends; servers and proxy end with it
    faulthandler.dump_traceback_later(plan.seconds * 1.5 + 1200, exit=True)
    outcome = soak(program, folder, plan, lambda text: _print(f"{time.strftime('%H:%M:%S')} {text}"))
    print(summary(outcome))
    for problem in outcome.problems:
        print(f"PROBLEM, seed {plan.seed}: {problem}")
    if outcome.problems:
        leave(folder)
        print(f"logs, stacks and the latest statements are in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _print(text: str) -> None:
    print(text, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak", description="Mixed traffic with faults, all checked.")
    parser.add_argument("--minutes", type=float, default=10.0, help="with faults (default 10)")
    parser.add_argument("--flavour", choices=FLAVOURS, default=FLAVOURS[0])
    parser.add_argument("--seed", type=int, help="of faults and traffic; else one is chosen")
    parser.add_argument("--clients", type=int, default=2, help="of each kind that writes (default 2)")
    parser.add_argument(
        "--pause", type=float, default=0.02, help="seconds between two rounds of a client (default 0.02)"
    )
    parser.add_argument(
        "--rest", type=float, default=10.0, help="minutes until all clients go and come again (default 10)"
    )
    names = [one.name for one in FAULTS]
    parser.add_argument("--only", choices=names, action="append", help="this fault; may be repeated")
    return parser.parse_args()


def _head(plan: Plan, program: Program) -> str:
    """What a record of this run must name."""
    words = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    commit = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return (
        f"{time.strftime('%Y-%m-%d %H:%M:%S')}, {program.title}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, commit {commit}\n"
        f"{plan.seconds / 60:g} minutes, seed {plan.seed}, {plan.each} clients of each kind that writes, "
        f"pauses of {plan.pause:g} s"
    )


def summary(outcome: Outcome) -> str:
    """Statements by kind of client, errors by fault, waits, and what the processes hold."""
    journal, ledger = outcome.traffic.journal, outcome.traffic.ledger
    total = sum(journal.statements.values())
    lines = [f"{outcome.seconds / 60:.1f} minutes, {total} statements, {len(outcome.problems)} problems"]
    lines.append("clients: statements, the longest wait and the fault of that moment")
    for kind, count in sorted(journal.statements.items()):
        wait, fault = journal.longest[kind]
        lines.append(f"  {kind}: {count}, {wait:.1f} s ({fault})")
    errors: dict[str, list[str]] = defaultdict(list)
    for (fault, name), count in sorted(journal.errors.items()):
        errors[fault].append(f"{name} {count}")
    lines.append("faults: how often, seconds until all clients were served again at most, errors")
    for fault, count in sorted(outcome.faults.items()):
        met = ", ".join(errors.pop(fault, [])) or "none"
        lines.append(f"  {fault}: {count}, {outcome.recovered[fault]:.1f} s, {met}")
    lines += [f"  {fault or 'none'}: {', '.join(met)}" for fault, met in errors.items()]
    lines.append(
        f"entries: {len(ledger.done)} acknowledged, {len(ledger.refused)} certainly not done,"
        f" {len(ledger.unknown)} unknown"
    )
    for minutes, count, rest in outcome.rests:
        lines.append(f"at rest after {minutes:.1f} minutes, {count} statements: {rest}")
    lines += [told(pid, *both) for pid, both in sorted(outcome.quarters.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
