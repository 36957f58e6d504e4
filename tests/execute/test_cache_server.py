"""One cache as a worker sees it: which keys stay locked, and when its answers are given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from config.schema import Cache
from proxy.caching import server as module
from proxy.caching.members import UNSURE
from proxy.caching.server import LOCK, CacheServer
from proxy.caching.stores import Item
from proxy.tasks import Tasks

KEY = b"shardgate:g:demo.pins:1"


class Memory:
    """A cache. `puts`: how often each key was put."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.puts: dict[bytes, int] = {}

    async def get(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        return {key: self.values[key] for key in keys if key in self.values}

    async def put(self, items: Iterable[Item]) -> None:
        for key, value, _ in items:
            self.values[key] = value
            self.puts[key] = self.puts.get(key, 0) + 1

    async def add(self, items: Iterable[Item]) -> None:
        await self.put([item for item in items if item.key not in self.values])

    async def alter(self, key: bytes, change: Callable[[bytes], bytes]) -> None:
        self.values[key] = change(self.values.get(key, b""))

    async def close(self) -> None:
        pass


class Rig:
    """A `CacheServer` on a `Memory`, whose clock and watch are the test's."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.server = CacheServer(Cache("redis", "127.0.0.1:1"), Tasks())
        self.now = 1000.0

    async def look(self, seconds: float = 0.0) -> None:
        self.now += seconds
        await self.server.look()

    def puts(self) -> int:
        return self.memory.puts.get(KEY, 0)


@asynccontextmanager
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    made = Rig()

    async def open_store(kind: str, address: str) -> Memory:
        return made.memory

    monkeypatch.setattr(module, "open_store", open_store)
    monkeypatch.setattr(module, "monotonic", lambda: made.now)
    for _ in range(3):
        await made.look(2.0)
    assert made.server.trusted(made.now)
    yield made


class Client:
    """One that runs a statement outside of a transaction."""

    def __init__(self) -> None:
        self.begun = 1.0
        self.closed = self.ready = False
        self.session: Any = SimpleNamespace(transaction=SimpleNamespace(number=0, open=False))


async def test_what_runs_stays_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """And once more when it is over: the lock may have been evicted, and an old row read since."""
    async with rig(monkeypatch) as made:
        client = Client()
        await made.server.lock(client, [KEY])
        for puts in (2, 3):
            await made.look(0.4)
            assert made.puts() == puts
        client.ready = True
        await made.look(0.4)
        assert made.puts() == 4
        await made.look(0.4)
        assert made.puts() == 4


async def test_a_short_write_locks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(monkeypatch) as made:
        client = Client()
        await made.server.lock(client, [KEY])
        client.ready = True
        await made.look(0.4)
        assert (made.puts(), made.memory.values[KEY]) == (1, LOCK)


async def test_a_commit_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """While COMMIT is at work the transaction is not open any more, and not over."""
    async with rig(monkeypatch) as made:
        client = Client()
        client.session.transaction.open = True
        await made.server.lock(client, [KEY])
        client.begun, client.session.transaction.open = 2.0, False
        for puts in range(2, 12):
            await made.look(2.0)
            assert made.puts() == puts
        client.begun = 3.0  # a later command
        await made.look(2.0)
        last = made.puts()
        await made.look(2.0)
        assert made.puts() == last


@pytest.mark.parametrize("gone", [False, True])
async def test_what_may_still_be_done(monkeypatch: pytest.MonkeyPatch, gone: bool) -> None:
    """Of a write whose answer was lost, or whose client has gone, nobody knows when it ends."""
    async with rig(monkeypatch) as made:
        client = Client()
        await made.server.lock(client, [KEY])
        if gone:
            client.closed = True
            await made.look()
        else:
            made.server.unsure(client)
            client.ready = True
        before = made.puts()
        for _ in range(int(UNSURE // 2)):
            await made.look(2.0)
        assert made.puts() >= before + UNSURE // 2 - 1
        await made.look(2.0)
        last = made.puts()
        await made.look(2.0)
        assert made.puts() == last


async def test_rubbish(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others have put there: it is not trusted, and it is mended."""
    async with rig(monkeypatch) as made:
        for key in list(made.memory.values):
            for value in (b"", b"x" * 16, b"-3", b"9" * 50, b"\xff\n \0 a b"):
                made.memory.values[key] = value
                await made.look(0.4)
        for _ in range(int(13 * made.server.lease)):
            await made.look(2.0)
        assert made.server.trusted(made.now)
        assert made.server.members == 1


async def test_a_member_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is answered until nothing of its can come any more; then all that it may have made old is."""
    async with rig(monkeypatch) as made:
        members, epoch = made.server.members_key, made.memory.values[made.server.epoch_key]
        made.memory.values[members] += b" 0123456789abcdef"
        made.memory.values[b"shardgate:m:0123456789abcdef"] = b"7"
        silent = 0.0
        while made.memory.values[made.server.epoch_key] == epoch:
            await made.look(2.0)
            silent += 2.0
            assert not made.server.trusted(made.now) or silent <= made.server.lease
        assert silent >= UNSURE
        for _ in range(3):
            await made.look(2.0)
        assert (made.server.trusted(made.now), made.server.members) == (True, 1)
