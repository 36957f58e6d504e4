"""The classes of the data path, compiled and as Python: both are told the same, and after each step they have
said, done and kept the same.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from proxy.compiled import CLASSES
from tests.support.compiler import may_compile

SEEDS = "60"


@pytest.mark.skipif(not may_compile(), reason="no compiler, or no headers of Python")
def test_where_they_can_be_compiled_they_are() -> None:
    if not os.environ.get("SHARDGATE_INTERPRETED"):
        assert CLASSES, "run: make setup"


def begun(interpreted: str, *arguments: str) -> subprocess.Popen[str]:
    env = os.environ | {"SHARDGATE_INTERPRETED": interpreted, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "tests.execute.scripts", SEEDS, *arguments]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def of_both(*arguments: str) -> list[list[str]]:
    """What both print, without the line that says which one it is."""
    running = [begun(interpreted, *arguments) for interpreted in ("", "1")]
    told = [one.communicate()[0].splitlines() for one in running]
    assert [one.returncode for one in running] == [0, 0]
    assert [lines.pop(0) for lines in told] == ["compiled", "interpreted"]
    return told


@pytest.mark.skipif(not CLASSES, reason="no compiler: the compiled classes are NOT tested")
def test_they_do_the_same() -> None:
    compiled, interpreted = of_both()
    assert len(compiled) == len(interpreted) > 1000
    other = next((one for one, two in zip(compiled, interpreted, strict=True) if one != two), None)
    if other is not None:
        name, step, _ = other.split("\t")
        one, two = of_both(name)
        assert one[int(step)] == two[int(step)], f"{name}, after step {step}"
