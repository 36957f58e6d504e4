"""The wheel: whole with a compiler and without one, and nothing in it that is not needed to run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.compiler import may_compile

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
PACKAGES = ("config", "rewriter", "proxy", "fleet", "demo")
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input")

#: Prints whether what can be compiled is, and what two calls of it give.
ASK = """
import sys
sys.meta_path = [one for one in sys.meta_path if "editable" not in repr(one)]  # this checkout is not asked
from proxy import compiled
from proxy.frontend import client
from proxy.wire import row_packets as loops
from rewriter.route import by_id, id_lists
print(loops.__file__)
print(loops.COMPILED, id_lists.COMPILED, by_id.COMPILED, compiled.CLASSES)
print(loops.walk_rows(b"\\x01\\0\\0\\5a", 0, 24), loops.renumber(b"\\0\\0\\0\\0", 9, 24))
"""


def build(folder: Path, *, broken: bool = False, **environment: str) -> Path:
    """Make the wheel of a copy of the sources in `folder`, and install it there. Returns the wheel. `broken`:
    one of the typed classes is not what its types say.
    """
    sources = folder / "sources"
    sources.mkdir()
    for name in SOURCES:
        shutil.copy(ROOT / name, sources)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    if broken:
        with (sources / "proxy/load.pxd").open("a") as types:
            types.write("\ncpdef no_such_function()\n")
    run(
        folder,
        *PIP,
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(sources),
        **environment,
    )
    (wheel,) = folder.glob("*.whl")
    installing = ("install", "--no-deps", "--no-compile", "--target", str(folder / "installed"))
    run(folder, *PIP, *installing, str(wheel))
    return wheel


def run(folder: Path, *argv: str, **environment: str) -> str:
    done = subprocess.run(
        argv, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ask(folder: Path) -> str:
    """What the installed package says of its loops."""
    installed = folder / "installed"
    where, *said = run(folder, sys.executable, "-c", ASK, PYTHONPATH=str(installed)).splitlines()
    assert where == str(installed / "proxy/wire/row_packets.py")
    return " ".join(said)


LOOPS = ["proxy/wire/_row_packets", "rewriter/route/_by_id", "rewriter/route/_id_lists"]
CLASSES = [
    str(one.relative_to(ROOT).with_suffix(""))
    for room in ("proxy", "rewriter")
    for one in (ROOT / room).rglob("*.pxd")
]
RESULTS = "(5, 1, 83886081) (b'\\x00\\x00\\x00\\t', 10, 1)"


@pytest.mark.skipif(not may_compile(), reason="no compiler, or no headers of Python")
def test_with_a_compiler_the_loops_are_compiled(tmp_path: Path) -> None:
    names = zipfile.ZipFile(build(tmp_path, CFLAGS="-O0 -g0")).namelist()  # to optimize takes long
    assert sorted(re.sub(r"\..*", "", name) for name in names if name.endswith(".so")) == sorted(
        LOOPS + CLASSES
    )
    assert not [name for name in names if name.endswith((".c", ".h"))]
    assert ask(tmp_path) == f"True True True True {RESULTS}"


def test_without_a_compiler_it_is_whole(tmp_path: Path) -> None:
    names = zipfile.ZipFile(build(tmp_path, CC="/there/is/no/compiler")).namelist()
    assert not [name for name in names if name.endswith((".so", ".c", ".h"))]
    assert ask(tmp_path) == f"False False False False {RESULTS}"


def test_without_cython_the_classes_are_python(tmp_path: Path) -> None:
    (tmp_path / "Cython.py").write_text("raise ImportError")
    names = zipfile.ZipFile(build(tmp_path, CFLAGS="-O0 -g0", PYTHONPATH=str(tmp_path))).namelist()
    made = [re.sub(r"\..*", "", name) for name in names if name.endswith(".so")]
    assert sorted(made) == (sorted(LOOPS) if may_compile() else [])


def test_classes_are_compiled_together_or_not_at_all(tmp_path: Path) -> None:
    """One that cannot be compiled: the others know where its attributes would lie."""
    names = zipfile.ZipFile(build(tmp_path, broken=True, CFLAGS="-O0 -g0")).namelist()
    made = [re.sub(r"\..*", "", name) for name in names if name.endswith(".so")]
    assert sorted(made) == (sorted(LOOPS) if may_compile() else [])
