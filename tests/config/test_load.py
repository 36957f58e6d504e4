"""All documents together: `check` finds every problem in all files, and what does not fit together."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.checks import fit_problems, succession_problems
from config.load import ConfigError, check, load_schema, load_settings, load_topology
from config.sources import FileSource, ZooKeeperSource, open_source
from tests.config.test_settings import LEAST

MISFITS = yaml.safe_load((Path(__file__).parent / "cases" / "misfits.yaml").read_text())


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
        "shardgate.yaml: workers (line 16): must be greater than or equal to 1",
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
            {"range": [0, 1], "master": "b", "slave": "a", "state": "frozen"},
            {"range": [2, 7], "master": "c"},
        ],
    }
    new = load_topology(
        {"version": 2, "keyspaces": {"main": main, "new": {"master": "b"}}, "default": {"master": "b"}}
    )
    assert succession_problems(old, new) == []


def test_sources_by_settings(tmp_path: Path) -> None:
    assert isinstance(open_source(load_settings(LEAST, base=tmp_path)), FileSource)
    settings = LEAST | {"topology": {"zookeeper": {"hosts": "127.0.0.1:1"}}}
    source = open_source(load_settings(settings, base=tmp_path), name="x")
    assert isinstance(source, ZooKeeperSource)
    assert source.current is None
    assert "zookeeper 127.0.0.1:1/shardgate/topology (not connected" in source.status
