"""What a SET has made of system variables: asked of the server that ran it."""

from __future__ import annotations

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.errors import ProxyError
from proxy.session.state import Session
from proxy.session.tracking import tracked
from proxy.session.values import quote
from proxy.wire.resultset import NUMERIC, decode_column


async def shown_by(conn: BackendConnection, session: Session, names: list[str]) -> dict[str, str]:
    """What was set as session tracking shows it, of those variables that it shall show."""
    wanted = tracked(session)
    asked = [name.removeprefix("@@session.") for name in names]
    asked = [name for name in asked if wanted is None or name in wanted]
    if not asked:
        return {}
    quoted = b", ".join(quote(name, no_backslash_escapes=True) for name in asked)
    sql = b"SHOW SESSION VARIABLES WHERE Variable_name IN (" + quoted + b")"
    reply = await Collector.after_statement(conn, sql)
    if reply.err is not None:
        return {}
    rows = [[(value or b"").decode("utf-8", "replace") for value in row] for row in reply.values()]
    return {name.lower(): value for name, value in rows}


async def read_back(conn: BackendConnection, names: list[str]) -> dict[str, bytes]:
    """The variables' values as SQL literals, whatever character set results have: texts are asked for as
    bytes of utf8mb4, which no server converts.
    """
    if not names:
        return {}
    reply = await Collector.after_statement(conn, query_of(names))
    if reply.err is not None:
        conn.close()
        raise ProxyError("internal", reason=f"cannot read {', '.join(names)} back: {reply.err.text()}")
    return values_in(reply, names)


def query_of(names: list[str]) -> bytes:
    """The SELECT that asks for the variables, for `values_in`."""
    asked = ", ".join(f"{name}, CAST(CONVERT({name} USING utf8mb4) AS BINARY)" for name in names)
    sql = f"SELECT {asked} LIMIT 1"  # whatever the session's sql_select_limit is
    return sql.encode("utf-8", "surrogateescape")


def values_in(reply: Collector, names: list[str]) -> dict[str, bytes]:
    """The variables' values as SQL literals, from the reply to `query_of`."""
    row = reply.values()[0]
    types = [decode_column(payload).type for payload in reply.columns[::2]]
    return {
        name: literal(row[2 * index + (type not in NUMERIC)], type)
        for index, (name, type) in enumerate(zip(names, types, strict=True))
    }


def literal(value: bytes | None, type: int) -> bytes:
    """A variable's value, in utf8mb4, as SQL that gives the same value again, whatever the session sets
    meanwhile.
    """
    if value is None:
        return b"NULL"
    if type in NUMERIC:
        return value
    if b"\\" in value or b"\0" in value or not value.isascii():
        return b"CONVERT(x'%s' USING utf8mb4)" % value.hex().encode()
    return quote(value)
