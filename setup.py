"""What of the package is compiled: see docs/decisions/compiled-loops.md.

Loops over rows and IDs are C. The classes of a statement's way are the Python files themselves, compiled by
Cython: those that have a `.pxd` beside them, which says the types. Without a compiler, without Python's
headers or without Cython all of it runs as Python. The classes are compiled all together or not at all, since
compiled ones know of each other where their attributes lie.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from Cython.Build import cythonize
    from Cython.Compiler.Errors import CompileError
except ImportError:
    cythonize = None

HERE = Path(__file__).parent
NOT_COMPILED = "the classes of the data path stay Python:"
LOOPS = [
    Extension(
        "proxy.wire._row_packets",
        ["proxy/wire/_row_packets.c", "proxy/wire/_sort_keys.c"],
        depends=["proxy/wire/_row_packets.h"],
        optional=True,
    ),
    Extension("rewriter.route._id_lists", ["rewriter/route/_id_lists.c"], optional=True),
    Extension("rewriter.route._by_id", ["rewriter/route/_by_id.c"], optional=True),
]
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # the .pxd files say the types; annotations are for mypy
    "binding": False,
    "auto_pickle": False,
    "nonecheck": True,  # an attribute of None is an error, not a crash
    "boundscheck": True,
}


def classes() -> list[Any]:
    """The modules that a .pxd file gives types."""
    if cythonize is None:
        return []
    typed = sorted(one for room in ("proxy", "rewriter") for one in (HERE / room).rglob("*.pxd"))
    modules = [one.relative_to(HERE).with_suffix("") for one in typed]
    found = [Extension(".".join(one.parts), [f"{one}.py"], extra_compile_args=["-O2"]) for one in modules]
    threads = os.cpu_count() or 1
    try:
        made: list[Any] = cythonize(
            found, build_dir="build/cython", compiler_directives=DIRECTIVES, nthreads=threads, quiet=True
        )
    except CompileError as error:
        print(NOT_COMPILED, error)
        return []
    return made


class Build(build_ext):
    """Compiles on all processors. Without the classes when one of them cannot be compiled."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self) -> None:
        loops = [one for one in self.extensions if one.optional]
        try:
            super().build_extensions()
        except Exception as error:
            print(NOT_COMPILED, error)
            for one in self.extensions:
                if not one.optional:
                    Path(self.get_ext_fullpath(one.name)).unlink(missing_ok=True)
            self.extensions = loops
            super().build_extensions()


setup(ext_modules=LOOPS + classes(), cmdclass={"build_ext": Build})
