"""`python -m tests.differential --schemas N`: random schemas, one after another."""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

from demo.programs import Flavour, Program
from tests.differential.anyschema.binary import BinaryLoop
from tests.differential.anyschema.design import design
from tests.differential.anyschema.loop import Finding, Loop, Tally, describe, total
from tests.differential.anyschema.places import AnyWorld
from tests.differential.arena import deployed
from tests.support.servers import LocalServer


def run(options: argparse.Namespace, program: Program, servers: list[LocalServer], folder: Path) -> int:
    """Exit status 1 when there are differences."""
    *hosts, plain = servers
    mysql = program.flavour is Flavour.MYSQL
    ignored = re.compile(options.ignore) if options.ignore else None
    tally = Tally()
    started = time.monotonic()
    print(
        f"{program.title}: {options.schemas} schemas from {options.schema} on, seed {options.seed}",
        flush=True,
    )
    for number in range(options.schema, options.schema + options.schemas):
        addresses = [one.address for one in hosts]
        world = design(number, addresses, mysql=mysql, scale=options.scale, rounded=options.rounded)
        with deployed(world, hosts, plain, folder / f"proxy{number}") as arena:

            def seen(finding: Finding, number: int = number, world: AnyWorld = world) -> None:
                print(describe(finding, number, options.seed, world), flush=True)

            kind = BinaryLoop if options.binary else Loop
            loop = kind(arena, f"{options.seed}.{number}", mysql=mysql, tally=tally, writes=options.writes)
            numbers = options.only or range(options.first, options.first + options.count)
            loop.run(numbers, shrink=not options.no_shrink, most=options.most, ignored=ignored, seen=seen)
        if len(tally.findings) >= options.most:
            break
    print(total(tally, time.monotonic() - started))
    return 1 if tally.findings else 0
