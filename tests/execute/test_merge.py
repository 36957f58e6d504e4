"""Runs merged as they arrive, against sorting the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import ProxyError
from proxy.execute.fan import merge as module
from proxy.execute.fan.merge import RUN_BUFFER, Merger, make_merger
from proxy.wire import packets, rows, sort_keys
from proxy.wire.constants import ColumnType
from proxy.wire.packets import ProtocolError
from proxy.wire.resultset import Column, decode_row, encode_row
from proxy.wire.rows import split_rows
from rewriter.plans import Aggregate, Merge, SortKey
from tests.execute.rowsets import (
    KINDS,
    PADDED,
    PADS,
    UNPADDED,
    Kind,
    Shape,
    arrivals,
    block,
    keyed_rows,
    places,
    shapes,
    weights,
)
from tests.wire.streams import cut_packets

#: Instead of 16 MB: many rows take several packets.
SMALL = 30

limits = st.one_of(st.none(), st.integers(0, 12))
offsets = st.one_of(st.just(0), st.integers(0, 12))


@pytest.fixture(autouse=True, scope="module")
def small_packets():
    with pytest.MonkeyPatch.context() as patch:
        for where in (packets, rows, sort_keys):
            patch.setattr(where, "MAX_PAYLOAD", SMALL)
        yield


@pytest.fixture(
    autouse=True, scope="module", params=[(1, 1), (3, 5), (1024, 4096)], ids=["row by row", "few", "many"]
)
def turns(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """How many rows of a run are merged at once, and how many in a turn of the loop."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(("_SLICE", "_TURN"), request.param, strict=True):
            patch.setattr(module, name, value)
        yield request.param


def collect(merger: Merger, events: Sequence[tuple[int, list[bytes] | None]], seq: int) -> list[bytes]:
    """Feed it, and check the packets' numbers; the rows' payloads."""
    out = b""
    for run, some in events:
        out += merger.ended(run) if some is None else merger.rows(run, block(some, SMALL))
        if merger.pending:
            out += merger.more()  # and the next rows may come before the others have left
    out += rest(merger)
    numbers = [number for _, number, _ in cut_packets(out)]
    assert numbers == [(seq + index) & 0xFF for index in range(len(numbers))]
    assert merger.seq & 0xFF == (seq + len(numbers)) & 0xFF
    found = split_rows(out)
    assert merger.emitted == len(found)
    return found


def turns_of(merger: Merger) -> list[bytes]:
    """What comes in further turns of the loop."""
    found = []
    while merger.pending:
        found.append(merger.more())
    return found


def rest(merger: Merger) -> bytes:
    return b"".join(turns_of(merger))


def cut(items: Sequence[bytes], limit: int | None, offset: int) -> Sequence[bytes]:
    return items[offset:] if limit is None else items[offset : offset + limit]


# -- sorted runs
# ----------------------------------------------------------------------------------------------------------


@given(st.data(), shapes(), st.integers(1, 4), limits, offsets, st.integers(0, 255))
def test_ordered(
    data: st.DataObject, shape: Shape, runs: int, limit: int | None, offset: int, seq: int
) -> None:
    everything = data.draw(keyed_rows(shape))
    owner = {number: data.draw(st.integers(0, runs - 1)) for number, _ in everything}
    parts = [shape.sort([row for row in everything if owner[row[0]] == run]) for run in range(runs)]
    events = data.draw(arrivals([[shape.payload(*row) for row in part] for part in parts]))
    wanted = Merge(shape.order, limit, offset, shape.hidden)
    found = collect(make_merger(wanted, shape.columns, runs, seq, PADS), events, seq)

    by_number = dict(everything)
    numbers = [int(decode_row(payload, len(shape.kinds) + 1)[-1] or b"") for payload in found]
    assert found == [shape.payload(number, by_number[number], hidden=False) for number in numbers]
    assert len(set(numbers)) == len(numbers)
    expected = shape.sort(everything)[offset:][:limit]
    assert len(numbers) == len(expected)
    for number, (_, keys) in zip(numbers, expected, strict=True):
        assert shape.equal(by_number[number], keys)
    for part in parts:
        order = [number for number, _ in part]
        mine = [number for number in numbers if number in order]
        assert mine == [number for number in order if number in mine], "a run's own order is kept"


