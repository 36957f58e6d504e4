"""What the proxy and a planning process say to each other over a socket.

A message is its length (8 bytes, little-endian) and that many bytes. To the process: a pickled `Request`, and
behind it the statement as it is. Back: a pickled `Answer`, in which the statement is named and not repeated.
Tuples of many elements (literals, rows, pieces of text) go before it in parts, so that nobody has to take in
all of them at once.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from struct import Struct
from typing import Any, Final

from config import pickling
from config.schema import Schema
from config.topology import Topology
from rewriter.env import Env
from rewriter.planner import Lifted, Made, Parameters
from rewriter.route.scope import Limits
from rewriter.text.split import Piece

HEADER: Final = Struct("<Q")
PART: Final = b"T"
ANSWER: Final = b"A"
"""The first byte of a message back."""

AT_ONCE: Final = 1000
"""So many elements of a tuple are in one message."""

_LONG: Final = 1 << 14
"""Longer texts that are the statement's own are told by their places in it."""

_SQL: Final = -1
"""The statement's number; those of the tuples follow from 0 on."""


class Task(Enum):
    """What is asked: a plan, and where the parameters are; what EXPLAIN ROUTE says; where the text's first
    statement ends; what would make it cost less.
    """

    PLAN = auto()
    EXPLAIN = auto()
    CUT = auto()
    ADVISE = auto()


@dataclass(frozen=True, slots=True)
class Request:
    """Plan a statement (`masked`: with the characters of its set masked), or another `Task`. `slots`: the
    session's values, for EXPLAIN ROUTE, and `cached` what it says of the cache.

    `schema`, `topology` and `limits` are those to plan for from now on; None: as before. `seconds` of CPU
    time are allowed.
    """

    env: Env
    masked: bool = False
    seconds: float = 0.0
    schema: Schema | None = None
    topology: Topology | None = None
    limits: Limits | None = None
    task: Task = Task.PLAN
    slots: Mapping[str, bytes] = field(default_factory=dict)
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What a process found out; `failed` is an error of the registry instead. `unmasked`: whether every
    masked character is within a literal. `rows`: what EXPLAIN ROUTE says, or `wanted`, the slots that it
    needs first; or what there is to advise. `piece`: the text's first statement.
    """

    lifted: Lifted | None = None
    made: Made | None = None
    parameters: Parameters | None = None
    unmasked: bool = True
    failed: str = ""
    reason: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    wanted: tuple[str, ...] = ()
    piece: Piece | None = None


class _Pickler(pickle.Pickler):
    """Pickles without the statement and without long tuples."""

    def __init__(self, out: io.BytesIO, packing: _Packing) -> None:
        super().__init__(out, pickling.PROTOCOL)
        self._packing = packing

    def persistent_id(self, one: Any) -> int | tuple[int, int] | None:
        sql = self._packing.sql
        if one is sql:
            return _SQL
        if type(one) is bytes and len(one) > _LONG and (at := sql.find(one)) >= 0:
            return at, at + len(one)
        if type(one) is tuple and len(one) > AT_ONCE:
            return self._packing.long(one)
        return None


class _Packing:
    """An answer becomes `messages`."""

    def __init__(self, sql: bytes) -> None:
        self.sql = sql
        self.messages: list[bytes] = []
        self._known: dict[int, tuple[int, tuple[Any, ...]]] = {}  # by identity

    def add(self, kind: bytes, what: object) -> None:
        out = io.BytesIO()
        out.write(HEADER.pack(0) + kind)
        _Pickler(out, self).dump(what)
        data = out.getbuffer()
        HEADER.pack_into(data, 0, len(data) - HEADER.size)
        self.messages.append(bytes(data))

    def long(self, one: tuple[Any, ...]) -> int:
        """The number of a long tuple, whose parts have been sent then."""
        found = self._known.get(id(one))
        if found is None:
            number = len(self._known)
            found = self._known[id(one)] = number, one
            for at in range(0, len(one), AT_ONCE):
                self.add(PART, (number, list(one[at : at + AT_ONCE])))
        return found[0]


def pack(answer: Answer, sql: bytes) -> list[bytes]:
    """The messages of an answer to what was asked of `sql`."""
    packing = _Packing(sql)
    packing.add(ANSWER, answer)
    return packing.messages


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, known: Callable[[Any], Any]) -> None:
        super().__init__(data)
        self._known = known

    def persistent_load(self, number: Any) -> Any:
        return self._known(number)


class Unpacking:
    """The messages of one answer, taken in one after another."""

    def __init__(self, sql: bytes) -> None:
        self._sql = sql
        self._parts: dict[int, list[Any]] = {}
        self._whole: dict[int, tuple[Any, ...]] = {}

    def take(self, data: bytes) -> Answer | None:
        """The next message, without its header; the answer, when it was the last."""
        found = _Unpickler(io.BytesIO(memoryview(data)[1:]), self._named).load()
        if data[:1] == ANSWER:
            answer: Answer = found
            return answer
        number, part = found
        self._parts.setdefault(number, []).extend(part)
        return None

    def _named(self, number: int | tuple[int, int]) -> Any:
        if isinstance(number, tuple):
            return self._sql[number[0] : number[1]]
        if number == _SQL:
            return self._sql
        if number not in self._whole:
            self._whole[number] = tuple(self._parts.pop(number))
        return self._whole[number]
