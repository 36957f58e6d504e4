"""The ranges of a keyspace read in bulk: many of them, of which each is right by itself.

A document may have 65,536 ranges, and a model for each of them takes seconds. Here a list of ranges is
looked at in one loop that knows what is right, and nothing of what is wrong: at the first doubt there is no
result, and the reader goes the long way, which tells all that is wrong, with its place. So both must say the
same of what is right (tests/config/test_many_ranges.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from config.address import spelt
from config.document import Document
from config.ranges import Host, Ranges, State, mark

LEAST: Final = 100
"""Fewer ranges are read the long way, at no cost that anybody notices."""

_MARKS: Final[Mapping[object, int]] = {
    **{state.value: mark(state, open=False) for state in State},
    None: mark(State.SERVING, open=False),
}
_HIGHEST: Final = 1 << 20
"""A shard beyond it is not laid out."""

_FIELDS: Final = frozenset({"range", "master", "slave", "open", "state"})


@dataclass(frozen=True, slots=True)
class Bulk:
    """`pairs`: each master with its slave, as often as they are named together. `closed`: some range is."""

    ranges: Ranges
    pairs: Sequence[tuple[Host, Host | None]]
    closed: bool

    def fits(self, limit: int, shards: int | None) -> bool:
        """Whether they hold each shard once, without gaps and below `limit`, and all of them when there are
        `shards`.
        """
        firsts, lasts = self.ranges.firsts, self.ranges.lasts
        if len(self.ranges.runs) != 1 or any(map(int.__ge__, lasts, firsts[1:])):
            return False
        return lasts[-1] < limit and (shards is None or (firsts[0] == 0 and lasts[-1] == shards - 1))


@dataclass(frozen=True, slots=True)
class Reduced:
    """A topology's document in two: its `value`, in which the keyspaces of `bulks` have one range only, and
    those. `digest`: of the whole.
    """

    value: dict[str, Any]
    bulks: Mapping[str, Bulk]
    digest: str


def reduced(document: Document) -> Reduced | None:
    """None when there are few ranges, or when something may be wrong with one."""
    value: Any = document.value
    keyspaces = value.get("keyspaces") if isinstance(value, dict) and not document.problems else None
    if not isinstance(keyspaces, dict):
        return None
    bulks: dict[str, Bulk] = {}
    left: dict[str, Any] = {}
    for name, keyspace in keyspaces.items():
        left[name] = keyspace
        bulk = bulk_of(keyspace.get("ranges")) if isinstance(keyspace, dict) else None
        if bulk is not None:
            ranges = keyspace["ranges"]
            some = next(iter(ranges.values() if isinstance(ranges, dict) else ranges))
            bulks[name], left[name] = bulk, {**keyspace, "ranges": [some]}
    return Reduced({**value, "keyspaces": left}, bulks, document.digest) if bulks else None


def bulk_of(value: object) -> Bulk | None:
    """The ranges of a keyspace in a document; None when they are few or when something may be wrong with
    one.
    """
    if isinstance(value, dict):
        value = list(value.values()) if all(type(key) is str for key in value) else None
    if not isinstance(value, list) or len(value) < LEAST:
        return None
    try:
        return _read(value)
    except (_Doubt, KeyError, TypeError, ValueError):
        return None


class _Doubt(Exception):
    """Something may be wrong."""


def _read(value: list[Any]) -> Bulk:
    firsts: list[int] = []
    lasts: list[int] = []
    masters: list[Host] = []
    slaves: list[Host | None] = []
    marks: list[int] = []
    hosts = _Hosts()
    closed = False
    for one in value:
        if type(one) is not dict or not one.keys() <= _FIELDS:
            raise _Doubt
        bounds = one["range"]
        if type(bounds) is not list:
            raise _Doubt
        first, last = bounds
        if type(first) is not int or type(last) is not int or not 0 <= first <= last:
            raise _Doubt
        get = one.get
        slave = get("slave")
        open = get("open")
        if open is None:
            open = True
        elif type(open) is not bool:
            raise _Doubt
        closed = closed or not open
        firsts.append(first)
        lasts.append(last)
        masters.append(hosts[one["master"]])
        slaves.append(None if slave is None else hosts[slave])
        marks.append(_MARKS[get("state")] + open)
    if max(lasts) > _HIGHEST:
        raise _Doubt
    pairs = tuple(dict.fromkeys(zip(masters, slaves, strict=True)))
    return Bulk(Ranges(firsts, lasts, masters, slaves, marks), pairs, closed)


class _Hosts(dict[object, Host]):
    """The addresses seen, as all name them."""

    def __missing__(self, text: object) -> Host:
        if type(text) is not str or not text:
            raise _Doubt
        made = self[text] = spelt(text)
        return made
