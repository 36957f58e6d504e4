"""What all sources share: the interface, what is accepted, and a thread that hands results to the loop.

What is accepted. A document is parsed and validated whole, must be able to serve the schema, and must
be a lawful successor of the topology in use (`checks.succession_problems`). One that is not is refused
once, and the old topology stays. The same content again is nothing new.

The thread. Reading files and talking to ZooKeeper block, so a source has one thread of its own, which
alone touches what the source remembers; the loop only ever receives (call_soon_threadsafe).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from config.checks import fit_problems, succession_problems
from config.document import ConfigError, Problem
from config.layout import BUILTIN, Layout
from config.schema import Schema
from config.sources.reading import Reading
from config.topology import Topology

OnChange = Callable[[Topology], None]
OnRefused = Callable[[str], None]

T = TypeVar("T")

log = logging.getLogger("shardgate.topology")


class TopologySource(Protocol):
    """A place that holds the topology and says when it changed."""

    schema: Schema | None
    """What a topology must be able to serve, from the next look on."""

    in_use: Callable[[], Topology | None]
    """Asked before a refusal is told: what is in use by now, accepted here or elsewhere; None when that is
    not known. What was judged by another than that is judged again instead."""

    @property
    def current(self) -> Topology | None:
        """The topology in use; None before `start`."""

    @property
    def status(self) -> str:
        """One line for people: what the source is, and whether it is reachable."""

    async def start(self, on_change: OnChange, on_refused: OnRefused) -> Topology:
        """Read the first topology, then watch. Call once.

        From then on `on_change` gets every accepted successor and `on_refused` the reason (all
        problems) of every refused one, both in this event loop. Raises ConfigError when there is no
        usable topology; the source is stopped then.
        """

    def resume(self, found: Topology) -> None:
        """Begin with `found`, which was in use, instead of reading a first topology. Call before `start`."""

    def adopt(self, found: Topology) -> None:
        """`found` is in use from now on, accepted elsewhere. What the source has is judged again."""

    def serving(self, found: Topology, schema: str = "") -> None:
        """This process serves `found` from now on, with the schema of that digest: say so where proxies
        register.
        """

    def again(self) -> None:
        """Judge again what the source has; what is refused for the same reasons is not told again."""

    def reload(self) -> None:
        """Look again now (SIGHUP); results come through the callbacks."""

    async def stop(self) -> None:
        """End watching; no callback comes later, and no thread is left. May be called again."""


class ThreadedSource(ABC, Generic[T]):
    """A source of documents of one kind whose work is done in one thread; see `TopologySource`.

    Subclasses write what the thread does: `_first`, then `_again` after each `_interval` seconds or
    `_wake`, at last `_close`; and what is accepted: `_accept`. `name` stands for the document in problems.
    """

    def __init__(self, name: str, interval: float) -> None:
        self._name = name
        self._interval = interval
        self._current: T | None = None
        self._refused: tuple[bytes, str] | None = None
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._forced = False
        self._resumed: T | None = None
        self._adopted: deque[T | None] = deque()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[None] | None = None
        self._on_change: Callable[[T], None] = lambda found: None
        self._on_refused: OnRefused = lambda reason: None
        #: See `TopologySource.in_use`.
        self.in_use: Callable[[], T | None] = lambda: None

    # --- in the loop ---------------------------------------------------------------------------

    @property
    def current(self) -> T | None:
        """What is in use; None before `start`."""
        return self._current

    async def start(self, on_change: Callable[[T], None], on_refused: OnRefused) -> T:
        """See `TopologySource.start`."""
        if self._thread is not None:
            raise RuntimeError("a source is started once")
        self._loop = asyncio.get_running_loop()
        self._on_change, self._on_refused = on_change, on_refused
        first: asyncio.Future[T] = self._loop.create_future()
        self._ended = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, args=(first,), name=f"source {self._name}")
        self._thread.daemon = True  # a stuck file system or network must not keep the process alive
        self._thread.start()
        try:
            return await first
        except BaseException:
            await self.stop()
            raise

    def resume(self, found: T) -> None:
        """See `TopologySource.resume`."""
        self._resumed = found

    def adopt(self, found: T) -> None:
        """See `TopologySource.adopt`."""
        self._adopted.append(found)
        self._wake.set()

    def again(self) -> None:
        """See `TopologySource.again`."""
        self._adopted.append(None)
        self._wake.set()

    def reload(self) -> None:
        """See `TopologySource.reload`."""
        self._forced = True
        self._wake.set()

    async def stop(self) -> None:
        """See `TopologySource.stop`."""
        if self._thread is None or self._ended is None:
            return
        self._on_change = lambda found: None
        self._on_refused = lambda reason: None
        self._stopping.set()
        self._wake.set()
        await asyncio.shield(self._ended)
        self._thread.join()

    # --- in the thread -------------------------------------------------------------------------

    @abstractmethod
    def _first(self) -> T:
        """What to start with. Raises ConfigError."""

    def _begin(self, found: T) -> T:
        """Start with what was in use."""
        self._current = found
        self.again()
        return found

    def _begun(self, found: T) -> T:
        """What to start with after all."""
        return found

    def _tell(self) -> None:
        """After each look: say what is served."""

    @abstractmethod
    def _load(self, text: bytes) -> T:
        """What is in `text`, if it can be used. Raises ConfigError."""

    @abstractmethod
    def _accept(self, text: bytes) -> T | None:
        """What is in `text`, now in use; None when it is what was in use. Raises ConfigError."""

    @abstractmethod
    def _again(self, forced: bool) -> None:
        """Look whether there is something new, and `_offer` it; `forced`: even if it looks unchanged."""

    @abstractmethod
    def _close(self) -> None:
        """Let go of everything."""

    def _run(self, first: asyncio.Future[T]) -> None:
        try:
            try:
                found = self._first() if self._resumed is None else self._begin(self._resumed)
                found = self._begun(found)
            except BaseException as error:
                self._post(_fail, first, error)
                return
            self._post(_succeed, first, found)
            while not self._stopping.is_set():
                self._wake.wait(self._interval)
                self._wake.clear()
                forced, self._forced = self._forced, False
                if forced:
                    self._refused = None  # who asks is told again
                judge = bool(self._adopted)
                while self._adopted:
                    self._current = self._adopted.popleft() or self._current
                if not self._stopping.is_set():
                    self._look(forced or judge)
        finally:
            try:
                self._close()
            finally:
                self._post(_succeed, self._ended, None)

    def _look(self, forced: bool) -> None:
        try:
            self._again(forced)
            self._tell()
        except Exception as error:
            log.exception("looking at %s failed", self._name)
            self._refuse(b"", f"{self._name}: {type(error).__name__}: {error}")

    def _offer(self, text: bytes) -> T | None:
        """Accept `text` and tell the loop, or refuse it; what is in it when it is new."""
        try:
            found = self._accept(text)
        except ConfigError as error:
            self._refuse(text, str(error))
            return None
        self._refused = None
        if found is not None:
            self._post(self._changed, found)
        return found

    def _refuse(self, text: bytes, reason: str) -> None:
        """Tell the loop, once for the same text and reason."""
        if self._refused != (text, reason):
            self._refused = (text, reason)
            self._post(self._told, reason, self._current)

    def _changed(self, found: T) -> None:
        self._on_change(found)

    def _told(self, reason: str, judged_by: T | None) -> None:
        in_use = self.in_use()
        if in_use is None or in_use is judged_by:
            self._on_refused(reason)
        else:
            self.reload()

    def _post(self, function: Callable[..., None], *arguments: object) -> None:
        """Call `function` in the loop; nothing when the loop is closed already."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)


