"""examples/pinboard, by what its page asks the server."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from config.layout import PINTEREST
from tests.examples.conftest import Visitor, new_board, new_user, order_of, rows
from tests.support.demo import Demo

MS, NOW_MS = 10**25, 1_700_000_000_000

pytestmark = pytest.mark.either_server


def test_boards_and_pins_are_on_their_users_shard(fleet: Demo, pinboard: str) -> None:
    ada, user = new_user(pinboard)
    board, pins = new_board(ada, 3)
    assert {PINTEREST.shard_of(one) for one in (board, *pins)} == {PINTEREST.shard_of(user)}
    assert order_of(fleet, board) == pins
    assert rows(fleet, f"SELECT board_id FROM pin_owned_by_board WHERE pin_id = {pins[0]}") == [(board,)]
    shown = ada.get(f"/api/boards/{board}")
    assert (shown["pins"], shown["user"]["id"], shown["following"]) == (3, str(user), False)
    page = ada.get(f"/api/boards/{board}/pins")
    assert [int(pin["id"]) for pin in page["pins"]] == pins
    assert page["cursor"] is None
    assert [one["id"] for one in ada.get(f"/api/users/{user}")["boards"]] == [str(board)]
    assert str(board) in {one["id"] for one in ada.get("/api/boards")["boards"]}


def test_signing_in(pinboard: str) -> None:
    visitor = Visitor(pinboard)
    assert visitor.get("/api/session")["user"] is None
    assert len(visitor.get("/api/session")["known"]) == 8
    assert visitor.ask("GET", "/api/feed")[0] == 401
    made = visitor.do("POST", "/api/session", {"username": "Some.Body"})
    assert visitor.get("/api/session")["user"]["username"] == "some.body"
    visitor.do("DELETE", "/api/session")
    assert visitor.get("/api/session")["user"] is None
    assert visitor.do("POST", "/api/session", {"username": "some.body"}) == made
    assert visitor.ask("POST", "/api/session", {"username": "<script>"})[0] == 400
    for cookie in ("", "x", "-1", "9" * 20, "9" * 5000):  # of another demo, or of anything
        assert visitor.ask("GET", "/api/session", cookie=cookie)[1]["user"] is None
        assert visitor.ask("POST", "/api/boards", {"name": "Nobody's"}, cookie=cookie)[0] == 401


def test_one_user_is_made_of_a_name(fleet: Demo, pinboard: str) -> None:
    def sign_in(_: int) -> int:
        return Visitor(pinboard).ask("POST", "/api/session", {"username": "at_once"})[0]

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(sign_in, range(8)))
    assert set(statuses) <= {200, 409}
    assert 200 in statuses
    made = "SELECT COUNT(*) FROM users WHERE JSON_VALUE(data, '$.username') = 'at_once'"
    assert rows(fleet, made) == [(1,)]


def test_a_like_is_in_both_lists_once(fleet: Demo, pinboard: str) -> None:
    ada, user = new_user(pinboard)
    grace, _ = new_user(pinboard)
    board, [pin] = new_board(grace, 1)
    path = f"/api/pins/{pin}/like"
    with ThreadPoolExecutor(6) as pool:
        assert [answer["liked"] for answer in pool.map(lambda _: ada.do("PUT", path), range(6))] == [True] * 6
    assert grace.do("PUT", path) == {"liked": True, "likes": 2}
    assert rows(fleet, f"SELECT pin_id FROM user_likes_pins WHERE user_id = {user}") == [(pin,)]
    [card] = ada.get(f"/api/boards/{board}/pins")["pins"]
    assert (card["likes"], card["liked"]) == (2, True)
    assert ada.do("DELETE", path) == {"liked": False, "likes": 1}
    assert rows(fleet, f"SELECT pin_id FROM user_likes_pins WHERE user_id = {user}") == []
    assert ada.ask("PUT", "/api/pins/99999999999999999999/like")[0] == 404


def test_the_feed_is_of_all_boards_that_one_follows(pinboard: str) -> None:
    reader, _ = new_user(pinboard)
    assert reader.get("/api/feed") == {"pins": [], "cursor": None}
    made = []
    for _ in range(3):
        author, _ = new_user(pinboard)
        made.append((author, *new_board(author)))
        for _ in range(2):  # the second time it is followed already
            assert reader.do("PUT", f"/api/boards/{made[-1][1]}/follow") == {"following": True}
    expected: list[tuple[str, str]] = []
    for number in range(30):
        author, board, _ = made[number % 3]
        pin = author.do("POST", f"/api/boards/{board}/pins", {"details": f"Pin {number}"})["id"]
        expected.insert(0, (pin, str(board)))
    first = reader.get("/api/feed")
    second = reader.get(f"/api/feed?cursor={first['cursor']}")
    assert len(first["pins"]) == 24
    assert second["cursor"] is None
    found = first["pins"] + second["pins"]
    assert sorted((pin["id"], pin["board"]["id"]) for pin in found) == sorted(expected)
    assert reader.do("DELETE", f"/api/boards/{made[0][1]}/follow") == {"following": False}
    assert len(reader.get("/api/feed")["pins"]) == 20


def test_users_of_the_demo_have_a_feed(fleet: Demo, pinboard: str) -> None:
    [[follower]] = rows(fleet, "SELECT MIN(user_id) FROM user_follows_boards")
    [[name]] = rows(fleet, f"SELECT username FROM usernames WHERE user_id = {follower}")
    visitor = Visitor(pinboard)
    visitor.do("POST", "/api/session", {"username": name})
    assert visitor.get("/api/feed")["pins"]


def test_moving(fleet: Demo, pinboard: str) -> None:
    ada, _ = new_user(pinboard)
    board, [a, b, c, d] = new_board(ada, 4)
    path = f"/api/boards/{board}/order"

    def move(pin: int, before: int | None, after: int | None) -> tuple[int, Any]:
        ends = {name: one and str(one) for name, one in (("before", before), ("after", after))}
        return ada.ask("POST", path, {"pin": str(pin), **ends})

    assert move(d, a, b) == (200, {"note": None})
    assert order_of(fleet, board) == [a, d, b, c]
    assert move(b, None, a) == (200, {"note": None})
    assert order_of(fleet, board) == [b, a, d, c]
    # what another page does that does not know of that
    status, answer = move(c, a, b)
    assert status == 200
    assert "meanwhile" in answer["note"]
    moved = order_of(fleet, board)
    assert moved == [b, c, a, d]
    status, answer = move(c, d, b)
    assert status == 409
    assert "meanwhile" in answer["error"]
    assert order_of(fleet, board) == moved
    assert move(5, a, b)[0] == 409
    assert move(a, None, None)[0] == 409  # it is not alone any more


def test_a_board_of_ten_thousand_pins(fleet: Demo, pinboard: str) -> None:
    """Two have one sequence each, so that pages end between them. No page reads what is ahead of it."""
    ada, _ = new_user(pinboard)
    board, _ = new_board(ada)
    base = PINTEREST.base(PINTEREST.decompose(board)["shard"], 1)
    pins = [base + 1_000_000_000 - number for number in range(10_000)]
    with closing(fleet.connect()) as connection, connection.cursor() as cursor:
        objects = ", ".join(f"""({pin}, '{{"details": "One of many"}}')""" for pin in pins)
        cursor.execute(f"INSERT INTO pins (id, data) VALUES {objects}")
        places = ", ".join(
            f"({board}, {pin}, {MS * (NOW_MS - place // 2)})" for place, pin in enumerate(pins)
        )
        cursor.execute(f"INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES {places}")
    assert ada.get(f"/api/boards/{board}")["pins"] == 10_000

    def walk(cursor: str, pages: int) -> list[int]:
        found = []
        for _ in range(pages):
            page = ada.get(f"/api/boards/{board}/pins?cursor={cursor}")
            found += [int(pin["id"]) for pin in page["pins"]]
            cursor = page["cursor"]
        return found

    assert walk(f"{MS * NOW_MS * 2}-0", 5) == pins[: 5 * 24]
    assert walk(f"{MS * (NOW_MS - 4974)}-{pins[9948]}", 3) == pins[9949:]


def test_what_is_refused(pinboard: str) -> None:
    ada, _ = new_user(pinboard)
    eve, _ = new_user(pinboard)
    board, [pin] = new_board(ada, 1)
    pins, order = f"/api/boards/{board}/pins", f"/api/boards/{board}/order"
    assert eve.ask("POST", pins, {"details": "Mine"})[0] == 403
    assert eve.ask("POST", order, {"pin": str(pin), "before": None, "after": None})[0] == 403
    assert ada.ask("POST", pins, {"details": "x", "link": "javascript:alert(1)"})[0] == 400
    assert ada.ask("POST", pins, {"details": " "})[0] == 400
    assert ada.ask("POST", pins, {"details": "x" * 201})[0] == 400
    assert ada.ask("POST", pins, ["details"])[0] == 400
    assert ada.ask("POST", order, {"pin": pin, "before": None, "after": None})[0] == 400  # no text
    assert ada.ask("GET", pins + "?cursor=1%20OR%201=1")[0] == 400
    assert ada.ask("GET", "/api/boards/18446744073709551616")[0] == 404
    assert ada.ask("GET", f"/api/boards/{pin}")[0] == 404  # an ID of another table
    # what a form of another site can send
    assert ada.ask("POST", pins, {"details": "x"}, kind="text/plain")[0] == 415
    assert len(ada.get(pins)["pins"]) == 1


def test_headers(pinboard: str) -> None:
    for path in ("/", "/page/pinboard.js", "/common/common.css", "/api/session"):
        with urllib.request.urlopen(pinboard + path, timeout=30) as answer:
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
            assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_without_a_demo(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.pinboard", "--ready-file", str(tmp_path / "none.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "Start `make demo`" in done.stderr


@pytest.mark.parametrize("name", ["pinboard", "photos"])
def test_its_readme_names_what_is_there(name: str) -> None:
    folder = Path(__file__).parents[2] / "examples" / name
    readme = (folder / "README.md").read_text()
    files = {path.name for path in folder.glob("*") if path.suffix in (".py", ".yaml")} - {"__init__.py"}
    assert {file for file in files if f"`{file}`" not in readme} == set()
