"""What a connection is told before a session's statement, in the statement's own write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from proxy.backends.connection import BackendConnection
from proxy.session.transaction import XA
from proxy.wire.packets import query_packet
from rewriter.text.effects import Effects
from rewriter.text.found_rows import PRIMED

if TYPE_CHECKING:
    from proxy.backends.settings import Settings
    from proxy.session.state import Session

#: Statements that touch no table, and so open no transaction.
_TABLELESS = re.compile(
    rb"\s*(?:SELECT|DO|VALUES|COMMIT|ROLLBACK)\b(?!.*\b(?:FROM|INTO|TABLE)\b)", re.IGNORECASE | re.DOTALL
)


_INTO_VARIABLES = re.compile(
    rb"\s*SELECT\b(?!.*\b(?:FROM|TABLE|OUTFILE|DUMPFILE)\b)", re.IGNORECASE | re.DOTALL
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
    return tableless(sql) or _NO_ROWS.match(sql) is not None or looks.match(sql) is not None


#: Statements without tables in MariaDB's sense.
_KEEPS = re.compile(
    rb"\s*(?:DEALLOCATE|UNLOCK|HELP|XA|GET|RESET|FLUSH\s+(?!TABLES?\s+\S)"
    rb"|PREPARE(?!.*\b(?:INSERT|UPDATE|DELETE|REPLACE|SHOW)\b)(?!.*\bFROM\b.*\bFROM\b)"
    rb"|(?:CREATE|ALTER|DROP)\s+(?:(?:OR\s+REPLACE|DEFINER\s*=\s*\S+)\s+)*"
    rb"(?:PROCEDURE|FUNCTION|DATABASE|SCHEMA|PREPARE)"
    rb"|SHOW\s+(?:CREATE\s+(?:PROCEDURE|FUNCTION|DATABASE|SCHEMA|USER|EVENT)|PRIVILEGES|ENGINE|PROFILES|BINLOG"
    rb"|RELAYLOG|REPLICAS?|SLAVE|MASTER|PROCESSLIST|GRANTS)"
    rb"|EXPLAIN\s+SELECT\b(?!.*\bFROM\b))\b",
    re.IGNORECASE | re.DOTALL,
)


def keeps_warnings(sql: bytes) -> bool:
    """Whether MariaDB still shows what there was before, after this."""
    return tableless(sql) or _INTO_VARIABLES.match(sql) is not None or _KEEPS.match(sql) is not None


#: So many rows FOUND_ROWS() tells of after `_PRIME`: most likely no statement finds just these.
NEVER_FOUND = 729
PRIMING_VARIABLE = "shardgate_primed"
_NINE = b"(SELECT 1" + b" UNION ALL SELECT 1" * 8 + b")"
_COUNTED = b"SQL_CALC_FOUND_ROWS NULL INTO @%s FROM %s AS a, %s AS b, %s AS c LIMIT 1" % (
    PRIMING_VARIABLE.encode(), _NINE, _NINE, _NINE,
)  # fmt: skip
#: Whatever the session's `max_join_size` is.
_PRIME_MARIADB = b"SET STATEMENT sql_big_selects=1 FOR SELECT " + _COUNTED
_PRIME = b"SELECT /*+ SET_VAR(sql_big_selects=1) */ " + _COUNTED


def effects_preludes(session: Session, conn: BackendConnection, effects: Effects) -> tuple[bytes, int]:
    """The packets that make the connection's LAST_INSERT_ID(), FOUND_ROWS() and ROW_COUNT() such that what
    the server is asked for afterwards is known to be the statement's own, or this session's.
    """
    packets = []
    if effects.found_rows == PRIMED and XA not in session.transaction.ties.get(conn.host, ()):
        packets.append(_PRIME_MARIADB if session.env.mariadb else _PRIME)
    if effects.insert_id == "ask":
        packets.append(b"SET last_insert_id=%d" % session.last_insert_id)
    if len(packets) == 2 and session.row_count == 1:
        packets.reverse()  # what changes no rows leaves ROW_COUNT() as it was: SELECT INTO makes it 1, SET 0
    return b"".join(map(query_packet, packets)), len(packets)


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
        packets, count = settings.packets_from(conn.settings)
        conn.settings = settings
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
