"""Which transactions have been read, by their GTIDs: the same ones whichever host's binary log has them.

Where GTIDs are UUID:NUMBER a set of them; where they are DOMAIN-SERVER-NUMBER the last number of each server
in each domain, since a log has a server's transactions in their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

_INTERVAL = re.compile(r"(\d+)(?:-(\d+))?")


class Gtids(Protocol):
    """`str` gives what `merge` takes, and the server tells."""

    def has(self, gtid: str) -> bool: ...
    def add(self, gtid: str) -> None: ...
    def merge(self, text: str) -> None:
        """Add all that the server's text names. ValueError when it is none."""

    def covers(self, text: str) -> bool:
        """Whether all that the server's text names has been read."""


class GtidSet:
    """UUID:1-5:7-9,…: whole numbers of each source."""

    def __init__(self, text: str = "") -> None:
        self._intervals: dict[str, list[tuple[int, int]]] = {}
        self.merge(text)

    def has(self, gtid: str) -> bool:
        source, _, number = gtid.rpartition(":")
        return any(first <= int(number) <= last for first, last in self._intervals.get(source.lower(), ()))

    def add(self, gtid: str) -> None:
        source, _, number = gtid.rpartition(":")
        self._put(source.lower(), int(number), int(number))

    def merge(self, text: str) -> None:
        for one in filter(None, (part.strip() for part in text.split(","))):
            source, *intervals = one.split(":")
            for interval in intervals:
                found = _INTERVAL.fullmatch(interval)
                if found is None:
                    raise ValueError(f"{interval!r} of {one!r} is no range of numbers (tags are not read)")
                self._put(source.lower(), int(found[1]), int(found[2] or found[1]))

    def covers(self, text: str) -> bool:
        other = GtidSet(text)
        return all(
            any(mine[0] <= first and last <= mine[1] for mine in self._intervals.get(source, ()))
            for source, found in other._intervals.items()
            for first, last in found
        )

    def _put(self, source: str, first: int, last: int) -> None:
        kept = []
        for one in self._intervals.get(source, ()):
            if one[1] + 1 < first or last + 1 < one[0]:
                kept.append(one)
            else:
                first, last = min(first, one[0]), max(last, one[1])
        self._intervals[source] = sorted([*kept, (first, last)])

    def __str__(self) -> str:
        return ",".join(
            ":".join([source, *(f"{first}-{last}" if first < last else f"{first}" for first, last in found)])
            for source, found in sorted(self._intervals.items())
        )


class GtidState:
    """DOMAIN-SERVER-NUMBER,…: the last number of each server in each domain."""

    def __init__(self, text: str = "") -> None:
        self._last: dict[tuple[int, int], int] = {}
        self.merge(text)

    def has(self, gtid: str) -> bool:
        domain, server, number = parts(gtid)
        return number <= self._last.get((domain, server), 0)

    def add(self, gtid: str) -> None:
        domain, server, number = parts(gtid)
        self._last[domain, server] = max(number, self._last.get((domain, server), 0))

    def merge(self, text: str) -> None:
        for one in each(text):
            self.add(one)

    def covers(self, text: str) -> bool:
        return all(self.has(one) for one in each(text))

    def last(self, domain: int, server: int) -> str | None:
        """The last of that server there, as GTID; None when none was read."""
        number = self._last.get((domain, server))
        return None if number is None else f"{domain}-{server}-{number}"

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{number}" for (domain, server), number in self._last.items())


def parts(gtid: str) -> tuple[int, int, int]:
    """Domain, server and number. ValueError."""
    domain, server, number = map(int, gtid.split("-"))
    return domain, server, number


def each(text: str) -> Iterator[str]:
    """The GTIDs of a list."""
    return filter(None, (one.strip() for one in text.split(",")))


def stepped(position: str, gtid: str) -> str:
    """A position, the last GTID of each domain, after one more transaction."""
    domain = parts(gtid)[0]
    return ",".join([*(one for one in each(position) if parts(one)[0] != domain), gtid])
