"""`python -m tests.fuzz.readings`: generated texts, read by the proxy and by a server."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from demo.programs import Flavour, find_program
from tests.fuzz.readings.judge import BATCH, Judge, judging
from tests.fuzz.readings.routes import Routes
from tests.support.demo import running_demo
from tests.support.plain import fill_plain
from tests.support.servers import LocalServer


def main() -> int:
    """Exit status 1 when something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.readings", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the texts (default 1)")
    parser.add_argument("--count", type=int, default=20000, help="how many (default 20000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first batch (default 0)")
    parser.add_argument("--most", type=int, default=20, help="end after so many findings (default 20)")
    parser.add_argument("--mysqld", help="the servers' program, or its folder")
    options = parser.parse_args()
    program = find_program(options.mysqld)
    mariadb = program.flavour is Flavour.MARIADB
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sg-fuzz-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with (
            running_demo(program, folder / "demo", "--hosts", "2") as demo,
            LocalServer(program, folder / "plain") as plain,
            judging(demo, folder / "own", options.seed, mariadb=mariadb) as judge,
        ):
            fill_plain(plain.connect())
            routes = Routes(demo, plain, options.seed)
            print(f"{program.title}, seed {options.seed}", flush=True)
            found: list[str] = []
            for number in range(options.first, options.first + -(-options.count // BATCH)):
                one: Judge | Routes = (judge, routes)[number % 4 == 3]
                told = len(one.tally.differences)
                one.batch(number)
                for difference in one.tally.differences[told:]:
                    found.append(difference)
                    print(f"batch {number}: {difference}", flush=True)
                if len(found) >= options.most:
                    break
                if number % 100 == 99:
                    print(f"{number + 1} batches, {time.monotonic() - begun:.0f} s", flush=True)
            told = len(judge.tally.differences)
        found += judge.tally.differences[told:]
        print("rights, server / proxy:", dict(judge.tally.outcomes.most_common(40)))
        print("routes, server / proxy:", dict(routes.tally.outcomes.most_common(20)))
        print("\n".join(judge.tally.differences[told:]))
        print(f"{len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
