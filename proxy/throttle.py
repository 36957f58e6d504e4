"""Log-ins. Failed ones are answered later and later, per address, so that passwords cannot be tried fast; and
only so many are under way at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_FREE = 3
_STEP = 0.05
_LONGEST = 5.0
_FORGET = 60.0
_MOST = 10_000
_ACCOUNTS = 50

T = TypeVar("T")


@dataclass(slots=True)
class _Failures:
    """Those of an address. `accounts`: how many were of which account, for the first so many of them."""

    last: float
    count: int = 0
    accounts: dict[int, int] = field(default_factory=dict)  # by the name's hash: names may be long


class FailedLogins:
    """How often log-in failed from an address lately. All accounts count together, but a success forgives
    only the failures of its own: who has one account cannot try another's passwords any faster.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._failures: dict[str, _Failures] = {}

    def failed(self, address: str, account: str) -> float:
        """Count one failure; the seconds to wait before it is answered: none for the first three, then
        doubling to 5 s.
        """
        now = self._now()
        found = self._failures.pop(address, None)
        if found is None or now - found.last > _FORGET:
            found = _Failures(now)
        found.last = now
        found.count += 1
        key = hash(account)
        if key in found.accounts or len(found.accounts) < _ACCOUNTS:
            found.accounts[key] = found.accounts.get(key, 0) + 1
        if len(self._failures) >= _MOST:
            del self._failures[next(iter(self._failures))]  # the one that failed longest ago
        self._failures[address] = found
        count = found.count
        return 0.0 if count <= _FREE else min(_STEP * 2 ** min(count - _FREE, 10), _LONGEST)

    def succeeded(self, address: str, account: str) -> None:
        """Somebody has logged in to `account` from there."""
        found = self._failures.get(address)
        if found is None:
            return
        found.count -= found.accounts.pop(hash(account), 0)
        if not found.count:
            del self._failures[address]


class Logins(Generic[T]):
    """The connections that have not logged in yet, with their addresses. At most `most`: a newer one takes
    the place of the oldest of the address that has most, since who means it logs in at once.
    """

    def __init__(self, most: int) -> None:
        self.limit = most
        #: By address, oldest first.
        self._places: dict[str, dict[T, None]] = {}
        self._addresses: dict[T, str] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def begin(self, client: T, address: str) -> T | None:
        """The client begins to log in; who has to give up for it, if anybody."""
        given_up: T | None = None
        if len(self._addresses) >= self.limit:
            most = max(self._places, key=lambda one: len(self._places[one]))
            given_up = next(iter(self._places[most]))
            self.end(given_up)
        self._addresses[client] = address
        self._places.setdefault(address, {})[client] = None
        return given_up

    def end(self, client: T) -> None:
        """It has logged in, or is gone. May be called again."""
        address = self._addresses.pop(client, None)
        if address is not None:
            del self._places[address][client]
            if not self._places[address]:
                del self._places[address]
