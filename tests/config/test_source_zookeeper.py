"""A topology in a real ZooKeeper: watching, losing the session, running without, registering."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, NoNodeError, SessionExpiredError

from config.load import ConfigError
from config.settings import ZooKeeper
from config.sources import ZooKeeperSource
from config.topology import Topology
from demo.zookeeper import LocalZooKeeper
from tests.config.sources import BAD, Listener, document, no_more_threads, threads, write
from tests.support.waiting import async_wait_until, turns

pytestmark = pytest.mark.slow


@pytest.fixture
def client(zookeeper: LocalZooKeeper) -> Iterator[KazooClient]:
    retry = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 0.5}
    made = zookeeper.client(timeout=2.0, connection_retry=retry)
    made.start()
    yield made
    made.stop()
    made.close()


@pytest.fixture
def settings(zookeeper: LocalZooKeeper, tmp_path: Path) -> ZooKeeper:
    """A node and a cache file of the test's own; sessions of 2 seconds."""
    return ZooKeeper(
        hosts=zookeeper.address,
        path=f"/test/{uuid.uuid4().hex}",
        cache_file=tmp_path / "cache.json",
        session_timeout=2.0,
        name="proxy-1",
    )


@pytest.fixture
async def listener() -> Listener:
    return Listener()


@contextlib.asynccontextmanager
async def running(settings: ZooKeeper, listener: Listener, **options: Any) -> AsyncIterator[ZooKeeperSource]:
    source = ZooKeeperSource(settings, connect_timeout=options.pop("connect_timeout", 10.0), **options)

    def on_change(topology: Topology) -> None:
        listener.on_change(topology)
        source.serving(topology)

    await source.start(on_change, listener.on_refused)
    try:
        yield source
    finally:
        await source.stop()


def put(client: KazooClient, path: str, content: bytes) -> None:
    client.ensure_path(path)
    client.set(path, content)


def cached(settings: ZooKeeper) -> bytes:
    return settings.cache_file.read_bytes()


def registration(client: KazooClient, settings: ZooKeeper, name: str = "proxy-1") -> dict[str, Any]:
    """What a proxy says of itself, when it is there."""
    try:
        data, stat = client.get(f"{settings.registry}/{name}")
    except NoNodeError:
        return {}
    assert stat.ephemeralOwner
    return dict(json.loads(data))


async def registered(
    client: KazooClient, settings: ZooKeeper, name: str = "proxy-1", **wanted: object
) -> dict[str, Any]:
    """The registration, once it has the wanted fields."""

    def found() -> dict[str, Any]:
        try:
            said = registration(client, settings, name)
        except (SessionExpiredError, ConnectionLoss):  # the test's own session was lost as well
            return {}
        return said if said and wanted.items() <= said.items() else {}

    return await async_wait_until(found, f"{name} is registered with {wanted}")


