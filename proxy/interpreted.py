"""SHARDGATE_INTERPRETED=1 in the environment: what is compiled from Python files runs as Python instead. So a
debugger can look into it, and tests hold both against each other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

_ROOMS: Final = ("proxy.", "rewriter.")


class _Sources(MetaPathFinder):
    """Finds the Python file of each module that a .pxd file gives types."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for folder in (path or ()) if name.startswith(_ROOMS) else ():
            source = Path(folder, name.rpartition(".")[2] + ".py")
            if source.with_suffix(".pxd").exists():
                return spec_from_file_location(name, source, loader=SourceFileLoader(name, str(source)))
        return None


def choose() -> None:
    """Take the Python files if the environment asks for that; before anything else of the proxy is loaded."""
    if os.environ.get("SHARDGATE_INTERPRETED", "") not in ("", "0"):
        sys.meta_path.insert(0, _Sources())
