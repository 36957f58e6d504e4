"""A topology in a file, read again when it changes.

The file is looked at every second: its identity, size and time of change first, its content when they
differ or are too young to be trusted. It may be replaced by renaming (as editors and Kubernetes do).
While it is missing or bad, the old topology stays.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from config.document import ConfigError, Problem
from config.layout import Layout
from config.schema import Schema
from config.sources.base import ThreadedSource
from config.topology import Topology

YOUNG_SECONDS = 2.0
"""File times are as coarse as a clock tick: a change within it may leave them as they were."""


class FileSource(ThreadedSource):
    """See `TopologySource`. `interval`: seconds between two looks."""

    def __init__(
        self,
        path: Path | str,
        *,
        layouts: Mapping[str, Layout] | None = None,
        schema: Schema | None = None,
        interval: float = 1.0,
    ) -> None:
        super().__init__(str(path), interval, layouts, schema)
        self._path = Path(path)
        self._seen: tuple[int, ...] | None = None
        self._text: bytes | None = None

    @property
    def status(self) -> str:
        """One line for people."""
        return f"file {self._path}"

    def _first(self) -> Topology:
        try:
            self._text = self._read()
        except OSError as error:
            raise ConfigError([Problem("", f"cannot be read: {error.strerror}", self._name)]) from error
        self._current = self._load(self._text)
        return self._current

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
        text = self._path.read_bytes()
        young = time.time() - seen[0] / 1e9 < YOUNG_SECONDS
        self._seen = None if young else seen
        return text

    def _identity(self) -> tuple[int, ...]:
        found = self._path.stat()
        return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev)
