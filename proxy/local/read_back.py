"""What a SET has made of system variables: asked of the server that ran it."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.errors import ProxyError
from proxy.session.state import Session
from proxy.session.tracking import tracked
from proxy.session.values import quote
from proxy.wire.constants import BINARY_COLLATION, ColumnType
from proxy.wire.resultset import NUMERIC, decode_column

_NO_LITERALS = frozenset({ColumnType.BIT, ColumnType.GEOMETRY})


async def shown_by(conn: BackendConnection, session: Session, names: list[str]) -> dict[str, str]:
    """What was set as session tracking shows it, of those variables that it shall show."""
    wanted = tracked(session)
    asked = [name.removeprefix("@@session.") for name in names]
    asked = [name for name in asked if wanted is None or name in wanted]
    if not asked:
        return {}
    quoted = b", ".join(quote(name, no_backslash_escapes=True) for name in asked)
    reply = await Collector().query(conn, b"SHOW SESSION VARIABLES WHERE Variable_name IN (" + quoted + b")")
    if reply.err is not None:
        return {}
    rows = [[(value or b"").decode("utf-8", "replace") for value in row] for row in reply.values()]
    return {name.lower(): value for name, value in rows}


async def read_back(
    conn: BackendConnection, names: list[str], charsets: Mapping[int, str]
) -> dict[str, bytes]:
    """The variables' values as SQL literals; `charsets` by collation number."""
    if not names:
        return {}
    reply = await Collector().query(conn, b"SELECT " + ", ".join(names).encode("utf-8", "surrogateescape"))
    if reply.err is not None:
        conn.close()
        raise ProxyError("internal", reason=f"cannot read {', '.join(names)} back: {reply.err.text()}")
    row = reply.values()[0]
    columns = [decode_column(payload) for payload in reply.columns]
    return {
        name: literal(value, column.type, column.collation, charsets.get(column.collation, "utf8mb4"))
        for name, value, column in zip(names, row, columns, strict=True)
    }


def literal(value: bytes | None, type: int, collation: int, charset: str) -> bytes:
    """A value of a text row as SQL that gives the same value again, whatever the session sets meanwhile."""
    if value is None:
        return b"NULL"
    if type in NUMERIC:
        return value
    if type in _NO_LITERALS:
        return b"x'" + value.hex().encode() + b"'"
    if collation == BINARY_COLLATION:
        return b"_binary x'" + value.hex().encode() + b"'"  # without _binary MySQL takes it for a number, too
    if b"\\" in value or b"\0" in value or not value.isascii():
        return b"CONVERT(x'%s' USING %s)" % (value.hex().encode(), charset.encode())
    return quote(value)
