"""Statements on tables that have a cache: reads that it may answer, and writes after which it must not.

A read asks the cache for an answer and for the tokens that it must stand with (`proxy.caching.server`). When
the answer is there, it goes to the client as it came from the server once. Else the statement runs as ever,
and what the client gets is kept, with the tokens that were there before. A write puts locks in the place of
the tokens before it runs. See docs/decisions/caching.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary
from zlib import crc32

from proxy.backends.settings import Settings
from proxy.caching.server import CacheServer, is_token, seconds_of
from proxy.engine.sinks import CommandSink
from proxy.engine.task import TaskWork
from proxy.errors import ProxyError
from proxy.session.outcome import Outcome
from rewriter.plans import BindError, Bound, Plan, Values
from rewriter.plans.cached import CachedSelect

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

MOST_BYTES: Final = 512 << 10
"""A larger answer is not kept: memcached takes a megabyte."""
_HEAD: Final = 16
"""Between the tokens and an answer: its rows, and the checksum of all that, eight hexadecimal digits each."""

_settings: WeakKeyDictionary[Settings, bytes] = WeakKeyDictionary()
"""Digests of what sessions have set."""

Run = Callable[[], None]


# -- writes


def touch(client: Exchange, plan: Plan, values: Values, run: Run) -> None:
    """`run` the statement when nothing is answered from caches any more that it may change."""
    touched = plan.touches(values, client.snapshot.topology)
    if not touched:
        run()
        return

    async def lock() -> None:
        await client.services.caches.lock(client, touched)
        run()

    TaskWork(client).start(lock())


# -- reads


class _Keys(NamedTuple):
    """What is read for one statement: the epoch, the tokens, and the answer, in this order."""

    server: CacheServer
    keys: tuple[bytes, ...]
    groups: int  # so many IDs


def from_cache(client: Exchange, plan: CachedSelect, values: Values, run: Run) -> bool:
    """Answer from the cache, or else `run` the statement and keep the answer. False: nothing of that, since
    the cache is not to be asked.
    """
    server = client.services.caches.of(plan.cached.cache)
    session = client.session
    transaction = session.transaction
    if (
        not server.trusted(monotonic())
        or not session.autocommit
        or transaction.explicit
        or transaction.held
        or transaction.next is not None
        or session.tracks_replies
        or session.unsafe_charset
        or client.relay.once is not None
        or client.attributes
        or client.seq
        or not client.snapshot.all_serving
    ):
        server.counts["bypassed"] += 1
        return False
    keys = _keys(client, server, plan, values)
    if keys is None:
        return False
    _Reading(client, plan, keys, run).start()
    return True


def _keys(client: Exchange, server: CacheServer, plan: CachedSelect, values: Values) -> _Keys | None:
    """None: the statement goes another way, or has an error."""
    topology = client.snapshot.topology
    groups = plan.groups(values)
    try:
        found = plan.at_point(values, topology)
        if found is not None:
            shards: Sequence[int] = (found[1],)
            text = found[2]
            hosts: tuple[str, ...] = (found[0],)
        else:
            bound: Bound = plan.bind(values, topology, lambda shards: shards[0])
            if bound.warnings or bound.scatter or not groups:
                return None
            shards = sorted({shard for one in bound.statements for shard in one.shards})
            # what is merged of it, LIMIT and aggregates, stands in the client's own text only
            text = repr(([one.sql for one in bound.statements], plan.mark, values)).encode()
            hosts = tuple(one.host for one in bound.statements)
    except BindError:
        return None
    if not groups:
        return None
    session = client.session
    digest = blake2b(text, digest_size=16)
    digest.update(plan.columns)
    digest.update(_digest(session.settings.system))
    about = (session.capability_set, topology.version, client.snapshot.rewriter.schema.version, hosts)
    digest.update(repr((*about, plan.tables, session.extended)).encode())
    name = plan.cached.name
    return _Keys(
        server,
        (
            server.epoch_key,
            server.table_key(name),
            *(server.shard_key(name, one) for one in shards),
            *(server.group_key(name, one) for one in groups),
            server.answer_key(digest.hexdigest().encode()),
        ),
        len(groups),
    )


def _digest(settings: Settings) -> bytes:
    found = _settings.get(settings)
    if found is None:
        text = repr(sorted(settings.values.items())).encode()
        found = _settings[settings] = blake2b(text, digest_size=16).digest()
    return found


class _Reading:
    """A read that asks its cache first: the client's `Work` until the statement runs, if it must."""

    __slots__ = ("client", "keys", "over", "plan", "run")

    def __init__(self, client: Exchange, plan: CachedSelect, keys: _Keys, run: Run) -> None:
        self.client = client
        self.plan = plan
        self.keys = keys
        self.run = run
        self.over = False

    def start(self) -> None:
        self.client.work = self
        self.keys.server.ask(self.keys.keys, self._answered)

    def _answered(self, found: Mapping[bytes, bytes] | None) -> None:
        if self.over:
            return
        try:
            self._decide(found)
        except Exception as error:
            self.client.crashed(error)

    def _decide(self, found: Mapping[bytes, bytes] | None) -> None:
        server, keys, _ = self.keys
        if found is None or not server.trusted(monotonic()) or found.get(keys[0]) != server.epoch:
            server.counts["bypassed"] += 1
            self._run()
            return
        tokens = [found.get(key) for key in keys[:-1]]
        stamp = _stamp(tokens, keys[-1])
        if stamp is None:
            missing = [key for key, token in zip(keys, tokens, strict=False) if token is None]
            if len(missing) < sum(not is_token(token) for token in tokens):
                server.counts["bypassed"] += 1  # a lock is there
                server.mend(keys, tokens)
                self._run()
                return
            server.counts["misses"] += 1
            first = len(keys) - 1 - self.keys.groups
            kept = [
                (key, seconds_of(self.plan.cached, "group" if keys.index(key) >= first else "table"))
                for key in missing
            ]
            known = {key: token for key, token in zip(keys, tokens, strict=False) if token is not None}
            server.make(kept, partial(self._made, known))
            return
        value = found.get(keys[-1])
        whole = None if value is None or not value.startswith(stamp) else _unpacked(value[len(stamp) :])
        if whole is None:
            server.counts["misses"] += 1
            self._run(stamp)
            return
        server.counts["hits"] += 1
        self._give(*whole)

    def _made(self, known: Mapping[bytes, bytes], found: Mapping[bytes, bytes] | None) -> None:
        if self.over:
            return
        keys = self.keys.keys
        tokens = [known.get(key) or (found or {}).get(key) for key in keys[:-1]]
        self._run(_stamp(tokens, keys[-1]))

    def _give(self, rows: int, answer: bytes) -> None:
        """The answer that was kept is the client's."""
        client = self.client
        self.over = True
        session = client.session
        client.transport.write(answer)
        session.passed(rows)
        if session.diagnostics:
            session.apply(Outcome(diagnostics=[]))
        client.finish("ok")

    def _run(self, stamp: bytes | None = None) -> None:
        """Ask the servers. With `stamp` the answer is kept."""
        client = self.client
        self.over = True
        if stamp is not None and self.keys.server.trusted(monotonic()):
            _Recorder(client, self.plan, self.keys, stamp)
        client.work = None
        try:
            self.run()
        except ProxyError as error:
            client.fail(error)
        except BindError as error:
            client.fail(ProxyError(error.name, **error.arguments))
        except Exception as error:
            client.crashed(error)

    # -- Work

    def cancel(self) -> None:
        self.over = True

    def kill_query(self) -> None:
        self.over = True
        self.client.fail(ProxyError("killed"))

    def flow(self) -> None:
        """It streams nothing."""


