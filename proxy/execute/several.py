"""A text of several statements (MULTI_STATEMENTS): one after another, each by the ordinary way.

The text is cut as the server would cut it, one statement at a time, since each is read with the settings that
the one before it left. To the client the replies are one: sequence numbers run on, and MORE_RESULTS_EXISTS
stands in every reply but the last. The first error ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.errors import ProxyError
from proxy.session.sinks import Numbered
from proxy.wire.constants import Status
from proxy.wire.multibyte import can_mask, mask, unmask
from rewriter.env import Env
from rewriter.split import cut, first_of, trim

from .aside import run_probe
from .task import TaskWork

if TYPE_CHECKING:
    from proxy.session.client import ClientConnection

_MORE = int(Status.MORE_RESULTS_EXISTS)


class Statements(Numbered):
    """The text at work. It stands on the client's transport until the last statement is answered."""

    __slots__ = ("at", "charset", "text")

    def __init__(self, client: ClientConnection, text: bytes) -> None:
        super().__init__(client)
        self.text = text
        self.charset = ""  # the text is masked, of this character set
        self.at: int | None = 0  # where the next statement begins; None behind the last

    def take(self, seq: int) -> bytes:
        """The next statement. `seq` is the number of the last packet before its reply."""
        assert self.at is not None
        if self.client.session.unsafe_charset or self.charset:
            self._mask()
        piece = cut(self.text, self.at, self.client.session.env)
        if piece.end == piece.start:  # nothing before the `;`: a syntax error, to be told by a server
            piece = piece._replace(end=len(self.text), following=None)
        self.at = piece.following
        self.numbers.start(seq + 1, 0 if piece.following is None else _MORE)
        statement = self.text[piece.start : piece.end]
        return unmask(statement) if self.charset else statement

    def _mask(self) -> None:
        """What is left is in a character set that cannot be read byte by byte, or the set has changed."""
        charset = self.client.session.env.charset
        if charset != self.charset:
            rest = self.text[self.at :]
            rest = unmask(rest) if self.charset else rest
            self.charset = charset if can_mask(charset) else ""
            self.text, self.at = mask(rest, charset) if self.charset else rest, 0

    def answered(self, outcome: str) -> None:
        if outcome != "ok" or self.at is None:
            super().answered(outcome)
        else:
            seq = self.numbers.last
            self.client.go_on(seq, self.take(seq))


def first_statement(text: bytes, env: Env) -> bytes:
    """The first statement of a text, without what stands behind it."""
    if can_mask(env.charset):
        return unmask(first_of(mask(text, env.charset), env))
    return first_of(text, env)


def run_several(client: ClientConnection, sql: bytes, comments: bool) -> None:
    """Run the statements of `sql`, of which there are several; `comments`: behind the first there are only
    comments. Without MULTI_STATEMENTS, or when the first is empty, a server says what is wrong.
    """
    text = trim(sql)
    if client.session.multi_statements and not text.startswith(b";"):
        client.query(Statements(client, text).take(client.seq))
        return
    if comments and not text.startswith(b";"):
        client.query(first_statement(text, client.session.env))
        return
    error = ProxyError("syntax_error", reason="You have an error in your SQL syntax: several statements")
    host = next(iter(client.session.transaction.held), None) or client.services.topology.hosts[0]
    TaskWork(client).start(run_probe(client, host, text, error))
