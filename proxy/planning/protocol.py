"""What the proxy and a planning process say to each other over a socket.

A message is its length (8 bytes, little-endian) and that many bytes. To the process: a pickled `Request`, and
behind it the statement as it is. Back: the literals as pickled lists, some thousands each, so that nobody
has to take in all of them at once; then a pickled `Answer`, in which the statement and the tuple of all
literals are named and not repeated.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType
from typing import Any, Final

from config.schema import Schema
from config.topology import Topology
from rewriter.env import Env
from rewriter.planner import Lifted, Made, Parameters
from rewriter.route.scope import Limits

HEADER: Final = Struct("<Q")
LITERALS: Final = b"L"
ANSWER: Final = b"A"
"""The first byte of a message back."""

AT_ONCE: Final = 4096
"""So many literals are in one message."""

_SQL: Final = "sql"
_VALUES: Final = "values"


@dataclass(frozen=True, slots=True)
class Request:
    """Plan a statement (`masked`: with the characters of its set masked), and tell where its parameters are.

    `schema`, `topology` and `limits` are those to plan for from now on; None: as before. `seconds` of CPU
    time are allowed.
    """

    env: Env
    masked: bool
    seconds: float
    schema: Schema | None = None
    topology: Topology | None = None
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a process found out; `failed` is an error of the registry instead. `unmasked`: whether every
    masked character is within a literal.
    """

    lifted: Lifted | None = None
    made: Made | None = None
    parameters: Parameters | None = None
    unmasked: bool = True
    failed: str = ""


def _proxied(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


def _reduced(one: MappingProxyType[Any, Any]) -> tuple[Any, ...]:
    return _proxied, (dict(one),)


copyreg.pickle(MappingProxyType, _reduced)


def message(kind: bytes, what: object) -> bytes:
    """A message back, whole."""
    data = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(data) + 1) + kind + data


def chunks(literals: Sequence[bytes]) -> list[bytes]:
    """The messages that bring the literals."""
    return [message(LITERALS, list(literals[at : at + AT_ONCE])) for at in range(0, len(literals), AT_ONCE)]


def take_in(data: bytes) -> list[bytes]:
    """The literals of a message, without its header."""
    found: list[bytes] = pickle.loads(data[1:])
    return found


class _Pickler(pickle.Pickler):
    def __init__(self, out: io.BytesIO, sql: bytes, values: tuple[bytes, ...]) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._sql, self._values = sql, values

    def persistent_id(self, one: Any) -> str | None:
        return _SQL if one is self._sql else _VALUES if one is self._values else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, sql: bytes, values: tuple[bytes, ...]) -> None:
        super().__init__(data)
        self._known = {_SQL: sql, _VALUES: values}

    def persistent_load(self, name: Any) -> Any:
        return self._known[name]


def pack(answer: Answer, sql: bytes, values: tuple[bytes, ...]) -> bytes:
    """The last message of an answer."""
    out = io.BytesIO()
    out.write(HEADER.pack(0) + ANSWER)
    _Pickler(out, sql, values).dump(answer)
    data = out.getbuffer()
    HEADER.pack_into(data, 0, len(data) - HEADER.size)
    return bytes(data)


def unpack(data: bytes, sql: bytes, values: tuple[bytes, ...]) -> Answer:
    """What `pack` made, without its header."""
    answer: Answer = _Unpickler(io.BytesIO(data), sql, values).load()
    return answer
