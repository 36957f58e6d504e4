"""Where the topology is, and what the tools keep beside it: journal, history, lock, registered proxies.

One interface for both places. `FileStore` keeps it in folders beside the topology file:

    topology.json.fleet/journal/000012     an operation: one JSON object a line
    topology.json.fleet/history/0000000007  a version that was published
    topology.json.fleet/lock               flock: it ends with its holder

Proxies register beside that (config/sources/registry.py).
`zookeeper.py` has the other. Names under the store are paths of plain words: "journal/000012".
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from config.sources.registry import registered
from config.sources.writing import write_atomically
from fleet.core.errors import Failed, LockLost, Refused

_LOCK_MODE = 0o600
"""Who may read the file may lock it, and so keep every tool out."""


@dataclass(frozen=True)
class Stored:
    """The topology document as it is now. `stamp` changes with each write of it."""

    content: bytes
    stamp: object = None


@dataclass(frozen=True)
class Registered:
    """A proxy's process and the version that it serves."""

    name: str
    version: int
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, details: object) -> Registered:
        """By what it has registered; what cannot be read says version 0."""
        if isinstance(details, dict) and isinstance(details.get("version"), int):
            return cls(name, details["version"], details)
        return cls(name, 0)


@dataclass(frozen=True)
class Holder:
    """Who has the lock."""

    tool: str
    host: str
    pid: int
    since: str

    @classmethod
    def me(cls, tool: str) -> Holder:
        """This process, now."""
        return cls(tool, socket.gethostname(), os.getpid(), datetime.now(UTC).isoformat(timespec="seconds"))

    @classmethod
    def read(cls, content: bytes) -> Holder | None:
        """What `bytes` wrote; None when it is not that."""
        try:
            found = json.loads(content)
            return cls(str(found["tool"]), str(found["host"]), int(found["pid"]), str(found["since"]))
        except (ValueError, KeyError, TypeError):
            return None

    def __bytes__(self) -> bytes:
        return json.dumps(vars(self)).encode()

    def __str__(self) -> str:
        return f"{self.tool}, process {self.pid} on {self.host} since {self.since}"

    @property
    def dead(self) -> bool:
        """Whether it was a process of this machine, and is none any more."""
        return self.host == socket.gethostname() and not Path(f"/proc/{self.pid}").exists()


def locked_by(holder: Holder | None) -> Refused:
    """Another tool is at work."""
    who = f": {holder}" if holder else ""
    return Refused(f"another tool is at work{who}. Wait for its end; `shardgate fleet status` shows it")


def changed_meanwhile(where: str) -> Refused:
    """The document is not the one that was read."""
    return Refused(f"{where} has changed meanwhile: look at it again, then repeat this")


