"""Which statements are traced, and what is told of them when they are answered."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from random import random
from typing import TYPE_CHECKING, Final

from config.tracing import Tracing
from proxy.wire.attributes import NOTHING, named_values, values_of
from proxy.wire.binary import Attributes
from proxy.wire.packets import ProtocolError
from rewriter.fingerprint import digest

from .context import KEY, STATE, Parent, in_comment, parse
from .spans import Trace

if TYPE_CHECKING:
    from rewriter.env import Env
    from rewriter.plan import Plan

    from .export import Exporter, Spawn

_TEXTS: Final = 2000
"""So many statements' texts without literals are kept."""


class Traces:
    """One worker's."""

    def __init__(self, settings: Tracing, exporter: Exporter) -> None:
        self.exporter = exporter
        self._share = settings.share
        self._hands_on = settings.hand_on
        self._texts: dict[Plan, str] = {}

    def of_query(self, sql: bytes, attributes: bytes = NOTHING) -> Trace | None:
        """The trace of a text with these query attributes; None when it is not traced."""
        parent, at = None, 0
        if KEY in attributes:
            parent, at = _of_attributes(attributes)
        return self._begin(parent or in_comment(sql), at)

    def of_execute(self, sql: bytes, packet: bytes, attributes: Callable[[], Attributes]) -> Trace | None:
        """The trace of an EXECUTE. `sql`: what was prepared; `attributes` reads those of the packet, and
        raises ProtocolError.
        """
        parent, at = None, 0
        if KEY in packet:
            try:
                parent, at = _of_execute(attributes())
            except ProtocolError:
                parent = None  # who runs the command will say what is wrong with it
        return self._begin(parent or in_comment(sql), at)

    def _begin(self, parent: Parent | None, at: int) -> Trace | None:
        if parent is None:
            if not self._share or random() >= self._share:
                return None
        elif not parent.sampled:
            return None
        return Trace(self.exporter.put, parent, hands_on=self._hands_on, at=at)

    def text_of(self, plan: Plan | None, sql: bytes, env: Env) -> str:
        """The statement without its literals."""
        if plan is None:
            return digest(sql, env.findall)
        found = self._texts.get(plan)
        if found is None:
            if len(self._texts) >= _TEXTS:
                self._texts.clear()
            found = self._texts[plan] = digest(sql, env.findall)
        return found


def traces_of(settings: Tracing | None, spawn: Spawn, worker: int) -> Traces | None:
    """What the settings ask for; None for nothing. `worker`: its number."""
    if settings is None:
        return None
    from .export import Exporter  # with aiohttp: 7 MB

    name, pid = socket.gethostname(), os.getpid()
    about: dict[str, str | int] = {
        "service.instance.id": f"{name}-{pid}",
        "host.name": name,
        "process.pid": pid,
        "shardgate.worker": worker,
    }
    try:
        own = version("shardgate")
    except PackageNotFoundError:
        own = "unknown"
    return Traces(settings, Exporter(settings, spawn, about, own))


def _of_attributes(attributes: bytes) -> tuple[Parent | None, int]:
    """The context in a COM_QUERY's attributes, and where its traceparent begins."""
    try:
        places = named_values(attributes)
    except ProtocolError:
        return None, 0
    texts = {name: attributes[start:stop] for name, (start, stop) in places.items()}
    parent = parse(texts.get(KEY, b""), texts.get(STATE, b""))
    return (None, 0) if parent is None else (parent, places[KEY][0])


def _of_execute(extra: Attributes) -> tuple[Parent | None, int]:
    """The same of an EXECUTE; the place counts from the packet's end."""
    places = values_of(extra)
    texts = {name: extra.values[start:stop] for name, (start, stop) in places.items()}
    parent = parse(texts.get(KEY, b""), texts.get(STATE, b""))
    return (None, 0) if parent is None else (parent, len(extra.values) - places[KEY][0])
