"""`python -m tests.fuzz`: spoilt packets, on a demo of its own."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from demo.programs import find_program
from tests.faults.link import Link
from tests.fuzz.arena import arena, topology
from tests.fuzz.clients import ClientFuzz
from tests.fuzz.servers import ServerFuzz
from tests.fuzz.watch import Books, Canary, some_users
from tests.integration.own import OwnProxy
from tests.support.demo import running_demo


def main() -> int:
    """Exit status 1 when something was found."""
    options = _options()
    program = find_program(options.mysqld)
    with tempfile.TemporaryDirectory(prefix="sg-fuzz-") as name:
        folder = Path(name)
        with (
            running_demo(program, folder / "demo", "--hosts", "2") as demo,
            Link(demo.masters[0].host, demo.masters[0].port) as link,
            arena(demo, folder / "proxy", topology(demo, link)) as proxy,
        ):
            print(f"{program.title}, seed {options.seed}", flush=True)
            return _run(options, proxy, link)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the cases (default 1)")
    parser.add_argument("--count", type=int, default=5000, help="how many cases (default 5000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default 0)")
    parser.add_argument("--only", type=int, nargs="*", help="the cases with these numbers only")
    parser.add_argument(
        "--cuts", action="store_true", help="instead, end at every byte of every conversation"
    )
    parser.add_argument("--servers", action="store_true", help="instead, spoil what servers say")
    parser.add_argument("--most", type=int, default=20, help="end after so many findings (default 20)")
    parser.add_argument("--mysqld", help="the servers' program, or its folder")
    return parser.parse_args()


def _run(options: argparse.Namespace, proxy: OwnProxy, link: Link) -> int:
    users = some_users(proxy)
    place = proxy.proxy.host, proxy.proxy.port
    if options.servers:
        fuzz: ClientFuzz = ServerFuzz(*place, users, options.seed, link)
    else:
        fuzz = ClientFuzz(*place, users, options.seed)
    numbers = options.only or range(options.first, options.first + options.count)
    cases: list[partial[None]]
    if options.cuts:
        cases = [partial(fuzz.cut, *place) for place in fuzz.cuts()]
    else:
        cases = [partial(fuzz.run, number) for number in numbers]
    found, begun = 0, time.monotonic()
    with Canary(proxy, users[1]) as canary:
        first = Books.of(proxy, 1)
        for done, case in enumerate(cases, 1):
            try:
                case()
                canary.check()
            except AssertionError as finding:
                found += 1
                print(f"after {case.args}: {finding}", flush=True)
                if found == options.most:
                    break
            if done == len(cases) // 5:
                first = Books.of(proxy, 1)
            if done % 1000 == 0:
                print(f"{done} cases, {time.monotonic() - begun:.0f} s", flush=True)
        last = Books.of(proxy, 1)
    first.compare(last)
    print(f"errors {dict(fuzz.codes.most_common())}, connections {dict(fuzz.ends)}")
    print(f"canary: {canary.asked} answers, the slowest in {canary.slowest:.3f} s")
    print(f"before {first}, after {last}")
    print(f"{found} findings in {len(cases)} cases")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
