"""A bounded cache of plans, by the fingerprint of a statement and the settings it was read with.

Two generations instead of an order of use: what is found in the older one moves to the younger, and when
the younger is half of the capacity, the older is dropped and the younger becomes it. So a hit costs a
look-up and no bookkeeping, and what is in use stays.

A plan takes some fifty times the bytes of its fingerprint, so the fingerprints' bytes have a limit, too: a
client that sends a thousand different statements of 30 KB would else fill a gigabyte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from .plan import Plan

PlanKey = tuple[bytes, bytes]
"""The fingerprint (see fingerprint.py) and the key of the session's settings (`Env.key`). A plan also depends
on the schema and the topology, whose change clears the cache."""

MAX_GUARDED: Final = 64
"""So many plans of one fingerprint that differ in a literal (ORDER BY 2) are kept."""


@dataclass(slots=True)
class Guarded:
    """A fingerprint with literals that steer its plan: their indexes, and the plans by their values."""

    literals: tuple[int, ...]
    plans: dict[tuple[bytes, ...], Plan] = field(default_factory=dict)


Entry = Plan | Guarded

Leaving = Callable[[Iterable[tuple[PlanKey, Plan]]], None]


def pairs(entries: Mapping[PlanKey, Entry]) -> Iterator[tuple[PlanKey, Plan]]:
    """All plans with their keys; several of one key when literals steer them."""
    for key, entry in entries.items():
        for plan in entry.plans.values() if isinstance(entry, Guarded) else (entry,):
            yield key, plan


#: Bytes of fingerprints for each entry of the capacity: most have a few hundred.
_FINGERPRINT: Final = 800


class Cache:
    """At most `capacity` entries (at least two), the least recently used of which go first."""

    def __init__(self, capacity: int, leaving: Leaving | None = None) -> None:
        self.capacity = capacity
        self._leaving = leaving  # told of what is dropped to make room
        self._half = max(1, capacity // 2)
        self._most_bytes = self._half * _FINGERPRINT
        self._bytes = 0  # of the younger generation's fingerprints, once for each plan
        self.dropped = 0  # generations
        self._young: dict[PlanKey, Entry] = {}
        self._old: dict[PlanKey, Entry] = {}

    def get(self, key: PlanKey) -> Entry | None:
        """The entry, or None."""
        entry = self._young.get(key)
        if entry is None:
            entry = self._old.get(key)
            if entry is not None:
                self.put(key, entry)
        return entry

    def put(self, key: PlanKey, entry: Entry) -> None:
        """Keep `entry`."""
        self._weigh(key, len(entry.plans) if isinstance(entry, Guarded) else 1)
        if len(self._young) >= self._half:
            self._age()
        self._young[key] = entry

    def _weigh(self, key: PlanKey, plans: int) -> None:
        """So many more plans of this fingerprint come to the younger generation."""
        self._bytes += len(key[0]) * plans
        if self._bytes > self._most_bytes and self._young:
            self._age()
            self._bytes = len(key[0]) * plans

    def _age(self) -> None:
        gone, self._old, self._young = self._old, self._young, {}
        if self._leaving is not None and gone:
            left = {key: entry for key, entry in gone.items() if key not in self._old}
            self._leaving(pairs(left))
        self._bytes = 0
        self.dropped += 1

    def put_plan(self, key: PlanKey, plan: Plan, guards: set[int], literals: tuple[bytes, ...]) -> None:
        """Keep a plan that depends on the values of the literals with the indexes `guards`."""
        if not guards:
            self.put(key, plan)
            return
        entry = self._young.get(key)
        indexes = tuple(sorted(guards))
        if not isinstance(entry, Guarded) or entry.literals != indexes or len(entry.plans) >= MAX_GUARDED:
            entry = Guarded(indexes)
            self.put(key, entry)
        self._weigh(key, 1)
        if self._young.get(key) is not entry:
            self._young[key] = entry
        entry.plans[tuple(literals[index] for index in indexes)] = plan

    def items(self) -> Iterator[tuple[PlanKey, Plan]]:
        """All plans with their keys; several of one key when literals steer them."""
        yield from pairs(self._young)
        yield from pairs({key: entry for key, entry in self._old.items() if key not in self._young})

    def clear(self) -> None:
        """Forget everything."""
        self._young.clear()
        self._old.clear()

    def __len__(self) -> int:
        return len(self._young) + sum(key not in self._young for key in self._old)
