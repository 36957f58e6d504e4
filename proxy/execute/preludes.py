"""What a connection is told before a session's statement, in the statement's own write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from proxy.backends.connection import BackendConnection
from proxy.wire.packets import query_packet

if TYPE_CHECKING:
    from proxy.session.settings import Settings
    from proxy.session.state import Session

#: Statements that touch no table, and so open no transaction.
_TABLELESS = re.compile(
    rb"\s*(?:SELECT|DO|VALUES|COMMIT|ROLLBACK)\b(?!.*\b(?:FROM|INTO|TABLE)\b)", re.IGNORECASE | re.DOTALL
)


def tableless(sql: bytes) -> bool:
    """Whether a statement surely touches no table. (It may say so of fewer than there are.)"""
    return _TABLELESS.match(sql) is not None


#: Nor do these.
_NO_ROWS = re.compile(
    rb"\s*(?:DEALLOCATE|DROP\s+PREPARE|UNLOCK"
    rb"|PREPARE(?!.*\b(?:INSERT|UPDATE|DELETE|REPLACE|CALL)\b)(?!.*\bFROM\b.*\bFROM\b))\b",
    re.IGNORECASE | re.DOTALL,
)


#: These look at tables, and open no transaction for it. MySQL's most do: they read its dictionary.
_LOOKS = re.compile(rb"\s*(?:SHOW|DESC(?:RIBE)?\s(?!\s*(?:SELECT|WITH|FORMAT)\b)|HELP)\b", re.IGNORECASE)
_LOOKS_ON_MYSQL = re.compile(
    rb"\s*(?:SHOW\s+(?:(?:GLOBAL|SESSION|LOCAL)\s+)?(?:CREATE|VARIABLES|STATUS)|HELP)\b", re.IGNORECASE
)


def opens_none(sql: bytes, *, mariadb: bool) -> bool:
    """Whether what SET TRANSACTION has set is not for this statement, since it opens no transaction."""
    looks = _LOOKS if mariadb else _LOOKS_ON_MYSQL
    return keeps_warnings(sql) or looks.match(sql) is not None


def keeps_warnings(sql: bytes) -> bool:
    """Whether MariaDB still shows what there was before, after this."""
    return tableless(sql) or _NO_ROWS.match(sql) is not None


def preludes(
    session: Session, conn: BackendConnection, settings: Settings | None = None, *, opens: bool = True
) -> tuple[bytes, int]:
    """The packets that bring `conn` into the session's state before its next statement, and how many they
    are. `settings`: others than the session's, for one statement. `opens`: the statement opens a transaction,
    of its own at least, as any that touches a table.

    From here on the connection is taken to be in that state: a prelude that fails closes it.
    """
    packets, count = b"", 0
    settings = (settings or session.settings).base
    if conn.settings is not settings:
        packets = query_packet(settings.statement_from(conn.settings))
        conn.settings = settings
        count = 1
    transaction = session.transaction
    if transaction.explicit:
        opens = conn.host not in transaction.opened
    elif session.autocommit:
        opens = opens and session.settings is not settings
    else:
        opens = opens and not conn.in_transaction
    if opens:
        opening, more = transaction.opening(settings)
        packets += opening
        count += more
        if transaction.next_isolation and not transaction.explicit:
            conn.tied = True  # should the statement not use it up, nobody else may
    if transaction.explicit:
        transaction.opened.add(conn.host)
        transaction.held[conn.host] = conn
    return packets, count
