"""Whether what is compiled can be built here, and is built of the sources that there are."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path


def may_compile() -> bool:
    """There is a C compiler, and Python's headers."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    header = Path(sysconfig.get_path("include"), "Python.h")
    return shutil.which(compiler) is not None and header.exists()


def outdated() -> list[str]:
    """The modules of the data path that were compiled before their sources were changed."""
    root = Path(__file__).parents[2]
    found = []
    for room in ("proxy", "rewriter"):
        for types in (root / room).rglob("*.pxd"):
            changed = max(one.stat().st_mtime for one in (types, types.with_suffix(".py")))
            made = [one.stat().st_mtime for one in types.parent.glob(f"{types.stem}.*.so")]
            if any(one < changed for one in made):
                found.append(str(types.relative_to(root).with_suffix("")))
    return sorted(found)
