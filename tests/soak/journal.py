"""`Journal`: what clients were answered, and whether it may be: errors only of the kinds that a fault of that
moment allows.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from proxy.errors import REGISTRY, ErrorKind

CLOSED = "closed"
"""The connection to the proxy ended, or could not be made."""

LATEST = 30
"""So many answers of each client are kept for a report."""

#: By docs/errors.md ("Was my statement executed?"): nothing was done.
NOT_DONE = frozenset(
    {
        "account_refused",
        "connection_gone",
        "state_gone",
        "host_unreachable",
        "pool_full",
        "pool_timeout",
        "shard_offline",
        "transaction_cut",
        "transaction_moved",
        "transaction_undone",
        "user_share",
        "user_share_timeout",
        "xa_not_ready",
    }
)


def _pattern(kind: ErrorKind) -> tuple[int, re.Pattern[str]]:
    """How many characters of its text are fixed, and what reads it."""
    parts = re.split(r"\{\w+\}", kind.text)
    return sum(map(len, parts)), re.compile(".*".join(map(re.escape, parts)), re.DOTALL)


_KINDS = {name: (kind.code, *_pattern(kind)) for name, kind in REGISTRY.items()}


def name_of(code: int, message: str) -> str:
    """The registry's name of an error of the proxy; of a server's, ``server`` and its code."""
    found = [
        (fixed, name)
        for name, (its, fixed, pattern) in _KINDS.items()
        if its == code and fixed and pattern.match(message)
    ]
    return max(found)[1] if found else f"server {code}"


@dataclass
class Window:
    """A fault, from its begin until all clients are served again. `end` None: it goes on."""

    name: str
    allowed: frozenset[str]
    begin: float
    end: float | None = None

    def meets(self, began: float, ended: float) -> bool:
        return began <= (self.end or ended) and ended >= self.begin


@dataclass
class Journal:
    """`statements` by kind of client; `errors` by fault and name; `longest` seconds by kind of client, with
    the fault; `problems` is what should not be; `served`: when the last statement that was answered began, by
    client. `at_work`: what each client waits for, and since when; `latest`: what it was answered last.
    """

    statements: Counter[str] = field(default_factory=Counter)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    longest: dict[str, tuple[float, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    served: dict[str, float] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    at_work: dict[str, tuple[float, str]] = field(default_factory=dict)
    latest: dict[str, deque[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def fault(self, name: str, allowed: frozenset[str]) -> Iterator[Window]:
        """What is allowed within, and to what was under way at its begin or is at its end."""
        window = Window(name, allowed, time.monotonic())
        self.windows.append(window)
        try:
            yield window
        finally:
            window.end = time.monotonic()

    def begins(self, client: str, text: str) -> float:
        """A statement is about to be sent; when."""
        now = time.monotonic()
        self.at_work[client] = now, text
        return now

    def done(self, client: str, kind: str, began: float, text: str, error: str = "", said: str = "") -> None:
        """A statement was answered, with an error if one is named; `said`: the answer."""
        ended = time.monotonic()
        with self._lock:
            self.at_work.pop(client, None)
            told = f"{began:.3f} to {ended:.3f}: {text[:300]}: {error} {said[:300]}"
            self.latest.setdefault(client, deque(maxlen=LATEST)).append(told)
            met = [one for one in self.windows[-3:] if one.meets(began, ended)]
            fault = met[-1].name if met else "none"
            self.statements[kind] += 1
            if ended - began > self.longest.get(kind, (0.0, ""))[0]:
                self.longest[kind] = (ended - began, fault)
            if not error:
                self.served[client] = began
                return
            self.errors[fault, error] += 1
            if not any(error in one.allowed for one in met):
                took = f"after {ended - began:.2f} s"
                self.problems.append(f"{client}, fault {fault}: {error} {took}: {said}\n    {text[:2000]}")

    def wrong(self, client: str, text: str, expected: object, got: object) -> None:
        """An answer that is not right."""
        now = time.monotonic()
        fault = next((one.name for one in reversed(self.windows) if one.meets(now, now)), "none")
        self.problems.append(
            f"{client}, fault {fault}: a wrong answer\n    {text[:2000]}"
            f"\n    expected: {str(expected)[:2000]}\n    got:      {str(got)[:2000]}"
        )

    def trouble(self, text: str) -> None:
        self.problems.append(text)

    def told(self) -> Iterator[str]:
        """The latest faults, and of each client what it was answered last, and what it waits for."""
        yield f"now {time.monotonic():.3f}"
        for one in self.windows[-10:]:
            yield f"fault {one.begin:.3f} to {one.end or 0:.3f}: {one.name}"
        for client in sorted(self.latest.keys() | self.at_work.keys()):
            yield f"{client}:"
            yield from (f"  {one}" for one in self.latest.get(client, ()))
            if at_work := self.at_work.get(client):
                yield f"  {at_work[0]:.3f}, waits: {at_work[1][:2000]}"
