"""Sinks: what stands in place of a client's transport and changes the bytes of replies on their way out.

Whoever answers a client calls `client.transport.write(data)`: mostly whole packets, several in one write;
only a row of over 1 MB may come in pieces. A feature that must change these bytes puts a sink in place of
`client.transport`. It has the interface of a transport, and gives on to the one below whatever it does not
change. There are two kinds:

- A `Sink` for the connection's life (compression) is at the bottom, on the real transport.
- A `CommandSink` stands for one command, on top of whatever is there: making one puts it in place, and when
  the command is answered (`Exchange.finish`) it goes by itself. They are a pile: the last put in
  place is written to first, and goes first. Those that read what is written are `ResultSink`s (`result`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from proxy.wire.renumber import Renumber

if TYPE_CHECKING:
    from .exchange import Exchange


class Sink(asyncio.Transport):
    """Gives everything on to `below`. Subclasses change what is written."""

    __slots__ = ("below",)

    def __init__(self, below: asyncio.Transport) -> None:
        super().__init__()
        self.below = below

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.below.write(data)

    def pause_reading(self) -> None:
        self.below.pause_reading()

    def resume_reading(self) -> None:
        self.below.resume_reading()

    def close(self) -> None:
        self.below.close()

    def abort(self) -> None:
        self.below.abort()

    def is_closing(self) -> bool:
        return self.below.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.below.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return self.below.get_write_buffer_size()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.below.set_protocol(protocol)


class CommandSink(Sink):
    """A sink for the command at work. Making one puts it in place."""

    __slots__ = ("client", "under")

    def __init__(self, client: Exchange) -> None:
        super().__init__(client.transport)
        self.client = client
        self.under = client.sink  # the command sink that was in place before
        client.transport = self
        client.sink = self

    def answered(self, outcome: str) -> bool:
        """A statement is answered: `outcome` is what `Exchange.finish` was told ("ok", "error", or
        the name of an error of the proxy). Subclasses write what they still hold, then call this, which takes
        the sink away; one that stays, because the command has more statements, does not. True: the statement
        was run by the command at work, which goes on.
        """
        self.remove()
        return self.under is not None and self.under.answered(outcome)

    def abandon(self) -> None:
        """The client is gone, and the command at work with it."""

    def remove(self) -> None:
        """Take the sink out of its place. The one on top goes first."""
        client = self.client
        if client.sink is not self:
            raise RuntimeError("the sink is not the one on top")
        client.transport = self.below
        client.sink = self.under


class Numbered(CommandSink):
    """Numbers the reply's packets from `client.seq` + 1 on, whatever numbers they come with: a statement that
    was rewritten may have been sent in more packets, or fewer, than the client sent.
    """

    __slots__ = ("numbers",)

    def __init__(self, client: Exchange) -> None:
        super().__init__(client)
        self.numbers = Renumber()
        self.numbers.start(client.seq + 1)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        out = self.numbers.feed(data)
        if out:
            self.below.write(out)
