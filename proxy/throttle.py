"""Failed log-ins are answered later and later, per address, so that passwords cannot be tried fast."""

from __future__ import annotations

import time
from collections.abc import Callable

_FREE = 3
_STEP = 0.05
_LONGEST = 5.0
_FORGET = 60.0
_MOST = 10_000


class FailedLogins:
    """How often log-in failed from an address lately."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._failures: dict[str, tuple[int, float]] = {}

    def failed(self, address: str) -> float:
        """Count one failure; the seconds to wait before it is answered: none for the first three, then
        doubling to 5 s.
        """
        now = self._now()
        count, last = self._failures.get(address, (0, now))
        count = 1 if now - last > _FORGET else count + 1
        self._failures.pop(address, None)
        if len(self._failures) >= _MOST:
            del self._failures[next(iter(self._failures))]  # the one that failed longest ago
        self._failures[address] = (count, now)
        return 0.0 if count <= _FREE else min(_STEP * 2 ** min(count - _FREE, 10), _LONGEST)

    def succeeded(self, address: str) -> None:
        self._failures.pop(address, None)
