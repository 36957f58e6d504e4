"""examples/photos, by what its page asks the server."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from config.layout import INSTAGRAM
from tests.examples.conftest import new_user, rows
from tests.support.demo import Demo

EPOCH_MS = 1_314_220_021_721

pytestmark = pytest.mark.either_server


def test_an_id_says_when_and_where(fleet: Demo, photos: str) -> None:
    ada, user = new_user(photos)
    before = time.time_ns() // 1_000_000
    made = [ada.do("POST", "/api/photos", {"caption": f"Photo {number}"}) for number in range(3)]
    after = time.time_ns() // 1_000_000
    ids = [int(photo["id"]) for photo in made]
    assert ids == sorted(ids)
    for photo, id in zip(made, ids, strict=True):
        fields = INSTAGRAM.decompose(id)
        assert fields["shard"] == photo["parts"]["shard"] == user % 64
        assert fields["sequence"] == photo["parts"]["sequence"]
        assert before - 5000 <= fields["time"] + EPOCH_MS <= after + 5000
        assert photo["user"]["id"] == str(user)
    assert rows(fleet, f"SELECT COUNT(*) FROM photos WHERE user_id = {user}") == [(3,)]
    assert [one["id"] for one in ada.get(f"/api/users/{user}/photos")["photos"]] == [
        str(id) for id in ids[::-1]
    ]
    assert ada.get(f"/api/photos/{ids[0]}") == {"photo": made[0], "parts": made[0]["parts"]}


def test_an_id_that_no_photo_has(photos: str) -> None:
    ada, _ = new_user(photos)
    answer = ada.get("/api/photos/286349695553378317")
    assert answer["photo"] is None
    assert answer["parts"]["shard"] == 6
    for id in (0, 2**64, 10**20 - 1):
        assert ada.get(f"/api/photos/{id}")["photo"] is None
    assert ada.ask("GET", "/api/photos/1e5")[0] == 400
    assert ada.ask("GET", f"/api/photos/{2**63 - 1}")[0] >= 500  # its shard is missing: nobody knows
    assert ada.ask("PUT", "/api/photos/286349695553378317/like")[0] == 404


def test_following(fleet: Demo, photos: str) -> None:
    reader, me = new_user(photos)
    authors = [new_user(photos) for _ in range(3)]
    for author, user in authors:
        again = [f"/api/users/{user}/follow"] * 4
        with ThreadPoolExecutor(4) as pool:
            assert all(one["following"] for one in pool.map(lambda path: reader.do("PUT", path), again))
        for number in range(5):
            author.do("POST", "/api/photos", {"caption": f"Photo {number}"})
    ids = []
    path = "/api/feed"
    while page := reader.get(path):
        ids += [int(photo["id"]) for photo in page["photos"]]
        if not page["cursor"]:
            break
        path = f"/api/feed?cursor={page['cursor']}"
    assert len(ids) == 15
    assert ids == sorted(ids, reverse=True)
    user = authors[0][1]
    shown = reader.get(f"/api/users/{user}")
    assert (shown["photos"], shown["followers"], shown["follows"], shown["following"]) == (5, 1, 0, True)
    assert reader.get(f"/api/users/{me}")["follows"] == 3
    assert reader.do("DELETE", f"/api/users/{user}/follow") == {"following": False}
    assert reader.get(f"/api/users/{user}")["followers"] == 0
    assert rows(fleet, f"SELECT COUNT(*) FROM user_follows_user WHERE user_id = {me}") == [(2,)]
    assert reader.ask("PUT", f"/api/users/{me}/follow")[0] == 400
    assert reader.ask("PUT", "/api/users/1/follow")[0] == 404


def test_likes(fleet: Demo, photos: str) -> None:
    ada, _ = new_user(photos)
    grace, _ = new_user(photos)
    photo = ada.do("POST", "/api/photos", {"caption": "<b>Sunset</b>"})
    path = f"/api/photos/{photo['id']}/like"
    with ThreadPoolExecutor(6) as pool:
        assert {answer["likes"] for answer in pool.map(lambda _: ada.do("PUT", path), range(6))} == {1}
    assert grace.do("PUT", path) == {"liked": True, "likes": 2}
    assert ada.do("DELETE", path) == {"liked": False, "likes": 1}
    shown = grace.get(f"/api/photos/{photo['id']}")["photo"]
    assert (shown["likes"], shown["liked"], shown["caption"]) == (1, True, "<b>Sunset</b>")
    liked = f"SELECT COUNT(*) FROM photo_liked_by_users WHERE photo_id = {photo['id']}"
    assert rows(fleet, liked) == [(1,)]


def test_the_demos_followers_are_both_ways(fleet: Demo, photos: str) -> None:
    ada, _ = new_user(photos)
    [[follower, followed]] = rows(fleet, "SELECT user_id, followed_id FROM user_follows_user LIMIT 1")
    assert ada.get(f"/api/users/{followed}")["followers"] > 0
    assert ada.get(f"/api/users/{follower}")["follows"] > 0
    newest = ada.get("/api/photos")
    assert len(newest["photos"]) == 12
    assert int(newest["cursor"]) == min(int(photo["id"]) for photo in newest["photos"])
