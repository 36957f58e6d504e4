"""The schema in a node of ZooKeeper, beside the topology, over one connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from config.document import ConfigError
from config.schema import Schema
from config.settings import ZooKeeper
from config.sources import ZooKeeperSource
from config.sources.schema import SchemaNode
from config.topology import Topology
from demo.zookeeper import LocalZooKeeper
from tests.config.sources import Listener, document, no_more_threads, threads, write
from tests.config.test_source_zookeeper import expire
from tests.support.waiting import async_wait_until

pytestmark = pytest.mark.slow


def schema(*tables: str, keyspace: str = "main") -> bytes:
    made = {
        name: {"kind": "object", "keyspace": keyspace, "type": number}
        for number, name in enumerate(tables, 1)
    }
    return json.dumps({"databases": {"app": {"tables": made}}}).encode()


class Told:
    """What a source of schemas has told: the names of the tables, and refusals."""

    def __init__(self) -> None:
        self.tables: list[set[str]] = []
        self.refused: list[str] = []

    def on_change(self, found: Schema) -> None:
        self.tables.append(set(found.databases["app"].tables))

    def refusal(self, words: str) -> bool:
        """Whether the last one says that."""
        return words in "".join(self.refused[-1:])


@pytest.fixture
def settings(zookeeper: LocalZooKeeper, tmp_path: Path) -> ZooKeeper:
    """Nodes and cache files of the test's own; sessions of 2 seconds."""
    path = f"/{uuid.uuid4().hex}"
    nodes = {"path": f"{path}/topology", "schema_path": f"{path}/schema", "session_timeout": 2.0}
    caches = {"cache_file": tmp_path / "topology", "schema_cache_file": tmp_path / "schema"}
    return ZooKeeper.model_validate({"hosts": zookeeper.address, **nodes, **caches})


@contextlib.asynccontextmanager
async def running(
    settings: ZooKeeper, told: Told, databases: tuple[str, ...] = ()
) -> AsyncIterator[SchemaNode]:
    """With its topology, as a proxy has them."""
    source = ZooKeeperSource(settings, connect_timeout=2.0)
    listener = Listener()

    def in_use() -> Topology:
        assert source.current is not None
        return source.current

    await source.start(listener.on_change, listener.on_refused)
    node = SchemaNode(source.connection, in_use, lambda: databases)
    try:
        await node.start(told.on_change, told.refused.append)
        yield node
    finally:
        await node.stop()
        await source.stop()


def put(zookeeper: LocalZooKeeper, settings: ZooKeeper, content: bytes) -> None:
    assert settings.schema_path is not None
    zookeeper.put(settings.schema_path, content)


def names(node: SchemaNode) -> set[str]:
    assert node.current is not None
    return set(node.current.databases["app"].tables)


async def test_live(zookeeper: LocalZooKeeper, settings: ZooKeeper) -> None:
    """What can be used is used, also after a lost session; what cannot is refused whole, and the old one
    stays, in the cache file, too.
    """
    told, before = Told(), threads()
    zookeeper.put(settings.path, document(1))
    put(zookeeper, settings, schema("a"))
    async with running(settings, told, ("app",)) as node:
        assert names(node) == {"a"}
        put(zookeeper, settings, schema("a", "b"))
        await async_wait_until(lambda: names(node) == {"a", "b"}, "the new table")
        half = schema("a", "b", "c")[:-20]
        away = json.dumps({"databases": {"other": {"tables": {}}}}).encode()
        bad = {
            b"": "must be a mapping",
            half: "line 1",
            schema("a", keyspace="nowhere"): "the topology has no keyspace 'nowhere'",
            away: "the settings let users into 'app', which is not here",
        }
        for content, words in bad.items():
            count = len(told.refused)
            put(zookeeper, settings, content)
            await async_wait_until(lambda: len(told.refused) > count, words)  # noqa: B023
            assert words in told.refused[-1]
            assert str(settings.schema_path) in told.refused[-1]
            assert names(node) == {"a", "b"}
        client = zookeeper.client()
        client.start()
        client.delete(settings.schema_path)
        await async_wait_until(lambda: told.refusal("the node does not exist"), "the node is gone")
        client.stop()
        client.close()
        assert settings.schema_cache_file.read_bytes() == schema("a", "b")
        await asyncio.to_thread(expire, node.connection.client, (zookeeper.host, zookeeper.port))
        put(zookeeper, settings, schema("c"))
        await async_wait_until(lambda: names(node) == {"c"}, "the node is read again", 60)
    assert no_more_threads(before)
    assert settings.schema_cache_file.read_bytes() == schema("c")


async def test_at_the_start(zookeeper: LocalZooKeeper, settings: ZooKeeper) -> None:
    """Without ZooKeeper, the node, or one that can be used, the cache file's serves, until there is a better
    one. Without a cache file it does not start.
    """
    told = Told()
    write(settings.cache_file, document(1))
    away = settings.model_copy(update={"hosts": "127.0.0.1:1"})
    with pytest.raises(ConfigError, match=r"cannot be reached .* and there is no cache file .*schema"):
        async with running(away, told):
            pass
    write(settings.schema_cache_file, schema("kept"))
    async with running(away, told) as node:
        assert names(node) == {"kept"}
        await async_wait_until(lambda: told.refusal("serving the cache file"), "it is said")
    zookeeper.put(settings.path, document(1))
    for content, words in ((None, "does not exist"), (b"databases: 5", "must be a mapping of databases")):
        if content is not None:
            put(zookeeper, settings, content)
        async with running(settings, told) as node:
            assert names(node) == {"kept"}
            await async_wait_until(lambda: told.refusal(words), words)  # noqa: B023
            put(zookeeper, settings, schema("kept", "new"))
            await async_wait_until(lambda: names(node) == {"kept", "new"}, "the node")
        write(settings.schema_cache_file, schema("kept"))
