"""Which changed settings a running proxy does not take over."""

from __future__ import annotations

from typing import Any, Final

from config.backends import Backends, HostOverrides
from config.credentials import Credentials
from config.model import Model
from config.settings import Settings

_ALIVE: Final = {
    Settings: frozenset({"users", "fleet"}),
    Backends: frozenset({"user", "accounts", *Credentials.model_fields}),
    HostOverrides: frozenset({"user", "accounts", *Credentials.model_fields}),
}
"""What SIGHUP reads again, or a proxy does not use."""

_MISSING: Final = object()


def needing_restart(running: Settings, again: Settings) -> list[str]:
    """The settings that differ and are read at the start only, e.g. `backends.max_connections`."""
    return _different(running, again)


def _different(one: Any, other: Any, name: str = "") -> list[str]:
    if isinstance(one, Model) and type(one) is type(other):
        alive = _ALIVE.get(type(one), frozenset())
        found: list[str] = []
        for field, info in type(one).model_fields.items():
            if field not in alive:
                inner = f"{name}.{info.alias or field}" if name else info.alias or field
                found += _different(getattr(one, field), getattr(other, field), inner)
        return found
    if isinstance(one, dict) and isinstance(other, dict):
        found = []
        for key in sorted({*one, *other}, key=str):
            mine, theirs = one.get(key, _MISSING), other.get(key, _MISSING)
            found += _different(*_whole(mine, theirs), f"{name}.{key}")
        return found
    return [] if one == other else [name]


def _whole(one: Any, other: Any) -> tuple[Any, Any]:
    """A host that is named in one of the two only is compared with one that has nothing of its own."""
    if isinstance(one, HostOverrides) or isinstance(other, HostOverrides):
        none = HostOverrides()
        return (none if one is _MISSING else one), (none if other is _MISSING else other)
    return one, other