def test_a_row_leaves_when_no_other_run_can_bring_a_smaller_one() -> None:
    shape = Shape((KINDS["integer"],), (False,))
    merger = make_merger(Merge(shape.order), shape.columns, 3, 1, {})

    def numbers(*keys: int) -> bytes:
        return block([shape.payload(key, (key,)) for key in keys], SMALL)

    assert merger.rows(0, numbers(1, 4)) == b""
    assert merger.rows(1, numbers(2, 3)) == b""
    assert len(split_rows(merger.rows(2, numbers(5)) + rest(merger))) == 3, (
        "1, 2 and 3: run 1 may go on with another 3"
    )
    assert len(split_rows(merger.ended(1) + rest(merger))) == 1, "4: then run 0 may go on with another 4"
    assert len(split_rows(merger.ended(0) + rest(merger))) == 1, "5"
    assert merger.ended(2) == b""


def test_full_and_not_full_any_more() -> None:
    shape = Shape((KINDS["binary"],), (False,))
    merger = make_merger(Merge(shape.order), shape.columns, 2, 1, {})
    row = block([shape.payload(1, (b"v" * 1000,))], SMALL)
    while not merger.full(0):
        assert merger.rows(0, row) == b""
    assert not merger.full(1)
    assert len(row) * 400 >= RUN_BUFFER
    merger.ended(1)
    rest(merger)
    assert not merger.full(0)
    for _ in range(1000):
        assert merger.rows(0, row)
    assert not merger.full(0), "what has left is not counted"


def test_rows_leave_in_turns(turns: tuple[int, int]) -> None:
    """Not more in one than is bearable, and nobody waits for those that come meanwhile."""
    size, turn = turns
    shape = Shape((KINDS["integer"],), (False,))
    merger = make_merger(Merge(shape.order), shape.columns, 2, 1, {})
    first, second = (
        block([shape.payload(key, (key,)) for key in range(start, 20_000, 2)], SMALL) for start in (0, 1)
    )
    assert merger.rows(0, first) == b""
    found = [merger.rows(1, second)]
    assert merger.pending
    assert merger.ended(0) == merger.ended(1) == b""
    found += turns_of(merger)
    counts = [len(split_rows(out)) for out in found]
    assert sum(counts) == merger.emitted == 20_000
    assert max(counts) < turn + 2 * size
    assert split_rows(b"".join(found)) == [shape.payload(key, (key,)) for key in range(20_000)]


@given(st.data(), st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=4))
def test_runs_that_are_not_sorted(data: st.DataObject, runs: list[list[int]]) -> None:
    """A server that sorts otherwise than the proxy thinks: all rows come, and it ends."""
    shape = Shape((KINDS["integer"],), (False,))
    payloads = [[shape.payload(number, (key,)) for number, key in enumerate(run)] for run in runs]
    merger = make_merger(Merge(shape.order), shape.columns, len(runs), 1, {})
    found = collect(merger, data.draw(arrivals(payloads)), 1)
    assert Counter(found) == Counter(payload for some in payloads for payload in some)


def test_nothing_is_kept_behind_the_limit() -> None:
    shape = Shape((KINDS["integer"],), (False,))
    merger = make_merger(Merge(shape.order, limit=3), shape.columns, 2, 1, {})
    rows_ = block([shape.payload(key, (key,)) for key in range(5000)], SMALL)
    assert merger.rows(0, rows_) == b""
    assert merger.full(0)
    assert len(split_rows(merger.rows(1, rows_) + rest(merger))) == 3
    assert not merger.full(0)
    assert merger.rows(0, rows_) == merger.ended(0) == merger.ended(1) == b""
    assert not merger.pending
    assert not merger.full(0)
    assert merger.found == 3


TEXT = Column(b"name", ColumnType.VAR_STRING, 255)
JSON = Column(b"data", ColumnType.JSON, 63)
ENUM = Column(b"colour", ColumnType.STRING, 255, flags=256)


