"""What this worker has counted is kept where it outlives the worker, and what those before it had counted is
told with its own. See `proxy.kept`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from proxy.engine import handed_on
from proxy.kept import Past

from . import snapshot
from .combine import combine, of_hosts, remains
from .snapshot import Snapshot

if TYPE_CHECKING:
    from proxy.engine.services import Services
    from proxy.peers import Peers

_PERIOD: Final = 2.0
"""Seconds between two times that the counters are kept, when nobody asks for them."""
_SELDOM: Final = 5
"""So many of these times for one of the statements' digests, which cost more to collect."""


class Keeper:
    """One worker's part. Without `peers` nobody takes its place, and there is nothing to keep."""

    def __init__(self, peers: Peers | None, past: Past, now: Callable[[], float] = time.monotonic) -> None:
        self.started = past.started
        self._peers = peers
        self._now = now
        self._due = 0.0
        self._times = 0
        found: list[Any] = peers.kept.get(peers.number) if peers is not None else []
        self._found = found
        self._before: Snapshot | None = found[0] if found else None
        self._lines = [json.dumps(line).encode() for line in found[1:]] or [b"null", b"[]"]

    def begin(self, services: Services) -> None:
        """There are services: they count on."""
        if self._found and self._found[1] is not None:
            counted, changes, statements = self._found
            handed_on.take_over(services, changes, statements, counted["hosts"])
            for host in services.serving.topology.hosts:
                if host in services.earlier_hosts:
                    services.backends.pool(host)  # else it has no row before it is asked for something
        self._found = []
        services.keep = lambda: self._keep(services)

    def tick(self, services: Services | None) -> None:
        """A few times a second, also before there are services: who keeps nothing is taken for silent."""
        if self._peers is not None and self._now() >= self._due:
            self._due = self._now() + _PERIOD
            self._times += 1
            self._keep(services, digests=self._times % _SELDOM == 0)

    def whole(self, taken: Snapshot, services: Services | None) -> Snapshot:
        """This worker's snapshot with what those before it have counted. It is kept before it is told."""
        if self._peers is None:
            return taken
        if services is not None:  # else nothing is counted, and only `tick` says that the worker lives
            self._put(taken, services)
        if self._before is None:
            return taken
        return of_hosts(combine(taken, self._before), [taken])

    def _keep(self, services: Services | None, *, digests: bool = True) -> None:
        if self._peers is None:
            return
        if digests and services is not None:
            self._lines[1] = json.dumps(handed_on.statements(services)).encode()
        now, ready = time.time(), services is not None
        taken = snapshot.take(services, ready=ready, started=self.started, now=now, counts_only=True)
        self._put(taken, services)

    def _put(self, taken: Snapshot, services: Services | None) -> None:
        assert self._peers is not None
        if services is not None:
            self._lines[0] = json.dumps(handed_on.changes(services)).encode()
        counted = remains(taken)
        if self._before is not None:
            counted = combine(counted, self._before)
        self._peers.kept.put(self._peers.number, json.dumps(counted).encode(), *self._lines)
