"""Writes the table of docs/drivers.md from a run of all clients:

python -m tests.drivers [--from FILE]        FILE: what an earlier run has left in $SHARDGATE_DRIVERS_REPORT
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests.drivers.catalog import CATALOG
from tests.drivers.matrix import CHECKS

PAGE = Path(__file__).parents[2] / "docs" / "drivers.md"
BEGIN, END = "<!-- the table is written by python -m tests.drivers -->", "<!-- end of the table -->"
SERVERS = {"mariadb": "MariaDB 10.11", "mysql9": "MySQL 9"}


def table(report: Path) -> str:
    """The table in Markdown, from lines of JSON: client, version, flavour, checks."""
    found = [json.loads(line) for line in report.read_text().splitlines()]
    names = [one["name"] for one in CHECKS["checks"]]
    lines = ["| client | version | server | " + " | ".join(names) + " | its own |"]
    lines.append("|" + "---|" * (len(names) + 4))
    for client in CATALOG:
        for one in found:
            if one["client"] == client.name:
                checks = one["checks"]
                cells = [checks.get(name, "") for name in names]
                own = [f"{name} {said}" for name, said in checks.items() if name not in names]
                start = [client.name, one["version"], SERVERS[one["flavour"]]]
                lines.append("| " + " | ".join([*start, *cells, ", ".join(own)]) + " |")
    return "\n".join(lines)


def main() -> int:
    if sys.argv[1:2] == ["--from"]:
        report, status = Path(sys.argv[2]), 0
    else:
        report = Path(tempfile.mkdtemp()) / "report"
        os.environ["SHARDGATE_DRIVERS_REPORT"] = str(report)
        status = int(pytest.main([str(Path(__file__).parent), "-q", "-rs"]))
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n\n" + table(report) + "\n\n" + END + rest.split(END)[1])
    return status


if __name__ == "__main__":
    sys.exit(main())
