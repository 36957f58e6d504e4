"""What takes the result of a statement in the place of the client.

A `ResultSink` stands on the client's transport and reads what is written: columns, rows, and the packet that
ends them. Where it gives them on it is a sink as any other (binary rows of an EXECUTE). A command that runs a
statement for itself waits for one: see `run`.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING

from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic
from proxy.wire.constants import MAX_PAYLOAD
from proxy.wire.packets import ProtocolError, frame, lenenc
from proxy.wire.renumber import Renumber
from proxy.wire.rows import ENDED, ResultReader, split_rows

from .sinks import CommandSink

if TYPE_CHECKING:
    from .exchange import Exchange
    from .work import Work


class Failed(Exception):
    """A statement that a command has run has failed; the session has noted it. `error`: the ERR packet's
    payload. `outcome`: as `Exchange.finish` was told.
    """

    def __init__(self, error: bytes, outcome: str) -> None:
        super().__init__(outcome)
        self.error = error
        self.outcome = outcome

    def tell(self, client: Exchange) -> None:
        """It is the command's own error."""
        client.transport.write(frame(self.error, client.seq + 1))
        client.finish(self.outcome)


class ResultSink(CommandSink):
    """Takes one statement's result; subclasses say what becomes of it. After the end `outcome` is what it was
    said to be.
    """

    __slots__ = ("_begun", "_done", "_reader", "_was_whole", "_work", "diagnostics", "outcome", "refused")

    reads = True
    """Whether it takes the result apart: then packets come whole."""
    tells = False
    """Whether the statement's OK packet is the client's, with what it tells of the session."""

    def __init__(self, client: Exchange) -> None:
        super().__init__(client)
        self.outcome = ""
        self.diagnostics: list[Diagnostic] = []  # the warnings of the statement itself: see `run_by`
        self.refused: ProxyError | None = None  # why no more is taken
        self._reader = ResultReader()
        self._begun = False
        self._was_whole, client.whole = client.whole, client.whole or self.reads
        self._done: asyncio.Future[None] | None = None  # of the coroutine that waits for the end
        self._work: Work | None = None  # that coroutine's

    # -- what becomes of it
    # --------------------------------------------------------------------------------------------

    def columns(self, definitions: list[bytes]) -> None:
        """The columns' definitions, before any rows; not called without a result set."""

    def block(self, block: bytes) -> None:
        """The packets of some rows; `rows` gets them unless a subclass has something better."""
        self.rows(split_rows(block))

    def rows(self, rows: list[bytes]) -> None:
        """The payloads of some rows. ProxyError or ProtocolError: no more of them."""

    def end(self, payload: bytes) -> None:
        """The OK, EOF or ERR packet that ends it."""

    # -- who gives it
    # ---------------------------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        reader = self._reader
        if self.refused is not None or reader.state == ENDED:
            return
        block = reader.feed(bytes(data))
        try:
            if not self._begun and reader.rows_begun:
                self._begun = True
                self.columns(reader.columns)
            if block:
                self.block(block)
        except ProtocolError:
            if self._done is None:
                raise
            self._refuse(ProxyError("merge_failed", reason="a row that cannot be read"))
            return
        except ProxyError as error:
            if self._done is None:
                raise
            self._refuse(error)
            return
        if reader.ended:
            self.end(reader.last)

    def _refuse(self, error: ProxyError) -> None:
        """What still runs is ended, but not from within what writes."""
        self.refused = error
        asyncio.get_running_loop().call_soon(self._stop)

    def _stop(self) -> None:
        work = self.client.work
        if self._done is not None and not self._done.done() and work is not None:
            work.kill_query()

    # -- who waits for it
    # ----------------------------------------------------------------------------------------------

    def awaited(self, work: Work) -> asyncio.Future[None]:
        """Done at the statement's end; then `work`, the one at work now, goes on."""
        self._work = work
        self._done = asyncio.get_running_loop().create_future()
        return self._done

    def answered(self, outcome: str) -> bool:
        self.outcome = outcome
        if self._done is None:
            return super().answered(outcome)
        self.remove()
        self.client.work = self._work
        if not self._done.done():
            self._done.set_result(None)
        return True

    def check(self) -> None:
        """Raise what has gone wrong: Failed, or the error of who took the result."""
        if self.refused is not None:
            raise self.refused
        if self._reader.last[:1] == b"\xff":
            raise Failed(self._reader.last, self.outcome)

    def abandon(self) -> None:
        if self._work is not None:
            self._work.cancel()

    def remove(self) -> None:
        super().remove()
        self.client.whole = self._was_whole

    def take_down(self) -> None:
        """Take it out of its place, with all that stands on it."""
        client = self.client
        sink = client.sink
        while sink is not None and sink is not self:
            sink = sink.under
        if sink is self:
            client.transport, client.sink, client.whole = self.below, self.under, self._was_whole


class Rewritten(ResultSink):
    """Gives a result on to the client, its rows as `row` makes them; what came in one write goes in one."""

    __slots__ = ("_pieces", "_seq")

    def __init__(self, client: Exchange) -> None:
        super().__init__(client)
        self._pieces: list[bytes] = []
        self._seq = client.seq + 1  # the client's: what it has sent may have been rewritten to more packets

    @abstractmethod
    def row(self, payload: bytes) -> bytes:
        """A row's payload for the client."""

    def columns(self, definitions: list[bytes]) -> None:
        self._give(lenenc(len(definitions)))
        for payload in definitions:
            self._give(payload)
        self._give(self._reader.opening)

    def rows(self, rows: list[bytes]) -> None:
        for payload in rows:
            self._give(self.row(payload))

    def end(self, payload: bytes) -> None:
        self._give(payload)

    def _give(self, payload: bytes) -> None:
        self._pieces.append(frame(payload, self._seq))
        self._seq += 1 + len(payload) // MAX_PAYLOAD

    def write(self, data: bytes | bytearray | memoryview) -> None:
        super().write(data)
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            self.below.write(b"".join(pieces))


class ToClient(ResultSink):
    """Gives a result on to the client, with the numbers that follow the command's."""

    __slots__ = ("_numbers",)

    reads = False
    tells = True

    def __init__(self, client: Exchange) -> None:
        super().__init__(client)
        self._numbers = Renumber()
        self._numbers.start(client.seq + 1)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        out = self._numbers.feed(data)
        if out:
            self.below.write(out)
