"""Log-ins. Failed ones are answered later and later, per address, so that passwords cannot be tried fast; and
only so many are under way at the same time, no address with more than its share of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from proxy.backends.waiting import Share

_FREE = 3
_STEP = 0.05
_LONGEST = 5.0
_FORGET = 60.0
_MOST = 10_000
_ACCOUNTS = 50


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


class Logins:
    """The connections that have not logged in yet, with their addresses. At most `most`."""

    def __init__(self, most: int, part: float = 0.8) -> None:
        """`part`: of them, what a single address may have."""
        self._share = Share(most, part, watch=False)
        self._addresses: dict[object, str] = {}
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    @property
    def limit(self) -> int:
        return self._share.most

    def begin(self, client: object, address: str) -> bool:
        """Whether the client may log in; it has a place then, until `end`."""
        count = self._counts.get(address, 0)
        if not self._share.allows(count, len(self._addresses)):
            return False
        self._addresses[client] = address
        self._counts[address] = count + 1
        return True

    def end(self, client: object) -> None:
        """It has logged in, or is gone. May be called again."""
        address = self._addresses.pop(client, None)
        if address is None:
            return
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]
