"""All caches that the schema's tables have, as one worker sees them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress

from config.schema import Cache, Schema
from proxy.tasks import Tasks
from rewriter.touched import CachedTable, Touched

from .server import CacheServer, Holder

_START = 1.0
"""Seconds that the caches are waited for before clients are let in."""


class _Own:
    """The proxy's own holder of keys: what it does with them is one command, over when it is `ready`."""

    def __init__(self) -> None:
        self.begun = 0.0
        self.closed = self.ready = self.open = False
        self.number = 0

    @property
    def session(self) -> _Own:
        return self

    @property
    def transaction(self) -> _Own:
        return self


class Caches:
    """The caches by what tables share that are in one (`Cache.server`)."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._servers: dict[tuple[str, str, str], CacheServer] = {}
        self._schema: Schema | None = None

    def __iter__(self) -> Iterator[CacheServer]:
        return iter(self._servers.values())

    def __len__(self) -> int:
        return len(self._servers)

    def of(self, cache: Cache) -> CacheServer:
        """That cache."""
        found = self._servers.get(cache.server)
        if found is None:
            found = self._servers[cache.server] = CacheServer(cache, self._tasks)
            found.start()
        return found

    async def begin(self, schema: Schema) -> None:
        """Be a member of all caches before the first statement, if they can be reached."""
        self.follow(schema)
        if self._servers:
            with suppress(TimeoutError):
                async with asyncio.timeout(_START):
                    await asyncio.gather(*(server.look() for server in self._servers.values()))

    def follow(self, schema: Schema) -> None:
        """The tables are these now."""
        if schema is self._schema:
            return
        self._schema = schema
        wanted = {table.cache.server for table in schema.cached if table.cache is not None}
        for table in schema.cached:
            if table.cache is not None:
                self.of(table.cache).follow(table.cache)
        for server in [server for server in self._servers if server not in wanted]:
            self._tasks.spawn(self._servers.pop(server).stop(), "cache")

    async def lock(self, client: Holder, touched: Iterable[Touched]) -> None:
        """See `CacheServer.lock`."""
        wanted: dict[CacheServer, list[bytes]] = {}
        for one in touched:
            server = self.of(one.table.cache)
            wanted.setdefault(server, []).extend(server.keys_of(one))
        for server, keys in wanted.items():
            await server.lock(client, keys)

    def unsure(self, client: Holder) -> None:
        """See `CacheServer.unsure`."""
        for server in self._servers.values():
            server.unsure(client)

    @asynccontextmanager
    async def all_held(self) -> AsyncIterator[None]:
        """While something is committed of which nobody knows what it has written, nothing is answered from
        caches.
        """
        tables = self._schema.cached if self._schema is not None else ()
        found = (CachedTable.of(one) for one in tables)
        async with self._held([Touched(one) for one in found if one is not None]):
            yield

    @asynccontextmanager
    async def held(self, keyspace: str, table: str, group: int) -> AsyncIterator[None]:
        """While a group is written by the proxy itself, nothing of it is answered from caches. `table`: its
        physical name.
        """
        found = (CachedTable.of(one) for one in self._schema.cached) if self._schema is not None else ()
        touched = [
            Touched(one, (group,))
            for one in found
            if one is not None and (one.keyspace, one.name.rpartition(".")[2]) == (keyspace, table)
        ]
        async with self._held(touched):
            yield

    @asynccontextmanager
    async def _held(self, touched: list[Touched]) -> AsyncIterator[None]:
        holder = _Own()
        if touched:
            await self.lock(holder, touched)
        try:
            yield
        except BaseException:
            self.unsure(holder)
            raise
        finally:
            holder.ready = True

    async def stop(self) -> None:
        """Leave all."""
        for server in self._servers.values():
            await server.stop()
