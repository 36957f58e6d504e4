"""Models as bytes between processes of one program. Nothing from outside is ever read so."""

from __future__ import annotations

import copyreg
import pickle
from types import MappingProxyType
from typing import Any, Final

PROTOCOL: Final = pickle.HIGHEST_PROTOCOL


def _proxied(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


def _reduced(one: MappingProxyType[Any, Any]) -> tuple[Any, ...]:
    return _proxied, (dict(one),)


copyreg.pickle(MappingProxyType, _reduced)


def dumps(what: object) -> bytes:
    """`what` as bytes; read-only mappings, too."""
    return pickle.dumps(what, PROTOCOL)


def loads(data: bytes) -> Any:
    """What `dumps` was given."""
    return pickle.loads(data)
