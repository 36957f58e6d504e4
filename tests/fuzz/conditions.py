"""`python -m tests.fuzz.conditions`: the properties of tests/rewriter/test_narrowing.py, many more times."""

from __future__ import annotations

import argparse
import sys
import time

from hypothesis import HealthCheck, Phase, settings

from tests.rewriter.test_narrowing import PROPERTIES

_ROUND = 500
"""So many conditions are drawn in a row. What is drawn grows with their number, and so does the time that
each takes."""


def main() -> int:
    """Raises what a property raises when a row was left out, for the smallest such condition."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.conditions", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="how many conditions (default 100000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after that time")
    parser.add_argument("--only", choices=list(PROPERTIES), help="one property alone")
    options = parser.parse_args()
    names = [options.only] if options.only else list(PROPERTIES)
    each, share = options.count // len(names), options.seconds / len(names)
    for name in names:
        started = time.monotonic()
        done = 0
        while done < each and time.monotonic() - started < share:
            count = min(_ROUND, each - done)
            settings(
                max_examples=count,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate, Phase.shrink],
            )(PROPERTIES[name]())()
            done += count
        print(f"{name}: {done} conditions in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
