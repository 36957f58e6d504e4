"""Topology documents: what is read, and what is refused with which problems (cases/topology.yaml)."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.layout import INSTAGRAM, PINTEREST
from config.load import ConfigError, load_topology
from config.topology import State
from tests.support.cases import cases_in

REFUSED = cases_in(Path(__file__).parent / "cases" / "topology.yaml")

SEEDS_SHAPE = b"""
{"version": 7, "keyspaces": {"main": {"layout": "pinterest", "database": "db{shard:05d}", "ranges": [
  {"range": [0, 511], "master": "MySQL001A:3306", "slave": "MySQL001B:3306", "open": true},
  {"range": [512, 1023], "master": "MySQL002A", "slave": "MySQL002B", "open": false, "state": "read_only"}]},
  "lookup": {"hash": "md5", "shards": 4096, "database": "msdb{shard:05d}", "ranges": [
    {"range": [0, 4095], "master": "MySQL001A:3306", "slave": "MySQL001B:3306"}]},
  "global": {"master": "MySQL003A:3306", "slave": "MySQL003B:3306"}}}
"""
SEEDS = load_topology(SEEDS_SHAPE)


@pytest.mark.parametrize("case", REFUSED, ids=[case["name"] for case in REFUSED])
def test_refused(case: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_topology(case["document"].encode())
    assert sorted(map(str, caught.value.problems)) == sorted(case["problems"])


def test_all_problems_are_in_the_message() -> None:
    with pytest.raises(ConfigError) as caught:
        load_topology(b"{version: x, foo: 1, default: {master: a}}", name="t.yaml")
    assert str(caught.value).splitlines() == [
        "2 problems:",
        "  t.yaml: version (line 1): must be a whole number, not the text 'x'",
        "  t.yaml: foo (line 1): unknown field",
    ]


def test_the_seeds_shape() -> None:
    topology = load_topology(SEEDS_SHAPE)
    assert topology.version == 7
    assert topology.hosts == ("MySQL001A:3306", "MySQL002A:3306", "MySQL003A:3306")
    assert topology.slaves == ("MySQL001B:3306", "MySQL002B:3306", "MySQL003B:3306")
    assert topology.default is None
    main, lookup, unsharded = topology.keyspaces.values()
    assert (main.sharded, main.layout, main.hash, main.shards) == (True, PINTEREST, None, None)
    assert main.host_of(511) == "MySQL001A:3306"
    assert main.host_of(512) == "MySQL002A:3306"
    assert main.host_of(1024) is None
    assert main.database_of(3429) == b"db03429"
    assert main.database_of(7) == b"db00007"
    assert main.all_shards == tuple(range(1024))
    assert main.open_shards == tuple(range(512))
    closed = main.range_of(600)
    assert closed is not None
    assert (closed.open, closed.state, closed.slave) == (False, State.READ_ONLY, "MySQL002B:3306")
    assert main.range_of(1024) is None
    assert (lookup.layout, lookup.hash, lookup.shards) == (None, "md5", 4096)
    assert lookup.open_shards == tuple(range(4096))
    assert not unsharded.sharded
    assert unsharded.host_of(None) == "MySQL003A:3306"
    assert unsharded.database_of(None) == b"global"
    assert unsharded.all_shards == ()
    assert topology.physical("db00512") == (main, 512)
    assert topology.physical(b"msdb04095") == (lookup, 4095)
    assert topology.physical("global") == (unsharded, None)
    assert topology.physical("db01024") is None
    assert topology.physical("demo") is None


@given(st.lists(st.integers(0, 65535), max_size=20), st.integers(0, 1023), st.integers(0, 1023))
def test_the_texts_of_many_shards_are_those_of_each(shards: list[int], type_: int, other: int) -> None:
    main = SEEDS.keyspaces["main"]
    assert main.layout is not None
    for kind in (type_, other, type_):  # the second time they are known
        assert main.bases_of(shards, kind) == [b"%d" % main.layout.base(shard, kind) for shard in shards]
    assert main.databases_of(shards) == [main.database_of(shard) for shard in shards]


def test_ranges_may_be_labelled_as_in_the_case_study() -> None:
    topology = load_topology(
        b"""
        version: 1
        keyspaces:
          main:
            layout: pinterest
            database: "db{shard:05d}"
            ranges:
              sharddb001: {range: [0, 511], master: MySQL001A, slave: MySQL001B}
              sharddb002: {range: [512, 1023], master: MySQL002A, slave: MySQL002B}
        """
    )
    assert topology.keyspaces["main"].host_of(700) == "MySQL002A:3306"


def test_a_small_fleet_shares_hosts_between_keyspaces_and_ranges() -> None:
    topology = load_topology(
        b"""
        version: 1
        default: {master: "unix:/run/a.sock", slave: null}
        keyspaces:
          main:
            layout: pinterest
            database: "db{shard}"
            ranges: [{range: [4, 5], master: "unix:/run/a.sock"}, {range: [0, 3], master: "[::0001]:5"}]
          media:
            layout: instagram
            shards: 2
            database: "s{shard}"
            ranges: [{range: [0, 1], master: "[::1]:5"}]
          other: {master: "unix:/run/a.sock", database: shop}
        """
    )
    assert topology.default == "unix:/run/a.sock"
    assert topology.hosts == ("unix:/run/a.sock", "[::1]:5")
    assert topology.keyspaces["main"].all_shards == (0, 1, 2, 3, 4, 5)
    assert topology.keyspaces["media"].layout is INSTAGRAM
    assert topology.keyspaces["media"].shards == 2
    assert topology.keyspaces["other"].database_of(None) == b"shop"


def test_a_keyspace_need_not_begin_at_shard_0() -> None:
    topology = load_topology(
        b'{version: 1, keyspaces: {m: {layout: pinterest, database: "d{shard}",'
        b" ranges: [{range: [4096, 8191], master: a}]}}}"
    )
    assert topology.keyspaces["m"].all_shards[0] == 4096


@pytest.mark.parametrize(
    "fields",
    [
        "{reserved: 1, time: 41, shard: 10, sequence: 12}",
        "[{reserved: 1}, {time: 41}, {shard: 10}, {sequence: 12}]",
    ],
)
def test_a_layout_of_its_own(fields: str) -> None:
    topology = load_topology(
        f"""
        version: 1
        layouts:
          snowflake:
            fields: {fields}
            epoch_ms: 1288834974657
        keyspaces:
          tweets: {{layout: snowflake, database: "t{{shard}}", ranges: [{{range: [0, 1023], master: a}}]}}
        """.encode()
    )
    layout = topology.keyspaces["tweets"].layout
    assert layout is not None
    assert layout.decompose(1 << 62)["time"] == 1 << 40
    assert layout.max_shard == 1023


def test_states() -> None:
    def opened(*ranges: str) -> tuple[int, ...]:
        body = ", ".join(f"{{range: [{i}, {i}], master: a, {text}}}" for i, text in enumerate(ranges))
        keyspace = f'{{layout: pinterest, database: "d{{shard}}", ranges: [{body}]}}'
        text = f"{{version: 1, keyspaces: {{m: {keyspace}}}}}"
        return load_topology(text.encode()).keyspaces["m"].open_shards

    assert opened("open: true", "open: false", "state: frozen", "state: offline") == (0,)
    assert opened("state: frozen", "state: offline", "state: read_only") == (0,)
    assert opened("state: offline", "open: false, state: frozen") == ()


def test_keys_of_hashed_keyspaces() -> None:
    topology = load_topology(
        b"""
        version: 1
        keyspaces:
          md5: {hash: md5, shards: 4096, database: "a{shard}", ranges: [{range: [0, 4095], master: a}]}
          mod: {hash: modulo, shards: 8, database: "b{shard}", ranges: [{range: [0, 7], master: a}]}
          one: {master: a}
        """
    )
    md5, modulo, one = topology.keyspaces.values()
    assert md5.shard_of_key(b"1.2.3.4") == 1537
    assert md5.shard_of_key(b"user@example.com") == 2479
    assert md5.shard_of_key(1234) == md5.shard_of_key(b"1234")
    assert modulo.shard_of_key(83) == 3
    assert modulo.shard_of_key(-1) == 7
    with pytest.raises(ValueError, match="must be an integer"):
        modulo.shard_of_key(b"83")
    with pytest.raises(ValueError, match="not hashed"):
        one.shard_of_key(1)


def test_the_signature_is_what_plans_depend_on() -> None:
    def signature(host: str, pattern: str) -> object:
        ranges = [{"range": [0, 3], "master": host}]
        keyspace = {"layout": "pinterest", "database": pattern, "ranges": ranges}
        return load_topology({"version": 1, "keyspaces": {"m": keyspace}}).signature

    assert signature("a", "d{shard}") == signature("b", "d{shard}")
    assert hash(signature("a", "d{shard}")) == hash(signature("b", "d{shard}"))
    assert signature("a", "d{shard}") != signature("a", "e{shard}")


def test_the_digest_is_of_the_content() -> None:
    one = load_topology(b"{version: 1, default: {master: a}}")
    two = load_topology(b'{\n "default": {"master": "a"}, "version": 1}')
    three = load_topology({"version": 1, "default": {"master": "b"}})
    assert one.digest == two.digest != three.digest


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8, unique=True), st.data())
def test_ranges_are_accepted_exactly_when_they_tile(cuts: list[int], data: st.DataObject) -> None:
    """Against the obvious check: list all shards, look for duplicates and holes."""
    edges = sorted(cuts)
    ranges = [[a, b - 1] for a, b in itertools.pairwise(edges)] + [[edges[-1], edges[-1] + 3]]
    index = data.draw(st.integers(0, len(ranges) - 1))
    ranges[index][data.draw(st.integers(0, 1))] += data.draw(st.integers(-2, 2))
    ranges = data.draw(st.permutations(ranges))
    document = {
        "version": 1,
        "keyspaces": {
            "m": {
                "layout": "pinterest",
                "database": "d{shard}",
                "ranges": [{"range": one, "master": f"h{i}"} for i, one in enumerate(ranges)],
            }
        },
    }
    shards = [shard for first, last in ranges for shard in range(first, last + 1)]
    good = all(0 <= first <= last for first, last in ranges)
    good = good and sorted(shards) == list(range(min(shards), max(shards) + 1))
    if good:
        keyspace = load_topology(document).keyspaces["m"]
        for index, (first, last) in enumerate(ranges):
            assert keyspace.host_of(first) == keyspace.host_of(last) == f"h{index}:3306"
    else:
        with pytest.raises(ConfigError):
            load_topology(document)


FIELDS = [
    "version",
    "keyspaces",
    "default",
    "master",
    "slave",
    "layout",
    "hash",
    "shards",
    "range",
    "ranges",
    "database",
    "open",
    "state",
    "layouts",
    "fields",
    "epoch_ms",
    "x",
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6),
    max_leaves=30,
)


@given(VALUES)
def test_any_document_gives_a_topology_or_problems(value: Any) -> None:
    with contextlib.suppress(ConfigError):
        load_topology({"version": 1, "keyspaces": {"a": value}, "default": value, "layouts": value})
