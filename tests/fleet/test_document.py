"""Edits of the topology's document: ranges cut, changed, added, taken away."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import load_topology
from fleet.document import read_document, with_dropped, with_range, without_range, written

BASE: dict[str, Any] = {
    "version": 7,
    "keyspaces": {
        "main": {
            "layout": "pinterest",
            "database": "db{shard:05d}",
            "ranges": [
                {"range": [0, 99], "master": "a:1", "slave": "s:1"},
                {"range": [100, 199], "master": "b:1", "open": False},
            ],
        }
    },
}


def ranges(document: dict[str, Any]) -> list[tuple[list[int], str, str | None, bool]]:
    listed = document["keyspaces"]["main"]["ranges"]
    return [(one["range"], one["master"], one.get("slave"), one.get("open", True)) for one in listed]


CASES = [
    ((200, 299, {"master": "c:1"}), [(0, 99, "a:1"), (100, 199, "b:1"), (200, 299, "c:1")]),
    ((10, 19, {"master": "c:1"}), [(0, 9, "a:1"), (10, 19, "c:1"), (20, 99, "a:1"), (100, 199, "b:1")]),
    ((0, 49, {"master": "c:1"}), [(0, 49, "c:1"), (50, 99, "a:1"), (100, 199, "b:1")]),
    ((100, 199, {"master": "c:1"}), [(0, 99, "a:1"), (100, 199, "c:1")]),
]


@pytest.mark.parametrize(("edit", "expected"), CASES)
def test_a_range(edit: tuple[int, int, dict[str, Any]], expected: list[tuple[int, int, str]]) -> None:
    first, last, fields = edit
    made = with_range(BASE, "main", first, last, fields)
    assert [(*one[0], one[1]) for one in ranges(made)] == expected
    assert made["version"] == 8
    assert BASE["version"] == 7
    load_topology(written(made))


def test_fields_are_laid_over_those_that_were_there() -> None:
    made = with_range(BASE, "main", 50, 59, {"state": "frozen"})
    assert made["keyspaces"]["main"]["ranges"][1] == {
        "range": [50, 59],
        "master": "a:1",
        "slave": "s:1",
        "state": "frozen",
    }
    assert "slave" not in with_range(BASE, "main", 0, 99, {"slave": None})["keyspaces"]["main"]["ranges"][0]


def test_taken_away_again() -> None:
    made = without_range(with_range(BASE, "main", 200, 209, {"master": "c:1"}), "main", 200, 209)
    assert ranges(made) == ranges(BASE)
    assert made["version"] == 9


def test_shards_that_are_taken_away_are_listed_as_dropped_until_they_come_back() -> None:
    gone = without_range(BASE, "main", 100, 199)
    assert gone["dropped_shards"] == {"main": [[100, 199]]}
    assert load_topology(written(gone)).lacks(load_topology(written(BASE))) == {}
    back = with_range(gone, "main", 100, 149, {"master": "b:1"})
    assert back["dropped_shards"] == {"main": [[150, 199]]}
    whole = with_range(back, "main", 150, 250, {"master": "b:1"})
    assert "dropped_shards" not in whole
    both = with_dropped(gone, {"main": ((200, 220),), "other": ((0, 1), (3, 3))})
    assert both["dropped_shards"] == {"main": [[100, 220]], "other": [[0, 1], [3, 3]]}


def test_labels_and_yaml() -> None:
    labelled = b"{low: {range: [0, 1], master: a}, high: {range: [2, 3], master: b}}"
    text = b"version: 1\nkeyspaces: {main: {ranges: " + labelled + b"}}"
    made = with_range(read_document(text), "main", 3, 3, {"master": "c"})
    assert [one["range"] for one in made["keyspaces"]["main"]["ranges"]] == [[0, 1], [2, 2], [3, 3]]
