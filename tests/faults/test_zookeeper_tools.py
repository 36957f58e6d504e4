"""Proxies and tools over a ZooKeeper that lets only their user in, below a chroot; the schema is a node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from demo.programs import Program
from demo.zookeeper import LocalZooKeeper
from tests.faults.pairs import Pairs
from tests.faults.writers import Writers, place
from tests.integration.own import OwnProxy
from tests.support.demo import running_demo

pytestmark = pytest.mark.either_server


class InZooKeeper(Pairs):
    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.run("get", command="topology")[1])
        return document


@pytest.fixture(scope="module")
def pairs(
    program: Program, flavour: str, zookeeper: LocalZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pairs]:
    folder = tmp_path_factory.mktemp("zookeeper_tools")
    node = {"hosts": f"{zookeeper.address}/{folder.name}-{flavour}/prod", "user": "fleet", "password": "p:w"}
    source = {"zookeeper": {**node, "schema_path": "/schema", "session_timeout": "5s"}}
    with running_demo(program, folder, "--slaves", "--spares", "1", "--shards", "4") as demo:
        settings = json.loads(demo.settings.read_text()) | {"topology": source}
        settings["timeouts"] = {"buffer": "120s"}  # as long as a busy machine may take
        del settings["schema"]
        demo.settings.write_text(json.dumps(settings))
        made = InZooKeeper(demo, flavour, ("", 0))
        for what, file in (("schema", demo.schema), ("topology", demo.directory / "topology.json")):
            status, output = made.run("put", str(file), "--yes", command=what)
            assert status == 0, output
        changes = {"schema": None, "topology": {"file": None, **source}}
        with OwnProxy(demo, folder / "proxy", changes) as proxy:
            made.address = (proxy.proxy.host, proxy.proxy.port)
            yield made


def test_a_promotion(pairs: Pairs) -> None:
    """Nobody hears of it; the proxy that was waited for is the one that is registered."""
    old, new = pairs.pair(0)
    assert new is not None
    places = [place(0), place(1)]
    with Writers(pairs.address, places) as writers:
        status, output = pairs.run("promote", "--host", old.address, "--yes")
        assert (status, f"{new.address} is the master" in output) == (0, True), output
        writers.go_on()
    assert pairs.pair(0) == (new, old)
    assert (writers.problems, writers.retried) == ([], [])
    pairs.has_it_all(old, new)
    for host in (old, new):
        assert sorted(pairs.written(host, places)) == sorted(writers.acknowledged)
    output = pairs.run("status")[1]
    assert f"serves version {pairs.document['version']}" in output
    assert "shardgate fleet promote" in output


def test_a_split_and_a_definition(pairs: Pairs) -> None:
    """Shards go to an empty server; then all get a column, wherever they are."""
    old, _ = pairs.pair(1)
    new = pairs.hosts["spare1"]
    moved, stays = place(2), place(3)
    words = ["split", "--keyspace", "main,lookup", "--shards", "2-2", "--master", new.address, "--provision"]
    with Writers(pairs.address, [moved, stays]) as writers:
        status, output = pairs.run(*words, "--yes")
        assert status == 0, output
        writers.go_on()
    assert (writers.problems, writers.retried) == ([], [])
    ranges = pairs.document["keyspaces"]["main"]["ranges"]
    assert [one["master"] for one in ranges if one["range"][0] == 2] == [new.address]
    there = pairs.written(new, [moved]) + pairs.written(old, [stays])
    assert sorted(there) == sorted(writers.acknowledged)
    status, output = pairs.run("ddl", "--statement", "ALTER TABLE users ADD note VARCHAR(20)", "--yes")
    assert (status, "demo.users: altered 4 of 4 tables" in output) == (0, True), output
    assert "note" in [row[0] for row in pairs.execute(new, "SHOW COLUMNS FROM db00002.users")]