class Store(Protocol):
    """See the module. Methods block; `open` first, `close` at last. Failed when the store does not answer."""

    where: str
    """For people: the file, or ZooKeeper's address and node."""
    registers: bool
    """Whether every proxy that serves this topology is registered: one may lack the right to write a file."""

    def open(self) -> None: ...
    def close(self) -> None: ...

    def topology(self) -> Stored | None:
        """The document; None when there is none."""

    def schema(self) -> Stored | None:
        """The schema's document, where it is beside the topology; None when there is none."""

    def publish_schema(self, content: bytes, expected: Stored | None) -> None:
        """As `publish`."""

    def publish(self, content: bytes, expected: Stored | None) -> None:
        """Replace the document, if it is still `expected` and the lock is held. Refused, LockLost."""

    def lock(self, holder: Holder) -> None:
        """Take the lock, until `unlock` or the end of this process. Refused when another has it."""

    def unlock(self) -> None: ...
    def check_lock(self) -> None:
        """LockLost when it is not held any more."""

    def holder(self) -> Holder | None:
        """Who has the lock now."""

    def proxies(self) -> list[Registered]: ...

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted."""

    def create(self, name: str, content: bytes) -> bool:
        """Make a document; False when there is one of that name."""

    def put(self, name: str, content: bytes) -> None:
        """Make or replace a document."""

    def read(self, name: str) -> bytes | None: ...

    def append(self, name: str, entry: bytes) -> None:
        """Add an entry, without line breaks, to a list; it is there to stay when this returns."""

    def entries(self, name: str) -> list[bytes]: ...


class FileStore:
    """Beside a topology file. The folder is made with the first write."""

    registers = False

    def __init__(self, path: Path, registry: Path | None = None, schema: Path | None = None) -> None:
        """`registry`: the folder where proxies register. `schema`: the schema's file."""
        self.path = path.absolute()
        self._schema = schema
        self._registry = registry or path.with_name(f"{path.name}-proxies")
        self.where = str(path)
        self._folder = self.path.with_name(self.path.name + ".fleet")
        self._lock: int | None = None

    def open(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        self.unlock()

    def topology(self) -> Stored | None:
        return _read(self.path)

    def schema(self) -> Stored | None:
        return _read(self._schema) if self._schema is not None else None

    def publish_schema(self, content: bytes, expected: Stored | None) -> None:
        assert self._schema is not None
        self._replace(self._schema, content, expected)

    def publish(self, content: bytes, expected: Stored | None) -> None:
        self._replace(self.path, content, expected)

    def _replace(self, path: Path, content: bytes, expected: Stored | None) -> None:
        self.check_lock()
        found = _read(path)
        if (found and found.content) != (expected and expected.content):
            raise changed_meanwhile(str(path))
        self._write(path, content)

    # --- the lock --------------------------------------------------------------------------------

    def lock(self, holder: Holder) -> None:
        path = self._place("lock")
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _LOCK_MODE)
        except OSError as error:
            raise Failed(f"{path} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise locked_by(self._written()) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, bytes(holder), 0)
        self._lock = handle

    def unlock(self) -> None:
        if self._lock is not None:
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = None

    def check_lock(self) -> None:
        if self._lock is None:
            raise LockLost("the lock is not held")

    def holder(self) -> Holder | None:
        try:
            handle = os.open(self._folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._written()
        finally:
            os.close(handle)
        return None

    def _written(self) -> Holder | None:
        with contextlib.suppress(OSError):
            return Holder.read((self._folder / "lock").read_bytes())
        return None

    def proxies(self) -> list[Registered]:
        try:
            found = registered(self._registry)
        except PermissionError as error:
            where = error.filename or self._registry
            raise Failed(f"{where} cannot be read: run the tools as the user of the proxies") from error
        except OSError as error:
            raise Failed(f"{self._registry} cannot be read: {error.strerror}") from error
        return [Registered.of(str(one["name"]), one) for one in found]

    # --- documents and lists ---------------------------------------------------------------------

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(one for one in os.listdir(self._folder / folder) if not one.startswith("."))
        except OSError:
            return []

    def create(self, name: str, content: bytes) -> bool:
        path = self._place(name)
        if path.exists():
            return False
        self._write(path, content)
        return True

    def put(self, name: str, content: bytes) -> None:
        self._write(self._place(name), content)

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except OSError:
            return None

    def append(self, name: str, entry: bytes) -> None:
        path = self._place(name)
        try:
            with open(path, "r+b" if path.exists() else "w+b") as file:
                written = file.read()
                file.seek(written.rfind(b"\n") + 1)  # what was cut off by a crash was never said to be there
                file.truncate()
                file.write(entry + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise Failed(f"{path} cannot be written: {error.strerror}") from error

    def entries(self, name: str) -> list[bytes]:
        return (self.read(name) or b"").split(b"\n")[:-1]

    def _place(self, name: str) -> Path:
        path = self._folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Failed(f"{path.parent} cannot be made: {error.strerror}") from error
        return path

    def _write(self, path: Path, content: bytes) -> None:
        try:
            write_atomically(path, content)
        except OSError as error:
            raise Failed(f"{path} cannot be written: {error.strerror}") from error


def _read(path: Path) -> Stored | None:
    try:
        return Stored(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from error
