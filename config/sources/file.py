"""A topology in a file, read again when it changes.

A topology's file is looked at ten times a second: its identity, size and time of change first, its content
when they differ or are too young to be trusted. It may be replaced by renaming (as editors and Kubernetes
do). While it is missing or bad, the old topology stays.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from config.document import ConfigError, Problem
from config.layout import Layout
from config.schema import Schema
from config.sources.base import T, ThreadedSource, TopologyThread
from config.sources.registry import Registration
from config.topology import Topology

YOUNG_SECONDS = 2.0
"""File times are as coarse as a clock tick: a change within it may leave them as they were."""


class WatchedFile(ThreadedSource[T]):
    """A document in a file. `interval`: seconds between two looks."""

    path: Path
    _seen: tuple[int, ...] | None = None
    _text: bytes | None = None

    @property
    def status(self) -> str:
        """One line for people."""
        return f"file {self.path}"

    def _first(self) -> T:
        try:
            self._text = self._read()
        except OSError as error:
            raise ConfigError([Problem("", f"cannot be read: {error.strerror}", self._name)]) from error
        found = self._accept(self._text)
        assert found is not None
        return found

    def _again(self, forced: bool) -> None:
        try:
            if not forced and self._identity() == self._seen:
                return
            text = self._read()
        except OSError as error:
            self._seen = self._text = None
            self._refuse(b"", f"{self._name}: cannot be read: {error.strerror}")
            return
        if forced or text != self._text:
            self._text = text
            self._offer(text)

    def _close(self) -> None:
        """Nothing is held."""

    def _read(self) -> bytes:
        """The content; `_seen` becomes what it was read under, or None when that is too young."""
        seen = self._identity()
        text = self.path.read_bytes()
        young = time.time() - seen[0] / 1e9 < YOUNG_SECONDS
        self._seen = None if young else seen
        return text

    def _identity(self) -> tuple[int, ...]:
        found = self.path.stat()
        return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev)


class FileSource(WatchedFile[Topology], TopologyThread):
    """See `TopologySource`. `registry`: the folder where proxies register; None: this one does not."""

    def __init__(
        self,
        path: Path | str,
        *,
        layouts: Mapping[str, Layout] | None = None,
        schema: Schema | None = None,
        registry: Path | None = None,
        details: Mapping[str, Any] | None = None,
        interval: float = 0.1,
    ) -> None:
        super().__init__(str(path), interval, layouts, schema, details)
        self.path = Path(path)
        name = f"{socket.gethostname()}-{os.getpid()}"
        self._details = {"name": name, **self._details}
        self._registers = registry is not None
        self._registration: Registration | None = None
        if registry is not None:
            self._registration = Registration(registry, f"{name}-{self._instance[:8]}")

    @property
    def status(self) -> str:
        """One line for people."""
        told = f" (this proxy is not registered: {self._unregistered})" if self._unregistered else ""
        return f"file {self.path}{told}"

    def _register(self, said: Mapping[str, Any]) -> str:
        if self._registration is None:
            return ""
        try:
            self._registration.say(said)
        except OSError as error:
            return f"{self._registration.path}: {error.strerror} (topology.proxies_path)"
        return ""

    def _close(self) -> None:
        if self._registration is not None:
            self._registration.end()
