"""What the tests of sources share: topologies as texts, and a listener that can be waited for."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

from config.topology import Topology
from tests.support.waiting import wait_until


def document(
    version: int = 1,
    host: str = "a:3306",
    pattern: str = "db{shard}",
    last: int = 3,
    dropped: list[list[int]] | None = None,
) -> bytes:
    """Shards 0 to `last`."""
    ranges = [{"range": [0, last], "master": host}]
    main = {"layout": "pinterest", "database": pattern, "ranges": ranges}
    more = {} if dropped is None else {"dropped_shards": {"main": dropped}}
    return json.dumps({"version": version, "keyspaces": {"main": main}, **more}).encode()


BAD = b'{"version": 9, "keyspaces": {"main": {"layout": "pinterest"}}, "x": 1}'


class Listener:
    """Collects what a source says; `changed` and `told` wait for the next one."""

    def __init__(self) -> None:
        self.changes: asyncio.Queue[Topology] = asyncio.Queue()
        self.refusals: asyncio.Queue[str] = asyncio.Queue()
        self.thread = threading.get_ident()

    def on_change(self, topology: Topology) -> None:
        assert threading.get_ident() == self.thread
        self.changes.put_nowait(topology)

    def on_refused(self, reason: str) -> None:
        assert threading.get_ident() == self.thread
        self.refusals.put_nowait(reason)

    async def changed(self, seconds: float = 90) -> Topology:
        return await asyncio.wait_for(self.changes.get(), seconds)

    async def told(self, seconds: float = 90) -> str:
        return await asyncio.wait_for(self.refusals.get(), seconds)

    @property
    def quiet(self) -> bool:
        return self.changes.empty() and self.refusals.empty()


def threads() -> set[threading.Thread]:
    """All threads but those of the loop's own pool."""
    return {one for one in threading.enumerate() if not one.name.startswith("asyncio_")}


def no_more_threads(before: set[threading.Thread]) -> bool:
    """True when all threads begun since `before` have ended; raises when they do not in time."""
    return wait_until(lambda: not threads() - before, "the threads end", 10)


def write(path: Path, content: bytes) -> None:
    """At once, as a file that is read meanwhile should be: a source never sees half of it."""
    half = path.with_name(f"{path.name}.half")
    half.write_bytes(content)
    half.replace(path)


def write_in_place(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def age(path: Path) -> tuple[int, int]:
    """Size and time of change."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns
