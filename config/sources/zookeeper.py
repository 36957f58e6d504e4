"""Documents in ZooKeeper nodes: watched, cached on disk; beside the topology's every proxy is registered.

Watching. A watch on the node wakes the source's thread, and so does every change of the connection's
state: watches are lost with a session, so after each reconnection the node is read again (and once a
minute in any case).

Without ZooKeeper. Each accepted document is kept in a cache file, written atomically. A proxy that
starts and finds no ZooKeeper, no node, or a bad document serves the cached topology and says why
(on_refused); without a cache it does not start. A cached version is never left for a lower one: a node
restored from an old backup must not send writes to yesterday's master. Nor is it left for one that lacks some
of its shards (`checks.lacking_problems`). Who means it deletes the cache.

Registration. `<path>-proxies/<name>` is an ephemeral node holding JSON: the version served, its
digest, host, process id.

Start a source after forking: kazoo's threads do not survive a fork.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from config.checks import lacking_problems
from config.document import ConfigError, Problem
from config.layout import Layout
from config.schema import Schema
from config.settings import ZooKeeper
from config.sources.base import T, ThreadedSource, TopologyThread, log
from config.sources.client import Connection
from config.sources.packing import unpacked
from config.sources.writing import write_atomically
from config.topology import Topology

RE_READ_SECONDS = 60.0
RETRY_SECONDS = 2.0

_T = TypeVar("_T")


class WatchedNode(ThreadedSource[T]):
    """A document in a node. Subclasses call `_watch` when they are made."""

    def _watch(self, connection: Connection, path: str, cache_file: Path) -> None:
        self.connection, self._path, self._cache_file = connection, path, cache_file
        self._settings, self._client = connection.settings, connection.client
        self._client.add_listener(self._on_state)

    @property
    def _connected(self) -> bool:
        return bool(self._client.connected)

    @abstractmethod
    def _connect(self) -> bool:
        """At the start: whether there is a connection."""

    def _stale(self, found: T, text: bytes) -> str:
        """Why `found`, the first, which is in `text`, is not to be used after what is in the cache file."""
        return ""

    # --- in kazoo's threads ------------------------------------------------------------------------

    def _on_state(self, state: str) -> None:
        self._wake.set()

    def _on_event(self, event: object) -> None:
        self._wake.set()

    # --- in the source's thread --------------------------------------------------------------------

    def _first(self) -> T:
        if not self._connect():
            trouble = self.connection.trouble
            reason = f"{self._settings.hosts} cannot be reached"
            return self._from_cache(f"{reason} ({trouble})" if trouble else reason)
        text, reason = self._read_node()
        if text is None:
            return self._from_cache(reason)
        try:
            found = self._load(text)
        except ConfigError as error:
            if self._read_cache() is None:
                raise
            return self._from_cache(str(error), text)
        if stale := self._stale(found, text):
            return self._from_cache(stale, text)
        self._current = found
        self._write_cache(text)
        return found

    def _again(self, forced: bool) -> None:
        self._interval = RE_READ_SECONDS
        if not self._connected:
            self._interval = RETRY_SECONDS
            return
        text, reason = self._read_node()
        if text is not None:
            if self._offer(text) is not None:
                self._write_cache(text)
        elif self._connected:
            self._refuse(b"", f"{self._name}: {reason}")

    def _wait(self, result: Any, kind: type[_T]) -> _T:
        """The outcome of one of kazoo's asynchronous calls; raises KazooException, also when stopping."""
        deadline = time.monotonic() + self._settings.session_timeout
        while not result.ready():
            if self._stopping.is_set() or time.monotonic() > deadline:
                raise KazooException("no answer")
            result.wait(0.05)
        return cast("_T", result.get(block=False))

    def _read_node(self) -> tuple[bytes | None, str]:
        """The node's content, with a watch set on it; or None and why."""
        path = self._path
        try:
            text, _ = self._wait(self._client.get_async(path, watch=self._on_event), tuple)
        except NoNodeError:
            try:
                self._wait(self._client.exists_async(path, watch=self._on_event), object)
            except (KazooException, KazooTimeoutError):
                self._interval = RETRY_SECONDS
            return None, "the node does not exist"
        except (KazooException, KazooTimeoutError) as error:
            self._interval = RETRY_SECONDS
            return None, self.connection.refusal(error, "the node", "read")
        return unpacked(cast("bytes", text)), ""

    # --- the cache file ----------------------------------------------------------------------------

    def _from_cache(self, reason: str, refused: bytes = b"") -> T:
        """The cached document, because of `reason`. Raises ConfigError when there is none to use."""
        place = f"cache file {self._cache_file}"
        text = self._read_cache()
        if text is None:
            raise ConfigError([Problem("", f"{reason}, and there is no {place}", self._name)])
        try:
            self._current = self._load(text)
        except ConfigError as error:
            first = Problem("", f"{reason}, and the {place} is not usable", self._name)
            raise ConfigError([first, *error.problems]) from error
        self._refuse(refused, f"{self._name}: {reason}: serving the {place}")
        return self._current

    def _read_cache(self) -> bytes | None:
        try:
            return self._cache_file.read_bytes()
        except OSError:
            return None

    def _write_cache(self, text: bytes) -> None:
        """Replace the cache file by `text`, or leave it whole."""
        try:
            if self._read_cache() != text:
                write_atomically(self._cache_file, text)
        except OSError as error:
            log.warning("cannot write the cache file %s: %s", self._cache_file, error.strerror)


