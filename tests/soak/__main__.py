"""``python -m tests.soak``: the options, and what is said at the end."""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from tests.soak.faults import FAULTS
from tests.soak.figures import told
from tests.soak.run import Outcome, soak
from tests.support.programs import FLAVOURS, program_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description="Mixed traffic with faults, all checked.")
    parser.add_argument("--minutes", type=float, default=10.0, help="with faults (default 10)")
    parser.add_argument("--flavour", choices=FLAVOURS, default=FLAVOURS[0])
    parser.add_argument("--seed", type=int, help="of faults and traffic; else one is chosen")
    parser.add_argument("--clients", type=int, default=2, help="of each kind that writes (default 2)")
    names = [one.name for one in FAULTS]
    parser.add_argument("--only", choices=names, action="append", help="this fault; may be repeated")
    options = parser.parse_args()
    program = program_of(options.flavour)
    if program is None:
        print(f"soak: there is no {options.flavour} here", file=sys.stderr)
        return 2
    seed = random.randrange(1 << 20) if options.seed is None else options.seed
    chosen = [one for one in FAULTS if not options.only or one.name in options.only]
    print(f"{program.title}: {options.minutes:g} minutes, seed {seed}", flush=True)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # what a cut network makes it say
    with tempfile.TemporaryDirectory(prefix="sg-soak-") as folder:
        outcome = soak(
            program,
            Path(folder),
            seconds=options.minutes * 60,
            seed=seed,
            faults=chosen,
            each=options.clients,
            warm_up=min(60.0, options.minutes * 6),
            say=lambda text: print(f"{time.strftime('%H:%M:%S')} {text}", flush=True),
        )
    print(summary(outcome))
    for problem in outcome.problems:
        print(f"PROBLEM, seed {seed}: {problem}")
    return 1 if outcome.problems else 0


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
    lines.append(f"at rest, at first: {outcome.begun}")
    lines.append(f"at rest, at last:  {outcome.ended}")
    lines += [told(pid, *both) for pid, both in sorted(outcome.quarters.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
