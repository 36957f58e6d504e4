"""The HTTP server, asked over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from config.address import Address, parse_address
from proxy import taken
from proxy.stats import Use
from proxy.status.calls import may_call
from proxy.status.server import StatusServer
from proxy.taken import ALONE, StatusPlace, claim_status

OURS = StatusPlace("ours")
ANYWHERE = Address("127.0.0.1", 0)
PATHS = ("/", "/status.json", "/live.json", "/metrics", "/healthz", "/readyz")


class Running:
    """A server and a way to ask it; `services` and `ready` may be changed."""

    def __init__(self, services: Any, place: StatusPlace = ALONE) -> None:
        self.services = services
        self.ready = services is not None
        self.loaded = True
        self.server = StatusServer(
            lambda: self.services,
            lambda: self.ready,
            lambda: "file topology.json",
            loaded=lambda: self.loaded,
            place=place,
        )

    async def get(self, path: str, method: str = "GET") -> tuple[int, str, Any]:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"http://{self.server.address}{path}") as answer,
        ):
            return answer.status, await answer.text(), answer.headers


@pytest.fixture
async def running(services: Any) -> AsyncIterator[Running]:
    made = Running(services)
    await made.server.start(ANYWHERE)
    yield made
    await made.server.stop()


async def test_pages_and_their_types(running: Running) -> None:
    types = {path: (await running.get(path))[2]["Content-Type"] for path in PATHS}
    assert types == {
        "/": "text/html; charset=utf-8",
        "/status.json": "application/json; charset=utf-8",
        "/live.json": "application/json; charset=utf-8",
        "/metrics": "text/plain; version=0.0.4; charset=utf-8",
        "/healthz": "application/json; charset=utf-8",
        "/readyz": "application/json; charset=utf-8",
    }
    for path in PATHS:
        status, _, headers = await running.get(path)
        assert (status, headers["Cache-Control"]) == (200, "no-store")


def test_every_page_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    assert set(re.findall(r"^\| `(/[\w.]*)` \|", text, re.M)) == set(PATHS)


async def test_the_address_says_where(running: Running) -> None:
    assert running.server.address.startswith("127.0.0.1:")
    assert running.server.url == f"http://{running.server.address}/"


async def test_every_page_answers_before_there_are_services(running: Running) -> None:
    running.services, running.ready = None, False
    statuses = {path: (await running.get(path))[0] for path in PATHS}
    assert statuses == dict.fromkeys(PATHS, 200) | {"/readyz": 503}
    assert "no server of the topology" in json.loads((await running.get("/readyz"))[1])["reason"]
    running.loaded = False
    for path in ("/readyz", "/status.json"):
        assert "no topology" in json.loads((await running.get(path))[1])["reason"]
    assert json.loads((await running.get("/status.json"))[1])["hosts"] == []


async def test_a_draining_proxy_is_alive_but_not_ready(running: Running) -> None:
    assert (await running.get("/readyz"))[:2] == (200, '{"status": "ready"}')
    running.services.clients.draining, running.ready = True, False
    status, text, _ = await running.get("/readyz")
    assert (status, json.loads(text)["status"]) == (503, "not ready")
    assert "draining" in json.loads(text)["reason"]
    assert (await running.get("/healthz"))[0] == 200
    assert "Draining: clients" in (await running.get("/"))[1]


async def test_other_paths_and_methods(running: Running) -> None:
    assert (await running.get("/etc/passwd"))[0] == 404
    assert (await running.get("/", "POST"))[0] == 405
    assert (await running.get("/metrics", "HEAD"))[:2] == (200, "")


async def test_a_unix_socket(tmp_path: Path, services: Any) -> None:
    path = tmp_path / "status.sock"
    made = Running(services)
    await made.server.start(Address(path=str(path)))
    assert (made.server.address, made.server.url) == (f"unix:{path}", "")
    connector = aiohttp.UnixConnector(str(path))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get("http://x/healthz") as answer,
    ):
        assert answer.status == 200
    await made.server.stop()
    assert not path.exists()


async def test_a_unix_socket_that_another_process_has_made_anew(tmp_path: Path, services: Any) -> None:
    path = tmp_path / "status.sock"
    old, new = Running(services, OURS), Running(services, OURS)
    await old.server.start(Address(path=str(path)))
    await new.server.start(Address(path=str(path)))
    await old.server.stop()
    assert path.exists()
    await new.server.stop()
    assert not path.exists()


async def test_an_address_in_use_is_an_error(services: Any) -> None:
    made = Running(services)
    other = socket.create_server(("127.0.0.1", 0))
    with other, pytest.raises(OSError, match=r"cannot listen at .* \(status.listen\)"):
        await made.server.start(Address("127.0.0.1", other.getsockname()[1]))
    assert made.server.address == ""
    await made.server.stop()


@pytest.mark.parametrize("place", [ALONE, StatusPlace("theirs"), StatusPlace("theirs", predecessor=True)])
@pytest.mark.parametrize("unix", [False, True])
async def test_another_proxys_address_is_not_shared(
    services: Any, tmp_path: Path, place: StatusPlace, unix: bool
) -> None:
    """Not by a successor of another one either."""
    old, new = Running(services, OURS), Running(services, place)
    await old.server.start(Address(path=str(tmp_path / "s.sock")) if unix else ANYWHERE)
    listen = parse_address(old.server.address)
    with pytest.raises(OSError, match=r"\(status.listen\): Address already in use. Choose another"):
        await new.server.start(listen)
    assert new.server.address == ""
    await old.server.stop()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("asked", [True, False])
def test_who_only_holds_a_port_has_not_taken_it(
    host: str, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not asked:  # a kernel that does not say who listens

        def refuse(family: socket.AddressFamily) -> set[int]:
            raise OSError

        monkeypatch.setattr(taken, "_listening", refuse)
    with socket.socket(taken.family_of(Address(host, 1))) as other:
        other.bind((host, 0))
        address = Address(host, other.getsockname()[1])
        assert not taken.taken(address)
        other.listen()
        assert taken.taken(address)
    assert not taken.taken(address)


@pytest.mark.parametrize("greeting", [b"", b"J\0\0\0\n8.0.36-shardgate\0"])
async def test_what_is_no_status_page_is_shared_only_while_it_is_silent(greeting: bytes) -> None:
    """A predecessor may hang; the port of another proxy's clients is not its page."""
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        address = Address("127.0.0.1", other.getsockname()[1])
        other.settimeout(20)

        def greet() -> None:
            with contextlib.suppress(ConnectionError), other.accept()[0] as client:
                client.sendall(greeting)
                client.settimeout(20)
                while client.recv(100):
                    pass

        thread = threading.Thread(target=greet)
        thread.start()
        claim = asyncio.to_thread(claim_status, address, StatusPlace("ours", predecessor=True))
        with pytest.raises(OSError, match="in use") if greeting else contextlib.nullcontext():
            await claim
        await asyncio.to_thread(thread.join)


