"""What is prepared on one connection to a server: a bounded memory, the least recently used go first.

A statement is known by its text, the current database and the settings that it was prepared under, as all
of these have a part in what it means. Statements that go are closed on the server by COM_STMT_CLOSE, which
has no answer: the packets wait in `leaving` for the next write on the connection.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from proxy.backends.settings import Settings
from proxy.wire.packets import frame

Key = tuple[bytes, str | None, Settings, object]
"""The statement's text, the current database (None: it does not matter), the settings, and whose it is: the
types of its parameters, so that those who use the same share it; b"" while it was never executed; or the
client's own statement, when that has used several."""

#: So many statements a connection keeps, and so many bytes of their text.
LIMIT: Final = 256
_BYTES: Final = 4 << 20


class ServerStatements:
    """The statements of one connection by key; their numbers are the server's."""

    __slots__ = ("_bytes", "_numbers", "leaving", "pinned")

    def __init__(self) -> None:
        self._numbers: OrderedDict[Key, int] = OrderedDict()
        self._bytes = 0
        self.leaving = b""
        self.pinned: set[int] = set()  # statements with an open cursor: not for another use, and kept

    def __len__(self) -> int:
        return len(self._numbers)

    def find(self, key: Key) -> int | None:
        """The server's number of a statement that may be executed, or None."""
        number = self._numbers.get(key)
        if number is None or number in self.pinned:
            return None
        self._numbers.move_to_end(key)
        return number

    def take_over(self, old: Key, new: Key) -> int | None:
        """`find` the statement with another key than it had; it has the new one from now on."""
        number = self.find(old)
        if number is not None:
            del self._numbers[old]
            self._bytes -= len(old[0])
            self.add(new, number)
        return number

    def add(self, key: Key, number: int) -> None:
        """Remember a statement that was just prepared."""
        self.forget(key)
        self._numbers[key] = number
        self._bytes += len(key[0])
        while len(self._numbers) > LIMIT or (self._bytes > _BYTES and len(self._numbers) > 1):
            self.forget(next(iter(self._numbers)))

    def forget(self, key: Key) -> None:
        """Close a statement; one with an open cursor stays until the cursor is closed."""
        number = self._numbers.pop(key, None)
        if number is not None:
            self._bytes -= len(key[0])
            if number not in self.pinned:
                self.leaving += close_packet(number)

    def forget_all(self) -> None:
        """Close all but those with an open cursor."""
        for key in list(self._numbers):
            self.forget(key)

    def pin(self, number: int) -> None:
        """A cursor is open on this statement."""
        self.pinned.add(number)

    def unpin(self, number: int, *, keep: bool) -> None:
        """The cursor is over. Unless the statement may be kept, it is closed with it."""
        self.pinned.discard(number)
        for key, known in self._numbers.items():
            if known == number:
                if not keep:
                    self.forget(key)
                return
        self.leaving += close_packet(number)

    def take_leaving(self) -> bytes:
        """The packets that close what has gone; to be sent before anything else."""
        leaving, self.leaving = self.leaving, b""
        return leaving


def close_packet(number: int) -> bytes:
    """COM_STMT_CLOSE."""
    return frame(b"\x19" + number.to_bytes(4, "little"))
