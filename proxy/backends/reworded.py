"""Connections whose commands carry more than the rest of the proxy has written: query attributes, for clients
that send some (there every COM_QUERY has them), and with `backends.comment` a comment in front, which says
whose a statement is.
"""

from __future__ import annotations

from proxy.wire.attributes import NOTHING, attributed
from proxy.wire.comments import comment_of, commented
from proxy.wire.packets import query_packet
from proxy.wire.replies import FIRST

from .connection import BackendConnection
from .receiver import Receiver


class RewordedConnection(BackendConnection):
    """What asks need not know of it."""

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
        packets = self.reworded(packets, receiver, sync_packets)
        super().send(packets, receiver, sync_packets, replies=replies, state=state)

    def ask(self, sql: bytes, receiver: Receiver) -> None:
        self.send(query_packet(sql), receiver)

    def reworded(self, packets: bytes, receiver: Receiver, sync_packets: int) -> bytes:
        """The packets for the server, of what was to be sent. Each kind adds its own, and asks the next."""
        return packets


class AttributedConnection(RewordedConnection):
    """A receiver's `attributes`, if it has any, go with its last command."""

    __slots__ = ()

    def reworded(self, packets: bytes, receiver: Receiver, sync_packets: int) -> bytes:
        packets = attributed(packets, self.attributes_of(receiver))
        return super().reworded(packets, receiver, sync_packets)

    def attributes_of(self, receiver: Receiver) -> bytes:
        """Those of the receiver's statement."""
        found: bytes = getattr(receiver, "attributes", NOTHING)
        return found


class CommentedConnection(RewordedConnection):
    """Of a receiver that has a `client` the comment names that client's session; what is prepared is shared
    between sessions, and has none.
    """

    __slots__ = ()

    def reworded(self, packets: bytes, receiver: Receiver, sync_packets: int) -> bytes:
        client = None if receiver.own else getattr(receiver, "client", None)
        if client is not None and client.session is not None:
            session = client.session
            comment = comment_of(session.user.name, session.address, session.id)
            packets = commented(packets, comment, sync_packets)
        return super().reworded(packets, receiver, sync_packets)


class CommentedAttributedConnection(CommentedConnection, AttributedConnection):
    """With query attributes, too: they go in front of the comment."""

    __slots__ = ()
