"""Connections for `backends.comment`: in front of a client's statements stands whose they are."""

from __future__ import annotations

from proxy.wire.comments import comment_of, commented
from proxy.wire.replies import FIRST

from .attributed import AttributedConnection
from .connection import BackendConnection, Receiver


class CommentedConnection(BackendConnection):
    """What asks need not know of it. Of a receiver that has a `client` it is that client's session; what is
    prepared is shared between sessions, and has no comment.
    """

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
        client = None if receiver.own else getattr(receiver, "client", None)
        if client is not None and client.session is not None:
            session = client.session
            comment = comment_of(session.user.name, session.address, session.id)
            packets = commented(packets, comment, sync_packets)
        super().send(packets, receiver, sync_packets, replies=replies, state=state)

    def ask(self, packet: bytes, receiver: Receiver) -> None:
        self.send(packet, receiver)


class CommentedAttributedConnection(CommentedConnection, AttributedConnection):
    """With query attributes, too."""

    __slots__ = ()
