"""What is different in another version of the topology, in words: which shards have moved, and to where."""

from __future__ import annotations

from collections.abc import Iterator

from config.ranges import Fact, unmarked
from config.topology import Keyspace, Topology

_MOST = 20
"""So many differences are told."""


def moves(before: Topology, after: Topology) -> list[str]:
    """`main 256-511: master db1:3306 → db3:3306, frozen → serving`; a line for each run of shards of which
    the same is different.
    """
    found: list[str] = []
    for name in before.keyspaces.keys() | after.keyspaces.keys():
        old, new = before.keyspaces.get(name), after.keyspaces.get(name)
        if old is None or new is None:
            found.append(f"{name}: {'new' if old is None else 'gone'}")
        elif new.sharded and old.sharded:
            found += [f"{name} {shards}: {what}" for shards, what in _of_shards(old, new)]
        else:
            what = _places(old.master, new.master, old.slave, new.slave)
            found += [f"{name}: {', '.join(what)}"] if what else []
    default = _places(before.default, after.default, before.default_slave, after.default_slave)
    if default:
        found.append(f"default: {', '.join(default)}")
    found.sort()
    left = len(found) - _MOST
    return [*found[:_MOST], f"and {left} more"] if left > 0 else found


def _of_shards(old: Keyspace, new: Keyspace) -> Iterator[tuple[str, str]]:
    """Runs of shards, and what is different of them."""
    first = last = -1
    told = ""
    known: dict[tuple[Fact | None, Fact | None], str] = {}
    for shard, before, after in new.columns.changed(old.columns) or ():
        what = known.get((before, after))
        if what is None:
            what = known[before, after] = ", ".join(_of_one(before, after))
        if what == told and last == shard - 1:
            last = shard
            continue
        if told:
            yield _run(first, last), told
        first, last, told = shard, shard, what
    if told:
        yield _run(first, last), told


def _run(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _of_one(old: Fact | None, new: Fact | None) -> list[str]:
    if old is None or new is None:
        there = new or old
        assert there is not None
        return [f"{'new on' if old is None else 'gone from'} {there[0]}"]
    found = _places(old[0], new[0], old[1], new[1])
    (state, open), (state_now, open_now) = unmarked(old[2]), unmarked(new[2])
    if state is not state_now:
        found.append(f"{state} → {state_now}")
    if open is not open_now:
        found.append("opened for new objects" if open_now else "closed for new objects")
    return found


def _places(master: str | None, now: str | None, slave: str | None, slave_now: str | None) -> list[str]:
    found = [] if master == now else [f"master {master or 'none'} → {now or 'none'}"]
    return found if slave == slave_now else [*found, f"slave {slave or 'none'} → {slave_now or 'none'}"]
