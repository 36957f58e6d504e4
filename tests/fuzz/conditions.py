"""`python -m tests.fuzz.conditions`: the properties of tests/rewriter/test_narrowing.py, many more times."""

from __future__ import annotations

import argparse
import sys
import time

from hypothesis import HealthCheck, settings

from tests.rewriter.test_narrowing import PROPERTIES


def main() -> int:
    """Raises what a property raises when a row was left out, for the smallest such condition."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.conditions", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="how many conditions (default 100000)")
    each = parser.parse_args().count // len(PROPERTIES)
    for name, holds in PROPERTIES.items():
        started = time.monotonic()
        settings(max_examples=each, deadline=None, database=None, suppress_health_check=list(HealthCheck))(
            holds
        )()
        print(f"{name}: {each} conditions in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
