"""The status server in a thread of its own: it answers while the worker's loop does not turn."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest

from config.address import Address
from proxy.status.apart import Apart, Away
from proxy.status.server import StatusServer


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
async def apart(services: Any) -> Any:
    home = Away(asyncio.get_running_loop())
    server = StatusServer(lambda: services, lambda: True, home=home)
    made = Apart(server)
    await made.start(Address("127.0.0.1", 0))
    yield server
    await made.stop()
    await made.stop()


async def test_pages_answer_while_the_loop_is_busy(apart: StatusServer) -> None:
    url = apart.url
    before = json.loads((await asyncio.to_thread(get, f"{url}status.json"))[1])
    assert before["reason"] == ""
    found: dict[str, tuple[int, str]] = {}
    answered = threading.Event()

    def ask() -> None:
        for path in ("metrics", "status.json", "", "readyz", "live.json"):
            found[path] = get(url + path)
        answered.set()

    thread = threading.Thread(target=ask)
    thread.start()
    assert answered.wait(60)  # in the loop's own thread: nothing else runs there
    thread.join()
    assert "shardgate_statements_total" in found["metrics"][1]
    assert json.loads(found["status.json"][1])["hosts"] == before["hosts"]
    assert json.loads(found["status.json"][1])["reason"].startswith("busy for longer than ")
    assert "Busy for longer than " in found[""][1]
    assert [found[path][0] for path in ("metrics", "", "readyz", "live.json")] == [200, 200, 503, 503]
    after = json.loads((await asyncio.to_thread(get, f"{url}status.json"))[1])
    assert after["reason"] == ""
    assert (await asyncio.to_thread(get, f"{url}readyz"))[0] == 200
    assert (await asyncio.to_thread(get, f"{url}live.json"))[0] == 200


async def test_healthz_says_that_the_loop_turns(apart: StatusServer) -> None:
    thread = threading.Thread(target=get, args=(f"{apart.url}healthz",))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    await asyncio.to_thread(thread.join, 20)
    assert not thread.is_alive()


async def test_an_address_that_is_not_ours(services: Any) -> None:
    other = Apart(StatusServer(lambda: services, lambda: True, home=Away(asyncio.get_running_loop())))
    with pytest.raises(OSError, match=r"assign"):
        await other.start(Address("192.0.2.1", 1))
    await other.stop()
