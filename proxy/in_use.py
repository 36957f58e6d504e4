"""What all workers of a proxy serve: one topology, one schema, the same users.

Each worker watches the documents for itself, but none may serve what another refuses. So there is one row of
states that all go through: what a worker has accepted becomes the next state (`Agreement.propose`), unless
another worker was first; then it takes over what that one has made of it, and judges again. The others
follow within a tick. A worker that takes the place of a dead one begins with the state in use, whatever the
files say by then.

The state is in memory that the supervisor has opened and each worker inherits, so it outlives all of them.
"""

from __future__ import annotations

import fcntl
import os
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import Struct
from typing import Any, Final

from config import pickling
from config.backends import Backends
from config.schema import Schema
from config.settings import User
from config.topology import Topology

_HEADER: Final = Struct("<QQQI")
"""The state's number, and the place, length and checksum of its bytes."""

_TRIES: Final = 100


@dataclass(frozen=True, slots=True)
class InUse:
    """One state. `schema` is the document's, without what the servers say of columns; `schema_digest` tells
    two documents apart.
    """

    topology: Topology
    schema: Schema
    schema_digest: str
    users: tuple[User, ...]
    accounts: Backends

    @property
    def map(self) -> tuple[int, str]:
        """What tells two topologies apart."""
        return self.topology.version, self.topology.digest


class Shared:
    """Memory of all processes that are forked after it was made. States are numbered from 1.

    A new state is written beside the old one, and then its header in one call: a process that is killed
    meanwhile leaves the old one.
    """

    def __init__(self) -> None:
        self._fd = os.memfd_create("shardgate in use")
        os.pwrite(self._fd, _HEADER.pack(0, _HEADER.size, 0, 0), 0)

    @property
    def number(self) -> int:
        """Of the state in use; 0: there is none yet."""
        return self._header()[0]

    def read(self) -> tuple[int, bytes]:
        """The state in use and its number. Raises OSError."""
        for _ in range(_TRIES):
            header = self._header()
            number, place, length, checksum = header
            data = os.pread(self._fd, length, place)
            if self._header() == header and zlib.crc32(data) == checksum:
                return number, data
        raise OSError("what the other workers serve cannot be read")

    def replace(self, number: int, data: bytes) -> bool:
        """Make `data` the state after `number`; False when that is not the last one, or another worker is at
        it.
        """
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        try:
            known, place, length, _ = self._header()
            if known != number:
                return False
            after = place + length
            place = _HEADER.size if place - _HEADER.size >= len(data) else after
            written = 0
            while written < len(data):
                written += os.pwrite(self._fd, data[written:], place + written)
            os.pwrite(self._fd, _HEADER.pack(number + 1, place, len(data), zlib.crc32(data)), 0)
            return True
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN)

    def _header(self) -> tuple[int, int, int, int]:
        number, place, length, checksum = _HEADER.unpack(os.pread(self._fd, _HEADER.size, 0))
        return number, place, length, checksum


class Agreement:
    """One worker's part. `take` is told what was in use and what is now, in its event loop. Without `shared`
    there is but this worker.
    """

    def __init__(self, shared: Shared | None, take: Callable[[InUse, InUse], None]) -> None:
        self.current: InUse | None = None
        self._shared = shared
        self._take = take
        self._number = 0

    def resume(self) -> InUse | None:
        """What the other workers serve; None when this one is the first."""
        if self._shared is not None and self._shared.number:
            self._number, data = self._shared.read()
            self.current = pickling.loads(data)
        return self.current

    def begin(self, state: InUse) -> InUse:
        """What to begin with: `state`, unless another worker has begun with something else."""
        if self.current is None:
            while self._shared is not None and not self._shared.replace(0, pickling.dumps(state)):
                if (found := self.resume()) is not None:
                    return found
                time.sleep(0.001)
            self.current, self._number = state, 1
        return self.current

    def propose(self, **changes: Any) -> bool:
        """Let all serve the state in use with `changes`. False when another worker was first: what that one
        says is in use then, and the changes must be judged again.
        """
        before = self.current
        assert before is not None
        after = replace(before, **changes)
        if self._shared is not None and not self._shared.replace(self._number, pickling.dumps(after)):
            self.follow()
            return False
        self._number += 1
        self.current = after
        self._take(before, after)
        return True

    def follow(self) -> None:
        """Take over what another worker has accepted since."""
        before = self.current
        if self._shared is None or before is None or self._shared.number == self._number:
            return
        self._number, data = self._shared.read()
        self.current = after = pickling.loads(data)
        self._take(before, after)
