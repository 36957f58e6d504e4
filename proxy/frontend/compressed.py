"""A client's connection with compression, between its transport (or TLS) and everything else.

    transport ─▶ Inflating ─▶ ClientConnection ─▶ … ─▶ Deflating ─▶ transport

`Deflating` is the sink at the bottom of the client's pile, and stays. It numbers its packets from that of the
command's last one on; commands that came while another was at work get their numbers when it is answered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import structlog

from proxy.engine.sinks import CommandSink
from proxy.errors import ProxyError
from proxy.wire.compression import Algorithm, Compressor, Decompressor
from proxy.wire.packets import ProtocolError

if TYPE_CHECKING:
    from .connection import ClientConnection

log = structlog.get_logger("session")

#: So many bytes are expanded, and so many packets, in one turn of the loop. The rest waits for the next.
_AT_ONCE = 1 << 16
_PACKETS = 64


def compress(client: ClientConnection, algorithm: Algorithm, level: int) -> None:
    """From now on, in both directions. What has come already and was not read is compressed."""
    sink = Deflating(client, Compressor(algorithm, level))
    sink.agreed = algorithm, level
    client.whole = True
    client.ahead = 0  # nothing is expanded that waits for a command's end
    incoming = Inflating(client, sink, Decompressor(algorithm))
    sink.incoming = incoming
    sink.set_protocol(incoming)
    early = client.rest()
    if early:
        asyncio.get_running_loop().call_soon(incoming.data_received, early)  # the log-in is not quite over


class Deflating(CommandSink):
    """Compresses what is written."""

    __slots__ = ("agreed", "compressor", "incoming", "later", "seq")

    def __init__(self, client: ClientConnection, compressor: Compressor) -> None:
        super().__init__(client)
        self.compressor = compressor
        self.agreed: tuple[Algorithm, int] | None = None
        self.incoming: Inflating | None = None
        self.seq = 0  # number of the next packet to write
        self.later: deque[int] = deque()  # the same for the commands that wait

    def write(self, data: bytes | bytearray | memoryview) -> None:
        out, self.seq = self.compressor.pack(data, self.seq)
        self.below.write(out)

    def heard(self, seq: int) -> None:
        """A compressed packet of the client's has come; number 0 begins a command."""
        if seq == 0 and not self.client.ready and self.client.phase is None:
            self.later.append(1)
        elif self.later:
            self.later[-1] = (seq + 1) & 0xFF
        else:
            self.seq = (seq + 1) & 0xFF

    def answered(self, outcome: str) -> bool:
        if self.later:
            self.seq = self.later.popleft()
        return False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Also `compression`: the algorithm, and zstd's level."""
        return self.agreed if name == "compression" else super().get_extra_info(name, default)

    def pause_reading(self) -> None:
        if self.incoming is not None:
            self.incoming.pause()
        self.below.pause_reading()

    def resume_reading(self) -> None:
        if self.incoming is not None:
            self.incoming.resume()


class Inflating(asyncio.Protocol):
    """The transport's protocol: expands what comes for the client, piece by piece while it listens."""

    def __init__(self, client: ClientConnection, sink: Deflating, decompressor: Decompressor) -> None:
        self._client = client
        self._sink = sink
        self._decompressor = decompressor
        self._paused = False  # the client does not listen
        self._held = False  # the socket is not read from
        self._later = False  # the next turn goes on by itself
        self._busy = False

    def data_received(self, data: bytes) -> None:
        self._decompressor.feed(data)
        if not self._later:
            self._give()
        if self._decompressor.held > _AT_ONCE and not self._client.closed:
            self._client.account(self._decompressor.held)

    def _give(self) -> None:
        """A bounded share of what is there, and the rest in the next turns."""
        if self._busy:
            return
        client, given = self._client, 0
        self._busy = True
        try:
            for _ in range(_PACKETS):
                if self._paused or client.closed or given >= _AT_ONCE:
                    break
                found = self._decompressor.take(_AT_ONCE - given)
                if found is None:
                    self._hold(False)
                    return
                seq, payload = found
                given += len(payload)
                if seq is not None:
                    self._sink.heard(seq)
                begun = client.begun
                client.data_received(payload)
                if client.begun != begun:
                    break  # a command: the others' turn
        except ProtocolError as problem:
            log.warning("damaged compression", client=client.session.id, reason=str(problem))
            client.write_error(ProxyError("uncompress_error", reason=str(problem)))
            client.close()
            return
        finally:
            self._busy = False
        self._hold(True)
        self._soon()

    def _hold(self, hold: bool) -> None:
        """Whether to read no more from the socket until what is there is expanded."""
        if hold is not self._held:
            self._held = hold
            if hold:
                self._sink.below.pause_reading()
            elif not self._paused:
                self._sink.below.resume_reading()

    def _soon(self) -> None:
        if not (self._paused or self._later or self._client.closed):
            self._later = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def pause(self) -> None:
        """Nothing more of what has come already, either."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        if not self._held:
            self._sink.below.resume_reading()
        self._soon()

    def _go_on(self) -> None:
        self._later = False
        if not self._paused and not self._client.closed:
            self._give()

    def pause_writing(self) -> None:
        self._client.pause_writing()

    def resume_writing(self) -> None:
        self._client.resume_writing()

    def eof_received(self) -> bool:
        return self._client.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._decompressor.drop()
        self._client.connection_lost(exc)


class BeginCompression(CommandSink):
    """Lets the OK of the log-in out as it is, and compresses what follows."""

    __slots__ = ("algorithm", "connection", "level")

    def __init__(self, client: ClientConnection, algorithm: Algorithm, level: int) -> None:
        super().__init__(client)
        self.connection = client
        self.algorithm = algorithm
        self.level = level

    def answered(self, outcome: str) -> bool:
        goes_on = super().answered(outcome)
        if outcome == "ok":
            compress(self.connection, self.algorithm, self.level)
        return goes_on
