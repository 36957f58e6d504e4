"""One cache, as one worker process sees it: what it asks there, and what it keeps others from being answered.

    prefix:epoch            what all answers belong to
    prefix:members          the members' names; prefix:m:NAME is the beat of each
    prefix:t:TABLE          tokens: of a table, …
    prefix:s:TABLE:SHARD    … of its rows on a shard, …
    prefix:g:TABLE:ID       … and of a group: an object, or a list
    prefix:a:DIGEST         an answer, with the tokens that it was read under

An answer is good while the tokens are those that stand with it. A writer puts LOCK in the place of a token
before it sends its statement, for longer than its proxy could be dead without that being noticed; it keeps it
there until the transaction has ended. When it is gone, the next reader puts a new token, which is random: so
nothing that was read before fits any more, whoever puts it there and when.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import ceil
from secrets import token_hex
from time import monotonic
from typing import Final, Protocol

import structlog

from config.schema import Cache
from proxy.tasks import Tasks
from rewriter.touched import CachedTable, Touched

from .members import BEATS, UNSURE, Members
from .stores import Item, Store, StoreError, open_store

log = structlog.get_logger("proxy")

LOCK: Final = b"-"
_TOKEN: Final = 16
_MOST_DIRTY: Final = 100_000
"""Of more keys that could not be locked none is kept: all answers become old."""
_NAME: Final = 16
_BEAT_SECONDS: Final = 3600
_DAY: Final = 86400

COUNTS: Final = ("hits", "misses", "bypassed", "puts", "invalidations", "errors")
"""What is counted. A read is a hit, a miss, or has bypassed the cache."""

Answered = Callable[[Mapping[bytes, bytes] | None], None]


class Transaction(Protocol):
    """What is to be known of a client's transaction. `number`: how many it has begun."""

    number: int

    @property
    def open(self) -> bool: ...


class HolderSession(Protocol):
    """A client's session."""

    @property
    def transaction(self) -> Transaction: ...


class Holder(Protocol):
    """A client whose statement, or transaction, locks keys."""

    begun: float
    closed: bool
    ready: bool

    @property
    def session(self) -> HolderSession: ...


class _Held:
    """The keys that one client's transaction locks. `begun`: when the command came. `again`: they were locked
    more than once.
    """

    __slots__ = ("again", "at_work", "begun", "ending", "gone", "keys", "number")

    def __init__(self, client: Holder) -> None:
        self.begun = client.begun
        self.number = client.session.transaction.number
        self.keys: set[bytes] = set()
        self.again = False
        self.at_work = client.begun  # when the command came that was at work last
        self.ending = 0.0  # and one behind the transaction, as it seems: it may be COMMIT
        self.gone = 0.0  # when the client had gone

    def over(self, client: Holder, now: float) -> bool:
        """Whether what has locked them is at its end. What a client that is gone has sent may still run."""
        transaction = client.session.transaction
        if transaction.number != self.number:
            return True
        if client.closed:
            if client.begun != self.at_work:
                return True  # it was idle
            self.gone = self.gone or now
            return now > self.gone + UNSURE
        if client.ready:
            return not transaction.open
        self.at_work = client.begun
        if transaction.open:
            return False
        if client.begun != self.begun:
            before, self.ending = self.ending, client.begun
            return before not in (0.0, client.begun)
        return False


