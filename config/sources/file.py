"""A topology in a file, read again when it changes.

A topology's file is looked at ten times a second: its identity, size and time of change first, its content
when they differ or are too young to be trusted. It may be replaced by renaming (as editors and Kubernetes
do). While it is missing or bad, the old topology stays.

Each accepted topology is kept beside the registrations, too. A proxy that starts and finds a document that
lacks shards of the kept one (`checks.lacking_problems`) serves the kept one and says why (on_refused).
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from config.checks import fit_problems, lacking_problems
from config.document import ConfigError, Problem
from config.layout import Layout
from config.schema import Schema
from config.sources.base import T, ThreadedSource, TopologyThread, log
from config.sources.registry import Registration
from config.sources.writing import write_atomically
from config.topology import Topology

YOUNG_SECONDS = 2.0
"""File times are as coarse as a clock tick: a change within it may leave them as they were."""


LAST_GOOD = ".last-good"
"""The topology that was accepted last, in the folder of registrations. No process has such a name there."""


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
        self._last_good = None if registry is None else registry / LAST_GOOD
        if registry is not None:
            self._registration = Registration(registry, f"{name}-{self._instance[:8]}")

    @property
    def status(self) -> str:
        """One line for people."""
        told = f" (this proxy is not registered: {self._unregistered})" if self._unregistered else ""
        return f"file {self.path}{told}"

    def _first(self) -> Topology:
        """The file's topology, unless it hides rows of the one that was accepted last."""
        found = super()._first()
        assert self._text is not None
        kept = self._kept()
        problems = [] if kept is None else lacking_problems(kept, found)
        if not problems:
            self._keep(self._text)
            return found
        problems = [Problem(one.place, one.message, self._name) for one in problems]
        fit = fit_problems(self.schema, kept, source="schema") if self.schema and kept else []
        if fit:
            raise ConfigError([*problems, *fit])
        self._current = kept
        reason = "; ".join(map(str, problems))
        self._refuse(self._text, f"{reason}: serving the last good topology, {self._last_good}")
        assert kept is not None
        return kept

    def _offer(self, text: bytes) -> Topology | None:
        found = super()._offer(text)
        if found is not None:
            self._keep(text)
        return found

    def _kept(self) -> Topology | None:
        """The topology that was accepted last. None if there is no usable one."""
        try:
            text = self._last_good.read_bytes() if self._last_good is not None else None
            return None if text is None else self._reading.topology(text, at_once=True)
        except OSError:
            return None
        except ConfigError as error:
            log.warning("%s, the last good topology, is not usable: %s", self._last_good, error)
            return None

    def _keep(self, text: bytes) -> None:
        """Keep what was accepted. A proxy that may not write there says so where it cannot register."""
        if self._last_good is None:
            return
        try:
            if not self._last_good.exists() or self._last_good.read_bytes() != text:
                self._last_good.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomically(self._last_good, text)
        except OSError as error:
            log.debug("%s cannot be written: %s", self._last_good, error.strerror)

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
