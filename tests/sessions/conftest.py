from __future__ import annotations

from tests.integration.fixtures import connect, own, raw, unharmed

__all__ = ["connect", "own", "raw", "unharmed"]
