"""All that a proxy has done and keeps, as plain values that can be compared with another's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any

from proxy.backends.connection import BackendConnection
from proxy.backends.host import HostPool
from proxy.backends.pool import PoolState
from proxy.backends.waiting import Waiting
from proxy.engine.definitions import Definitions
from proxy.engine.relay import Relay
from proxy.execute.fan.branch import Branch
from proxy.execute.fan.fanout import FanOut
from proxy.execute.fan.merge import Concatenation
from proxy.frontend.client import Client
from proxy.load import Load
from proxy.session.state import Session
from proxy.session.transaction import Transaction
from proxy.stats import KindStats, Use
from proxy.wire.packets import Err as ErrPacket
from proxy.wire.replies import ReplyScanner
from proxy.wire.rows import ResultReader
from tests.backends.fakes import FakeTransport
from tests.execute.steps import Side

SHOWN = (
    Client, Session, Transaction, Relay, BackendConnection, ReplyScanner, HostPool, PoolState,
    Waiting, Load, Use, KindStats, ErrPacket, FanOut, Branch, Concatenation, ResultReader, Definitions,
)  # fmt: skip
TIMED = frozenset({"buckets", "counts"})
"""Lists of numbers by time."""
MOMENTS = frozenset({"begun", "sent", "ended", "first", "last"})
"""Times of which it is compared which are the same."""
CLOCK = frozenset({"_clock", "idle_since"})
"""Times of the world."""
APART = frozenset({
    "services", "snapshot", "pool", "loads", "known", "_reader", "_kills", "plan",
})  # fmt: skip


PLAIN = frozenset({int, bool, bytes, str, type(None)})
"""What is shown as it is: by far the most."""
ABSENT = object()


@cache
def attributes(kind: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """The names of those that are compared, and what gives them all at once."""
    found: list[str] = []
    for one in kind.__mro__:
        slots = vars(one).get("__slots__", ())
        found += (slots,) if isinstance(slots, str) else slots
    names = tuple(name for name in found if name not in APART)
    return names, attrgetter(*names)


@cache
def how(kind: type) -> str:
    """The way in which things of a type are shown."""
    if issubclass(kind, float):
        return "number"
    if issubclass(kind, SHOWN):
        return "attributes"
    if issubclass(kind, list | tuple) and kind.__module__ in ("builtins", "proxy.stats"):
        return "list"
    if issubclass(kind, Mapping):
        return "mapping"
    if issubclass(kind, frozenset | set):
        return "set"
    if issubclass(kind, FakeTransport):
        return "transport"
    return "plain" if issubclass(kind, int | bytes | str) or kind in PLAIN else "name"


def plain(thing: Any) -> object:
    """A truth value is shown as the number that it is, and so is the member of an enumeration."""
    return int(thing) if isinstance(thing, int) else thing


class Shown:
    """Everything as plain values; an object that comes again by its number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._moments: dict[float, int] = {}

    def of(self, thing: Any, name: str = "") -> object:
        way = how(thing.__class__)
        if way == "plain":
            return plain(thing)
        if way == "attributes":
            return self._attributes_of(thing)
        if way == "list":
            if name in TIMED and isinstance(thing, list):
                return sum(thing)
            return [plain(one) if type(one) in PLAIN else self.of(one) for one in thing]
        if way == "number":
            if name in MOMENTS:
                return self._moments.setdefault(thing, len(self._moments)) if thing else 0.0
            return "a time" if thing and name not in CLOCK else thing
        if way == "mapping":
            return [(self.of(key), self.of(value)) for key, value in thing.items()]
        if way == "set":
            return sorted(map(str, thing))
        if way == "transport":
            return bytes(thing.written), thing.reading, thing.open, thing.aborted
        return "a function" if callable(thing) else type(thing).__name__

    def _attributes_of(self, thing: Any) -> object:
        number = self._numbers.setdefault(id(thing), len(self._numbers))
        if number < len(self._numbers) - 1:
            return number
        names, get = attributes(thing.__class__)
        try:
            values = get(thing)
        except AttributeError:
            values = tuple(getattr(thing, name, ABSENT) for name in names)
        of = self.of
        shown = [
            plain(one) if type(one) in PLAIN else of(one, name)
            for name, one in zip(names, values, strict=True)
        ]
        return type(thing).__name__, shown


def all_of(side: Side) -> object:
    shown, world, stats = Shown(), side.world, side.world.services.stats
    return {
        "clients": [shown.of(client) for client in side.clients],
        "pools": [shown.of(pool) for pool in world.backends.pools],
        "loads": [shown.of(world.backends.loads.hosts), shown.of(world.backends.loads.shards)],
        "uses": [(plan.kind, shown.of(use)) for plan, use in stats.uses.items()],
        "kinds": shown.of(stats.kinds),
        "codes": shown.of(world.backends.loads.codes),
        "hits": world.services.serving.snapshot.rewriter.hits,
        "servers": [(name, server.log, server.committed) for name, server in world.servers.items()],
    }
