"""The sample rows: the same at every start, with IDs that say where the rows are."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from config.layout import INSTAGRAM, PINTEREST
from config.load import load_schema, load_topology
from config.schema import Kind, Schema
from config.topology import Topology
from demo.documents import SCHEMA, topology_document
from demo.load import place
from demo.sample import Sample, generate

SHARDS = 64


@pytest.fixture(scope="module")
def schema() -> Schema:
    return load_schema(SCHEMA)


@pytest.fixture(scope="module")
def topology(schema: Schema) -> Topology:
    return load_topology(topology_document(SHARDS, [("a:1", None), ("b:2", None)]), schema=schema)


@pytest.fixture(scope="module")
def sample(schema: Schema, topology: Topology) -> Sample:
    return generate(schema, topology)


def pairs(sample: Sample, table: str) -> set[tuple[int, int]]:
    rows = sample[table].rows
    found = {(row[0], row[1]) for row in rows}
    assert len(found) == len(rows)
    return found


def flipped(found: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return {(second, first) for first, second in found}


def test_it_depends_on_the_shards_only(schema: Schema, sample: Sample) -> None:
    other = load_topology(topology_document(SHARDS, [("c:3", None)]))
    assert generate(schema, other) == sample


def test_every_table_has_rows(schema: Schema, sample: Sample) -> None:
    assert sample.keys() == schema.databases["demo"].tables.keys()
    assert all(rows.rows for rows in sample.values())


@pytest.mark.parametrize("name", ["pins", "boards", "users", "comments"])
def test_object_ids(schema: Schema, sample: Sample, name: str) -> None:
    table = schema.databases["demo"].tables[name]
    seen = set()
    for id, data, _ in sample[name].rows:
        fields = PINTEREST.decompose(id)
        assert fields["type"] == table.type
        assert fields["shard"] < SHARDS
        assert fields["local"] >= 1
        assert id not in seen
        seen.add(id)
        if table.colocate is not None and table.colocate.path is not None:
            other = json.loads(data)[table.colocate.path.removeprefix("$.")]
            assert PINTEREST.shard_of(other) == fields["shard"]


def test_mappings_have_both_directions_and_long_sequences(sample: Sample) -> None:
    assert flipped(pairs(sample, "board_has_pins")) == pairs(sample, "pin_owned_by_board")
    assert flipped(pairs(sample, "user_likes_pins")) == pairs(sample, "pin_liked_by_user")
    users = {row[0] for row in sample["users"].rows}
    pins = {row[0] for row in sample["pins"].rows}
    assert {pin for _, pin in pairs(sample, "user_likes_pins")} <= pins
    assert {user for user, _ in pairs(sample, "user_likes_pins")} <= users
    for table in ("board_has_pins", "user_likes_pins", "user_follows_user", "user_has_boards"):
        for row in sample[table].rows:
            assert len(str(row[2])) == 38
            assert row[2] % 10**25 == 0


def test_a_board_has_pins_of_many_shards(sample: Sample) -> None:
    board = sample["boards"].rows[0][0]
    shards = {PINTEREST.shard_of(pin) for owner, pin in pairs(sample, "board_has_pins") if owner == board}
    assert len(shards) > 20


def test_photo_ids(sample: Sample) -> None:
    ids = [row[0] for row in sample["photos"].rows]
    assert len(set(ids)) == len(ids)
    for id, user, _, taken in sample["photos"].rows:
        assert INSTAGRAM.shard_of(id) == user % SHARDS
        assert taken.startswith("201")


def test_every_row_is_placed_once_and_reference_rows_on_every_host(
    schema: Schema, topology: Topology, sample: Sample
) -> None:
    placed = place(schema, topology, sample)
    counts: Counter[str] = Counter()
    addresses: dict[str, str] = {}
    for host, tables in placed.items():
        for (database, table), stored in tables.items():
            counts[table.name] += len(stored)
            if table.name == "ip_data":
                addresses |= {row[0]: f"{host} {database}" for row in stored}
    for name, rows in sample.items():
        copies = 2 if schema.databases["demo"].tables[name].kind is Kind.REFERENCE else 1
        assert counts[name] == len(rows.rows) * copies
    assert addresses["1.2.3.4"] == f"a:1 msdb{1537 % SHARDS:05d}"
