"""Memory that outlives every worker: the supervisor has opened it, and each worker inherits it."""

from __future__ import annotations

import fcntl
import os
import zlib
from struct import Struct
from typing import Final

_HEADER: Final = Struct("<QQQI")
"""The state's number, and the place, length and checksum of its bytes."""

_TRIES: Final = 100


class Shared:
    """Memory of all processes that are forked after it was made. States are numbered from 1.

    A new state is written beside the old one, and then its header in one call: a process that is killed
    meanwhile leaves the old one.
    """

    def __init__(self, name: str) -> None:
        self._fd = os.memfd_create(f"shardgate {name}")
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