@pytest.mark.parametrize(
    ("column", "place"),
    [(TEXT, (None, None)), (TEXT, (1, None)), (JSON, (1, 2)), (ENUM, (1, 2))],
    ids=["no weight", "no collation", "JSON", "ENUM"],
)
def test_no_order_is_known(column: Column, place: tuple[int | None, int | None]) -> None:
    columns = [column, KINDS["binary"].column, KINDS["binary"].column]
    with pytest.raises(ProxyError, match=f"no order is known for column {column.name.decode()}"):
        make_merger(Merge((SortKey(0, False, *place),), hidden=2), columns, 2, 1, PADS)


def test_no_order_is_known_for_a_collation() -> None:
    """One that the first server did not have, or another one on each shard."""
    wanted = Merge((SortKey(0, False, 1, 2),), hidden=2)
    columns = [TEXT, KINDS["binary"].column, KINDS["binary"].column]
    merger = make_merger(wanted, columns, 2, 1, PADS)
    with pytest.raises(ProxyError, match="no order is known for collation klingon_ci"):
        merger.rows(0, block([encode_row([b"a", b"A", b"klingon_ci"])], SMALL))
    merger = make_merger(wanted, columns, 2, 1, PADS)
    merger.rows(0, block([encode_row([b"a", b"A", PADDED])], SMALL))
    with pytest.raises(ProxyError, match="the collation of name is not the same on all shards"):
        merger.rows(1, block([encode_row([b"a", b"A", UNPADDED])], SMALL))


@pytest.mark.parametrize("name", ["integer", "decimal", "double", "time"])
@pytest.mark.parametrize("text", [b"", b"x", b"1:2", b"\xff"])
def test_a_value_that_is_not_of_its_type(name: str, text: bytes) -> None:
    column = KINDS[name].column
    merger = make_merger(Merge((SortKey(0, False, None),)), [column], 1, 1, {})
    with pytest.raises(ProxyError, match="not of its type"):
        merger.rows(0, block([encode_row([text])], SMALL))
    merger = make_merger(Merge(aggregates=(Aggregate(0, "min", None),)), [column], 1, 1, {})
    merger.rows(0, block([encode_row([text])], SMALL))
    with pytest.raises(ProxyError, match="not of its type"):
        merger.ended(0)


@pytest.mark.parametrize("payload", [b"\x05abc", b"\x01", b"\x011\x012", b"\xff"])
@pytest.mark.parametrize(
    "wanted",
    [
        Merge((SortKey(0, False, None),)),
        Merge(limit=1, hidden=1),
        Merge(aggregates=(Aggregate(0, "count", None),)),
    ],
)
def test_a_row_that_is_none(payload: bytes, wanted: Merge) -> None:
    merger = make_merger(wanted, [KINDS["integer"].column], 1, 1, {})
    with pytest.raises(ProtocolError):
        merger.rows(0, block([payload], SMALL))


# -- in any order
# ----------------------------------------------------------------------------------------------------------


@given(
    st.data(),
    st.lists(st.lists(st.binary(max_size=70), max_size=6), min_size=1, max_size=4),
    limits,
    offsets,
    st.integers(0, 2),
    st.integers(0, 255),
)
def test_concatenation(
    data: st.DataObject, runs: list[list[bytes]], limit: int | None, offset: int, hidden: int, seq: int
) -> None:
    columns = [KINDS["binary"].column] * (1 + hidden)
    payloads = [[encode_row([value] + [b"hidden"] * hidden) for value in run] for run in runs]
    events = data.draw(arrivals(payloads))
    merger = make_merger(Merge((), limit, offset, hidden), columns, len(runs), seq, {})
    found = collect(merger, events, seq)
    came = [decode_row(payload, 1 + hidden)[0] or b"" for _, some in events if some for payload in some]
    assert found == [encode_row([value]) for value in cut(came, limit, offset)]
    assert not any(merger.full(run) for run in range(len(runs)))


# -- aggregates
# ----------------------------------------------------------------------------------------------------------

FUNCTIONS = {
    "count": [Kind(KINDS["integer"].column, st.integers(0, 10**12), lambda value: b"%d" % value)],
    "sum": [KINDS["integer"], KINDS["decimal"]],
    "min": list(KINDS.values()),
    "max": list(KINDS.values()),
}


