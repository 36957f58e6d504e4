"""All documents together: `check` finds every problem in all files, and what does not fit together."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.address import spelt
from config.check_addresses import itself_problems, own_addresses
from config.checks import fit_problems, succession_problems
from config.document import from_value
from config.hosts import one_host_twice
from config.load import ConfigError, check, load_schema, load_settings, load_topology
from config.ranges import joined, outside
from config.sources import FileSource, ZooKeeperSource, open_source
from config.topology import Topology
from tests.config.test_settings import LEAST
from tests.support.cases import cases_in

MISFITS = cases_in(Path(__file__).parent / "cases" / "misfits.yaml")


def ranges(last: int = 3, master: str = "a") -> list[dict[str, Any]]:
    return [{"range": [0, last], "master": master}]


TOPOLOGY: dict[str, Any] = {
    "version": 1,
    "keyspaces": {
        "main": {"layout": "pinterest", "database": "db{shard}", "ranges": ranges()},
        "media": {"layout": "instagram", "database": "s{shard}", "ranges": ranges()},
        "mod": {"hash": "modulo", "shards": 4, "database": "m{shard}", "ranges": ranges()},
        "global": {"master": "a"},
    },
}


def schema_of(**tables: Any) -> dict[str, Any]:
    return {"databases": {"demo": {"tables": tables}}}


def write_all(folder: Path, settings: Any, schema: Any, topology: Any) -> Path:
    for name, document in (("shardgate", settings), ("schema", schema), ("topology", topology)):
        text = document if isinstance(document, str) else json.dumps(document, indent=1)
        (folder / f"{name}.yaml").write_text(text)
    return folder / "shardgate.yaml"


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        check(path)
    return [str(one).replace(f"{path.parent}/", "") for one in caught.value.problems]


def test_what_fits_together(tmp_path: Path) -> None:
    path = write_all(
        tmp_path, LEAST, schema_of(pins={"kind": "object", "keyspace": "main", "type": 1}), TOPOLOGY
    )
    settings, schema, topology = check(path)
    assert schema is not None
    assert settings.users[0].name == "app"
    assert schema.table("demo", "pins") is not None
    assert topology is not None
    assert topology.version == 1


def test_a_topology_in_zookeeper_is_not_looked_at(tmp_path: Path) -> None:
    settings = LEAST | {"topology": {"zookeeper": {"hosts": "127.0.0.1:1"}}}
    assert check(write_all(tmp_path, settings, {"databases": {}}, ""))[2] is None


def test_the_problems_of_all_files_at_once(tmp_path: Path) -> None:
    path = write_all(tmp_path, LEAST | {"workers": 0}, "databases: 5", "version: x\ndefault: {master: a}")
    assert problems(path) == [
        "shardgate.yaml: workers (line 16): must be 1 or more",
        "schema.yaml: databases (line 1): must be a mapping of databases by name, not the number 5",
        "topology.yaml: version (line 1): must be a whole number, not the text 'x'",
    ]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = write_all(tmp_path, LEAST, "{", "")
    (tmp_path / "topology.yaml").unlink()
    found = problems(path)
    assert len(found) == 2
    assert found[0].startswith("schema.yaml: line ")
    assert found[1] == "topology.yaml: cannot be read: No such file or directory"
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        check(tmp_path / "none.yaml")


def test_what_does_not_fit_together(tmp_path: Path) -> None:
    columns = {"k": "VARCHAR(9)", "u": "INT"}
    tables = {
        "no_keyspace": {"kind": "object", "keyspace": "mian", "type": 1},
        "object": {"kind": "object", "keyspace": "media", "type": 2},
        "mapping": {"kind": "mapping", "keyspace": "mod", "from": "a", "to": "b"},
        "timed": {"kind": "timed", "keyspace": "main", "columns": columns},
        "keyed": {"kind": "timed", "keyspace": "media", "shard_key": "u", "columns": columns},
        "hashed": {"kind": "hashed", "keyspace": "main", "key": "k", "columns": columns},
        "text_key": {"kind": "hashed", "keyspace": "mod", "key": "k", "columns": columns},
        "single": {"kind": "single", "keyspace": "main"},
        "reference": {"kind": "reference", "keyspace": "mod", "columns": columns},
    }
    schema = schema_of(**tables)
    schema["databases"] |= {
        "db2": {"tables": {}},
        "m3": {"keyspace": "global"},
        "legacy": {"keyspace": "main"},
    }
    schema["databases"] |= {"lost": {"keyspace": "none"}}
    settings = LEAST | {"users": [{"name": "a", "password": "", "databases": ["demo", "nowhere"]}]}
    path = write_all(tmp_path, settings, schema, TOPOLOGY)
    found = [one.split(": ", 1)[1] for one in problems(path)]
    assert sorted(re.sub(r" \(line \d+\)", "", one) for one in found) == sorted(MISFITS)
    assert all("(line" in one for one in found)


def test_users_may_use_any_database_of_a_default_host(tmp_path: Path) -> None:
    settings = LEAST | {"users": [{"name": "a", "password": "", "databases": ["other"]}]}
    check(write_all(tmp_path, settings, {"databases": {}}, {"version": 1, "default": {"master": "a"}}))


def test_type_numbers_of_a_narrow_layout() -> None:
    topology = load_topology(
        {
            "version": 1,
            "layouts": {"narrow": {"fields": {"shard": 20, "type": 4, "local": 40}}},
            "keyspaces": {
                "main": {
                    "layout": "narrow",
                    "database": "n{shard}",
                    "ranges": [{"range": [0, 0], "master": "a"}],
                }
            },
        }
    )
    schema = load_schema(schema_of(t={"kind": "object", "keyspace": "main", "type": 16}))
    assert [str(one) for one in fit_problems(schema, topology)] == [
        "databases.demo.tables.t.type: is 16: layout narrow has types 1 to 15"
    ]


def test_a_topology_is_loaded_for_a_schema() -> None:
    schema = load_schema(schema_of(t={"kind": "single", "keyspace": "shop"}))
    with pytest.raises(ConfigError, match="no keyspace 'shop'"):
        load_topology(TOPOLOGY, schema=schema)


def test_a_database_may_hide_the_unsharded_one_of_its_name() -> None:
    schema = load_schema(
        {"databases": {"global": {"tables": {"t": {"kind": "single", "keyspace": "global"}}}}}
    )
    assert fit_problems(schema, load_topology(TOPOLOGY)) == []


def test_layouts_of_the_settings_serve_the_topology(tmp_path: Path) -> None:
    settings = LEAST | {"layouts": {"mine": {"fields": {"shard": 28, "local": 36}}}}
    keyspace = {"layout": "mine", "database": "x{shard}", "ranges": ranges()}
    topology = {"version": 1, "keyspaces": {"main": keyspace}}
    found = check(write_all(tmp_path, settings, {"databases": {}}, topology))[2]
    assert found is not None
    layout = found.keyspaces["main"].layout
    assert layout is not None
    assert layout.name == "mine"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"layout": "instagram"}, "keyspaces.main.layout"),
        ({"database": "other{shard}"}, "keyspaces.main.database"),
        ({"shards": 4}, "keyspaces.main.shards"),
    ],
)
def test_what_places_rows_cannot_change(change: dict[str, Any], place: str) -> None:
    old = load_topology(TOPOLOGY)
    keyspaces = TOPOLOGY["keyspaces"] | {"main": TOPOLOGY["keyspaces"]["main"] | change}
    new = load_topology({"version": 2, "keyspaces": keyspaces})
    assert [one.place for one in succession_problems(old, new)] == [place]


def test_what_may_change() -> None:
    old = load_topology(TOPOLOGY)
    main = {
        "layout": "pinterest",
        "database": "db{shard}",
        "ranges": [
            {"range": [0, 1], "master": "b", "slave": "d", "state": "frozen"},
            {"range": [2, 7], "master": "c"},
        ],
    }
    new = load_topology(
        {
            "version": 2,
            "keyspaces": TOPOLOGY["keyspaces"] | {"main": main, "new": {"master": "b"}},
            "default": {"master": "b"},
        }
    )
    assert succession_problems(old, new) == []


def of_shards(*bounds: tuple[int, int], dropped: object = None) -> Topology:
    """A keyspace with such ranges, and an unsharded one."""
    listed = [{"range": list(one), "master": "a"} for one in bounds]
    keyspaces: dict[str, Any] = {"global": {"master": "a"}}
    if listed:
        keyspaces["main"] = {"layout": "pinterest", "database": "db{shard}", "ranges": listed}
    return load_topology({"version": 2, "keyspaces": keyspaces, "dropped_shards": dropped})


def members(runs: tuple[tuple[int, int], ...]) -> set[int]:
    return {shard for first, last in runs for shard in range(first, last + 1)}


SOME = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda one: (one[0], sum(one))))


@given(SOME, SOME)
def test_runs_of_shards_are_subtracted_as_sets_are(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    one, two = joined(some), joined(others)
    assert members(one) == members(tuple(some))
    assert members(outside(one, two)) == members(one) - members(two)
    assert joined(outside(one, two)) == outside(one, two)


LACKS = "which is in use: their rows would be hidden. Put their ranges back."


@pytest.mark.parametrize(
    ("new", "dropped", "lacking"),
    [
        ([(0, 31)], None, "shards 32 to 63 are"),
        ([(0, 62)], None, "shard 63 is"),
        ([(1, 62)], None, "shards 0 and 63 are"),
        ([(64, 90)], None, "shards 0 to 63 are"),
        ([], None, "shards 0 to 63 are"),
        ([(0, 31)], {"main": [[40, 63]]}, "shards 32 to 39 are"),
        ([(0, 31)], {"other": [[32, 63]]}, "shards 32 to 63 are"),
        ([(0, 31)], {"main": [[32, 63]]}, ""),
        ([(0, 31)], {"main": [[48, 70], [32, 50]]}, ""),
        ([], {"main": [[0, 63]]}, ""),
        ([(0, 63)], None, ""),
        ([(0, 10), (11, 80)], None, ""),
    ],
)
def test_shards_of_the_topology_in_use_may_not_vanish_unless_they_are_dropped(
    new: list[tuple[int, int]], dropped: object, lacking: str
) -> None:
    found = succession_problems(of_shards((0, 31), (32, 63)), of_shards(*new, dropped=dropped))
    assert [one.message.partition(" in no range")[0] for one in found] == [lacking] * bool(lacking)
    assert all(LACKS in one.message and one.place == "keyspaces.main.ranges" for one in found)


def test_a_keyspace_of_shards_that_becomes_one_database_lacks_its_shards() -> None:
    old = of_shards((0, 3))
    new = load_topology({"version": 3, "keyspaces": {"main": {"master": "a"}}})
    assert "keyspaces.main.ranges" in [one.place for one in succession_problems(old, new)]


def test_databases_of_the_topology_in_use_may_not_vanish_unless_they_are_dropped() -> None:
    def of(*keyspaces: str, default: str | None = "a", **more: object) -> Topology:
        listed = {name: {"master": "b"} for name in keyspaces}
        given = {"default": {"master": default}} if default else {}
        return load_topology({"version": 2, "keyspaces": listed, **given, **more})

    def places(new: Topology) -> list[str]:
        return [one.place for one in succession_problems(of("shop", "news"), new)]

    assert places(of("shop", "news")) == []
    assert places(of("shop")) == ["keyspaces.news"]
    assert places(of("shop", dropped_keyspaces=["news"])) == []
    assert places(of("shop", default="b")) == []  # there a database is found by its name
    assert places(of(default=None)) == ["keyspaces.shop", "keyspaces.news", "default"]
    assert places(of("shop", "news", default=None, dropped_default=True)) == []
    renamed = {"shop": {"master": "b"}, "papers": {"master": "b", "database": "news"}}
    assert places(load_topology({"version": 2, "default": {"master": "a"}, "keyspaces": renamed})) == []
    sharded = {"layout": "pinterest", "database": "d{shard}", "ranges": [{"range": [0, 1], "master": "b"}]}
    keyspaces = {"shop": {"master": "b"}, "news": sharded}
    new = load_topology({"version": 2, "default": {"master": "a"}, "keyspaces": keyspaces})
    assert "keyspaces.news" in places(new)


def test_what_was_dropped_and_is_there_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        load_topology(
            {
                "version": 2,
                "default": {"master": "a"},
                "keyspaces": {"shop": {"master": "a"}},
                "dropped_keyspaces": ["shop"],
                "dropped_default": True,
            }
        )
    assert [one.place for one in caught.value.problems] == ["dropped_keyspaces[0]", "dropped_default"]


def test_dropped_shards_are_kept_when_a_topology_is_sent_to_another_process() -> None:
    old = of_shards((0, 3), dropped={"main": [[4, 5]]})
    assert pickle.loads(pickle.dumps(old)).dropped == {"main": ((4, 5),)}


def test_sources_by_settings(tmp_path: Path) -> None:
    assert isinstance(open_source(load_settings(LEAST, base=tmp_path)), FileSource)
    settings = LEAST | {"topology": {"zookeeper": {"hosts": "127.0.0.1:1"}}}
    source = open_source(load_settings(settings, base=tmp_path), name="x")
    assert isinstance(source, ZooKeeperSource)
    assert source.current is None
    assert "zookeeper 127.0.0.1:1/shardgate/topology (not connected" in source.status


def test_the_mistakes_of_all_documents_are_told_at_once(tmp_path: Path) -> None:
    """Also what needs two documents of which each has problems of its own."""
    columns = {"data": "JSON NOT NUL", "board_id": "BIGINT", "email": "VARCHAR(9) UNIQUE"}
    pins = {"kind": "object", "keyspace": "main", "type": 1, "colocate": "bord_id", "columns": columns}
    pins["indexes"] = ["KEY (nothing)", "FOREIGN KEY (board_id) REFERENCES boards (id)"]
    closed = [{"range": [0, 3], "master": "127.0.0.1", "open": False}]
    closed.append({"range": [4, 7], "master": "localhost", "open": False})
    main = {"layout": "pinterest", "database": "db{shard}", "ranges": closed}
    path = write_all(tmp_path, LEAST, schema_of(pins=pins), {"version": 1, "keyspaces": {"main": main}})
    with pytest.raises(ConfigError) as caught:
        check(path, closely=True)
    told = "\n".join(re.sub(r" \(line [0-9]+\)", "", str(one)) for one in caught.value.problems)
    assert all(re.search(r"\(line [0-9]+\)", str(one)) for one in caught.value.problems)
    table = "schema.yaml: databases.demo.tables.pins."
    for wanted in (
        table + "columns.data: NULL is expected before 'NUL'",
        table + "columns.email: UNIQUE KEY (email) cannot hold",
        table + "colocate: there is no column 'bord_id': did you mean 'board_id'?",
        table + "indexes[0]: there is no column 'nothing'",
        table + "indexes[1]: FOREIGN KEY (board_id) REFERENCES boards (id) cannot hold",
        table + "keyspace: keyspace main has no open shard",
        "topology.yaml: keyspaces.main.ranges[1].master: localhost:3306 is written 127.0.0.1:3306",
    ):
        assert wanted in told, (wanted, told)


def test_two_names_of_one_host_are_found_by_their_address() -> None:
    addresses = {"db1": {"10.0.0.1"}, "db2": {"10.0.0.2"}, "main.example": {"10.0.0.9", "10.0.0.1"}}
    ranges = [
        {"range": [0, 1], "master": "db1", "slave": "db2"},
        {"range": [2, 3], "master": "main.example:3306"},
    ]
    document = from_value({"keyspaces": {"main": {"ranges": ranges}, "other": {"master": "db1:3307"}}}, "t")
    found = one_host_twice(document, lambda name: frozenset(addresses.get(name, ())))
    assert [str(one) for one in found] == [
        "t: keyspaces.main.ranges[1].master: main.example:3306 and db1:3306 are one host, 10.0.0.1:"
        " name it in one way"
    ]


def test_what_does_not_resolve_is_no_mistake() -> None:
    document = from_value({"keyspaces": {"a": {"master": "a.invalid"}, "b": {"master": "b.invalid"}}}, "t")
    assert one_host_twice(document, lambda name: frozenset()) == []


def test_a_topology_may_close_all_its_shards_while_a_proxy_runs(tmp_path: Path) -> None:
    main = {**TOPOLOGY["keyspaces"]["main"], "ranges": [{**ranges()[0], "open": False}]}
    topology = {"version": 1, "keyspaces": {"main": main}}
    schema = schema_of(pins={"kind": "object", "keyspace": "main", "type": 1})
    path = write_all(tmp_path, LEAST, schema, topology)
    check(path)
    with pytest.raises(ConfigError, match="no open shard"):
        check(path, closely=True)


def test_others_need_an_unsharded_keyspace_of_their_own(tmp_path: Path) -> None:
    schema: dict[str, Any] = {"databases": {}}
    for name, keyspace in (("a", "global"), ("b", "global"), ("c", "main"), ("d", "nowhere")):
        schema["databases"][name] = {"tables": {}, "others": {"keyspace": keyspace}}
    schema["databases"]["e"] = {"tables": {"secret": {"kind": "single", "keyspace": "global"}}}
    found = problems(write_all(tmp_path, LEAST, schema, TOPOLOGY))
    told = [re.sub(r" \(line [0-9]+\)", "", one) for one in found]
    at = "schema.yaml: databases.{}.others.keyspace: "
    assert told == [
        at.format("a") + "keyspace global has tables of database b, too: `others` needs one of its own",
        at.format("a") + "keyspace global has tables of database e, too: `others` needs one of its own",
        at.format("b") + "keyspace global has tables of database a, too: `others` needs one of its own",
        at.format("b") + "keyspace global has tables of database e, too: `others` needs one of its own",
        at.format("c")
        + "keyspace main is sharded: tables that the schema does not name need an unsharded one",
        at.format("d") + "the topology has no keyspace 'nowhere'; it has: main, media, mod, global",
    ]


OWN = "is the proxy's own address ({} in the settings): name the server's"


@pytest.mark.parametrize(
    ("listen", "status", "host", "told"),
    [
        (["10.0.0.5:3306"], None, "10.0.0.5", "listen[0]"),
        (["db1:3306", "unix:/run/a.sock"], None, "DB1.:3306", "listen[0]"),
        (["db1:3306", "unix:/run/a.sock"], None, "unix:/run/a.sock", "listen[1]"),
        ("127.0.0.1:3307", None, "localhost:3307", "listen"),
        ("0.0.0.0:3307", None, "127.0.0.1:3307", "listen"),
        ("0.0.0.0:3307", None, "127.8.0.1:3307", "listen"),
        ("0.0.0.0:3307", None, "0.0.0.0:3307", "listen"),
        ("[::]:3307", None, "[::1]:3307", "listen"),
        ("[::]:3307", None, "127.0.0.1:3307", "listen"),
        ("[::1]:3307", None, "[::]:3307", "listen"),
        ([{"address": "127.0.0.1:3307"}], None, "127.0.0.1:3307", "listen[0].address"),
        ("127.0.0.1:3307", "127.0.0.1:9000", "127.0.0.1:9000", "status.listen"),
        # others, or what only a name server could tell
        ("0.0.0.0:3307", None, "db1:3307", None),
        ("0.0.0.0:3307", None, "[::1]:3307", None),
        ("127.0.0.1:3307", None, "127.0.0.2:3307", None),
        ("127.0.0.1:3307", None, "127.0.0.1:3306", None),
        ("127.0.0.1:0", None, "127.0.0.1:3306", None),
        ("unix:/run/a.sock", None, "unix:/run/b.sock", None),
    ],
)
@pytest.mark.parametrize("role", ["master", "slave"])
def test_no_host_is_the_proxy_itself(
    listen: object, status: str | None, host: str, told: str | None, role: str, tmp_path: Path
) -> None:
    pair = {"master": "other:1", role: host}
    keyspace = {"layout": "pinterest", "database": "db{shard}", "ranges": [{"range": [0, 3], **pair}]}
    topology = {"version": 1, "keyspaces": {"main": keyspace, "global": pair}}
    settings = LEAST | {"listen": listen, "status": {"listen": status}}
    path = write_all(tmp_path, settings, {"databases": {}}, topology)
    if told is None:
        check(path)
        return
    (found,) = (re.sub(r" \(line [0-9]+\)", "", one) for one in problems(path))
    assert found == f"topology.yaml: keyspaces.main.ranges[0].{role}: {spelt(host)} {OWN.format(told)}"


def test_the_proxy_itself_by_addresses_that_are_read() -> None:
    """As with a topology in ZooKeeper."""
    made = load_settings(LEAST | {"listen": ["10.0.0.5:3306", "127.0.0.1:3308"]})
    value = {"version": 1, "default": {"master": "10.0.0.5", "slave": "127.0.0.1:9307"}}
    found = itself_problems(own_addresses(made), load_topology(value), from_value(value, "node"))
    assert list(map(str, found)) == [
        "node: default.master: 10.0.0.5:3306 " + OWN.format("listen[0]"),
        "node: default.slave: 127.0.0.1:9307 " + OWN.format("status.listen"),
    ]
