"""The twin in C of what adds to the loads of shards: it leaves what Python leaves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.load import load_topology
from proxy import load
from proxy.load import BUCKETS, Load, Loads, share
from tests.status.conftest import DOCUMENT
from tests.support.compiler import may_compile

TWIN: Any = vars(load)["_load"]
compiled = pytest.mark.skipif(not load.COMPILED, reason="no compiler: the twin in C is NOT tested")

LOADS = st.lists(st.builds(lambda rows, longest: (rows, longest), st.integers(0, 1 << 70), st.floats(0, 9)))


@pytest.mark.skipif(not may_compile(), reason="no compiler, or no headers of Python")
def test_where_it_can_be_compiled_it_is_used() -> None:
    assert load.COMPILED, "run: make setup"


def made(given: list[tuple[int, float]]) -> list[Load]:
    loads: list[Load] = []
    for rows, longest in given:
        one = Load("main", len(loads))
        one.rows, one.longest, one.seconds = rows, longest, longest * 3
        loads.append(one)
    return loads


def told(loads: list[Load]) -> list[Any]:
    return [(one.seconds, one.rows, one.longest, one.buckets, one.errors) for one in loads]


@compiled
@given(
    LOADS.filter(bool),
    st.floats(0, 1e9) | st.integers(0, 5),
    st.integers(0, 1 << 70),
    st.integers(0, 3),
    st.booleans(),
)
def test_shared_alike(
    rows: list[tuple[int, float]], seconds: float, number: int, again: int, as_tuple: bool
) -> None:
    """`again`: so many of the loads are there twice."""
    results = []
    for twin in (TWIN, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(load, "_load", twin)
            loads = made(rows)
            given = loads + loads[:again]
            share(tuple(given) if as_tuple else given, seconds, number)
            share(given, 0.25, 7)
            results.append(told(loads))
    assert results[0] == results[1]
    assert all(len(one[3]) == BUCKETS for one in results[0])


@compiled
@given(st.lists(st.integers(-1, 12), max_size=20), st.sets(st.integers(0, 9)), st.booleans())
def test_found_alike(shards: list[int], known: set[int], as_tuple: bool) -> None:
    keyspace = next(one for one in load_topology(DOCUMENT).keyspaces.values() if one.sharded)
    shards = [one for one in shards if one in keyspace.places]
    results = []
    for twin in (TWIN, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(load, "_load", twin)
            loads = Loads()
            loads.of(keyspace, [one for one in sorted(known) if one in keyspace.places])
            found = loads.of(keyspace, tuple(shards) if as_tuple else shards)
            assert [one.shard for one in found] == shards
            assert all(one is loads.shards[keyspace.database_of(one.shard)] for one in found)
            results.append((list(loads.shards), [one.keyspace for one in found]))
    assert results[0] == results[1]


@compiled
@pytest.mark.parametrize("name", ["share", "loads_of"])
@pytest.mark.parametrize("wrong", [(), (1,), (1, 2, 3, 4)])
def test_so_many_arguments(name: str, wrong: tuple[int, ...]) -> None:
    with pytest.raises(TypeError):
        getattr(TWIN, name)(*wrong)


@compiled
@pytest.mark.parametrize(
    "given",
    [
        ([], 1.0, 1),
        ([1], 1.0, 1),
        ([Load()], 1, 1),
        ([Load()], 1.0, -1),
        ([Load()], 1.0, 1 << 80),
        ((), 1.0, 1),
    ],
)
def test_what_is_not_shared(given: tuple[Any, ...]) -> None:
    assert TWIN.share(*given) is False


@compiled
@pytest.mark.parametrize("places", [{}, {1: 2}, {1: (3,)}, {1: ("h", b"d")}])
def test_what_is_not_found(places: dict[int, Any]) -> None:
    assert TWIN.loads_of({}, places, [1]) is None
    with pytest.raises(TypeError):
        TWIN.loads_of({}, places, 1)
