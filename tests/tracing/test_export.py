"""Whatever a collector answers, spans are counted, and nothing ends with an exception."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from config.tracing import Tracing
from demo.process import reserve_port
from proxy.tracing.export import Exporter
from proxy.tracing.spans import Call, Trace
from tests.support.waiting import async_wait_until


def reply(body: bytes, status: bytes = b"200 OK", more: bytes = b"") -> bytes:
    return b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n%b" % (status, more, len(body), body)


@asynccontextmanager
async def collector(answer: bytes) -> AsyncIterator[str]:
    """The endpoint of one that gives each request this answer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(size.partition(b":")[2]))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (reply(b'{"partialSuccess": {"rejectedSpans": 1e999}}'), "exported"),
        (reply(b'{"partialSuccess": {"rejectedSpans": NaN}}'), "exported"),
        (reply(b'{"partialSuccess": {"rejectedSpans": "' + b"9" * 5000 + b'"}}'), "exported"),
        (reply(b"[" * 60_000), "exported"),
        (reply(b"[]"), "exported"),
        (reply(b'{"partialSuccess": {"rejectedSpans": 99}}'), "refused"),
        (reply(b"", b"307 x", b"Location: http://127.0.0.1:9/\r\n"), "refused"),
        (reply(b"", b"503 x", "Retry-After: ²\r\n".encode()), ""),
        (reply(b"", b"503 x", b"Retry-After: " + b"9" * 5000 + b"\r\n"), ""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", ""),
        (b"\0\1garbage", ""),
    ],
)
async def test_hostile_answers(answer: bytes, outcome: str) -> None:
    raised: list[BaseException] = []

    def spawn(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        task.add_done_callback(
            lambda done: None if done.cancelled() or not done.exception() else raised.append(done.exception())  # type: ignore[arg-type]
        )
        return task

    async with collector(answer) as endpoint:
        settings = Tracing.model_validate({"endpoint": endpoint, "interval": "10ms", "timeout": "2s"})
        exporter = Exporter(settings, spawn, {}, "1")
        trace = Trace(exporter.put, None, hands_on=True)
        for _ in range(2):
            trace.called(Call(trace, trace.new(), "SELECT", 0, 1, "h:1", "mysql", (), 0, 1, True))
        exporter.tick()
        if outcome:
            await async_wait_until(lambda: exporter.counts[outcome] == 2, outcome)
        await exporter.stop()
    assert sum(exporter.counts.values()) == 2
    assert exporter.counts[outcome or "dropped"] == 2
    assert not raised


@pytest.mark.parametrize("hangs", [False, True])
async def test_why_a_collector_is_out_of_reach(hangs: bool) -> None:
    """In the system's words: what the client's library says of itself is nobody's business."""

    def spawn(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return asyncio.ensure_future(work)

    with reserve_port(0) as nobody, capture_logs() as logs:
        if hangs:
            nobody.listen()
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        settings = {"endpoint": f"http://{address}", "interval": "10ms", "timeout": "100ms"}
        exporter = Exporter(Tracing.model_validate(settings), spawn, {}, "1")
        trace = Trace(exporter.put, None, hands_on=True)
        trace.called(Call(trace, trace.new(), "SELECT", 0, 1, "h:1", "mysql", (), 0, 1, True))
        exporter.tick()
        await async_wait_until(lambda: bool(logs), "a line")
        await exporter.stop()
    (line,) = logs
    assert line["reason"] == ("no answer within 0.1 s" if hangs else f"{address}: Connection refused")
