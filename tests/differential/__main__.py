"""`python -m tests.differential`: look for differences, on servers of its own."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from demo.programs import Flavour, Program, find_program, initialise
from demo.servers import start_all, stop_servers
from tests.differential.anyschema.run import run as run_schemas
from tests.differential.arena import deployed
from tests.differential.generator import Generator
from tests.differential.narrowing import Narrowing
from tests.differential.report import describe, total
from tests.differential.runner import Cases, Finding, Runner
from tests.differential.world import demo_world, wide_world
from tests.support.servers import LocalServer


def main() -> int:
    """Exit status 1 when there are differences."""
    options = _options(sys.argv[1:])
    program = find_program(options.mysqld)
    with tempfile.TemporaryDirectory(prefix="sg-diff-") as name:
        folder = Path(name)
        template = folder / "template"
        initialise(program, template)
        names = [*(f"host{n + 1}" for n in range(options.hosts)), "plain"]
        servers = [LocalServer(program, folder / one, name=one, template=template) for one in names]
        start_all(servers)
        try:
            if options.schemas:
                return run_schemas(options, program, servers, folder)
            return _run(options, program, servers, folder)
        finally:
            stop_servers(servers)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the statements (default 1)")
    parser.add_argument("--count", type=int, default=1000, help="how many cases (default 1000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default 0)")
    parser.add_argument("--only", type=int, nargs="*", help="the cases with these numbers only")
    parser.add_argument(
        "--mysqld", help="the servers' program, or its folder; else $SHARDGATE_MYSQLD or what is found"
    )
    parser.add_argument("--shards", type=int, default=64, help="how many (default 64)")
    parser.add_argument("--hosts", type=int, default=2, help="how many (default 2)")
    parser.add_argument("--scale", type=float, default=1.0, help="more or fewer rows (default 1.0)")
    parser.add_argument(
        "--beyond", type=float, default=0.06, help="share of statements that shards do not answer"
    )
    parser.add_argument("--gathers", type=float, default=0.2, help="share of reads over several tables")
    parser.add_argument("--joins", type=float, default=0.2, help="share of joins by an ID of these")
    parser.add_argument("--most", type=int, default=20, help="end after so many differences (default 20)")
    parser.add_argument("--ignore", metavar="REGEX", help="known differences, which are only counted")
    parser.add_argument("--schemas", type=int, default=0, help="try that many random schemas instead")
    parser.add_argument("--schema", type=int, default=1, help="number of the first of them (default 1)")
    parser.add_argument("--writes", type=float, default=0.2, help="share of writes on them (default 0.2)")
    parser.add_argument("--reads", action="store_true", help="nothing is changed")
    parser.add_argument("--narrowing", action="store_true", help="conditions that only the algebra knows")
    parser.add_argument("--binary", action="store_true", help="as prepared statements, on random schemas")
    parser.add_argument(
        "--rounded", type=float, default=0.0, help="share of columns of FLOAT and DOUBLE(M,D) on them"
    )
    parser.add_argument("--no-shrink", action="store_true", help="report differences as they are met")
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace, program: Program, servers: list[LocalServer], folder: Path) -> int:
    *hosts, plain = servers
    addresses = [one.address for one in hosts]
    world = wide_world(addresses, options.shards, scale=options.scale)
    if options.narrowing:
        world = demo_world(addresses, options.shards)
    catalog = world.catalog(mysql=program.flavour is Flavour.MYSQL)
    print(
        f"{program.title}: {options.shards} shards on {options.hosts} hosts, seed {options.seed}", flush=True
    )
    with deployed(world, hosts, plain, folder / "proxy") as arena:
        generator: Cases = Generator(
            catalog,
            options.seed,
            options.beyond,
            reads_only=options.reads,
            gathers=options.gathers,
            joins=options.joins,
        )
        if options.narrowing:
            generator = Narrowing(world, options.seed, catalog)
        runner = Runner(arena, generator)
        started = time.monotonic()

        def seen(finding: Finding) -> None:
            print(describe(finding, options.seed), flush=True)

        numbers = options.only or range(options.first, options.first + options.count)
        ignored = re.compile(options.ignore) if options.ignore else None
        summary = runner.run(
            numbers, shrink=not options.no_shrink, most=options.most, ignored=ignored, seen=seen
        )
        print(total(summary, time.monotonic() - started))
    return 1 if summary.findings else 0


if __name__ == "__main__":
    sys.exit(main())
