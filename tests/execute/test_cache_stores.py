"""The caches' clients: whatever happens at the other end, a call gives what is there, or StoreError."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from proxy.caching import stores
from proxy.caching.stores import Item, Store, StoreError, open_store
from tests.support.caches import LocalCache

NONSENSE = (b"\xff\0" * 400, b"VALUE\r\n", b"*1\r\n$-7\r\n", b"END\r\nEND\r\nSTORED\r\n:1\r\n", b"")


async def test_a_redis_that_was_started_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has read from an old file is not taken for what was there."""
    monkeypatch.setattr(stores, "PATIENCE", 30)  # it is not about time: a busy machine may take longer
    redis = LocalCache("redis", tmp_path).start()
    store = await open_store("redis", redis.address)
    try:
        await store.put([Item(b"anew", b"1", 60)])
        assert await store.get([b"anew"]) == {b"anew": b"1"}
        redis.kill()
        redis.start()
        for match in (None, "started anew"):
            with pytest.raises(StoreError, match=match):
                await store.get([b"anew"])
    finally:
        await store.close()
        redis.stop()


async def fill(store: Store) -> None:
    for number in range(1000):
        await store.put([Item(b"%d" % number, b"x" * 100_000, 60)])


@pytest.mark.parametrize("kind", ["memcached", "redis"])
async def test_one_that_is_full(kind: str, tmp_path: Path) -> None:
    """Nothing is evicted, and what cannot be put is an error: then nobody takes it for locked."""
    cache = LocalCache(kind, tmp_path)
    full = {"memcached": ("-M", "-m", "8"), "redis": ("--maxmemory", "1")}[kind]
    cache.start(*full)
    store = await open_store(kind, cache.address)
    try:
        with pytest.raises(StoreError):
            await fill(store)
    finally:
        await store.close()
        cache.stop()


@pytest.mark.parametrize("kind", ["memcached", "redis"])
@pytest.mark.parametrize(
    "said", [b"\xff\x00" * 400, b"VALUE\r\n", b"*1\r\n$-7\r\n", b"END\r\nEND\r\nSTORED\r\n:1\r\n", b""]
)
async def test_nonsense_is_no_answer(kind: str, said: bytes) -> None:
    """Whatever a cache says: an error in time, and nothing else."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            writer.write(said)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for call in ("get", "put", "alter"):
        store = await open_store(kind, address)
        with suppress(StoreError):
            if call == "get":
                assert await store.get([b"a"]) == {}
            elif call == "put":
                await store.put([Item(b"a", b"1", 60)])
            else:
                await store.alter(b"a", lambda found: found + b"x")
        await store.close()
    server.close()


async def give_up_as_the_answer_comes() -> None:
    asked: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            if b"set" in data:
                asked.put_nowait(writer)
            else:
                writer.write(b"ERROR\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    store = await open_store("memcached", f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    for _ in range(5):
        call = asyncio.create_task(store.put([Item(b"a", b"1", 60)]))
        (await asked.get()).write(b"STORED\r\n")
        call.cancel()
        assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], asyncio.CancelledError)
        await asyncio.sleep(0.05)
    await store.close()
    server.close()


def test_an_answer_for_which_nobody_waits_any_more(caplog: pytest.LogCaptureFixture) -> None:
    """The library meets it in uvloop only, where data come before what is due; the log says nothing of it."""
    with caplog.at_level(logging.DEBUG, "asyncio"):
        uvloop.run(give_up_as_the_answer_comes())
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
