"""Whether the master of a database has all rows that are in another host's copy, by the versions of the
topology in the history. Pure.

A master that a split, a planned promote or a checked document has replaced had nothing that its successor had
not. A split compares the rows with the slave of the new master, too. One that was replaced otherwise
(`promote --dead`, `--move-shards`, a document written past the tools) may have rows that are nowhere else.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from config.topology import Host, Topology

_CHECKED: Final = frozenset(
    {("fleet", "split"), ("fleet", "promote"), ("topology", "put"), ("topology", "rollback")}
)
"""The commands that give databases another master, and see first that it has all rows."""
_UNCHECKED: Final = frozenset({"--dead", "--move-shards"})


@dataclass(frozen=True)
class Served:
    """A version of the topology that was in use. `command`: what published it; `topology`: None when the
    document cannot be read.
    """

    version: int
    command: str
    topology: Topology | None


def checked(command: str) -> bool:
    """Whether a command gives a database to no master that lacks rows of it."""
    words = _words(command)
    return tuple(words[1:3]) in _CHECKED and not _UNCHECKED.intersection(words)


def declared_dead(served: Sequence[Served]) -> set[Host]:
    """The masters that `promote --dead` has replaced."""
    found = set()
    for one in served:
        words = _words(one.command)
        if words[1:3] == ["fleet", "promote"] and "--dead" in words and "--host" in words[:-1]:
            found.add(words[words.index("--host") + 1])
    return found


def doubt(database: str, host: Host, served: Sequence[Served], copied: int) -> str:
    """Why the copy of `database` on `host` may have rows that the database's master has not; "": it has none.

    `served`: the versions of the topology, ascending, up to the one in use. `copied`: a version at which the
    copy had been made; it counts when `host` has never served the database.
    """
    ranges = [None if one.topology is None else one.topology.range_with(database) for one in served]
    masters = [one.master if one is not None else None for one in ranges]
    if host in masters:
        first = len(masters) - 1 - masters[::-1].index(host)
    else:
        first = max((at for at, one in enumerate(served) if one.version <= copied), default=0)
    before: Host | None = None
    complete: set[Host | None] = set()
    """The hosts that have all rows of the copy."""
    gap = False
    for one, held in zip(served[first:], ranges[first:], strict=True):
        if one.topology is None:
            return f"version {one.version} of the history cannot be read"
        if held is None:
            gap = True
            continue
        if before is not None and held.master not in {before, *complete}:
            if gap or not checked(one.command):
                how = one.command or "written without these tools"
                return f"version {one.version} gave it from {before} to {held.master} unchecked ({how})"
            complete |= {held.master, held.slave} if _is_split(one.command) else {held.master}
        before, gap = held.master, False
    return ""


def _is_split(command: str) -> bool:
    """Whether the slave of the new master was compared, too."""
    return _words(command)[1:3] == ["fleet", "split"]


def _words(command: str) -> list[str]:
    """The words of a command as a shell reads it; none when it cannot be read."""
    try:
        return shlex.split(command)
    except ValueError:
        return []
