"""Files of cases that modules of tests read when they are collected, which each process of a run does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the compiled one takes a tenth of the time


def cases_in(path: Path) -> Any:
    """What the YAML file says."""
    return yaml.load(path.read_text(), Loader=_Loader)