def new_token() -> bytes:
    return token_hex(_TOKEN // 2).encode()


def is_token(value: bytes | None) -> bool:
    return value is not None and len(value) == _TOKEN


def _number(value: bytes | None) -> int:
    """A beat; -1 when there is none, or what nobody of us has written."""
    return int(value) if value is not None and len(value) < 19 and value.isdigit() else -1


class CacheServer:
    """See the file's own words. `counts`: by COUNTS."""

    def __init__(self, cache: Cache, tasks: Tasks) -> None:
        self.cache = cache
        self.lease = cache.lease
        self.counts = Counter[str]()
        self.trouble = ""  # why it is not asked
        self.trusted_until = 0.0
        self.epoch = b""
        self._spawn = tasks.spawn
        self._prefix = cache.prefix.encode() + b":"
        self._epoch_key, self._members_key = self._prefix + b"epoch", self._prefix + b"members"
        self._name = token_hex(_NAME // 2).encode()
        self._members = Members(cache.lease)
        self._store: Store | None = None
        self._beat = 0  # the number that was written last, and that which is known to be there
        self._acknowledged = 0
        self._joined = False
        self._held: dict[Holder, _Held] = {}
        self._locked: dict[bytes, float] = {}  # keys, and when each was put last
        self._unsure: dict[bytes, float] = {}  # keys, and until when they stay locked whoever holds them
        self._dirty: set[bytes] = set()
        self._all_dirty = False
        self._shaken = True  # whatever was put a moment ago may not be there
        self._asked: list[tuple[Sequence[bytes], Answered]] = []
        self._asking = False
        self._looked = False
        self._turn = asyncio.Lock()  # one looks at a time
        self._task: asyncio.Task[None] | None = None

    def follow(self, cache: Cache) -> None:
        """The schema says this of it now: another lease."""
        self.cache = cache
        self.lease = self._members.lease = cache.lease

    @property
    def title(self) -> str:
        """The cache, for people."""
        return f"{self.cache.kind} {self.cache.address}"

    @property
    def members(self) -> int:
        """How many workers of proxies are known to use it, this one among them."""
        return len(self._members) + 1

    # -- names

    def table_key(self, table: str) -> bytes:
        return self._prefix + b"t:" + table.encode()

    def shard_key(self, table: str, shard: int) -> bytes:
        return self._prefix + b"s:%s:%d" % (table.encode(), shard)

    def group_key(self, table: str, group: int) -> bytes:
        return self._prefix + b"g:%s:%d" % (table.encode(), group)

    def answer_key(self, digest: bytes) -> bytes:
        return self._prefix + b"a:" + digest

    @property
    def epoch_key(self) -> bytes:
        return self._epoch_key

    @property
    def members_key(self) -> bytes:
        return self._members_key

    def keys_of(self, touched: Touched) -> list[bytes]:
        """What a write that touches this puts locks on."""
        name = touched.table.name
        if touched.groups:
            return [self.group_key(name, one) for one in touched.groups]
        if touched.shards:
            return [self.shard_key(name, one) for one in touched.shards]
        return [self.table_key(name)]

    # -- reading

    def trusted(self, now: float) -> bool:
        """Whether its answers may be given now."""
        return now < self.trusted_until

    def ask(self, keys: Sequence[bytes], answered: Answered) -> None:
        """Read keys; `answered` gets the values there are, or None when that failed. What is asked while
        another question is under way goes together with the next one.
        """
        self._asked.append((keys, answered))
        if not self._asking:
            self._asking = True
            self._spawn(self._ask_all(), "cache")

    async def _ask_all(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked, []
                keys = list(dict.fromkeys(key for wanted, _ in asked for key in wanted))
                found = await self._get(keys)
                for _, answered in asked:
                    answered(found)
        finally:
            self._asking = False

    async def _get(self, keys: Sequence[bytes]) -> Mapping[bytes, bytes] | None:
        store = self._store
        if store is None:
            return None
        try:
            return await store.get(keys)
        except StoreError as error:
            self._lost(store, error)
            return None

    def make(self, keys: Iterable[tuple[bytes, int]], answered: Answered) -> None:
        """Put tokens of which there are none, each for so many seconds, and read them."""
        self._spawn(self._make(list(keys), answered), "cache")

    async def _make(self, keys: list[tuple[bytes, int]], answered: Answered) -> None:
        store = self._store
        found: Mapping[bytes, bytes] | None = None
        if store is not None:
            try:
                await store.add([Item(key, new_token(), seconds) for key, seconds in keys])
                found = await store.get([key for key, _ in keys])
            except StoreError as error:
                self._lost(store, error)
        answered(found)

    def keep(self, key: bytes, value: bytes, seconds: float) -> None:
        """Put an answer, some time soon."""
        self._spawn(self._keep(Item(key, value, max(1, int(seconds)))), "cache")

    async def _keep(self, item: Item) -> None:
        store = self._store
        if store is None:
            return
        try:
            await store.put([item])
            self.counts["puts"] += 1
        except StoreError as error:
            self._lost(store, error)

    # -- writing

    async def lock(self, client: Holder, keys: Iterable[bytes]) -> None:
        """Before a statement of `client` that may change what these keys stand for is sent: from now on,
        until its transaction has ended, nothing of that is answered from the cache. When the cache cannot be
        reached, that is so for everybody when a lease is over.
        """
        transaction = client.session.transaction
        held = self._held.get(client)
        if held is None or held.number != transaction.number or not transaction.open:
            held = self._held[client] = _Held(client)
        wanted = list(keys)
        held.keys.update(wanted)
        if not self._looked:
            await self.look()
        await self._lock(wanted)

    def unsure(self, client: Holder) -> None:
        """Nobody knows whether a server goes on with what `client` has said last."""
        held = self._held.get(client)
        if held is not None:
            until = monotonic() + UNSURE
            self._unsure.update(dict.fromkeys(held.keys, until))

    async def flush(self, keys: Iterable[bytes]) -> None:
        """What FLUSH CACHE does: as after a write. Raises StoreError."""
        await self._lock(list(keys))
        if self._dirty or self._all_dirty:
            raise StoreError(self.trouble)

    def mend(self, keys: Iterable[bytes], values: Iterable[bytes | None]) -> None:
        """Lock those of the keys that have neither a token nor LOCK: what nobody of us has put would stay."""
        found = zip(keys, values, strict=False)
        keys = [key for key, value in found if value not in (None, LOCK) and not is_token(value)]
        if keys:
            self._spawn(self._lock(keys), "cache")

    async def _lock(self, keys: list[bytes]) -> None:
        now = monotonic()
        self.counts["invalidations"] += 1
        if not self._shaken:
            keys = [key for key in keys if now >= self._locked.get(key, -9e9) + self.lease / BEATS]
        store = self._store
        if store is None:
            self._dirty.update(keys)
            self._distrust()
        elif keys:
            try:
                await self._put_locks(store, keys, now)
            except StoreError as error:
                self._dirty.update(keys)
                self._lost(store, error)

    async def _put_locks(self, store: Store, keys: list[bytes], now: float) -> None:
        # for as long as this worker might stand still without losing its own and the others' trust; memcached
        # counts whole seconds
        seconds = ceil(1.25 * self.lease) + 1
        await store.put([Item(key, LOCK, seconds) for key in keys])
        self._dirty.difference_update(keys)
        self._locked.update(dict.fromkeys(keys, now))

    def _distrust(self) -> None:
        """Nothing is taken from the cache before it was looked at again."""
        self.trusted_until = 0.0
        self._shaken = True
        if len(self._dirty) > _MOST_DIRTY:
            self._all_dirty = True
            self._dirty.clear()

    def _lost(self, store: Store, error: StoreError) -> None:
        """The cache does not answer."""
        self.counts["errors"] += 1
        if self._store is not store:
            return
        self._store = None
        self._distrust()
        if not self.trouble:
            log.warning("a cache is not used", cache=self.cache.address, reason=str(error))
        self.trouble = str(error)
        self._spawn(store.close(), "cache")

    # -- the watch

    def start(self) -> None:
        """Watch over the cache from now on."""
        if self._task is None:
            self._task = self._spawn(self._watch(), "cache watch")

    async def stop(self) -> None:
        """Leave. Who has nothing open here need not be waited for by the others."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._let_go(monotonic())
        store, self._store = self._store, None
        if store is not None:
            if self._joined and not (self._dirty or self._all_dirty or self._held or self._unsure):
                with suppress(StoreError):
                    await store.alter(self._members_key, lambda names: _without(names, (self._name,)))
            await store.close()

    async def _watch(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(self.lease / BEATS)

    async def look(self) -> None:
        """Invalidate what could not be, say that this worker is well, and see whether all others are."""
        async with self._turn:
            await self._try_to_look()

    async def _try_to_look(self) -> None:
        self._looked = True
        store = self._store
        try:
            if store is None:
                store = self._store = await open_store(self.cache.kind, self.cache.address)
            await self._look(store)
        except StoreError as error:
            self._members.restart()
            if store is not None:
                self._lost(store, error)

    async def _look(self, store: Store) -> None:
        now = monotonic()
        found = await store.get([self._epoch_key, self._members_key, self._beat_key(self._name)])
        epoch, names = found.get(self._epoch_key), _names(found.get(self._members_key, b""))
        beat = _number(found.get(self._beat_key(self._name)))
        forgot = self._joined and not self._acknowledged <= beat <= self._beat
        if epoch is None or not is_token(epoch) or forgot or self._all_dirty:
            # the cache is empty, or has lost what was put last: it may be what it was long ago
            epoch = await self._new_epoch(store)
        if epoch != self.epoch:
            self.epoch, self._shaken, self.trusted_until = epoch, True, 0.0
        await self._hold(store, now)
        if self._name not in names:
            await store.alter(self._members_key, lambda found: b" ".join([*_names(found), self._name]))
        await self._give_beat(store)
        others = [name for name in names if name != self._name]
        beats = await store.get([self._beat_key(name) for name in others]) if others else {}
        until = self._members.look(
            now, epoch, {name: _number(beats.get(self._beat_key(name))) for name in others}
        )
        if self._store is not store:
            return  # it was lost meanwhile
        gone = self._members.gone(now)
        if gone:
            log.warning("a cache's answers are dropped: a proxy has gone", cache=self.cache.address)
            self.trusted_until = 0.0
            await self._new_epoch(store)
            await store.alter(self._members_key, lambda found: _without(found, gone))
            return
        self.trusted_until = 0.0 if self._dirty or self._all_dirty else until
        if self.trouble:
            log.info("a cache is used again", cache=self.cache.address)
        self.trouble = ""

    async def _new_epoch(self, store: Store) -> bytes:
        self._all_dirty, self.trusted_until = False, 0.0
        epoch = new_token()
        try:
            await store.put([Item(self._epoch_key, epoch, 0)])
        except StoreError:
            self._all_dirty = True
            raise
        self._dirty.clear()
        return epoch

    def _let_go(self, now: float) -> set[bytes]:
        """Forget what clients have locked whose transactions have ended. Returns the keys of those that were
        open for a while: if a lock of theirs was evicted, what was read since is to be old now.
        """
        last: set[bytes] = set()
        for client, held in list(self._held.items()):
            if held.over(client, now):
                last |= held.keys if held.again else set()
                del self._held[client]
        self._unsure = {key: until for key, until in self._unsure.items() if now < until}
        return last

    async def _hold(self, store: Store, now: float) -> None:
        """Lock again what is to stay locked, and what could not be locked. What was locked a moment ago, too,
        when the cache may have forgotten it.
        """
        last = self._let_go(now)
        held_keys = self._unsure.keys() | {key for held in self._held.values() for key in held.keys}
        for key, time in list(self._locked.items()):
            if key not in held_keys and now > time + 2 * self.lease:
                del self._locked[key]
        for held in self._held.values():
            held.again = True
        due = self._dirty | held_keys | last
        if self._shaken:
            due |= self._locked.keys()
        if due:
            await self._put_locks(store, list(due), now)
        self._shaken = False

    async def _give_beat(self, store: Store) -> None:
        if self._dirty or self._all_dirty:
            return
        self._beat += 1
        await store.put([Item(self._beat_key(self._name), b"%d" % self._beat, _BEAT_SECONDS)])
        self._acknowledged, self._joined = self._beat, True

    def _beat_key(self, name: bytes) -> bytes:
        return self._prefix + b"m:" + name


def _names(value: bytes) -> list[bytes]:
    """The members' names; what is none, nobody of us has written."""
    return [name for name in value.split() if len(name) == _NAME and name.isalnum()]


def _without(names: bytes, gone: Sequence[bytes]) -> bytes:
    return b" ".join(name for name in _names(names) if name not in gone)


def seconds_of(table: CachedTable, key: str) -> int:
    """How long a token stays: those of groups a while longer than the answers that go with them."""
    return min(2 * ceil(table.cache.ttl), 30 * _DAY) if key == "group" else 0
