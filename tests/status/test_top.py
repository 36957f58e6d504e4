"""`shardgate top`: what the page shows, in a terminal."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from config.address import Address
from proxy.cli import app
from proxy.load import bucket_of
from proxy.stats import Use
from proxy.status.server import StatusServer
from proxy.top import TopError, news, screen, spark, watch

from .conftest import FIRST, THIRD


@pytest.fixture
async def page(services: Any) -> AsyncIterator[str]:
    loads, topology = services.backends.loads, services.serving.topology
    for _ in range(9):
        loads.shard(b"db00003", topology).add(0.001, 1, bucket_of(0.001))
    loads.shard(b"db00004", topology).add(0.9, 1, bucket_of(0.9))
    failing = loads.shard(b"db01030", topology)
    failing.add(0.001, 0, bucket_of(0.001))
    failing.errors = 1
    use = services.stats.digests["SELECT \x1b[2J\x07 FROM pins WHERE id = ?", "demo", "select"] = Use()
    use.count, use.seconds, use.longest, use.rows, use.shards = 4, 2.0, 0.75, 8, 4
    server = StatusServer(lambda: services, lambda: True)
    await server.start(Address("127.0.0.1", 0))
    yield server.url
    await server.stop()


def shown(live: dict[str, Any], status: dict[str, Any], width: int = 160) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=60)
    console.print(screen(live, status))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


async def test_a_look(page: str) -> None:
    lines = shown(*await asyncio.to_thread(news, page))
    text = "\n".join(lines)
    assert "49 clients, 16 busy" in text
    assert "\x1b" not in text
    assert "\x07" not in text
    (statement,) = [line for line in lines if "FROM pins WHERE id = ?" in line]
    assert statement.split()[-9:] == ["2", "s", "500", "ms", "750", "ms", "0", "8", "1"]
    assert any(line.startswith(THIRD) and "unreachable" in line for line in lines)
    shards = [line.split()[:4] for line in lines if line.startswith("main ")]
    assert [one[1] for one in shards] == ["1030", "4", "3"]
    assert [one[3] for one in shards] == ["failing", "slow", "well"]
    assert FIRST in shards[1]


async def test_a_narrow_terminal(page: str) -> None:
    """Names are shortened, figures are not."""
    live, status = await asyncio.to_thread(news, page)
    status["slowest"][0]["digest"] = "SELECT a_long_statement " + ", ".join(["x"] * 99)
    lines = shown(live, status, 80)
    (statement,) = [line for line in lines if "SELECT a_" in line]
    assert statement.split()[-9:] == ["2", "s", "500", "ms", "750", "ms", "0", "8", "1"]
    assert any(line.startswith(THIRD[:6]) and "unreach" in line for line in lines)
    (head,) = [line for line in lines if line.startswith("host ")]
    assert head.split()[-9:] == ["a", "second", "mean", "p95", "errors", "busy", "idle", "waiting", "limit"]
    assert max(map(len, lines)) <= 80


async def test_charts_of_two_minutes(page: str) -> None:
    live, status = await asyncio.to_thread(news, page)
    quiet = {"statements": 0.0, "errors": 0.0, "p95": 0.0}
    live["points"] = [quiet | {"statements": float(number)} for number in range(100)]
    (line,) = [line for line in shown(live, status) if "statements a second" in line]
    assert "99" in line
    assert line.count("█") == sum(number * 8 // 99 >= 7 for number in range(40, 100))
    assert spark([0, 0]) == "▁▁"
    assert spark([]) == ""


async def test_once(page: str) -> None:
    found = await asyncio.to_thread(CliRunner().invoke, app, ["top", "--once", "--url", page])
    assert found.exit_code == 0, found.output
    assert "Hot shards" in found.output


def test_nobody_answers() -> None:
    with pytest.raises(TopError, match="does not answer"):
        watch(Console(), "http://127.0.0.1:9", 1.0, once=True)
    found = CliRunner().invoke(app, ["top", "--url", "http://127.0.0.1:9"])
    assert found.exit_code == 1
    assert "status.listen" in found.stderr


async def test_something_else_answers(page: str) -> None:
    with pytest.raises(TopError, match=r"not the status page|does not answer"):
        await asyncio.to_thread(news, f"{page}metrics?")