async def test_it_is_read_watched_cached_and_registered(
    client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    put(client, settings.path, document(5))
    async with running(settings, listener) as source:
        assert source.current is not None
        assert source.current.version == 5
        assert cached(settings) == document(5)
        first = await registered(client, settings, version=5)
        assert first["digest"] == source.current.digest
        assert first["pid"] > 0
        assert "(connected)" in source.status
        for version in (6, 7, 8):
            put(client, settings.path, document(version, f"h{version}:3306"))
            changed = await listener.changed()
            assert (changed.version, changed.hosts) == (version, (f"h{version}:3306",))
        await registered(client, settings, version=8)
        assert cached(settings) == document(8, "h8:3306")
        assert listener.quiet
    assert registration(client, settings) == {}


async def test_a_bad_document_is_refused_and_the_old_one_stays(
    client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    put(client, settings.path, document(5))
    async with running(settings, listener) as source:
        old = source.current
        put(client, settings.path, BAD)
        reason = await listener.told()
        assert "x (line 1): unknown field" in reason
        assert "field 'database' is missing" in reason
        assert settings.path in reason
        put(client, settings.path, document(4))
        assert "is 4: stale, version 5 is in use" in await listener.told()
        assert source.current is old
        assert cached(settings) == document(5)
        put(client, settings.path, document(5, "b:3306"))
        assert (await listener.changed()).hosts == ("b:3306",)


async def test_a_node_deleted_and_made_again(
    client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    put(client, settings.path, document(5))
    async with running(settings, listener) as source:
        client.delete(settings.path)
        assert "the node does not exist" in await listener.told()
        assert source.current is not None
        put(client, settings.path, document(6))
        while (await listener.changed()).version != 6:
            pass


async def test_it_goes_on_without_zookeeper_and_reads_again_when_it_is_back(
    zookeeper: LocalZooKeeper, client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    put(client, settings.path, document(5))
    async with running(settings, listener) as source:
        await registered(client, settings, version=5)
        zookeeper.stop()
        await async_wait_until(lambda: "not connected" in source.status, "the connection is lost")
        assert source.current is not None
        zookeeper.start()  # from this thread: it dies with the one that starts it
        zookeeper.put(settings.path, document(6))
        assert (await listener.changed(60)).version == 6
        await registered(client, settings, version=6)
        zookeeper.put(settings.path, document(7))
        assert (await listener.changed()).version == 7


async def test_a_change_missed_while_the_session_was_lost(
    client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    """The watch dies with the session: what counts is that the node is read again."""
    put(client, settings.path, document(5))
    async with running(settings, listener) as source:
        await registered(client, settings, version=5)
        before = source._client.client_id
        await asyncio.to_thread(expire, source._client, client.hosts[0])
        put(client, settings.path, document(6))
        assert (await listener.changed(60)).version == 6
        await registered(client, settings, version=6)
        assert source._client.client_id != before
        put(client, settings.path, document(7))
        assert (await listener.changed()).version == 7


def expire(client: KazooClient, address: tuple[str, int]) -> None:
    """End a client's session: close it from a second connection that claims to be the same client."""
    other = KazooClient(hosts=f"{address[0]}:{address[1]}", client_id=client.client_id)
    other.start()
    other.stop()
    other.close()


async def test_started_without_zookeeper_it_serves_the_cache(
    client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    write(settings.cache_file, document(5, "cached:1"))
    gone = settings.model_copy(update={"hosts": "127.0.0.1:1"})
    before = threads()
    async with running(gone, listener, connect_timeout=0.3) as source:
        assert source.current is not None
        assert source.current.hosts == ("cached:1",)
        reason = await listener.told()
        assert "cannot be reached (127.0.0.1:1: Connection refused): serving the cache file" in reason
    assert no_more_threads(before)


async def test_started_without_zookeeper_it_turns_to_it_later(
    zookeeper: LocalZooKeeper, client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    put(client, settings.path, document(6))
    write(settings.cache_file, document(5))
    zookeeper.stop()
    try:
        async with running(settings, listener, connect_timeout=0.3) as source:
            assert source.current is not None
            assert source.current.version == 5
            zookeeper.start()  # from this thread: it dies with the one that starts it
            assert (await listener.changed(60)).version == 6
            await registered(client, settings, version=6)
    finally:
        zookeeper.start()  # from this thread: it dies with the one that starts it


@pytest.mark.parametrize("content", [None, BAD])
async def test_without_zookeeper_and_cache_it_does_not_start(
    settings: ZooKeeper, listener: Listener, content: bytes | None
) -> None:
    before = threads()
    if content is not None:
        write(settings.cache_file, content)
    gone = settings.model_copy(update={"hosts": "127.0.0.1:1"})
    with pytest.raises(ConfigError) as caught:
        async with running(gone, listener, connect_timeout=0.2):
            pass
    assert "cannot be reached (127.0.0.1:1: Connection refused), and " in str(caught.value)
    assert ("unknown field" in str(caught.value)) == (content is not None)
    assert no_more_threads(before)


@pytest.mark.parametrize("content", [None, BAD])
async def test_a_bad_start_without_a_cache_raises_all_problems(
    client: KazooClient, settings: ZooKeeper, listener: Listener, content: bytes | None
) -> None:
    before = threads()
    if content is not None:
        put(client, settings.path, content)
    with pytest.raises(ConfigError) as caught:
        async with running(settings, listener):
            pass
    if content is None:
        assert "the node does not exist, and there is no cache file" in str(caught.value)
    else:
        assert len(caught.value.problems) == 3
    assert no_more_threads(before)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "does not exist"),
        (BAD, "unknown field"),
        (document(4), "version 4 is stale, 5 was in use"),
        (document(6, last=1), "keyspaces.main.ranges: shards 2 to 3 are in no range, but in version 5"),
    ],
)
async def test_a_bad_start_with_a_cache_serves_it(
    client: KazooClient, settings: ZooKeeper, listener: Listener, content: bytes | None, reason: str
) -> None:
    write(settings.cache_file, document(5, "cached:1"))
    if content is not None:
        put(client, settings.path, content)
    async with running(settings, listener) as source:
        assert source.current is not None
        assert source.current.hosts == ("cached:1",)
        assert reason in await listener.told()
        put(client, settings.path, document(6))
        assert (await listener.changed()).version == 6
    assert cached(settings) == document(6)


async def test_shards_vanish_only_when_the_document_says_that_they_were_dropped(
    client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    put(client, settings.path, document(5))
    async with running(settings, listener) as source:
        old = source.current
        put(client, settings.path, document(6, last=1))
        assert "shards 2 to 3 are in no range" in await listener.told()
        assert source.current is old
        assert cached(settings) == document(5)
        put(client, settings.path, document(7, last=1, dropped=[[2, 3]]))
        assert (await listener.changed()).version == 7
    put(client, settings.path, document(8, last=0, dropped=[[1, 3]]))
    async with running(settings, listener) as source:
        assert source.current is not None
        assert source.current.version == 8


async def test_what_places_rows_may_change_over_a_restart(
    client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    put(client, settings.path, document(6, pattern="new{shard}"))
    write(settings.cache_file, document(5))
    async with running(settings, listener) as source:
        assert source.current is not None
        assert source.current.physical("new0") is not None


async def test_a_broken_cache_does_not_matter_when_zookeeper_is_there(
    client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    put(client, settings.path, document(5))
    write(settings.cache_file, b"garbage: [")
    async with running(settings, listener):
        assert cached(settings) == document(5)


async def test_a_cache_that_cannot_be_written_is_only_logged(
    client: KazooClient, settings: ZooKeeper, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    put(client, settings.path, document(5))
    nowhere = settings.model_copy(update={"cache_file": Path("/nonexistent/cache.json")})
    async with running(nowhere, listener):
        assert "cannot write the cache file /nonexistent/cache.json" in caplog.text


async def test_two_proxies_of_one_name(
    client: KazooClient, settings: ZooKeeper, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    """The second one keeps trying, and takes the name when the first has gone."""
    put(client, settings.path, document(5))
    second = ZooKeeperSource(settings)
    async with running(settings, listener):
        first = await registered(client, settings)
        await second.start(listener.on_change, listener.on_refused)
        await async_wait_until(lambda: "another proxy is registered as proxy-1" in caplog.text, "a warning")
        assert await registered(client, settings) == first
    second.reload()
    again = await registered(client, settings)
    assert again["instance"] != first["instance"]
    await second.stop()


async def test_names_and_places_of_registration(
    client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    put(client, settings.path, document(5))
    elsewhere = settings.model_copy(update={"proxies_path": f"{settings.path}-elsewhere"})
    async with running(elsewhere, listener, name="worker-3"):
        await registered(client, elsewhere, "worker-3", version=5)


async def test_stop_leaves_no_thread(client: KazooClient, settings: ZooKeeper, listener: Listener) -> None:
    put(client, settings.path, document(5))
    before = threads()
    async with running(settings, listener) as source:
        await registered(client, settings)
        await source.stop()
        assert no_more_threads(before)
        put(client, settings.path, document(6))
        await turns(5)
    assert listener.quiet


async def test_stop_does_not_wait_for_a_dead_zookeeper(
    zookeeper: LocalZooKeeper, client: KazooClient, settings: ZooKeeper, listener: Listener
) -> None:
    put(client, settings.path, document(5))
    before = threads()
    source = ZooKeeperSource(settings)
    await source.start(listener.on_change, listener.on_refused)
    zookeeper.stop()
    try:
        source.reload()
        started = asyncio.get_running_loop().time()
        await source.stop()
        assert asyncio.get_running_loop().time() - started < 5
        assert no_more_threads(before)
    finally:
        zookeeper.start()  # from this thread: it dies with the one that starts it
