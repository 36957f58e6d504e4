"""COM_QUERY of a client that agreed on query attributes."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from proxy.backends.pool import ATTRIBUTES
from proxy.errors import ProxyError
from proxy.wire.attributes import NOTHING, text_at
from proxy.wire.packets import ProtocolError

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def query_behind(client: Exchange, packet: bytes, pos: int) -> None:
    """Run the statement behind the attributes at `pos`, which go to a server with it."""
    begin = pos + 2
    if packet[pos:begin] != NOTHING:
        try:
            begin = text_at(packet, pos)
        except ProtocolError as problem:
            client.begun = monotonic()
            client.fail(ProxyError("malformed_packet", reason=str(problem)))
            return
        client.named = packet[pos:begin]
        client.session.variant |= ATTRIBUTES
    elif client.named is not NOTHING:
        client.named = NOTHING
    client.query(packet[begin:])
