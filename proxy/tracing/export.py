"""Spans to a collector, by OTLP/HTTP: in the background, in batches, and never in a statement's way.

What is to be sent waits in a queue with a limit. While the collector is away, slow or refuses, the oldest go
and are counted. A request that may be sent again (no answer, 429, 502, 503, 504) is, a few times, ever later;
one that is refused is not.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import structlog

from config.tracing import Tracing

from .otlp import encoded, resource
from .spans import OUTCOMES, Span

log = structlog.get_logger("proxy")

_BATCH: Final = 512
"""Spans of one request."""
_TURN: Final = 32
"""So many are written in one turn of the loop: half a millisecond."""
_AGAIN: Final = frozenset({429, 502, 503, 504})
_TRIES: Final = 5
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_REPLY: Final = 1 << 16
"""Bytes of a collector's answer that are read."""
_LAST: Final = 2.0
"""Seconds that a proxy which ends waits for the collector."""

Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]


class Exporter:
    """`exported`, `dropped` (before a collector had them) and `refused` (by a collector) count spans."""

    def __init__(
        self, settings: Tracing, spawn: Spawn, attributes: Mapping[str, str | int], version: str
    ) -> None:
        """`attributes`: of this process, beside the service's name."""
        self._settings = settings
        self._spawn = spawn
        self._queue: deque[Span] = deque()
        self._most = settings.queue
        about = {"service.name": settings.service_name, "service.version": version, **attributes}
        self._before, self._behind = resource(about, version)
        self._headers = {"content-type": "application/json", **settings.texts}
        self._ssl = settings.tls.context() if settings.tls is not None else True
        self._http: aiohttp.ClientSession | None = None
        self._task: asyncio.Task[None] | None = None
        self._due = 0.0
        self._shown = urlsplit(settings.endpoint)._replace(query="").geturl()  # there may be a key in it
        self._failing = False
        self._stopping = asyncio.Event()
        self.exported = self.dropped = self.refused = 0

    def __len__(self) -> int:
        """Spans that wait."""
        return len(self._queue)

    @property
    def counts(self) -> dict[str, int]:
        """Spans by what became of them."""
        return dict(zip(OUTCOMES, (self.exported, self.dropped, self.refused), strict=True))

    def put(self, span: Span) -> None:
        """Send it some time; never waits."""
        queue = self._queue
        if len(queue) >= self._most:
            queue.popleft()
            self.dropped += 1
        queue.append(span)

    def tick(self) -> None:
        """A few times a second."""
        waits = self._task is not None or self._stopping.is_set()
        due = time.monotonic() >= self._due or len(self._queue) >= _BATCH
        if self._queue and due and not waits:
            self._task = self._spawn(self._run(), "traces")

    async def stop(self) -> None:
        """Send what is there, if the collector takes it at once."""
        self._stopping.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST):
                if self._task is not None:
                    await asyncio.wait([self._task])
                while self._queue:
                    await self._send_batch()
        self.dropped += len(self._queue)
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()
        if self._http is not None:
            await self._http.close()

    async def _run(self) -> None:
        try:
            while self._queue and not self._stopping.is_set():
                await self._send_batch()
        finally:
            self._task = None
            self._due = time.monotonic() + self._settings.interval

    async def _send_batch(self) -> None:
        queue = self._queue
        batch = [queue.popleft() for _ in range(min(len(queue), _BATCH))]
        sent = False
        try:
            sent = await self._deliver(await self._written(batch), len(batch))
        finally:
            if not sent:
                self.dropped += len(batch)

    async def _written(self, batch: list[Span]) -> bytes:
        """The body of a request; the loop has turns between."""
        since = time.time() - time.monotonic()
        texts: list[str] = []
        spans = iter(batch)
        while part := list(islice(spans, _TURN)):
            texts += encoded(part, since)
            await asyncio.sleep(0)
        return "".join((self._before, ", ".join(texts), self._behind)).encode()

    async def _deliver(self, body: bytes, count: int) -> bool:
        """Whether the collector has got it, or has refused it, which is counted."""
        pause, reason = _FIRST_PAUSE, ""
        for number in range(_TRIES):
            if number:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._stopping.wait()
                pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                status, answer, wanted = await self._post(body)
            except (TimeoutError, aiohttp.ClientError, OSError) as error:
                reason = _why(error, self._settings.timeout)
            else:
                if status // 100 == 2:
                    self._arrived(count, answer)
                    return True
                reason = f"HTTP status {status}"
                if status not in _AGAIN:
                    self.refused += count
                    self._fails(reason)
                    return True
                pause = min(max(pause, wanted), _LONGEST_PAUSE)
            self._fails(reason)
            if self._stopping.is_set():
                break
        return False

    async def _post(self, body: bytes) -> tuple[int, bytes, float]:
        """Status, the beginning of the answer, and after how many seconds to come again. Raises what aiohttp
        raises, and TimeoutError.
        """
        http = self._http
        if http is None:
            timeout = aiohttp.ClientTimeout(total=self._settings.timeout)
            http = self._http = aiohttp.ClientSession(timeout=timeout, headers=self._headers)
        async with http.post(
            self._settings.endpoint, data=body, ssl=self._ssl, allow_redirects=False
        ) as response:
            wanted = response.headers.get("Retry-After", "")
            answer = await response.content.read(_REPLY)
            seconds = float(wanted) if wanted.isascii() and wanted.isdigit() else 0.0
            return response.status, answer, seconds

    def _arrived(self, count: int, answer: bytes) -> None:
        refused = min(_refused(answer), count)
        self.exported += count - refused
        self.refused += refused
        if self._failing:
            self._failing = False
            log.info("traces are exported again", endpoint=self._shown)

    def _fails(self, reason: str) -> None:
        """Said once, until it works again."""
        if not self._failing:
            self._failing = True
            log.warning("traces cannot be exported", endpoint=self._shown, reason=reason)


def _why(error: Exception, patience: float) -> str:
    """Why a request got no answer, within so many seconds: of a collector out of reach its address, and the
    system's words.
    """
    if isinstance(error, TimeoutError):
        return f"no answer within {patience:g} s"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return str(error)
    if not isinstance(error, aiohttp.ClientConnectorError):
        return str(error) or type(error).__name__
    cause = error.os_error
    known = cause.errno is not None and cause.errno > 0  # a resolver's numbers are none of the system's
    why = os.strerror(cause.errno or 0) if known else cause.strerror or str(cause)
    host = f"[{error.host}]" if ":" in error.host else error.host
    return f"{host}:{error.port}: {why}"


def _refused(answer: bytes) -> int:
    """How many of the spans a collector has not taken, of those that it has answered 200."""
    try:
        return max(0, int(json.loads(answer)["partialSuccess"].get("rejectedSpans", 0)))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return 0