def naive(function: str, kind: Kind, values: list[object]) -> bytes | None:
    """What one server says of all the values."""
    present = [value for value in values if value is not None]
    if function == "count":
        return b"%d" % sum(present)  # type: ignore[arg-type]
    if not present:
        return None
    if function == "sum":
        scale = 2 if kind is KINDS["decimal"] else 0
        cents = sum(int(Fraction(value) * 100) for value in present)  # type: ignore[call-overload, misc]
        whole, rest = divmod(abs(cents), 100)
        sign = "-" if cents < 0 else ""
        return f"{sign}{whole}.{rest:02d}".encode() if scale else f"{sign}{whole}".encode()
    ranked = Shape((kind,), (function == "max",)).sort([(0, (value,)) for value in present])
    return kind.text(ranked[0][1][0])


@given(st.data(), st.integers(1, 4), st.integers(0, 255))
def test_combination(data: st.DataObject, runs: int, seq: int) -> None:
    wanted = data.draw(st.lists(st.sampled_from(list(FUNCTIONS)), min_size=1, max_size=3))
    kinds = [data.draw(st.sampled_from(FUNCTIONS[function])) for function in wanted]
    hidden = 2 * sum(kind.weighed for kind in kinds)
    values = st.tuples(*(st.one_of(st.none(), kind.values) for kind in kinds))
    partials = [data.draw(st.lists(values, max_size=3)) for _ in range(runs)]

    aggregates = [
        Aggregate(column, function, *place)
        for column, (function, place) in enumerate(zip(wanted, places(kinds), strict=True))
    ]
    columns = [kind.column for kind in kinds] + [KINDS["binary"].column] * hidden
    payloads = [[_partial(kinds, row) for row in run] for run in partials]
    merger = make_merger(Merge((), None, 0, hidden, tuple(aggregates)), columns, runs, seq, PADS)
    found = collect(merger, data.draw(arrivals(payloads)), seq)

    rows_ = [row for run in partials for row in run]
    if not rows_:
        assert found == []
        return
    [payload] = found
    row = decode_row(payload, len(kinds))
    for column, (function, kind) in enumerate(zip(wanted, kinds, strict=True)):
        expected = naive(function, kind, [one[column] for one in rows_])
        if kind.weighed and function in ("min", "max"):
            assert _same_text(kind, row[column], expected)
        elif kind is KINDS["double"] and expected is not None:
            assert float(row[column] or b"") == float(expected)
        else:
            assert row[column] == expected


def _partial(kinds: list[Kind], row: tuple[object, ...]) -> bytes:
    values = [None if value is None else kind.text(value) for kind, value in zip(kinds, row, strict=True)]
    return encode_row(values + weights(kinds, row))


def _same_text(kind: Kind, a: bytes | None, b: bytes | None) -> bool:
    """Equal in the collation: which of two equal texts is the smallest is nobody's promise."""
    texts = tuple(None if text is None else text.decode() for text in (a, b))
    return Shape((kind,), (False,)).equal(texts[:1], texts[1:])


@pytest.mark.parametrize(("limit", "offset", "count"), [(None, 0, 1), (1, 0, 1), (0, 0, 0), (5, 1, 0)])
def test_limit_of_the_one_row(limit: int | None, offset: int, count: int) -> None:
    wanted = Merge((), limit, offset, 0, (Aggregate(0, "count", None),))
    merger = make_merger(wanted, [KINDS["integer"].column], 2, 1, {})
    events: list[tuple[int, list[bytes] | None]] = [(0, [b"\x011"]), (1, [b"\x012"]), (0, None), (1, None)]
    assert collect(merger, events, 1) == [b"\x013"] * count


def test_no_column_is_lost_or_doubled() -> None:
    """A long history: as many rows out as in, over the wrap of the numbers and several packets a row."""
    shape = Shape((KINDS["integer"],), (True,))
    merger = make_merger(Merge(shape.order), shape.columns, 2, 250, {})
    rows_ = [(number, (number % 7,)) for number in range(1000)]
    runs = [shape.sort(rows_[:300]), shape.sort(rows_[300:])]
    events: list[tuple[int, list[bytes] | None]] = []
    for run, some in enumerate(runs):
        events += [
            (run, [shape.payload(*row) for row in some[start : start + 50]])
            for start in range(0, len(some), 50)
        ]
    events += [(0, None), (1, None)]
    found = collect(merger, events, 250)
    assert Counter(found) == Counter(shape.payload(*row) for row in rows_)
