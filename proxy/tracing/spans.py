"""What is noted of statements that are traced, while they are at work.

As little as can be: it is written as a collector wants it when it is sent (`otlp`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import getrandbits
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from .context import SAMPLED, Parent, comment

if TYPE_CHECKING:
    from proxy.load import Load
    from rewriter.plan import Plan

OUTCOMES: Final = ("exported", "dropped", "refused")
"""What becomes of spans."""

MOST: Final = 256
"""So many spans of servers' statements has one statement of a client's; of more it is said how many."""


class Query(NamedTuple):
    """The span of a client's statement. `began` and `ended`: monotonic. `flavour`: of the servers. `text`: no
    literals are in it. `outcome`: "ok", "error" (a server's, which has `code`) or the proxy's own error's
    name. `rows`: given, if `gives_rows`, or else changed. `shards`: how many; `queued`: seconds that it has
    waited for connections.
    """

    trace: Trace
    began: float
    ended: float
    flavour: str
    namespace: str
    text: str
    kind: str
    outcome: str
    code: int
    rows: int
    gives_rows: bool
    queued: float
    user: str
    client: str
    session: int


class Call(NamedTuple):
    """The span of a statement on a server. `code`: of the error that it ended with, 0 for none, -1 when the
    server never answered.
    """

    trace: Trace
    id: str
    verb: str
    began: float
    ended: float
    host: str
    flavour: str
    loads: Sequence[Load]
    code: int
    rows: int
    gives_rows: bool


Span = Query | Call


class Trace:
    """A statement of a client's that is traced. `parent`: the span that has caused it, "" where the trace
    begins with it. `at`: where in the statement's query attributes the traceparent stands, counted from their
    beginning, or for an EXECUTE from the packet's end; 0 where it does not.
    """

    __slots__ = (
        "at",
        "begun",
        "flags",
        "hands_on",
        "hosts",
        "id",
        "left_out",
        "number",
        "parent",
        "plan",
        "put",
        "shards",
        "span",
        "state",
    )

    def __init__(
        self, put: Callable[[Span], None], parent: Parent | None, *, hands_on: bool, at: int = 0
    ) -> None:
        """`put`: takes its spans, as they end."""
        self.put = put
        self.hands_on = hands_on
        self.at = at
        self.begun = monotonic()
        if parent is None:
            self.id, self.parent, self.flags, self.state = new_id(128), "", SAMPLED, ""
        else:
            self.id, self.parent, self.flags, self.state = parent
        self.span = new_id(64)
        self.plan: Plan | None = None
        self.number = self.left_out = 0
        self.hosts: dict[str, None] = {}  # in order
        self.shards: set[int] = set()  # by what they have had to do

    def new(self) -> str:
        """The ID of one more statement on a server; "" when there are too many."""
        if self.number >= MOST:
            self.left_out += 1
            return ""
        self.number += 1
        return new_id(64)

    def comment(self, id: str) -> bytes:
        """What hands the context on to a server."""
        return comment(self.id, id, self.flags, self.state)

    def called(self, call: Call) -> None:
        """A server has answered, or never will."""
        self.hosts[call.host] = None
        self.shards.update(map(id, call.loads))
        if call.id:
            self.put(call)


def new_id(bits: int) -> str:
    """A random ID, never 0."""
    return f"{getrandbits(bits) or 1:0{bits // 4}x}"
