"""What differs between two topologies: a table of changes and what is said of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from config.load import load_topology
from config.topology import Topology
from fleet.changes import changes, placed

PATTERN = {"layout": "pinterest", "database": "db{shard:05d}"}


def ranges(*listed: tuple[int, int, str] | tuple[int, int, str, dict[str, Any]]) -> dict[str, Any]:
    made = [
        {"range": [one[0], one[1]], "master": one[2], **(one[3] if len(one) > 3 else {})} for one in listed
    ]
    return PATTERN | {"ranges": made}


def topology(main: dict[str, Any], **others: Any) -> Topology:
    document = {"version": 1, "keyspaces": {"main": main} | others.pop("keyspaces", {})} | others
    return load_topology(copy.deepcopy(document))


BASE = ranges((0, 99, "a:1"), (100, 199, "b:1"))
CASES = {
    "nothing, though it is cut otherwise": (
        topology(ranges((0, 9, "a:1"), (10, 99, "a:1"), (100, 199, "b:1"))),
        [],
    ),
    "a split": (
        topology(ranges((0, 99, "a:1"), (100, 149, "b:1"), (150, 199, "c:1"))),
        ["main 150-199: b:1 → c:1"],
    ),
    "a state and a slave": (
        topology(
            ranges(
                (0, 99, "a:1", {"slave": "s:1"}), (100, 100, "b:1", {"state": "frozen"}), (101, 199, "b:1")
            )
        ),
        ["main 0-99: a:1 → a:1 (slave s:1)", "main 100: serving → frozen"],
    ),
    "closed": (
        topology(ranges((0, 99, "a:1", {"open": False}), (100, 199, "b:1"))),
        ["main 0-99: open → closed"],
    ),
    "new shards": (
        topology(ranges((0, 99, "a:1"), (100, 199, "b:1"), (200, 299, "c:1", {"open": False}))),
        ["main 200-299: new, c:1, closed, serving"],
    ),
    "fewer": (topology(ranges((0, 99, "a:1"))), ["main 100-199: gone, b:1, open, serving"]),
    "a keyspace": (
        topology(BASE, keyspaces={"global": {"master": "a:1"}}),
        ["global: new, a:1"],
    ),
    "a default": (topology(BASE, default={"master": "a:1"}), ["default: new, a:1"]),
}


@pytest.mark.parametrize("name", CASES)
def test_changes(name: str) -> None:
    new, texts = CASES[name]
    assert [str(one) for one in changes(topology(BASE), new)] == texts


def test_moves_are_marked() -> None:
    new = topology(ranges((0, 99, "a:1", {"open": False}), (100, 199, "c:1")))
    assert [one.moves for one in changes(topology(BASE), new)] == [False, True]
    default = [topology(BASE, default={"master": host}) for host in ("a:1", "b:1")]
    assert [one.moves for one in changes(*default)] == [True]


def test_what_must_be_there() -> None:
    new = topology(ranges((0, 99, "a:1"), (100, 197, "b:1"), (198, 200, "c:1")))
    assert placed(topology(BASE), new) == {"c:1": ["db00198", "db00199", "db00200"]}
    assert len(placed(None, new)["a:1"]) == 100
