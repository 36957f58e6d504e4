"""Workers talk to each other: a Unix socket each, one JSON line there and one back.

Clients see one server, but each worker process has sessions of its own. `KILL 16777220` and the status page
must reach the others. The upper bits of a connection id are its worker's number, so KILL knows whom to ask.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import suppress
from inspect import isawaitable
from pathlib import Path
from typing import Any

import structlog

from .kept import Kept

log = structlog.get_logger("proxy")

_TIMEOUT = 2.0
_LINE = 1 << 24

Request = dict[str, Any]
Handler = Callable[[Request], Any]


class Peers:
    """This worker's end of the talk. `directory` holds the sockets; `count` workers are numbered from 0.
    `kept`: what those have counted that cannot be asked any more.
    """

    def __init__(self, directory: Path, number: int, count: int, kept: Kept) -> None:
        self.directory = directory
        self.number = number
        self.count = count
        self.kept = kept
        self.handlers: dict[str, Handler] = {}
        self._server: asyncio.Server | None = None

    def _path(self, number: int) -> str:
        return str(self.directory / f"{number}.sock")

    async def start(self) -> None:
        """Listen for the others."""
        path = self._path(self.number)
        with suppress(FileNotFoundError):
            os.unlink(path)
        self._server = await asyncio.start_unix_server(self._serve, path, limit=_LINE)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            with suppress(FileNotFoundError):
                os.unlink(self._path(self.number))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        what, asker = "", 0
        try:
            request = json.loads(await reader.readline())
            what, asker = request.pop("ask"), request.pop("pid", 0)
            answer = self.handlers[what](request)
            if isawaitable(answer):
                answer = await answer
            writer.write(json.dumps(answer).encode() + b"\n")
            try:
                await writer.drain()
            except ConnectionError:  # the line has this worker's own pid, as all lines have
                reason = "it waits no longer, or has ended"
                log.warning(
                    "a worker answers another one too late", question=what, asked_by=asker, reason=reason
                )
        except (OSError, ValueError, KeyError) as error:
            reason = f"{type(error).__name__}: {error}"
            log.warning("a worker cannot answer another one", question=what, asked_by=asker, reason=reason)
        finally:
            writer.close()

    async def ask(self, number: int, what: str, *, patience: float = _TIMEOUT, **details: Any) -> Any:
        """Ask worker `number`; None when it does not answer within `patience` seconds: it may just be
        starting again.
        """
        try:
            async with asyncio.timeout(patience):
                reader, writer = await asyncio.open_unix_connection(self._path(number), limit=_LINE)
                try:
                    writer.write(json.dumps({"ask": what, "pid": os.getpid(), **details}).encode() + b"\n")
                    line = await reader.readline()
                finally:
                    writer.close()
            return json.loads(line) if line else None
        except (OSError, ValueError, TimeoutError):
            return None

    async def ask_others(self, what: str, **details: Any) -> list[Any]:
        """Ask every other worker at once; the answers that came."""
        return (await self.ask_or_look(what, **details))[0]

    async def ask_or_look(self, what: str, **details: Any) -> tuple[list[Any], list[list[Any]]]:
        """The same, and what is kept of those that have not answered."""
        others = [number for number in range(self.count) if number != self.number]
        answers = await asyncio.gather(*(self.ask(number, what, **details) for number in others))
        silent = [number for number, answer in zip(others, answers, strict=True) if answer is None]
        kept = [lines for lines in map(self.kept.get, silent) if lines]
        return [answer for answer in answers if answer is not None], kept


async def with_kept(
    peers: Peers | None, what: str, own: Any, **details: Any
) -> tuple[list[Any], list[list[Any]]]:
    """As `of_all`, and what is kept of those that have not answered."""
    answers, kept = ([], []) if peers is None else await peers.ask_or_look(what, **details)
    return [own, *answers], kept


async def of_all(peers: Peers | None, what: str, own: Any, **details: Any) -> list[Any]:
    """`own`, which is this worker's, and the answers of the others that came."""
    return [own] if peers is None else [own, *await peers.ask_others(what, **details)]
