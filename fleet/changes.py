"""What differs between two versions of a topology, for people: runs of shards, not single ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from config.topology import Host, Keyspace, Range, Topology


@dataclass(frozen=True)
class Change:
    """`before` and `after` are texts, "" for nothing. `moves`: rows are looked for on another master."""

    what: str
    before: str
    after: str
    moves: bool = False

    def __str__(self) -> str:
        if not self.before:
            return f"{self.what}: new, {self.after}"
        return (
            f"{self.what}: {self.before} → {self.after}"
            if self.after
            else f"{self.what}: gone, {self.before}"
        )


def changes(old: Topology | None, new: Topology) -> list[Change]:
    """In the order of the documents; the version is not among them."""
    before = dict(old.keyspaces) if old is not None else {}
    found: list[Change] = []
    for name, keyspace in new.keyspaces.items():
        found += _of_keyspace(before.pop(name, None), keyspace)
    for name, keyspace in before.items():
        found.append(Change(name, _shown(keyspace), ""))
    was = _pair(old.default, old.default_slave) if old is not None else ""
    now = _pair(new.default, new.default_slave)
    if was != now:
        found.append(Change("default", was, now, moves=bool(was and now) and old.default != new.default))  # type: ignore[union-attr]
    return found


def _of_keyspace(old: Keyspace | None, new: Keyspace) -> Iterator[Change]:
    if old is None:
        yield Change(new.name, "", _shown(new))
        return
    for field in ("layout", "hash", "shards", "pattern", "database"):
        was, now = getattr(old, field), getattr(new, field)
        if was != now:
            yield Change(
                f"{new.name} {field}", str(getattr(was, "name", was)), str(getattr(now, "name", now))
            )
    if not new.sharded and not old.sharded:
        was, now = _pair(old.master, old.slave), _pair(new.master, new.slave)
        if was != now:
            yield Change(new.name, was, now, moves=old.master != new.master)
        return
    shards = sorted({*old.all_shards, *new.all_shards})
    sides = [(shard, old.range_of(shard), new.range_of(shard)) for shard in shards]
    differing = [one for one in sides if _range(one[1]) != _range(one[2])]
    numbered = enumerate(differing)
    for _, run in groupby(numbered, lambda one: (one[1][0] - one[0], _range(one[1][1]), _range(one[1][2]))):
        listed = [one for _, one in run]
        (first, was_in, is_in), last = listed[0], listed[-1][0]
        moves = was_in is not None and is_in is not None and was_in.master != is_in.master
        what = f"{new.name} {first}" if first == last else f"{new.name} {first}-{last}"
        yield Change(what, *_texts(was_in, is_in), moves=moves)


def _texts(old: Range | None, new: Range | None) -> tuple[str, str]:
    """Both sides; of two ranges only what differs."""
    was, now = _range(old), _range(new)
    if not was or not now:
        return ", ".join(filter(None, was)), ", ".join(filter(None, now))
    pairs = [pair for pair in zip(was, now, strict=True) if pair[0] != pair[1]]
    return ", ".join(one for one, _ in pairs), ", ".join(one for _, one in pairs)


def _range(one: Range | None) -> tuple[str, ...]:
    """Its parts as they are shown."""
    if one is None:
        return ()
    return _pair(one.master, one.slave), "open" if one.open else "closed", str(one.state)


def _pair(master: Host | None, slave: Host | None) -> str:
    return f"{master} (slave {slave})" if master and slave else master or ""


def _shown(keyspace: Keyspace) -> str:
    if not keyspace.sharded:
        return _pair(keyspace.master, keyspace.slave)
    return f"{len(keyspace.all_shards)} shards on {len({one.master for one in keyspace.ranges})} hosts"


def placed(old: Topology | None, new: Topology) -> dict[Host, list[str]]:
    """The databases that `new` looks for on a master where `old` did not, by that master."""
    found: dict[Host, list[str]] = {}
    for name, keyspace in new.keyspaces.items():
        before = old.keyspaces.get(name) if old is not None else None
        for shard in keyspace.all_shards if keyspace.sharded else (None,):
            host = keyspace.host_of(shard)
            if host is not None and (before is None or before.host_of(shard) != host):
                found.setdefault(host, []).append(keyspace.database_of(shard).decode())
    return found


def moved_databases(old: Topology, new: Topology) -> dict[tuple[Host, Host], list[str]]:
    """The databases that have another master in `new`, by the old one and the new one."""
    found: dict[tuple[Host, Host], list[str]] = {}
    for name, keyspace in new.keyspaces.items():
        before = old.keyspaces.get(name)
        if before is None or before.sharded != keyspace.sharded:
            continue
        for shard in keyspace.all_shards if keyspace.sharded else (None,):
            source, target = before.host_of(shard), keyspace.host_of(shard)
            if source is not None and target is not None and source != target:
                found.setdefault((source, target), []).append(keyspace.database_of(shard).decode())
    return found
