"""`python -m tests.fuzz.sessions`: sequences of statements in several sessions, on servers of its own."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from demo.programs import Flavour, find_program
from tests.fuzz.sessions.arena import comparing
from tests.fuzz.sessions.runner import Cases, Runner, Tally
from tests.support.demo import running_demo
from tests.support.plain import fill_plain
from tests.support.programs import FLAVOURS, program_of
from tests.support.servers import LocalServer


def main() -> int:
    """Exit status 1 when something was found."""
    options = _options()
    program = find_program(options.mysqld) if options.mysqld else program_of(options.flavour)
    assert program is not None, f"no {options.flavour} here"
    mariadb = program.flavour is Flavour.MARIADB
    with tempfile.TemporaryDirectory(prefix="sg-sessions-") as name:
        folder = Path(name)
        with (
            running_demo(program, folder / "demo", "--hosts", "2") as demo,
            LocalServer(program, folder / "plain") as plain,
        ):
            fill_plain(plain.connect())
            print(f"{program.title}, seed {options.seed}", flush=True)
            with comparing(demo, plain, mariadb=mariadb) as runner:
                return search(runner, Cases(options.seed, mariadb=mariadb, without=options.without), options)


def search(runner: Runner, cases: Cases, options: argparse.Namespace) -> int:
    """Run cases until there are enough statements, and print what differs."""
    groups: Counter[str] = Counter()
    ignored = re.compile(options.ignore) if options.ignore else None
    begun = time.monotonic()
    number = options.first
    while runner.tally.statements < options.count:
        case = cases.case(options.only if options.only is not None else number)
        difference = runner.run(case)
        if difference is not None:
            known = ignored is not None and ignored.search(f"{difference.label} | {difference.name}")
            group = f"{'ignored: ' if known else ''}{difference.label} | {difference.name}"
            groups[group] += 1
            if not known and groups[group] <= options.same:
                small = runner.shrink(case, difference, 0 if options.no_shrink else 80)
                print(small.describe(options.seed), flush=True)
            runner.restart()
            if sum(count for name, count in groups.items() if "ignored" not in name) >= options.most:
                break
        number += 1
        if options.only is not None:
            break
        if number % 100 == 0:
            print(f"{number} cases, {time.monotonic() - begun:.0f} s", flush=True)
    print(report(runner.tally, time.monotonic() - begun))
    for group, count in groups.most_common():
        print(f"    {count:5d} {group}")
    found = sum(count for name, count in groups.items() if "ignored" not in name)
    print(f"{found} differences")
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sessions", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the cases (default 1)")
    parser.add_argument("--count", type=int, default=10_000, help="how many statements (default 10000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default 0)")
    parser.add_argument("--only", type=int, help="the case with this number only")
    parser.add_argument("--most", type=int, default=50, help="end after so many differences (default 50)")
    parser.add_argument("--same", type=int, default=1, help="show so many of a kind (default 1)")
    parser.add_argument("--without", nargs="*", default=(), help="rules of the grammar to leave out")
    parser.add_argument("--ignore", metavar="REGEX", help="known differences, which are only counted")
    parser.add_argument("--no-shrink", action="store_true", help="report cases as they are")
    parser.add_argument("--flavour", choices=FLAVOURS, default=FLAVOURS[0], help="which server")
    parser.add_argument("--mysqld", help="the servers' program, or its folder, instead")
    return parser.parse_args()


def report(tally: Tally, seconds: float) -> str:
    """What a run has seen."""
    lines = [f"{tally.statements} statements in {seconds:.0f} s"]
    lines.append(f"answers {dict(tally.outcomes)}; errors on both sides {dict(tally.errors.most_common(25))}")
    refused = tally.refused.total()
    lines.append(f"refused by the proxy: {refused} ({100 * refused / max(1, tally.statements):.1f} %)")
    lines += [f"    {count:5d} {name}" for name, count in tally.refused.most_common()]
    lines += [f"        {count:5d} {name}" for name, count in tally.refused_rules.most_common(25)]
    lines.append("texts and types that differ, which are no differences here:")
    for name, count in tally.soft_counts.most_common(30):
        lines.append(f"    {count:5d} {name}\n      {tally.soft[name][:700]}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
