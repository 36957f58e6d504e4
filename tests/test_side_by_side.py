"""Tests that run side by side: those of one flavour must not start its servers in every process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import CLUSTERS, HALVES, LONGEST, ORDER, either, shared_by, turn
from tests.support.programs import FLAVOURS


def test_a_flavours_tests_share_a_process(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        callspec = getattr(item, "callspec", None)
        flavour = callspec.params.get("flavour") if callspec is not None else None
        assert flavour in (None, shared_by(item.nodeid).partition(",")[0]), item.nodeid
    assert shared_by("tests/x/test_y.py::test_z[mysql9-1]") == "mysql9"
    assert shared_by("tests/fleet/test_y.py::test_z[mysql9]") == "mysql9, fleet"
    assert shared_by("tests/faults/test_y.py::test_z[mysql9]") == "mysql9, second half of faults"
    assert shared_by("tests/integration/test_y.py::test_z[mysql9]") == "mysql9, second half of integration"
    assert (
        shared_by("tests/x/test_y.py::test_z[1]")
        == shared_by("tests/x/test_y.py::test_a")
        == "tests/x/test_y.py"
    )
    assert shared_by("tests/test_y.py::test_z") == shared_by("tests/test_x.py::test_z")


def test_the_longest_shares_begin_first() -> None:
    ids = [
        "tests/x/test_a.py::test_b",
        "tests/drivers/test_a.py::test_b[mysql9]",
        "tests/faults/test_a.py::test_b[mysql9]",
        "tests/rewriter/test_words.py::test_b",
        "tests/x/test_a.py::test_b[mariadb]",
        "tests/fleet/test_a.py::test_b[1-mysql9]",
        "tests/integration/test_a.py::test_b[mariadb-1]",
        "tests/faults/test_z.py::test_b[mariadb]",
    ]
    assert sorted(ids, key=turn) == ids[::-1]


def test_shares_that_are_named_exist() -> None:
    root = Path(__file__).parents[1]
    assert [name for name in LONGEST if not (root / name).exists()] == []
    folders = {path.name for path in (root / "tests").iterdir()}
    named = {name.split()[-1] for name in ORDER if "," in name}
    assert named <= folders & {*CLUSTERS, *HALVES}
    assert set(ORDER) > set(FLAVOURS)


def test_some_tests_need_one_server_each() -> None:
    """Whichever its name gives, both names of a test give the same; and each server has its part of them."""
    pairs = [[f"tests/x/test_a.py::test_b[{name}-{n}]" for name in FLAVOURS] for n in range(100)]
    chosen = [{either(nodeid, FLAVOURS) for nodeid in pair} for pair in pairs]
    assert all(len(one) == 1 for one in chosen)
    assert all(30 < chosen.count({name}) < 70 for name in FLAVOURS)
    assert {either(nodeid, FLAVOURS[1:]) for pair in pairs for nodeid in pair} == set(FLAVOURS[1:])
