"""IDs: the vectors of the documents this scheme comes from, and properties over all fields."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config import layout as module
from config.layout import BUILTIN, ID_MAX, INSTAGRAM, INSTAGRAM_EPOCH_MS, PINTEREST, Field, Layout

SNOWFLAKE = Layout(
    "snowflake",
    (Field("reserved", 1), Field("time", 41), Field("shard", 10), Field("sequence", 12)),
    1288834974657,
)
PLAIN = Layout("plain", (Field("shard", 20), Field("local", 44)))
LAYOUTS = [*BUILTIN.values(), SNOWFLAKE, PLAIN]


@pytest.mark.parametrize(
    ("id_", "shard", "type_", "local"),
    [
        (241294492511762325, 3429, 1, 7075733),
        (241294561224164665, 3429, 2, 1337),
        (241294629943640797, 3429, 3, 733),
        (0, 0, 0, 0),
        ((1 << 62) - 1, 65535, 1023, (1 << 36) - 1),
        (1 << 46, 1, 0, 0),
        (1 << 36, 0, 1, 0),
        ((1 << 36) - 1, 0, 0, (1 << 36) - 1),
    ],
)
def test_pinterest_vectors(id_: int, shard: int, type_: int, local: int) -> None:
    assert PINTEREST.decompose(id_) == {"reserved": 0, "shard": shard, "type": type_, "local": local}
    assert PINTEREST.compose(shard=shard, type=type_, local=local) == id_
    assert PINTEREST.shard_of(id_) == shard
    assert PINTEREST.base(shard, type_) + local == id_


def test_local_ids_have_36_bits_not_32() -> None:
    id_ = PINTEREST.compose(shard=7, type=1, local=(1 << 32) + 5)
    assert PINTEREST.decompose(id_)["local"] == (1 << 32) + 5


def test_instagram_vectors() -> None:
    now = 1387263000000
    id_ = (now - INSTAGRAM_EPOCH_MS) << 23 | 1341 << 10 | 5001 % 1024
    assert INSTAGRAM.decompose(id_) == {"time": now - INSTAGRAM_EPOCH_MS, "shard": 1341, "sequence": 905}
    assert id_ >> 10 & 0x1FFF == INSTAGRAM.shard_of(id_) == 1341
    assert INSTAGRAM.time_ms(id_) == now
    assert INSTAGRAM.compose(time=now - INSTAGRAM_EPOCH_MS, shard=1341, sequence=905) == id_


def test_instagram_ids_sort_by_time() -> None:
    early = INSTAGRAM.compose(time=5, shard=8191, sequence=1023)
    assert early < INSTAGRAM.compose(time=6, shard=0, sequence=0)


def test_pinterest_ids_have_no_time() -> None:
    assert PINTEREST.time_ms(241294492511762325) is None


@st.composite
def layouts_and_fields(draw: st.DrawFn) -> tuple[Layout, dict[str, int]]:
    layout = draw(st.sampled_from(LAYOUTS))
    fields = {one.name: draw(st.integers(0, (1 << one.bits) - 1)) for one in layout.fields}
    fields.pop("reserved", None)
    return layout, fields


@given(layouts_and_fields())
def test_compose_and_decompose_are_inverse(case: tuple[Layout, dict[str, int]]) -> None:
    layout, fields = case
    id_ = layout.compose(**fields)
    got = layout.decompose(id_)
    assert got.pop("reserved", 0) == 0
    assert got == fields
    assert layout.shard_of(id_) == fields["shard"]
    if layout.has_local:
        assert layout.base(fields["shard"], fields.get("type", 0)) + fields["local"] == id_
        assert id_ & layout.local_mask == fields["local"]


@given(st.sampled_from(LAYOUTS), st.integers(0, ID_MAX))
def test_every_64_bit_number_is_an_id_or_refused(layout: Layout, id_: int) -> None:
    shard = layout.shard_of(id_)
    if id_ & layout.reserved_bits:
        assert shard is None
        with pytest.raises(ValueError, match="reserved bits"):
            layout.decompose(id_)
    else:
        fields = layout.decompose(id_)
        assert fields["shard"] == shard
        assert layout.compose(**fields) == id_


@given(st.sampled_from(LAYOUTS), st.one_of(st.integers(max_value=-1), st.integers(min_value=ID_MAX + 1)))
def test_numbers_beyond_64_bits_are_no_ids(layout: Layout, id_: int) -> None:
    assert layout.shard_of(id_) is None
    with pytest.raises(ValueError, match="64-bit"):
        layout.decompose(id_)


@given(layouts_and_fields(), st.data())
def test_compose_names_the_field_that_is_out_of_range(
    case: tuple[Layout, dict[str, int]], data: st.DataObject
) -> None:
    layout, fields = case
    name = data.draw(st.sampled_from(sorted(fields)))
    limit = next((1 << one.bits) - 1 for one in layout.fields if one.name == name)
    fields[name] = data.draw(st.one_of(st.integers(max_value=-1), st.integers(min_value=limit + 1)))
    with pytest.raises(ValueError, match=f"'{name}'"):
        layout.compose(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"shard": 1, "type": 1}, "'local' of layout pinterest is missing"),
        ({"shard": 1, "type": 1, "local": 1, "time": 1}, "no field 'time'"),
        ({"shard": 1, "type": 1, "local": 1, "reserved": 1}, "'reserved' of layout pinterest is 1"),
    ],
)
def test_compose_refuses(fields: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PINTEREST.compose(**fields)


@pytest.mark.parametrize(
    ("fields", "epoch", "message"),
    [
        ([("shard", 16), ("local", 36)], None, "52 bits: must sum to 64"),
        ([("shard", 16), ("shard", 12), ("local", 36)], None, "'shard' is given 2 times"),
        ([("shrad", 28), ("local", 36)], None, "unknown field 'shrad'.*'shard' is missing"),
        ([("shard", 0), ("type", 28), ("local", 36)], None, "'shard' has 0 bits"),
        ([("local", 48), ("shard", 16)], None, "'local' must be the last"),
        ([("shard", 16), ("time", 24), ("local", 24)], 1, "cannot stand beside 'time'"),
        ([("time", 48), ("shard", 16)], 1, "'sequence' is missing"),
        ([("time", 41), ("shard", 13), ("sequence", 10)], None, "epoch_ms is needed"),
        ([("sequence", 10), ("shard", 13), ("time", 41)], 1, "'time' must be the first"),
        ([("time", 41), ("shard", 13), ("sequence", 10)], -1, "must not be negative"),
        ([("shard", 28), ("local", 36)], 5, "only then"),
        ([("type", 1), ("time", 40), ("shard", 13), ("sequence", 10)], 5, "'type' needs a field 'local'"),
    ],
)
def test_what_is_no_layout(fields: list[tuple[str, int]], epoch: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Layout("x", tuple(Field(*one) for one in fields), epoch)


def test_layouts_compare_by_value() -> None:
    assert Layout("pinterest", PINTEREST.fields) == PINTEREST
    assert len({Layout("pinterest", PINTEREST.fields), PINTEREST}) == 1


def test_masks_and_shifts() -> None:
    assert (PINTEREST.shard_shift, PINTEREST.shard_mask) == (46, 0xFFFF)
    assert (PINTEREST.type_shift, PINTEREST.type_mask) == (36, 0x3FF)
    assert (PINTEREST.local_shift, PINTEREST.local_mask) == (0, 0xFFFFFFFFF)
    assert PINTEREST.reserved_bits == 3 << 62
    assert (INSTAGRAM.has_type, INSTAGRAM.has_local, INSTAGRAM.has_time) == (False, False, True)
    assert INSTAGRAM.local_mask == INSTAGRAM.reserved_bits == 0
    assert INSTAGRAM.max_shard == 8191


def test_the_examples_run() -> None:
    assert doctest.testmod(module).failed == 0
