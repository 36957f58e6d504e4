"""Changes of a session that code has made on a server: a procedure, a prepared text, a trigger. The server's
session tracking tells them, and they become the session's own: its current database and system variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.backends.settings import TRACK, TRACKING
from proxy.engine.read_back import read_back
from proxy.errors import ProxyError
from proxy.session.reading import READING, charset_of, connection_of, sql_modes
from proxy.wire.states import UNCHANGED, Changes
from rewriter.route.scope import INFORMATION_SCHEMA

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.state import Session

#: Servers keep what they have not told until the next OK packet of a statement that changes something: this
#: one's. And whatever code has done, `sql_auto_is_null` is never on.
TELL: Final = b"SET sql_auto_is_null=0"
_TOLD: Final = "sql_auto_is_null"
#: Variables of one statement or of the connection, and those that nobody can set.
_NOT_KEPT: Final = TRACKING | {
    *(_TOLD, "last_insert_id", "identity", "insert_id", "rand_seed1", "rand_seed2", "pseudo_thread_id"),
    *("statement_id", "last_gtid", "in_transaction", "error_count", "warning_count", "external_user"),
    "proxy_user",
}
_CHARACTER_SETS: Final = (
    *("character_set_client", "character_set_results", "character_set_connection", "collation_connection"),
)


async def follow(client: Exchange, conn: BackendConnection) -> Changes:
    """Make the session's what `conn` tells that code has changed since the last time. Returns the changes."""
    session = client.session
    await Collector(own=False).query(conn, TELL)
    changes, conn.changes = conn.changes, UNCHANGED
    if changes.moved and changes.database is not None:
        _follow_database(session, changes.database, changes.left)
    names = changes.variables.keys() - _NOT_KEPT
    untold = _TOLD not in changes.variables
    if untold or not TRACKING.isdisjoint(changes.variables):
        await Collector().query(conn, TRACK)
    if untold:  # the code has switched session tracking off: each statement's own is said anew
        conn.database = None
        conn.settings = conn.settings.unsure_of(READING)
    if names:
        await _follow_variables(session, conn, names)
    return changes


def _follow_database(session: Session, database: str, left: str | None) -> None:
    """USE within code, or DROP DATABASE of the current one, `left`."""
    if database.lower() == INFORMATION_SCHEMA:
        session.database = INFORMATION_SCHEMA
    elif database:
        session.database = database if session.user.may_use(database) else None
    elif session.database == left:
        session.database = None
    session.refresh_env()


async def _follow_variables(session: Session, conn: BackendConnection, names: set[str]) -> None:
    """Take over system variables. The session keeps the values by which it cannot read statements."""
    if not names.isdisjoint(_CHARACTER_SETS):
        names = names.union(_CHARACTER_SETS)
    found = await read_back(conn, [f"@@session.{name}" for name in sorted(names)])
    values = {name.removeprefix("@@session."): value for name, value in found.items()}
    changed = {
        name: value.strip(b"'") if name in _CHARACTER_SETS and value != b"NULL" else value
        for name, value in values.items()
        if (session.settings.get(name) or b"").strip(b"'") != value.strip(b"'")
    }
    refused = [name for name, value in changed.items() if not _readable(name, value)]
    for name in refused:
        del changed[name]
    session.settings = session.settings.with_values(changed)
    conn.has(session.settings.base.unsure_of(refused) if refused else session.settings.base)
    session.refresh_env()


def _readable(name: str, value: bytes) -> bool:
    try:
        if name == "sql_mode":
            sql_modes(value)
        elif name == "character_set_client":
            charset_of(value)
        elif name == "character_set_connection":
            connection_of(value)
    except ProxyError:
        return False
    return True
