"""The web examples, started as a newcomer does, on a demo that all of their tests share."""

from __future__ import annotations

import http.cookiejar
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from demo.process import free_port, spawn, stop_all, tail
from demo.programs import Program
from tests.support.browser import find_browser
from tests.support.demo import Demo, running_demo
from tests.support.waiting import wait_until

_names = count(1)


class Visitor:
    """Somebody with cookies. `ask` gives the status and the JSON of an answer."""

    def __init__(self, url: str) -> None:
        self.url = url
        jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = "application/json",
        cookie: str | None = None,
    ) -> tuple[int, Any]:
        data = None if method == "GET" else json.dumps({} if body is None else body).encode()
        headers = {"Content-Type": kind} | ({} if cookie is None else {"Cookie": f"user={cookie}"})
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def get(self, path: str) -> Any:
        """What must be there."""
        status, answer = self.ask("GET", path)
        assert status == 200, answer
        return answer

    def do(self, method: str, path: str, body: Any = None) -> Any:
        """What must be done."""
        status, answer = self.ask(method, path, body)
        assert status == 200, answer
        return answer


@contextmanager
def running_example(name: str, demo: Demo, folder: Path) -> Iterator[str]:
    """`python -m examples.NAME`; its address."""
    port, log = free_port(), folder / f"{name}.log"
    options = ["--ready-file", str(demo.ready_file), "--port", str(port)]
    process = spawn([sys.executable, "-m", f"examples.{name}", *options], log)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: process.poll() is not None or _answers(url), f"{name} to serve")
        assert process.poll() is None, tail(log)
        yield url
    finally:
        stop_all([process], 10)
    assert "Traceback" not in log.read_text(), tail(log)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except OSError:
        return False


@pytest.fixture(scope="session")
def fleet(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo whose schema the examples add to."""
    with running_demo(program, tmp_path_factory.mktemp("examples")) as demo:
        yield demo


@pytest.fixture(scope="session")
def pinboard(fleet: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_example("pinboard", fleet, tmp_path_factory.mktemp("pinboard")) as url:
        yield url


@pytest.fixture(scope="session")
def photos(fleet: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_example("photos", fleet, tmp_path_factory.mktemp("photos")) as url:
        yield url


def new_user(url: str) -> tuple[Visitor, int]:
    """Somebody new, signed in, and the ID."""
    visitor = Visitor(url)
    answer = visitor.do("POST", "/api/session", {"username": f"visitor{next(_names)}"})
    return visitor, int(answer["id"])


def new_board(visitor: Visitor, pins: int = 0, name: str = "A board") -> tuple[int, list[int]]:
    """A board, and its pins as they are shown, newest first."""
    board = int(visitor.do("POST", "/api/boards", {"name": name})["id"])
    path = f"/api/boards/{board}/pins"
    made = [int(visitor.do("POST", path, {"details": f"Pin {number}"})["id"]) for number in range(pins)]
    return board, made[::-1]


def rows(demo: Demo, sql: str) -> list[tuple[Any, ...]]:
    """What the proxy answers."""
    with closing(demo.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def order_of(demo: Demo, board: int) -> list[int]:
    """The pins of a board in the database."""
    sql = f"SELECT pin_id FROM board_has_pins WHERE board_id = {board} ORDER BY sequence DESC, pin_id DESC"
    return [pin for (pin,) in rows(demo, sql)]


@pytest.fixture(scope="session")
def chromium() -> None:
    """A browser, or the test is skipped."""
    if find_browser() is None:
        pytest.skip("no Chromium (Debian: apt-get install chromium-headless-shell)")
