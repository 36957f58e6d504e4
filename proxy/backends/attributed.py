"""Connections with CLIENT_QUERY_ATTRIBUTES, for clients that send some: there every COM_QUERY has them."""

from __future__ import annotations

from proxy.wire.attributes import NOTHING, attributed
from proxy.wire.replies import FIRST

from .connection import BackendConnection, Receiver


class AttributedConnection(BackendConnection):
    """What asks need not know of it. A receiver's `attributes`, if it has any, go with its last command."""

    __slots__ = ()

    def send(
        self,
        packets: bytes,
        receiver: Receiver,
        sync_packets: int = 0,
        *,
        replies: int = 1,
        state: int = FIRST,
    ) -> None:
        packets = attributed(packets, getattr(receiver, "attributes", NOTHING))
        super().send(packets, receiver, sync_packets, replies=replies, state=state)

    def ask(self, packet: bytes, receiver: Receiver) -> None:
        self.send(packet, receiver)
