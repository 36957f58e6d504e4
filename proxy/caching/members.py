"""When the answers in a cache may be given: while every writer is known to invalidate what it changes.

Each worker process of each proxy is a *member* of the cache: it counts up a number there, its beat, a few
times in a lease, but only while there is nothing that it could not invalidate. Who reads watches the beats of
all, by its own clock alone: no clock is compared with another, and no expiry of the cache's is relied on (one
that was stopped believes that no time has passed).

A beat is written when the one before it has been acknowledged. So when a number is two higher than one that
was seen at some time, its writer was well at that time or later: nothing that it has committed before is left
to be invalidated. From that time on a lease is good for `lease` seconds. Nothing here does I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_SEEN: Final = 16
FORGOTTEN: Final = 12
UNSURE: Final = 60.0
"""Seconds that a server may go on with a write whose proxy or client is gone, or whose answer was lost:
longer than it waits for a row's lock (`innodb_lock_wait_timeout` is 50 unless somebody has set it). After so
long, and FORGOTTEN leases, without a beat a member is taken for gone.
"""
BEATS: Final = 8
"""So many a lease."""


@dataclass(slots=True)
class _Member:
    """What was seen of a member: times and numbers, and when the latest number was seen first."""

    seen: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_SEEN))
    since: float = 0.0
    well: float | None = None  # it was well then, or later


class Members:
    """What one worker has seen of the other members of a cache. Times are its own clock's, in seconds."""

    def __init__(self, lease: float) -> None:
        self.lease = lease
        self._epoch = b""
        self._began = 0.0  # when the epoch was seen first
        self._last: float | None = None  # when all was looked at last
        self._others: dict[bytes, _Member] = {}

    def __len__(self) -> int:
        return len(self._others)

    def restart(self) -> None:
        """The cache was out of sight: what was seen before proves nothing."""
        self._epoch, self._last = b"", None
        self._others.clear()

    def look(self, now: float, epoch: bytes, beats: Mapping[bytes, int]) -> float:
        """Until when answers may be given, by what the cache holds at `now`: the epoch, and the number of
        each other member (-1: none is there).
        """
        if epoch != self._epoch:
            # everybody who was there before has the time to come: it may be a cache that has forgotten them
            self._epoch, self._began = epoch, now
        before = self._last
        self._others = {
            name: self._others.get(name) or _new(now, before if self._began < now else None) for name in beats
        }
        self._last = now
        until = now + self.lease
        for name, beat in beats.items():
            until = min(until, self._well(self._others[name], now, beat) + self.lease)
        return until if now >= self._began + self.lease else 0.0

    def _well(self, member: _Member, now: float, beat: int) -> float:
        """The latest time at which it is known to have been well."""
        if not member.seen or member.seen[-1][1] != beat:
            member.since = now
        if member.seen and beat < member.seen[-1][1]:
            member.seen.clear()  # the cache has gone back to what was
            member.well = None
        times = [time for time, number in member.seen if 0 <= number <= beat - 2]
        if times:
            member.well = max(member.well or 0.0, times[-1])
        member.seen.append((now, beat))
        return float("-inf") if member.well is None else member.well

    def gone(self, now: float) -> tuple[bytes, ...]:
        """Those that have given no beat for so long that nobody waits for them."""
        patience = max(FORGOTTEN * self.lease, UNSURE)
        return tuple(name for name, one in self._others.items() if now - one.since > patience)


def _new(now: float, before: float | None) -> _Member:
    """A member that was not there when all was looked at `before`: it has come since."""
    return _Member(since=now, well=before)
