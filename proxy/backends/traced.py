"""Connections whose statements are spans of their clients' traces (`proxy.tracing`): only a proxy that is
told to trace makes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from config.flavour import flavour_of
from proxy.load import Load
from proxy.tracing.context import SIZE, traceparent
from proxy.tracing.spans import Call, Trace
from proxy.wire.attributes import NOTHING
from proxy.wire.comments import prefixed
from proxy.wire.constants import Command
from proxy.wire.replies import FIRST
from rewriter.fingerprint import first_word

from .connection import BackendConnection, Owner
from .receiver import Receiver
from .reworded import (
    AttributedConnection,
    CommentedAttributedConnection,
    CommentedConnection,
    RewordedConnection,
)

_VERBS: Final = {Command.STMT_PREPARE: "PREPARE", Command.STMT_FETCH: "FETCH"}


class TracedConnection(RewordedConnection):
    """A receiver's client that has a `trace` gets a span for each reply, and the server its context: in a
    comment before each COM_QUERY, and in place of what the client's own query attribute says.
    """

    __slots__ = ("calls", "lost", "trace")

    def __init__(self, host: str, owner: Owner) -> None:
        super().__init__(host, owner)
        self.trace: Trace | None = None  # of the statement at work
        self.calls: deque[tuple[str, str]] = deque()  # ID and verb of each reply that is to come
        self.lost = False

    def send(
        self,
        packets: bytes,
        receiver: Receiver,
        sync_packets: int = 0,
        *,
        replies: int = 1,
        state: int = FIRST,
    ) -> None:
        client = None if receiver.own else getattr(receiver, "client", None)
        trace: Trace | None = getattr(client, "trace", None)
        self.trace = trace
        if client is not None and trace is not None:
            trace.plan = client.plan or trace.plan
            self.lost = False
            packets = self._begin(trace, packets, receiver, sync_packets, replies)
        super().send(packets, receiver, sync_packets, replies=replies, state=state)

    def ask(self, sql: bytes, receiver: Receiver) -> None:
        client = getattr(receiver, "client", None)
        if getattr(client, "trace", None) is None and type(self) is TracedConnection:
            self.trace = None
            BackendConnection.ask(self, sql, receiver)
        else:
            super().ask(sql, receiver)

    def _begin(
        self, trace: Trace, packets: bytes, receiver: Receiver, sync_packets: int, replies: int
    ) -> bytes:
        """Note what replies there will be; the packets, with the context."""
        calls = self.calls
        calls.clear()

        def comment_for(text: bytes) -> bytes:
            verb = first_word(text)
            if verb == "SHOW" and replies > 1:
                return b""  # the warnings of one of several writes, which are not counted
            id = trace.new()
            calls.append((id, verb))
            return trace.comment(id) if id and trace.hands_on else b""

        packets = prefixed(packets, comment_for, sync_packets)
        if not calls:  # a command of a prepared statement
            id, step = trace.new(), getattr(receiver, "step", "")
            calls.append((id, step.upper() if step in ("prepare", "fetch") else ""))
            if step == "execute" and id and trace.hands_on:
                packets = self._handed_on(trace, id, packets)
        return packets

    def _handed_on(self, trace: Trace, id: str, packets: bytes) -> bytes:
        """An EXECUTE with the context in place of the client's: attributes are what a packet ends with."""
        begin = len(packets) - trace.at
        if not trace.at or not isinstance(self, AttributedConnection):
            return packets
        return _replaced(packets, begin, trace, id)

    def _count(self) -> None:
        trace = self.trace
        if trace is None:
            super()._count()
            return
        loads: Sequence[Load] = self.shards if self.shard is None else (self.shard,)
        super()._count()
        if not self.calls:
            return
        id, verb = self.calls.popleft()
        scanner = self.scanner
        code = scanner.err.code if scanner.err is not None else -1 if self.lost else 0
        ok = scanner.ok
        rows, gives = (scanner.rows, True) if ok is None else (ok.affected, False)
        flavour = flavour_of(self.version).name
        trace.called(
            Call(trace, id, verb, self.sent, self.ended, self.host, flavour, loads, code, rows, gives)
        )

    def _give_up(self) -> None:
        self.lost = True
        super()._give_up()
        self.calls.clear()


class TracedAttributedConnection(TracedConnection, AttributedConnection):
    """With query attributes, too."""

    __slots__ = ()

    def attributes_of(self, receiver: Receiver) -> bytes:
        found, trace = super().attributes_of(receiver), self.trace
        if trace is None or not trace.at or not trace.hands_on or found == NOTHING or not self.calls:
            return found
        id = self.calls[-1][0]
        return _replaced(found, trace.at, trace, id) if id else found


class TracedCommentedConnection(TracedConnection, CommentedConnection):
    """With a comment that says whose a statement is, which goes in front."""

    __slots__ = ()


class TracedCommentedAttributedConnection(TracedAttributedConnection, CommentedAttributedConnection):
    """With all of it."""

    __slots__ = ()


def _replaced(data: bytes, begin: int, trace: Trace, id: str) -> bytes:
    """`data` with the context of a call in place of the client's own, if that is what stands there."""
    before, end = traceparent(trace.id, trace.parent, trace.flags).encode(), begin + SIZE
    if data[begin:end] != before:
        return data
    return data[:begin] + traceparent(trace.id, id, trace.flags).encode() + data[end:]


KINDS: Final[dict[tuple[bool, bool], type[BackendConnection]]] = {
    (False, False): TracedConnection,
    (False, True): TracedAttributedConnection,
    (True, False): TracedCommentedConnection,
    (True, True): TracedCommentedAttributedConnection,
}
"""By whether statements have comments, and query attributes."""
