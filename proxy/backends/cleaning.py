"""What one session has left on a connection goes before another session gets it."""

from __future__ import annotations

import asyncio
from typing import Final

from config.flavour import flavour_of
from proxy.backends.settings import LOGIN, LOGIN_STATEMENT, UNKNOWN
from proxy.errors import ProxyError
from proxy.wire.packets import frame
from proxy.wire.states import UNCHANGED

from .collect import Collector
from .connection import BackendConnection, Owner

PING: Final = frame(b"\x0e")
#: A reset leaves the server's own character set, not that of the log-in, so it is set again. It also leaves
#: the role that SET ROLE in a routine or a prepared text has set.
_RESET: Final = frame(b"\x1f") + frame(b"\x03" + LOGIN_STATEMENT)
_DEFAULT_ROLE: Final = frame(b"\x03SET ROLE DEFAULT")
_HAS_DEFAULT_ROLE: Final = frame(
    b"\x03SELECT CURRENT_ROLE() <=> "
    b"(SELECT MAX(role_name) FROM information_schema.applicable_roles WHERE is_default = 'YES')"
)
"""For MariaDB, which has no statement for the default role."""


class Look:
    """Receives the answer to a PING behind a result set, on its way to the pool: MySQL tells in OK packets
    only that something of the session was changed, by a function in a view for instance.
    """

    whole = True
    own = False

    def __init__(self, pool: Owner) -> None:
        self._pool = pool

    def accepts(self, conn: BackendConnection, changed: bool) -> bool:
        return False

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        """Nothing but the OK."""

    def reply_done(self, conn: BackendConnection) -> None:
        conn.resetting = False
        self._pool.release(conn)

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        """It is closed."""


async def reset(conn: BackendConnection, seconds: float) -> bool:
    """COM_RESET_CONNECTION, within so many seconds. False: it cannot be reset, and is closed."""
    collector = Collector()
    conn.settings = UNKNOWN
    try:
        async with asyncio.timeout(seconds):
            sets_role = flavour_of(conn.version).sets_default_role
            packets = _RESET + (_DEFAULT_ROLE if sets_role else _HAS_DEFAULT_ROLE)
            await collector.run(conn, packets, sync_packets=2)
    except (ProxyError, TimeoutError):
        conn.close()
        return False
    except Exception:  # a bug must not keep a place in the pool for ever
        conn.close()
        raise
    own_role = (
        collector.ok is not None if sets_role else collector.err is None and collector.values() == [[b"1"]]
    )
    if not own_role or conn.in_transaction:
        conn.close()
        return False
    conn.settings = LOGIN
    conn.pinned = conn.for_cursors = conn.unclean = conn.unread = False
    conn.statements = None
    conn.changes = UNCHANGED
    conn.resetting = False
    conn.database = None  # it has one still, but on MariaDB no more its character set and collation
    return True
