"""Errors that end the benchmark, or one cell of it, with a plain message."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

FOLDERS = (str(Path(sys.executable).parent), "/usr/sbin", "/usr/local/sbin")


class BenchError(Exception):
    """Something that cannot be measured; the text says why, and what to do about it."""


def find_tool(name: str) -> str | None:
    """The path of a program: on the PATH, in this Python's folder, or where Debian keeps servers."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *FOLDERS)))
