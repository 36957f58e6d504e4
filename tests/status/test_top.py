"""`shardgate top`: what the page shows, in a terminal."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from config.address import Address
from proxy import top
from proxy.cli import app
from proxy.load import bucket_of
from proxy.screen import screen, spark
from proxy.stats import Use
from proxy.status.server import StatusServer
from proxy.top import TopError, news, watch

from .conftest import FIRST, SECOND, THIRD


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
    console.print(screen(live, status, width=width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


async def test_a_worker_that_hangs(page: str) -> None:
    live, status = await asyncio.to_thread(news, page)
    for workers, wanted, text in (
        (1, 1, "1 process "),
        (2, 2, "2 processes "),
        (1, 2, "ONLY 1 of 2 processes"),
    ):
        status |= {"workers": workers, "workers_wanted": wanted}
        assert text in "\n".join(shown(live, status))


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


@pytest.mark.parametrize(
    ("width", "hosts", "shards", "statements"),
    [
        (80, "a second mean p95 errors busy waiting limit", "a second p95 errors running oldest", 7),
        (60, "a second p95 errors waiting", "a second p95 errors", 4),
    ],
)
async def test_a_narrow_terminal(page: str, width: int, hosts: str, shards: str, statements: int) -> None:
    """Names are whole; what matters least goes first, and what is there is not cut."""
    live, status = await asyncio.to_thread(news, page)
    status["slowest"][0]["digest"] = "SELECT a_long_statement FROM a_table_" + ", ".join(["x"] * 99)
    lines = shown(live, status, width)
    assert max(map(len, lines)) <= width
    (statement,) = [line for line in lines if "SELECT a_" in line]
    assert statement.startswith("SELECT a_long_statement FROM ")
    figures = ["4", "2 s", "500 ms", "750 ms", "0", "8", "1"]
    assert " ".join(statement.split("…")[1].split()) == " ".join(figures[:statements])
    assert any(line.startswith(THIRD) and "unreachable" in line for line in lines)
    assert any(line.startswith("main 1030 ") and SECOND in line and "failing" in line for line in lines)
    heads = [" ".join(line.split()) for line in lines if line.startswith(("host ", "shard "))]
    assert heads == [f"host state {hosts}", f"shard host state {shards}"]


async def test_charts_of_two_minutes(page: str) -> None:
    live, status = await asyncio.to_thread(news, page)
    quiet = {"statements": 0.0, "errors": 0.0, "p95": 0.0}
    live["points"] = [quiet | {"statements": float(number)} for number in range(100)]
    (line,) = [line for line in shown(live, status) if "statements a second" in line]
    assert "99" in line
    assert line.count("█") == sum(number * 8 // 99 >= 7 for number in range(40, 100))
    live["points"][-1] = quiet | {"statements": 800.0}
    for width, least in (
        (80, 44),
        (60, 24),
        (40, 4),
    ):  # there is no room for all, and the newest matters most
        (line,) = [line for line in shown(live, status, width) if "statements a second" in line]
        chart = line.rstrip(" │").rpartition(" ")[2]
        assert chart.endswith("▁█"), width
        assert len(chart) >= least
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


@contextmanager
def answering(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """The address of what answers a request so, and closes; what it is asked is given to `answer`."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                # The client may close before it has read all: that is what some of the tests are about.
                with connection, suppress(ConnectionError):
                    connection.sendall(answer(connection.recv(65536)))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def page_of(body: bytes, more: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\n" + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def plain_look(url: str) -> str:
    """`shardgate top --once`, as it ends well or badly, but never with a traceback."""
    console = Console(file=io.StringIO(), width=160, height=60, color_system=None)
    try:
        watch(console, url, 1.0, once=True)
    except TopError as error:
        return str(error)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\1 garbage \x1b[2J\r\n\r\n",
        b"HTTP/1.1 500 \x1b[2J\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n{",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 500 + b"\r\n",
        page_of(b"\xff\xfe\x1b[2J"),
        page_of(b"[" * 100_000),
        page_of(b'{"points": 1, "slowest": 1}'),
        page_of(b'{"points": [], "slowest": [], "hot": [], "hosts": 3}'),
    ],
)
def test_a_page_that_answers_garbage_ends_with_one_line(answer: bytes) -> None:
    with answering(lambda _: answer) as url:
        told = plain_look(url)
    assert any(one in told for one in ("not the status page", "is no status page", "does not answer"))
    assert "\x1b" not in told


def test_a_page_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "_LARGEST", 1 << 20)
    with answering(lambda _: page_of(b"[" * (2 << 20))) as url:
        assert "more than 1 MB" in plain_look(url)
    monkeypatch.setattr(top, "_PATIENCE", -1.0)
    with answering(lambda _: page_of(b"{}")) as url:
        assert "longer than" in plain_look(url)
    with pytest.raises(TopError, match="http://"):
        watch(Console(), "file:///etc/passwd", 1.0, once=True)


async def test_texts_are_shown_and_not_obeyed(page: str) -> None:
    """Servers and clients have their words in it: brackets are no markup, escape sequences none of ours."""
    live, status = await asyncio.to_thread(news, page)
    evil = "\x1b]0;x\x07\x1b[2J\u202e"
    status = copy.deepcopy(status)
    status["ready"], status["reason"], status["version"] = False, f"refused {evil}", evil
    first = status["hosts"][0]
    live["hosts"]["[fe80::1]:3306"] = live["hosts"].get(first["host"], {})
    first["host"] = "[fe80::1]:3306"
    live["hot"][0]["host"] = f"[/nothing]{evil}:smile:"

    def answer(request: bytes) -> bytes:
        return page_of(json.dumps(live if b"live" in request else status).encode())

    with answering(answer) as url:
        lines = await asyncio.to_thread(plain_look, url)
    assert "[fe80::1]:3306" in lines
    assert "[/nothing]" in lines
    assert ":smile:" in lines
    assert not {"\x1b", "\x07", "\u202e"} & set(lines)