async def test_an_answer_that_never_ends_holds_nobody_up() -> None:
    """Drop by drop, as the head of a page; who sends so is none."""
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        address = Address("127.0.0.1", other.getsockname()[1])
        other.settimeout(20)

        def drip() -> None:
            with contextlib.suppress(OSError), other.accept()[0] as client:
                client.sendall(b"HTTP/1.0 200 OK\r\n")
                while True:
                    client.sendall(b"x: y\r\n")
                    time.sleep(0.2)

        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises(OSError, match="in use"):
            await asyncio.wait_for(asyncio.to_thread(claim_status, address, StatusPlace("ours")), 15)
        await asyncio.to_thread(thread.join)


async def test_a_new_process_takes_the_port_over(services: Any) -> None:
    """Both listen, also when the old one drains by then; the one that drains steps aside."""
    running, new = Running(services, OURS), Running(services, OURS)
    await running.server.start(ANYWHERE)
    running.ready = False
    await new.server.start(Address("127.0.0.1", int(running.server.address.rpartition(":")[2])))
    await running.server.step_aside()
    for _ in range(20):
        assert (await new.get("/readyz"))[0] == 200
    await new.server.stop()
    await running.server.step_aside()  # nothing more to leave
    await running.server.stop()


async def test_a_draining_process_with_no_successor_keeps_the_port(running: Running) -> None:
    running.services.clients.draining, running.ready = True, False
    await running.server.step_aside()
    assert (await running.get("/readyz"))[0] == 503
    assert (await running.get("/healthz"))[0] == 200


async def test_stopping_ends_connections_and_frees_the_port(services: Any) -> None:
    made = Running(services)
    await made.server.stop()  # never started
    await made.server.start(ANYWHERE)
    port = int(made.server.address.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)  # idle, keeps nothing alive
    async with asyncio.timeout(5):
        await made.server.stop()
        await made.server.stop()
        assert await reader.read() == b""
    writer.close()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


