"""The two kinds of caches behind one interface, through the client libraries of the extra `caches`.

Every call ends within `PATIENCE`, by its result or by `StoreError`, whatever the library raises about what
it was told; then the store is to be closed and another one opened: of one that has failed nobody knows what
is still under way on its connections.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from config.address import Address, parse_address

PATIENCE: Final = 0.05
"""Seconds that a call may take."""
_CONNECTIONS: Final = 4
_AT_ONCE: Final = 32
_TRIES: Final = 5

T = TypeVar("T")


class StoreError(Exception):
    """The cache does not answer, or not as it should."""


class Item(NamedTuple):
    """What is put under a key, for so many seconds (0: for as long as there is room)."""

    key: bytes
    value: bytes
    seconds: int


class Store(Protocol):
    """One cache. All methods raise StoreError."""

    async def get(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """The values there are."""

    async def put(self, items: Iterable[Item]) -> None:
        """Put all of these, whatever was there."""

    async def add(self, items: Iterable[Item]) -> None:
        """Put those whose keys are not there."""

    async def alter(self, key: bytes, change: Callable[[bytes], bytes]) -> None:
        """Put what `change` makes of the value (b"": there is none), unless somebody else does meanwhile;
        then once more.
        """

    async def close(self) -> None:
        """Close the connections."""


async def open_store(kind: str, address: str) -> Store:
    """A store, which need not be reachable yet."""
    where = parse_address(address, None)
    return await _open_memcached(where) if kind == "memcached" else _open_redis(where)


async def _within(call: Awaitable[T], through: tuple[type[Exception], ...] = ()) -> T:
    """What `call` gives; `through` are the errors that it may raise besides StoreError."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await call
    except through:
        raise
    except TimeoutError as error:
        raise StoreError(str(error) or "it does not answer in time") from None
    except Exception as error:  # what is said there may be anything, and the libraries raise as much
        raise StoreError(str(error) or type(error).__name__) from None


# -- memcached


async def _open_memcached(where: Address) -> Store:
    import emcache

    logging.getLogger("emcache").setLevel(logging.CRITICAL)  # what it meets, the proxy tells
    logging.getLogger("asyncio").addFilter(_is_no_late_answer)
    node: Any
    if where.path is not None:
        node = emcache.MemcachedUnixSocketPath(where.path)
    else:
        node = emcache.MemcachedHostAddress(where.host, where.port)
    client = await emcache.create_client(
        [node],
        timeout=None,  # `_within` has one for each call
        connection_timeout=PATIENCE,
        min_connections=1,
        max_connections=_CONNECTIONS,
        purge_unused_connections_after=None,
    )
    return _Memcached(client, emcache)


def _is_no_late_answer(record: logging.LogRecord) -> bool:
    """Not of an answer that came in the very turn in which nobody waited for it any more: the library takes
    it for an error, and the loop ends the connection, as it should.
    """
    late = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.InvalidStateError)
    return not (late and "emcache" in record.getMessage())


class _Memcached:
    def __init__(self, client: Any, emcache: Any) -> None:
        self._client = client
        self._not_stored = emcache.NotStoredStorageCommandError
        self._refused = (emcache.CommandError,)

    async def get(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        found = await _within(self._client.get_many(keys))
        return {key: item.value for key, item in found.items()}

    async def put(self, items: Iterable[Item]) -> None:
        await self._all(self._set, list(items))

    async def add(self, items: Iterable[Item]) -> None:
        await self._all(self._add, list(items))

    async def alter(self, key: bytes, change: Callable[[bytes], bytes]) -> None:
        for _ in range(_TRIES):
            found = await _within(self._client.gets(key))
            if found is None:
                call = self._client.add(key, change(b""))
            else:
                call = self._client.cas(key, change(found.value), found.cas)
            try:
                await _within(call, self._refused)
            except self._refused:
                continue
            return
        raise StoreError("a key is changed by others all the time")

    async def close(self) -> None:
        with suppress(Exception):
            await self._client.close()

    async def _all(self, call: Callable[[Item], Awaitable[None]], items: list[Item]) -> None:
        if len(items) == 1:
            await _within(call(items[0]))
            return
        for at in range(0, len(items), _AT_ONCE):
            await _within(asyncio.gather(*map(call, items[at : at + _AT_ONCE])))

    async def _set(self, item: Item) -> None:
        await self._client.set(item.key, item.value, exptime=item.seconds)

    async def _add(self, item: Item) -> None:
        with suppress(self._not_stored):
            await self._client.add(item.key, item.value, exptime=item.seconds)


# -- Redis


def _open_redis(where: Address) -> Store:
    from redis import asyncio as redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import WatchError

    place: dict[str, Any] = {"unix_socket_path": where.path}
    if where.path is None:
        place = {"host": where.host, "port": where.port}
    client = redis.Redis(
        **place,
        socket_timeout=None,  # `_within` has one for each call
        socket_connect_timeout=PATIENCE,
        retry=Retry(NoBackoff(), 0),
        retry_on_error=[],
        protocol=2,
        redis_connect_func=_SameServer().connected,
    )
    return _Redis(client, WatchError)


class _SameServer:
    """Looks at each new connection, which the library makes by itself also where one was lost while nobody
    used it: that another process serves it may not remain unnoticed, for that one may have read an old file.
    """

    def __init__(self) -> None:
        self._run: bytes | None = None  # of the first connection's

    async def connected(self, connection: Any) -> None:
        """What the library calls before it uses a connection. Raises ConnectionError."""
        await connection.on_connect()
        await connection.send_command("INFO", "server")
        told = await connection.read_response()
        run = next((line for line in told.splitlines() if line.startswith(b"run_id:")), b"")
        if self._run not in (None, run):
            raise ConnectionError("it was started anew")
        self._run = run


class _Redis:
    def __init__(self, client: Any, changed: type[Exception]) -> None:
        self._client = client
        self._changed = (changed,)

    async def get(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes]:
        values = await _within(self._client.mget(keys))
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    async def put(self, items: Iterable[Item]) -> None:
        await self._set(items, absent=False)

    async def add(self, items: Iterable[Item]) -> None:
        await self._set(items, absent=True)

    async def _set(self, items: Iterable[Item], *, absent: bool) -> None:
        pipeline = self._client.pipeline(transaction=False)
        for key, value, seconds in items:
            pipeline.set(key, value, ex=seconds or None, nx=absent)
        await _within(pipeline.execute())

    async def alter(self, key: bytes, change: Callable[[bytes], bytes]) -> None:
        for _ in range(_TRIES):
            try:
                await _within(self._alter(key, change), self._changed)
            except self._changed:
                continue
            return
        raise StoreError("a key is changed by others all the time")

    async def _alter(self, key: bytes, change: Callable[[bytes], bytes]) -> None:
        async with self._client.pipeline(transaction=True) as pipeline:
            await pipeline.watch(key)
            found = await pipeline.get(key)
            pipeline.multi()
            pipeline.set(key, change(found or b""))
            await pipeline.execute()

    async def close(self) -> None:
        with suppress(Exception):
            await self._client.aclose()