class TopologyThread(ThreadedSource[Topology]):
    """What is accepted as a topology, and what this process says where proxies register. `schema`: what a
    topology must be able to serve, which may be another later. `details`: of this process, to be registered.
    """

    def __init__(
        self,
        name: str,
        interval: float,
        layouts: Mapping[str, Layout] | None,
        schema: Schema | None,
        details: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(name, interval)
        self._reading = Reading(name, BUILTIN if layouts is None else layouts)
        self.schema = schema
        self._instance = uuid.uuid4().hex
        self._details = details or {}
        self._registers = True
        self._served: tuple[Topology, str] | None = None
        self._unregistered = ""  # why the process is not registered

    async def stop(self) -> None:
        """See `TopologySource.stop`."""
        self._reading.stop()
        await super().stop()

    def serving(self, found: Topology, schema: str = "") -> None:
        """See `TopologySource.serving`."""
        self._served = found, schema
        self._wake.set()

    def _begun(self, found: Topology) -> Topology:
        """Register, then look once more: who publishes from now on sees this process, and waits for it."""
        self._served = found, ""
        self._tell()
        if self._registers and self._refused is None and not self._unregistered:
            self._look(False)
        return self._current or found

    def _tell(self) -> None:
        if self._served is None:
            return
        topology, schema = self._served
        said = {
            "version": topology.version,
            "digest": topology.digest,
            "schema": schema,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "instance": self._instance,
        }
        reason = self._register({**self._details, **said})
        if reason and reason != self._unregistered:
            log.warning("this proxy is not registered, so the fleet's tools do not wait for it: %s", reason)
        self._unregistered = reason

    @abstractmethod
    def _register(self, said: Mapping[str, Any]) -> str:
        """Say it where proxies register, unless it is said already. Why that cannot be done, or nothing."""

    def _load(self, text: bytes) -> Topology:
        """The topology in `text`. Raises ConfigError."""
        topology = self._reading.topology(text, at_once=self._current is None)
        problems = fit_problems(self.schema, topology, source="schema") if self.schema else []
        if problems:
            raise ConfigError(problems)
        return topology

    def _accept(self, text: bytes) -> Topology | None:
        topology = self._load(text)
        old = self._current
        if old is not None:
            if (topology.version, topology.digest) == (old.version, old.digest):
                return None
            problems = succession_problems(old, topology)
            if problems:
                raise ConfigError(Problem(one.place, one.message, self._name) for one in problems)
            if topology.version == old.version:
                log.warning("topology version %d has changed content: raise the version", old.version)
        self._current = topology
        return topology


def _succeed(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
