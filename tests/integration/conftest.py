from __future__ import annotations

from tests.integration.fixtures import connect, own, raw, things, unharmed, users

__all__ = ["connect", "own", "raw", "things", "unharmed", "users"]
