"""`Trap`: a TCP proxy in front of a database server that does something when a statement goes by.

    arm(pattern, before=True, then=kill)    `kill()` runs when a client is about to send what has the pattern:
                                            the server does not get it, or (before=False) its reply stays away

Of several patterns all have to come, in their order, on one connection: the proxy in the background, too,
says COMMIT. It works once. What comes after it on that connection goes nowhere; other connections go on.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from tests.faults.link import Link

_CHUNK = 1 << 16


class Trap(Link):
    """A `Link` besides. `sprung` is set when it has worked."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self.sprung = threading.Event()
        self._patterns: tuple[bytes, ...] = ()
        self._seen: dict[asyncio.StreamReader, int] = {}  # so many of them, by connection
        self._before = True
        self._then: Callable[[], None] = lambda: None
        self._caught: set[asyncio.StreamReader] = set()  # of connections on which the reply is waited for

    def arm(self, *patterns: bytes, then: Callable[[], None], before: bool) -> None:
        """From now on; `then` runs in the link's thread."""

        def change() -> None:
            self.sprung.clear()
            self._seen.clear()
            self._patterns, self._before, self._then = patterns, before, then

        self._call(change)

    def disarm(self) -> None:
        self.arm(then=lambda: None, before=True)

    def _comes(self, reader: asyncio.StreamReader, data: bytes) -> bool:
        """Whether the last of the patterns is in this."""
        at = 0
        while (seen := self._seen.get(reader, 0)) < len(self._patterns):
            at = data.find(self._patterns[seen], at)
            if at < 0:
                return False
            self._seen[reader] = seen + 1
        return bool(self._patterns)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._writers.add(writer)
        behind: asyncio.StreamWriter | None = None
        try:
            answers, behind = await asyncio.open_connection(*self.target, limit=_CHUNK)
            self._writers.add(behind)
            await asyncio.gather(self._there(reader, answers, behind), self._back(answers, writer))
        except OSError:
            pass
        finally:
            for one in (writer, behind):
                if one is not None:
                    self._writers.discard(one)
                    one.transport.abort()

    async def _there(
        self, reader: asyncio.StreamReader, answers: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(_CHUNK):
            if self._comes(reader, data):
                patterns, self._patterns = self._patterns, ()
                if not self._before:
                    self._caught.add(answers)
                    writer.write(data)
                    await reader.read()  # until the client is gone, or the reply has come
                    if answers in self._caught:  # gone: the last words of one that was killed before
                        self._caught.discard(answers)
                        self._wait_again(patterns)
                    break
                self._spring()
                break
            writer.write(data)
            await writer.drain()
        writer.transport.abort()

    async def _back(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await answers.read(_CHUNK):
                if answers in self._caught:
                    self._caught.discard(answers)
                    self._spring()
                    break
                writer.write(data)
                await writer.drain()
        writer.transport.abort()

    def _wait_again(self, patterns: tuple[bytes, ...]) -> None:
        if not self._patterns:
            self._patterns = patterns

    def _spring(self) -> None:
        self._then()
        self.sprung.set()
