"""A text of several statements (MULTI_STATEMENTS): one after another, each by the ordinary way.

The text is cut as the server would cut it, one statement at a time, since each is read with the settings that
the one before it left. To the client the replies are one: sequence numbers run on, and MORE_RESULTS_EXISTS
stands in every reply but the last. The first error ends it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from proxy.engine.outside_transaction import run_probe
from proxy.engine.planning import first_statement, masked
from proxy.engine.sinks import Numbered
from proxy.engine.task import TaskWork
from proxy.errors import ProxyError
from proxy.wire.constants import Status
from proxy.wire.packets import frame
from rewriter.text.masks import can_mask, unmask
from rewriter.text.split import NEAR, Piece, cut_near, trim

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_MORE = int(Status.MORE_RESULTS_EXISTS)
#: Bytes in which the end of a long statement is looked for first.
_FAR = 1 << 18
_SYNTAX = 1064
_SYNTAX_ERROR = b"\xff" + _SYNTAX.to_bytes(2, "little")
#: Nothing but blanks and comments.
_COMMENTS = re.compile(
    rb"(?:\s++|/\*(?!M?!)(?:[^*]++|\*(?!/))*\*/|--(?=[\x00-\x20])[^\n]*+|#[^\n]*+)*", re.DOTALL
)


def _only_comments(text: bytes, piece: Piece) -> bool:
    found = _COMMENTS.match(text, piece.start, piece.end)
    return found is not None and found.end() == piece.end


class Statements(Numbered):
    """The text at work. It stands on the client's transport until the last statement is answered."""

    __slots__ = ("at", "behind", "charset", "statement", "text")

    def __init__(self, client: Exchange, text: bytes) -> None:
        super().__init__(client)
        self.text = text
        self.charset = ""  # the text is masked, of this character set
        self.at: int | None = 0  # where the next statement begins; None behind the last
        self.statement = b""  # the one at work
        self.behind = len(text)  # where the rest of the text begins

    def begin(self) -> None:
        """Run the first statement."""
        self._run(self.client.seq)

    def _run(self, seq: int) -> None:
        """Run the next one. `seq` is the number of the last packet before its reply."""
        assert self.at is not None
        client = self.client
        if client.session.unsafe_charset or self.charset:
            self._mask()
        piece = cut_near(self.text, self.at, client.session.env)
        client.seq = seq
        if piece is None:
            self.numbers.start(seq + 1)
            TaskWork(client).start(self._run_far(seq, self.at))
        else:
            client.query(self._take(seq, piece))

    async def _run_far(self, seq: int, at: int) -> None:
        """Run the next one, which is long: the loop does not look for its end."""
        client, size = self.client, _FAR
        while True:
            text = self.text[at : at + size]
            session = client.session
            found = await client.services.planners.cut(
                session.user.name, text, session.env, client.snapshot.rewriter
            )
            if at + size >= len(self.text) or found.end < size - NEAR:
                break
            size *= 8
        piece = Piece(at, at + found.end, None if found.following is None else at + found.following)
        client.query(self._take(seq, piece))

    def _take(self, seq: int, piece: Piece) -> bytes:
        if piece.following is not None and _only_comments(self.text, piece):
            # nothing before the `;`: a syntax error, to be told by a server
            piece = piece._replace(start=piece.end, end=len(self.text), following=None)
        self.at = piece.following
        self.statement, self.behind = self.text[piece.start : piece.end], piece.end
        self.numbers.start(seq + 1, 0 if piece.following is None else _MORE)
        return unmask(self.statement) if self.charset else self.statement

    def _mask(self) -> None:
        """What is left is in a character set that cannot be read byte by byte, or the set has changed."""
        charset = self.client.session.env.charset
        if charset != self.charset:
            rest = self.text[self.at :]
            rest = unmask(rest) if self.charset else rest
            self.charset = charset if can_mask(charset) else ""
            self.text, self.at = (
                masked(rest, self.client.session.env) if self.charset else rest,
                0,
            )

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.behind < len(self.text) and data[4:7] == _SYNTAX_ERROR:
            data = frame(bytes(data[4:13]) + self._told(bytes(data[13:])), data[3])
        super().write(data)

    def _told(self, message: bytes) -> bytes:
        """A syntax error as a server tells it that has seen the whole text: it shows 80 bytes of what it
        could not read.
        """
        before, begin, rest = message.partition(b" near '")
        near, end, line = rest.rpartition(b"' at line ")
        if not begin or not end or not self.statement.endswith(near):
            return message
        rest = self.text[self.behind : self.behind + 80]
        return before + begin + (near + rest)[: max(80, len(near))] + end + line

    def answered(self, outcome: str) -> bool:
        session = self.client.session
        if outcome != "ok" and self.behind < len(self.text):
            session.diagnostics[:] = [
                replace(one, message=self._told(one.message.encode()).decode("utf-8", "replace"))
                if one.code == _SYNTAX
                else one
                for one in session.diagnostics
            ]
        if outcome != "ok" or self.at is None:
            return super().answered(outcome)
        seq = self.numbers.last
        self.client.go_on_by(lambda: self._run(seq))
        return False


def run_multi_statement(client: Exchange, sql: bytes, comments: bool) -> None:
    """Run the statements of `sql`, of which there are several; `comments`: behind the first there are only
    comments. Without MULTI_STATEMENTS, or when the first is empty, a server says what is wrong.
    """
    text = trim(sql)
    if client.session.multi_statements and not text.startswith(b";"):
        Statements(client, text).begin()
        return
    if comments and not text.startswith(b";"):
        client.query(first_statement(text, client.session.env))
        return
    error = ProxyError("syntax_error", reason="You have an error in your SQL syntax: several statements")
    host = next(iter(client.session.transaction.held), None) or client.snapshot.topology.hosts[0]
    TaskWork(client).start(run_probe(client, host, text, error))
