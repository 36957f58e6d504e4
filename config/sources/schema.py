"""The schema while the proxy runs: its file is read again when it changes, as the topology's is.

A schema is accepted when it is right by itself, when the topology in use can serve it, and when it has the
databases that the settings let users into.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from weakref import WeakKeyDictionary

from config.checks import fit_problems
from config.document import ConfigError, Problem
from config.load import load_schema
from config.schema import Schema
from config.sources.file import WatchedFile
from config.topology import Topology


class SchemaFile(WatchedFile[Schema]):
    """`topology` gives the one in use, `databases` what users are let into ("*" is none). `first` serves
    until the file can be used. `interval`: seconds between two looks.
    """

    def __init__(
        self,
        path: Path | str,
        topology: Callable[[], Topology],
        databases: Callable[[], Iterable[str]],
        *,
        first: Schema | None = None,
        interval: float = 1.0,
    ) -> None:
        super().__init__(str(path), interval)
        self.path = Path(path)
        self._topology = topology
        self._databases = databases
        self._before = first
        self.digests: WeakKeyDictionary[Schema, str] = WeakKeyDictionary()
        """What tells the documents apart that were accepted."""

    def _first(self) -> Schema:
        try:
            return super()._first()
        except ConfigError as error:
            if self._before is None:
                raise
            self._refuse(self._text or b"", str(error))
            self._current = self._before
            return self._before

    def _accept(self, text: bytes) -> Schema | None:
        schema = load_schema(text, name=self._name)
        digest = hashlib.sha256(text).hexdigest()
        if self._current is not None and self.digests.get(self._current) == digest:
            return None
        topology = self._topology()
        problems = fit_problems(schema, topology, source=self._name)
        wanted = self._databases() if topology.default is None else ()  # which may have further ones
        missing = {name for name in wanted if name != "*" and name not in schema.databases}
        problems += [
            Problem("databases", f"the settings let users into {name!r}, which is not here", self._name)
            for name in sorted(missing)
        ]
        if problems:
            raise ConfigError(problems)
        self.digests[schema] = digest
        self._current = schema
        return schema
