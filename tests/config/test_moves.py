"""What another version of the topology changes, in words."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import load_topology
from config.moves import moves


def document(*ranges: dict[str, Any], **others: Any) -> dict[str, Any]:
    main = {"layout": "pinterest", "database": "db{shard:05d}", "ranges": list(ranges)}
    return {"version": 1, "keyspaces": {"main": main, **others}}


LOW = {"range": [0, 9], "master": "a:1", "slave": "b:1"}
HIGH = {"range": [10, 19], "master": "a:1", "slave": "b:1"}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (document(LOW, HIGH), document(LOW, HIGH), []),
        (document(LOW, HIGH), document({"range": [0, 19], "master": "a:1", "slave": "b:1"}), []),
        (
            document(LOW, HIGH),
            document(LOW, HIGH | {"master": "c:1", "slave": "d:1"}),
            ["main 10-19: master a:1 → c:1, slave b:1 → d:1"],
        ),
        (
            document(LOW, HIGH),
            document(LOW | {"state": "frozen"}, HIGH | {"open": False}),
            ["main 0-9: serving → frozen", "main 10-19: closed for new objects"],
        ),
        (document(LOW), document(LOW, HIGH), ["main 10-19: new on a:1"]),
        (
            document({"range": [0, 0], "master": "a:1"}, {"range": [1, 1], "master": "a:1"}),
            document({"range": [0, 0], "master": "c:1"}, {"range": [1, 1], "master": "d:1"}),
            ["main 0: master a:1 → c:1", "main 1: master a:1 → d:1"],
        ),
        (document(LOW), document(LOW, other={"master": "c:1"}), ["other: new"]),
        (
            document(LOW, other={"master": "c:1"}),
            document(LOW, other={"master": "c:1", "slave": "d:1"}),
            ["other: slave none → d:1"],
        ),
        (document(LOW), document(LOW) | {"default": {"master": "a:1"}}, ["default: master none → a:1"]),
    ],
)
def test_moves(before: dict[str, Any], after: dict[str, Any], told: list[str]) -> None:
    assert moves(load_topology(before), load_topology(after)) == told


def test_many_moves_are_cut() -> None:
    def ranges(host: str) -> list[dict[str, Any]]:
        return [{"range": [n, n], "master": f"{host}{n}:1"} for n in range(50)]

    told = moves(load_topology(document(*ranges("a"))), load_topology(document(*ranges("b"))))
    assert (len(told), told[-1]) == (21, "and 30 more")