def _packed(rows: int, answer: bytes) -> bytes:
    """An answer, for `_unpacked`."""
    count = b"%08x" % rows
    return count + b"%08x" % crc32(answer, crc32(count)) + answer


def _unpacked(value: bytes) -> tuple[int, bytes] | None:
    """How many rows an answer has, and its bytes; None: it is not whole, or not one."""
    count, answer = value[: _HEAD // 2], value[_HEAD:]
    if value[_HEAD // 2 : _HEAD] != b"%08x" % crc32(answer, crc32(count)):
        return None
    return int(count, 16), answer


def _stamp(tokens: Sequence[bytes | None], answer: bytes) -> bytes | None:
    """What stands before an answer that was read under these tokens; None: they are not all there."""
    if not all(map(is_token, tokens)):
        return None
    return b"".join([token for token in tokens if token is not None]) + answer


class _Recorder(CommandSink):
    """Keeps what the client is answered."""

    __slots__ = ("keys", "pieces", "plan", "size", "snapshot", "stamp")

    def __init__(self, client: Exchange, plan: CachedSelect, keys: _Keys, stamp: bytes) -> None:
        super().__init__(client)
        self.plan = plan
        self.keys = keys
        self.stamp = stamp
        self.snapshot = client.snapshot
        self.pieces: list[bytes] = []
        self.size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.size += len(data)
        if self.size <= MOST_BYTES:
            self.pieces.append(bytes(data))
        else:
            self.pieces.clear()
        self.below.write(data)

    def answered(self, outcome: str) -> bool:
        if outcome == "ok" and 0 < self.size <= MOST_BYTES:
            self._keep()
        return super().answered(outcome)

    def _keep(self) -> None:
        client, (server, keys, groups) = self.client, self.keys
        session = client.session
        rows = session.found_rows
        if session.diagnostics or client.snapshot is not self.snapshot or session.transaction.open:
            return
        if rows < (0 if self.plan.empty else groups):
            return  # an ID without a row: nobody invalidates that when it comes
        value = self.stamp + _packed(rows, b"".join(self.pieces))
        server.keep(keys[-1], value, self.plan.cached.cache.ttl)
