"""The schema while the proxy runs: its file, or its node in ZooKeeper, is read again when it changes, as the
topology's is.

A schema is accepted when it is right by itself, when the topology in use can serve it, and when it has the
databases that the settings let users into.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from weakref import WeakKeyDictionary

from config.checks import access_problems, fit_problems
from config.document import ConfigError
from config.load import load_schema
from config.schema import Schema
from config.settings import Settings
from config.sources.base import ThreadedSource, TopologySource
from config.sources.client import Connection
from config.sources.file import WatchedFile
from config.sources.zookeeper import RE_READ_SECONDS, WatchedNode, ZooKeeperSource
from config.topology import Topology

InUse = Callable[[], Topology]
Databases = Callable[[], Iterable[str]]


def digest_of(text: bytes) -> str:
    """What tells two documents apart."""
    return hashlib.sha256(text).hexdigest()


class SchemaThread(ThreadedSource[Schema]):
    """What is accepted as a schema. `topology` gives the one in use, `databases` what users are let into ("*"
    is none).
    """

    def __init__(self, name: str, interval: float, topology: InUse, databases: Databases) -> None:
        super().__init__(name, interval)
        self._topology = topology
        self._databases = databases
        self.digests: WeakKeyDictionary[Schema, str] = WeakKeyDictionary()
        """What tells the documents apart that were accepted."""

    def _load(self, text: bytes) -> Schema:
        """The schema in `text`. Raises ConfigError."""
        schema = load_schema(text, name=self._name)
        topology = self._topology()
        problems = fit_problems(schema, topology, source=self._name)
        problems += access_problems(schema, topology, self._databases(), self._name)
        if problems:
            raise ConfigError(problems)
        self.digests[schema] = digest_of(text)
        return schema

    def _accept(self, text: bytes) -> Schema | None:
        if self._current is not None and self.digests.get(self._current) == digest_of(text):
            return None
        self._current = schema = self._load(text)
        return schema


class SchemaFile(WatchedFile[Schema], SchemaThread):
    """See `SchemaThread`. `first` serves until the file can be used. `interval`: seconds between looks."""

    def __init__(
        self,
        path: Path | str,
        topology: InUse,
        databases: Databases,
        *,
        first: Schema | None = None,
        interval: float = 1.0,
    ) -> None:
        super().__init__(str(path), interval, topology, databases)
        self.path = Path(path)
        self._before = first

    def _first(self) -> Schema:
        try:
            return super()._first()
        except ConfigError as error:
            if self._before is None:
                raise
            self._refuse(self._text or b"", str(error))
            self._current = self._before
            return self._before


class SchemaNode(WatchedNode[Schema], SchemaThread):
    """See `SchemaThread`. `connection` is the topology's, which is started before this and stopped after."""

    def __init__(self, connection: Connection, topology: InUse, databases: Databases) -> None:
        settings = connection.settings
        assert settings.schema_path is not None
        super().__init__(f"zookeeper {settings.schema_path}", RE_READ_SECONDS, topology, databases)
        self._watch(connection, settings.schema_path, settings.schema_cache_file)

    def _connect(self) -> bool:
        return self._connected

    def _close(self) -> None:
        """Nothing is held."""


def open_schema(
    settings: Settings,
    source: TopologySource,
    topology: InUse,
    databases: Databases,
    first: Schema | None,
) -> SchemaFile | SchemaNode:
    """Where the settings say that the schema is, with the topology's `source`; not started yet. `first`: see
    `SchemaFile`.
    """
    if settings.schema_file is not None:
        return SchemaFile(settings.schema_file, topology, databases, first=first)
    assert isinstance(source, ZooKeeperSource)
    return SchemaNode(source.connection, topology, databases)


def schema_before(settings: Settings) -> Schema | None:
    """The schema of a node's cache file, which was in use before; None when there is none to use."""
    zookeeper = settings.topology.zookeeper
    try:
        return None if zookeeper is None else load_schema(zookeeper.schema_cache_file)
    except ConfigError:
        return None
