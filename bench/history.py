"""The history: one JSON line a run, so that numbers can be compared over commits and machines."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.results import Result
from bench.workloads import FOLDER

FILE = FOLDER / "history.jsonl"
PACKAGES = ("shardgate", "uvloop")


def entry(
    results: Sequence[Result],
    *,
    options: Mapping[str, object],
    versions: Mapping[str, str | None],
    load: float,
    now: datetime,
) -> dict[str, Any]:
    """One run. `versions` of the programs used; `load`: the machine's before it began."""
    return {
        "date": now.astimezone(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "versions": {**{name: one for name, one in versions.items() if one}, **packages()},
        "machine": machine() | {"load_before": round(load, 2)},
        "options": dict(options),
        "workloads": {one.workload.name: one.as_dict() for one in results},
    }


def append(line: Mapping[str, Any], file: Path = FILE) -> None:
    """Add one line to the history."""
    with file.open("a", encoding="utf-8") as history:
        history.write(json.dumps(line, ensure_ascii=False) + "\n")


def machine() -> dict[str, Any]:
    """The machine and its Python."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text(encoding="utf-8")),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def cpu_model(text: str) -> str:
    """The model in /proc/cpuinfo; the architecture when it names none, as on ARM."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def packages() -> dict[str, str]:
    """Versions of the Python packages that the speed depends on."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """The checkout's commit, with a + when tracked files have been changed; None outside of git."""
    head = _output("git", "-C", str(FOLDER), "rev-parse", "--short=12", "HEAD")
    changed = _output("git", "-C", str(FOLDER), "status", "--porcelain", "--untracked-files=no")
    return f"{head}+" if head and changed else head


def version_of(program: str, option: str) -> str | None:
    """The first line with a digit of what a program says to ``-v`` or ``--version``."""
    lines = (_output(program, option) or "").splitlines()
    return next((line.strip() for line in lines if re.search(r"\d", line)), None)


def _output(*argv: str) -> str | None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
