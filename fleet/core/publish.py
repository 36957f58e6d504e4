"""Publishing a topology or a schema: compare-and-set, every version is kept, and who serves it.

Versions of the topology have the document's number; those of the schema are counted.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import socket
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from config.document import ConfigError, parse
from fleet.core.errors import Failed, Refused
from fleet.core.store import Registered, Store, Stored

TOPOLOGIES, SCHEMAS = "history", "schemas"
"""The store's folders of versions."""
_BEFORE = "in use before the first change with this tool"
LOOK_SECONDS = 0.1
SERVED_SECONDS = 15.0
"""For all proxies to serve what was published."""
FILE_SECONDS = 3.0
"""For proxies to have read a topology file: a folder that machines share may show it later."""


@dataclass(frozen=True)
class Version:
    """A version that was published; `reason` is the command."""

    number: int
    at: str
    by: str
    reason: str
    content: bytes


def version_of(content: bytes) -> int:
    """The version of a document; 0 when that cannot be read."""
    try:
        value = parse(content).value
    except ConfigError:
        return 0
    found = value.get("version") if isinstance(value, dict) else None
    return found if isinstance(found, int) else 0


def publish(store: Store, content: bytes, expected: Stored | None, reason: str) -> None:
    """Replace the topology. The history gets the version first, and the one before if it lacks it: what is in
    use is in the history, whenever this is killed. Refused when the topology is not `expected` any more.
    """
    if expected is not None:
        version = version_of(expected.content)
        if store.read(_name(TOPOLOGIES, version)) is None:
            _keep(store, TOPOLOGIES, version, expected.content, _BEFORE)
    _keep(store, TOPOLOGIES, version_of(content), content, reason)
    store.publish(content, expected)


def publish_schema(store: Store, content: bytes, expected: Stored | None, reason: str) -> None:
    """The same with the schema."""
    known = history(store, SCHEMAS)[-1:]
    number = known[0].number if known else 0
    if expected is not None and [one.content for one in known] != [expected.content]:
        number += 1
        _keep(store, SCHEMAS, number, expected.content, _BEFORE)
    _keep(store, SCHEMAS, number + 1, content, reason)
    store.publish_schema(content, expected)


def _name(folder: str, number: int) -> str:
    return f"{folder}/{number:010d}"


def _keep(store: Store, folder: str, number: int, content: bytes, reason: str) -> None:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    by = "" if reason == _BEFORE else f"{getpass.getuser()}@{socket.gethostname()}"
    text = content.decode(errors="replace")
    kept = {"version": number, "at": at, "by": by, "reason": reason, "document": text}
    store.put(_name(folder, number), json.dumps(kept).encode())


def history(store: Store, folder: str = TOPOLOGIES) -> list[Version]:
    """All versions, the oldest first."""
    found = (_read(store.read(f"{folder}/{name}")) for name in store.names(folder))
    return [one for one in found if one is not None]


def latest_version(store: Store) -> int:
    """The highest version number in the topology's history; 0 if the history is empty."""
    return max((int(name) for name in store.names(TOPOLOGIES) if name.isdigit()), default=0)


def kept(store: Store, number: int, folder: str = TOPOLOGIES) -> Version:
    """One of the history. Refused when it is not there."""
    found = _read(store.read(_name(folder, number)))
    if found is None:
        what = "topology" if folder == TOPOLOGIES else "schema"
        raise Refused(f"version {number} is not in the history: `shardgate {what} history` lists it")
    return found


def _read(content: bytes | None) -> Version | None:
    try:
        one = json.loads(content or b"")
        return Version(int(one["version"]), one["at"], one["by"], one["reason"], one["document"].encode())
    except (ValueError, KeyError, TypeError):
        return None


async def wait_until_served(store: Store, version: int) -> None:
    """Until every registered proxy serves `version`, or a later one. Failed when one does not in time. With a
    file, where none is registered, those that may not write there get the time to read it.
    """
    if not store.registers and not await asyncio.to_thread(store.proxies):
        await asyncio.sleep(FILE_SECONDS)
    late = await behind(store, version, SERVED_SECONDS)
    if late:
        names = ", ".join(f"{one.name} serves version {one.version}" for one in late)
        raise Failed(
            f"version {version} is published, but within {SERVED_SECONDS:g} s {names}: look at their logs, "
            "why they refuse it or do not reach the topology"
        )


async def wait_for_schema(store: Store, digest: str) -> None:
    """Until every registered proxy serves the schema of that digest. Failed when one does not in time."""
    late = await behind_schema(store, digest, SERVED_SECONDS)
    if late:
        raise Failed(
            f"the schema is published, but not served within {SERVED_SECONDS:g} s by {', '.join(late)}: "
            "look at their logs, why they refuse it or do not reach it"
        )


async def behind_schema(store: Store, digest: str, seconds: float) -> list[str]:
    """The names of the registered proxies that do not serve the schema of that digest within that time."""
    deadline = time.monotonic() + seconds
    while True:
        found = await asyncio.to_thread(store.proxies)
        late = [one.name for one in found if one.details.get("schema", digest) != digest]
        if not late or time.monotonic() > deadline:
            return late
        await asyncio.sleep(LOOK_SECONDS)


async def behind(store: Store, version: int, seconds: float) -> list[Registered]:
    """The registered proxies that do not serve `version`, or a later one, within that time."""
    deadline = time.monotonic() + seconds
    while True:
        found = await asyncio.to_thread(store.proxies)
        late = [one for one in found if one.version < version]
        if not late or time.monotonic() > deadline:
            return late
        await asyncio.sleep(LOOK_SECONDS)
