"""Who gets the reply to a statement that was sent over a connection to a server. `conn` is that connection, a
`BackendConnection`, whose file needs this one.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from proxy.errors import ProxyError


class Receiver(Protocol):
    """Gets the reply to one statement. Exactly one of `reply_done` and `reply_lost` is called, once."""

    @property
    def whole(self) -> bool:
        """False: a packet of over 1 MB may come in pieces, so that it need not be held."""

    @property
    def own(self) -> bool:
        """The statement is of the proxy's own making, and runs no code of others."""

    def accepts(self, conn: Any, changed: bool) -> bool:
        """Whether a transaction may be open after the reply, as `conn` says that one is. `changed`: the
        statement has changed the server's session, too (`conn.changes`). Asked before the reply's last bytes
        are given.
        """

    def reply_data(self, conn: Any, data: bytes) -> None:
        """Bytes of the reply up to a packet's end, in order."""

    def reply_done(self, conn: Any) -> None:
        """The reply is complete; `conn.scanner` tells what it said. The connection is free for the next
        statement.
        """

    def reply_lost(self, conn: Any, error: ProxyError, clean: bool) -> None:
        """The connection is gone. `clean`: the bytes given so far end at a packet's end."""


class Unheard:
    """The receiver while nobody waits for what is under way: a command answered by OK."""

    whole = True
    own = True

    def accepts(self, conn: Any, changed: bool) -> bool:
        """Never asked: its OK is a sync statement's."""
        return True

    def reply_data(self, conn: Any, data: bytes) -> None:
        """Nothing comes but the OK."""

    def reply_done(self, conn: Any) -> None:
        """Likewise."""

    def reply_lost(self, conn: Any, error: ProxyError, clean: bool) -> None:
        """Who uses the connection next will see that it is closed."""


UNHEARD: Final = Unheard()
"""One for all connections."""
