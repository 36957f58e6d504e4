from __future__ import annotations

from tests.integration.fixtures import connect, own, raw, things, unharmed

__all__ = ["connect", "own", "raw", "things", "unharmed"]
