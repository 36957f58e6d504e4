"""A topology in a ZooKeeper node: watched, cached on disk, and every proxy registered beside it.

Watching. A watch on the node wakes the source's thread, and so does every change of the connection's
state: watches are lost with a session, so after each reconnection the node is read again (and once a
minute in any case).

Without ZooKeeper. Each accepted document is kept in a cache file, written atomically. A proxy that
starts and finds no ZooKeeper, no node, or a bad document serves the cached topology and says why
(on_refused); without a cache it does not start. A cached version is never left for a lower one: a node
restored from an old backup must not send writes to yesterday's master. Who means it deletes the cache.

Registration. `<path>-proxies/<name>` is an ephemeral node holding JSON: the version served, its
digest, host, process id.

Start a source after forking: kazoo's threads do not survive a fork.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from config.document import ConfigError, Problem
from config.layout import Layout
from config.schema import Schema
from config.settings import ZooKeeper
from config.sources.base import TopologyThread, log
from config.topology import Topology

RE_READ_SECONDS = 60.0
RETRY_SECONDS = 2.0

_T = TypeVar("_T")


class ZooKeeperSource(TopologyThread):
    """See `TopologySource`.

    `name`: what this process registers as. `connect_timeout`: seconds to wait for ZooKeeper at the
    start before the cache is used.
    """

    def __init__(
        self,
        settings: ZooKeeper,
        *,
        layouts: Mapping[str, Layout] | None = None,
        schema: Schema | None = None,
        name: str | None = None,
        connect_timeout: float = 5.0,
    ) -> None:
        super().__init__(f"zookeeper {settings.path}", RE_READ_SECONDS, layouts, schema)
        self._settings = settings
        self._connect_timeout = connect_timeout
        self._proxy = name or settings.name or f"{socket.gethostname()}-{os.getpid()}"
        self._instance = uuid.uuid4().hex
        self._registered: tuple[object, bytes] | None = None
        self._connected = False
        self._client = KazooClient(
            hosts=settings.hosts,
            timeout=settings.session_timeout,
            connection_retry={"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 2.0},
            logger=log.getChild("kazoo"),
        )
        self._client.add_listener(self._on_state)

    @property
    def status(self) -> str:
        """One line for people."""
        state = "connected" if self._connected else "not connected, serving the last good topology"
        return f"zookeeper {self._settings.hosts}{self._settings.path} ({state})"

    # --- in kazoo's threads ------------------------------------------------------------------------

    def _on_state(self, state: str) -> None:
        self._connected = state == KazooState.CONNECTED
        if not self._stopping.is_set():
            level = logging.INFO if self._connected else logging.WARNING
            log.log(level, "zookeeper %s: %s", self._settings.hosts, state.lower())
        self._wake.set()

    def _on_event(self, event: object) -> None:
        self._wake.set()

    # --- in the source's thread --------------------------------------------------------------------

    def _first(self) -> Topology:
        connected = self._client.start_async()
        deadline = time.monotonic() + self._connect_timeout
        while not connected.wait(0.05):
            if time.monotonic() > deadline or self._stopping.is_set():
                return self._from_cache(f"{self._settings.hosts} cannot be reached")
        text, reason = self._read_node()
        if text is None:
            return self._from_cache(reason)
        try:
            topology = self._load(text)
        except ConfigError as error:
            if self._read_cache() is None:
                raise
            return self._from_cache(str(error), text)
        cached = self._cached_version()
        if cached is not None and topology.version < cached:
            return self._from_cache(f"version {topology.version} is stale, {cached} was in use", text)
        self._current = topology
        self._write_cache(text)
        self._register()
        return topology

    def _begin(self, found: Topology) -> Topology:
        self._client.start_async()
        return super()._begin(found)

    def _again(self, forced: bool) -> None:
        self._interval = RE_READ_SECONDS
        if not self._connected:
            return
        text, reason = self._read_node()
        if text is not None:
            if self._offer(text) is not None:
                self._write_cache(text)
        elif self._connected:
            self._refuse(b"", f"{self._name}: {reason}")
        self._register()

    def _close(self) -> None:
        self._client.stop()
        self._client.close()

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
        path = self._settings.path
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
            return None, f"cannot be read: {type(error).__name__} {error}".rstrip()
        return cast("bytes", text), ""

    # --- registration ------------------------------------------------------------------------------

    def _register(self) -> None:
        """Make the ephemeral node say what is served now, in this session."""
        if self._current is None or not self._connected:
            return
        data = json.dumps(
            {
                "version": self._current.version,
                "digest": self._current.digest,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "instance": self._instance,
            }
        ).encode()
        wanted = (self._client.client_id, data)
        if self._registered == wanted:
            return
        try:
            self._put(f"{self._settings.registry}/{self._proxy}", data)
        except (KazooException, KazooTimeoutError) as error:
            log.warning("registering this proxy failed, trying again: %s %s", type(error).__name__, error)
            self._interval = RETRY_SECONDS
        else:
            self._registered = wanted

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

    # --- the cache file ----------------------------------------------------------------------------

    def _from_cache(self, reason: str, refused: bytes = b"") -> Topology:
        """The cached topology, because of `reason`. Raises ConfigError when there is none to use."""
        place = f"cache file {self._settings.cache_file}"
        text = self._read_cache()
        if text is None:
            raise ConfigError([Problem("", f"{reason}, and there is no {place}", self._name)])
        try:
            self._current = self._load(text)
        except ConfigError as error:
            first = Problem("", f"{reason}, and the {place} is not usable", self._name)
            raise ConfigError([first, *error.problems]) from error
        self._refuse(refused, f"{self._name}: {reason}: serving the {place}")
        self._register()
        return self._current

    def _cached_version(self) -> int | None:
        """The version in the cache file, or None when there is none to use."""
        text = self._read_cache()
        try:
            return None if text is None else self._load(text).version
        except ConfigError as error:
            log.warning("the cached topology is not usable: %s", error)
            return None

    def _read_cache(self) -> bytes | None:
        try:
            return self._settings.cache_file.read_bytes()
        except OSError:
            return None

    def _write_cache(self, text: bytes) -> None:
        """Replace the cache file by `text`, or leave it whole."""
        try:
            write_atomically(self._settings.cache_file, text)
        except OSError as error:
            log.warning("cannot write the cache file %s: %s", self._settings.cache_file, error.strerror)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`: readers see the old or the new, also after a crash. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