async def test_garbage_gets_an_answer_and_harms_nobody(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """A log of what strangers send would bury the rest."""
    host, _, port = running.server.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n")
    async with asyncio.timeout(5):
        assert (await reader.readline()).startswith(b"HTTP/1.")
    writer.close()
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /\0 HTTP/1.1\r\nX: " + b"a" * 10_000 + b"\r\n\r\n")
    async with asyncio.timeout(5):
        assert b"400" in await reader.readline()
    writer.close()
    assert (await running.get("/healthz"))[0] == 200
    assert not caplog.records


# -- the page
# ----------------------------------------------------------------------------------------------------------


class Outline(HTMLParser):
    """Checks that tags are closed in order; keeps titles, texts and references to elsewhere."""

    VOID = frozenset({"meta", "br", "link", "img", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.titles: list[str] = []
        self.texts: list[str] = []
        self.references: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "title":
                self.titles.append(value or "")
            if name in ("href", "src", "action"):
                self.references.append(value or "")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open and self.open[-1] != "style":
            self.texts.append(data.strip())


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


async def test_the_page_shows_the_map_hosts_and_statements(running: Running) -> None:
    _, text, headers = await running.get("/")
    found = outline(text)
    assert "shards 2048–2559 (512) on db2.example:3306, frozen, open for new objects" in found.titles
    assert "on db1.example:3306, serving" in found.titles
    for expected in (
        "version 7",
        "1 of 3 hosts unreachable",
        "unreachable",
        "17 attempts: Connection refused",
        "host_unreachable 1",
        "ok 95",
    ):
        assert expected in found.texts
    assert "From file topology.json" in found.texts
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; connect-src 'self'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'unsafe-inline'" not in policy


async def test_the_page_is_self_contained(running: Running) -> None:
    text = (await running.get("/"))[1]
    found = outline(text)
    refreshes = {"?refresh=0", "?refresh=5", "?refresh=30"}
    assert set(found.references) == refreshes | {"status.json", "metrics", "status.js", "#hosts"}
    assert not found.tags & {"link", "img", "iframe", "form"}
    script = (await running.get("/status.js"))[1]
    assert "http" not in script.replace('const SVG = "http://www.w3.org/2000/svg";', "")
    assert text.count("<script") == 1
    assert '<script src="status.js" defer></script>' in text
    assert "url(" not in text
    assert "@import" not in text


async def test_what_others_have_written_is_escaped(running: Running) -> None:
    running.services.backends.pool("db3.example:3306").last_error = "<script>alert(1)</script>"
    running.services.stats.refused("<b>")
    running.services.stats.digests["<script>alert(2)</script>\x1b[2J\x9b", "", "select"] = use = Use()
    use.count, use.seconds = 1, 9.0
    text = (await running.get("/"))[1]
    assert "&lt;script&gt;alert(2)" in text
    assert text.count("<script") == 1
    assert not {"\x1b", "\x9b"} & set(text)  # who reads it with curl has a terminal
    outline(text)


@pytest.mark.parametrize(
    ("query", "seconds"), [("", None), ("?refresh=5", 5), ("?refresh=0", None), ("?refresh=1", None)]
)
async def test_the_page_reloads_when_asked_to(running: Running, query: str, seconds: int | None) -> None:
    text = (await running.get(f"/{query}"))[1]
    assert ('http-equiv="refresh"' in text) is (seconds is not None)
    if seconds:
        assert f'http-equiv="refresh" content="{seconds}"' in text


async def test_pages_right_after_the_start(running: Running) -> None:
    from .conftest import make_services

    running.services = make_services({"version": 1, "keyspaces": {"legacy": {"master": "db1.example:3306"}}})
    found = outline((await running.get("/"))[1])
    assert "No statement yet." in found.texts
    assert "not used yet" in found.texts
    assert "No change since the start: version 1 has been in use all the time." in found.texts


@pytest.mark.parametrize("after", ["", "x", "-1", "³", "9" * 5000, "12"])
async def test_news_whatever_is_asked_for(running: Running, after: str) -> None:
    status, text, _ = await running.get(f"/live.json?after={after}")
    assert status == 200
    assert json.loads(text)["map"][0]["count"] == 4096


async def test_news_before_there_is_a_server(running: Running) -> None:
    running.services = None
    status, text, _ = await running.get("/live.json")
    assert (status, json.loads(text)["points"]) == (200, [])


@pytest.mark.parametrize(
    ("host", "listen", "names", "answered"),
    [
        *(
            (host, "127.0.0.1", None, True)
            for host in ("", "127.0.0.1:9307", "[::1]:9307", "10.0.0.5", "::1")
        ),
        *((host, "127.0.0.1", None, True) for host in ("localhost", "LocalHost:1", "a.localhost.", "proxy1")),
        *(
            (host, "127.0.0.1", None, False)
            for host in ("evil.example", "evil.example:9307", "127.0.0.1.evil")
        ),
        *((host, "::1", None, False) for host in ("evil.example", "1.2.3", "0x7f.1", "a.b]", "\xff.x")),
        ("evil.example", "localhost", None, False),
        ("evil.example", "0.0.0.0", None, True),
        ("evil.example", "10.0.0.5", None, True),
        ("Status.Example:80", "127.0.0.1", {"status.example"}, True),
        ("status.example", "0.0.0.0", {"status.example"}, True),
        ("evil.example", "0.0.0.0", {"status.example"}, False),
        ("proxy1", "0.0.0.0", {"status.example"}, False),
        ("10.0.0.5:9307", "0.0.0.0", {"status.example"}, True),
    ],
)
def test_who_calls_it_how(host: str, listen: str, names: set[str] | None, answered: bool) -> None:
    assert may_call(host, Address(listen, 9307), names) is answered
    assert may_call(host, Address(path="/run/status.sock"), None)


async def test_a_page_of_others_cannot_read_it_through_a_browser(running: Running) -> None:
    """Its own name leads to this address by then: DNS rebinding."""
    async with aiohttp.ClientSession() as session:
        for path in PATHS:
            url, named = f"http://{running.server.address}{path}", {"Host": "evil.example:9307"}
            async with session.get(url, headers=named) as answer:
                assert answer.status == 421
                assert "status.names" in await answer.text()
