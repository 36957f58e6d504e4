"""What workers ask each other, and what the log says when that comes to nothing."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from proxy.kept import Kept
from proxy.peers import Peers
from tests.support.waiting import async_wait_until


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[Peers]:
    made = Peers(tmp_path, 0, 2, Kept(2))
    await made.start()
    yield made
    await made.stop()


async def test_a_question(worker: Peers, tmp_path: Path) -> None:
    worker.handlers["sum"] = lambda request: sum(request.values())
    other = Peers(tmp_path, 1, 2, Kept(2))
    assert await other.ask(0, "sum", one=1, two=2) == 3
    with capture_logs() as logs:
        assert await other.ask(0, "nothing of this kind") is None
    (line,) = logs
    assert (line["question"], line["asked_by"]) == ("nothing of this kind", os.getpid())


async def test_who_answers_too_late_says_whom(worker: Peers, tmp_path: Path) -> None:
    asked, going = asyncio.Event(), asyncio.Event()

    async def late(_: Any) -> str:
        asked.set()
        await going.wait()
        return "x" * (1 << 22)

    worker.handlers["late"] = late
    with capture_logs() as logs:
        _, writer = await asyncio.open_unix_connection(str(tmp_path / "0.sock"))
        writer.write(json.dumps({"ask": "late", "pid": 4711}).encode() + b"\n")
        await asked.wait()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        going.set()
        await async_wait_until(lambda: bool(logs), "a line")
    (line,) = logs
    assert line["event"] == "a worker answers another one too late"
    assert (line["question"], line["asked_by"]) == ("late", 4711)
    assert "(" not in line["reason"]  # no Python