class ZooKeeperSource(WatchedNode[Topology], TopologyThread):
    """See `TopologySource`.

    `name`: what this process registers as. `connect_timeout`: seconds to wait for ZooKeeper at the start
    before the cache is used. The connection is the schema's, too, if that is a node.
    """

    def __init__(
        self,
        settings: ZooKeeper,
        *,
        layouts: Mapping[str, Layout] | None = None,
        schema: Schema | None = None,
        name: str | None = None,
        details: Mapping[str, Any] | None = None,
        connect_timeout: float = 5.0,
    ) -> None:
        super().__init__(f"zookeeper {settings.path}", RE_READ_SECONDS, layouts, schema, details)
        self._connect_timeout = connect_timeout
        self._proxy = name or settings.name or f"{socket.gethostname()}-{os.getpid()}"
        self._registered: tuple[object, bytes] | None = None
        self._watch(Connection(settings, self._on_trouble), settings.path, settings.cache_file)

    @property
    def status(self) -> str:
        """One line for people."""
        state = "connected" if self._connected else "not connected, serving the last good topology"
        told = f": {trouble}" if (trouble := self.connection.trouble) else ""
        if self._connected and self._unregistered:
            told = f"; this proxy is not registered: {self._unregistered}"
        return f"zookeeper {self._settings.hosts}{self._settings.path} ({state}{told})"

    def _on_state(self, state: str) -> None:
        if not self._stopping.is_set():
            level = logging.INFO if state == KazooState.CONNECTED else logging.WARNING
            log.log(level, "zookeeper %s: %s", self._settings.hosts, state.lower())
        super()._on_state(state)

    def _on_trouble(self, reason: str) -> None:
        if not self._stopping.is_set():
            log.warning("zookeeper: no connection, trying again: %s", reason)

    def _connect(self) -> bool:
        connected = self.connection.start()
        deadline = time.monotonic() + self._connect_timeout
        while not connected.wait(0.05):
            if time.monotonic() > deadline or self._stopping.is_set():
                return False
        return True

    def _begin(self, found: Topology) -> Topology:
        self.connection.start()
        return super()._begin(found)

    def _again(self, forced: bool) -> None:
        super()._again(forced)
        if self.connection.ended:
            self.connection.start()

    def _close(self) -> None:
        self._client.stop()
        self._client.close()

    def _stale(self, found: Topology, text: bytes) -> str:
        cached = self._read_cache()
        if cached is None or cached == text:
            return ""
        try:
            old = self._load(cached)
        except ConfigError as error:
            log.warning("the cached topology is not usable: %s", error)
            return ""
        if found.version < old.version:
            return f"version {found.version} is stale, {old.version} was in use"
        return "; ".join(f"{one.place}: {one.message}" for one in lacking_problems(old, found))

    def _register(self, said: Mapping[str, Any]) -> str:
        """Make the ephemeral node say it, in this session."""
        if not self._connected:
            return self._unregistered
        wanted = (self._client.client_id, json.dumps(said).encode())
        if self._registered != wanted:
            node = f"{self._settings.registry}/{self._proxy}"
            try:
                self._put(node, wanted[1])
            except (KazooException, KazooTimeoutError) as error:
                self._interval = RETRY_SECONDS
                return self.connection.refusal(error, node, "written")
            self._registered = wanted
        return ""

    def _put(self, node: str, data: bytes) -> None:
        client = self._client
        try:
            self._wait(client.create_async(node, data, ephemeral=True, makepath=True), str)
            return
        except NodeExistsError:
            found, stat = self._wait(client.get_async(node), tuple)
        session, _ = client.client_id or (0, b"")
        if stat.ephemeralOwner == session:
            self._wait(client.set_async(node, data), object)
            return
        # Either of our lost session, and about to vanish; or another proxy bears this name.
        if self._instance.encode() not in cast("bytes", found):
            raise KazooException(f"another proxy is registered as {self._proxy}")
        self._wait(client.delete_async(node), object)
        self._wait(client.create_async(node, data, ephemeral=True), str)
