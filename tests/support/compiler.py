"""Whether the compiled loops can be built here."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path


def may_compile() -> bool:
    """There is a C compiler, and Python's headers."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    header = Path(sysconfig.get_path("include"), "Python.h")
    return shutil.which(compiler) is not None and header.exists()
