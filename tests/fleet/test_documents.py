"""The configuration that the demo writes is one that an operator could have written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from config.credentials import Role
from config.load import check, load_schema, load_topology
from config.schema import Kind
from demo.documents import (
    SCHEMA,
    ZOOKEEPER_NODE,
    backends_document,
    settings_document,
    topology_document,
)
from demo.options import DemoOptions, OptionError


def write(folder: Path, *, status_port: int | None = 9307, zookeeper: str | None = None) -> Path:
    settings = settings_document(
        port=3307,
        status_port=status_port,
        workers=2,
        backends=backends_document(lambda: "secret"),
        zookeeper=zookeeper,
    )
    (folder / "shardgate.yaml").write_text(json.dumps(settings))
    shutil.copyfile(SCHEMA, folder / "schema.yaml")
    topology = topology_document(7, [("a:1", "a:2"), ("b:1", "b:2"), ("c:1", "c:2")])
    (folder / "topology.json").write_text(json.dumps(topology))
    return folder / "shardgate.yaml"


def test_the_files_pass_the_check(tmp_path: Path) -> None:
    settings, _, topology = check(write(tmp_path))
    assert topology is not None
    assert [(one.first, one.last) for one in topology.keyspaces["main"].ranges] == [(0, 1), (2, 3), (4, 6)]
    assert topology.default == "a:1"
    assert topology.slaves == ("a:2", "b:2", "c:2")
    demo, reader = settings.user("demo"), settings.user("reader")
    assert demo is not None
    assert reader is not None
    assert (demo.role, demo.scatter.allowed, demo.scatter.limit) == (Role.ADMIN, True, None)
    assert (reader.role, reader.scatter.allowed, reader.scatter.limit) == (Role.READ, True, 1000)
    assert settings.workers == 2


def test_without_page_and_with_zookeeper(tmp_path: Path) -> None:
    settings, _, topology = check(write(tmp_path, status_port=None, zookeeper="127.0.0.1:2181"))
    assert topology is None
    assert settings.status.listen is None
    assert settings.topology.zookeeper is not None
    assert settings.topology.zookeeper.path == ZOOKEEPER_NODE


def test_one_shard_a_host() -> None:
    topology = load_topology(topology_document(3, [(f"h{n}:1", None) for n in range(3)]))
    assert [topology.keyspaces["lookup"].host_of(shard) for shard in range(3)] == ["h0:1", "h1:1", "h2:1"]


def test_the_schema() -> None:
    tables = load_schema(SCHEMA).databases["demo"].tables
    assert {name: (str(one.kind), one.keyspace, one.type) for name, one in tables.items()} == {
        "pins": ("object", "main", 1),
        "boards": ("object", "main", 2),
        "users": ("object", "main", 3),
        "comments": ("object", "main", 4),
        "user_has_boards": ("mapping", "main", None),
        "board_has_pins": ("mapping", "main", None),
        "pin_owned_by_board": ("mapping", "main", None),
        "user_likes_pins": ("mapping", "main", None),
        "pin_liked_by_user": ("mapping", "main", None),
        "user_follows_user": ("mapping", "main", None),
        "email_to_user": ("hashed", "lookup", None),
        "ip_data": ("hashed", "lookup", None),
        "photos": ("timed", "media", None),
        "usernames": ("single", "global", None),
        "countries": ("reference", "global", None),
    }
    assert [name for name, one in tables.items() if one.orderable] == ["board_has_pins"]
    assert all(len(one.columns) == 3 for one in tables.values() if one.kind in (Kind.OBJECT, Kind.MAPPING))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (DemoOptions(hosts=0), "--hosts must be at least 1"),
        (DemoOptions(hosts=3, shards=2), r"--shards must be 3 \(one a host\) to 8192, not 2"),
        (DemoOptions(shards=8193), "--shards must be 2"),
        (DemoOptions(workers=0), "--workers must be at least 1"),
        (DemoOptions(port=65536), "--port must be 0 to 65535, not 65536"),
        (DemoOptions(ready_file=Path("/no/such/folder/ready")), "the folder of .* does not exist"),
    ],
)  # fmt: skip
def test_options_that_cannot_work(options: DemoOptions, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        options.check()
