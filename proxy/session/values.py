"""Values that only the session knows, as SQL literals: what a plan's session slots ask for."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from proxy.backends.settings import TRACKING, TYPED_NULL
from proxy.errors import ProxyError
from rewriter.plan import Plan, Values
from rewriter.route.values import CHANGED_ON_SHARDS, LOCK_HOLDERS, NUMBERED, variable_of
from rewriter.text.literals import NotPlain, parameter_integer

from .state import Session

_CRC32: Final = [zlib.crc32(bytes((byte,))) ^ zlib.crc32(b"\0") for byte in range(256)]
"""The table of CRC-32, byte by byte."""


def of_crc32(wanted: int) -> int:
    """The number whose four bytes, the highest first, have the CRC-32 `wanted`. There is one for each."""
    state = wanted ^ 0xFFFFFFFF
    for _ in range(4):
        at = next(at for at, entry in enumerate(_CRC32) if entry >> 24 == state >> 24)
        state = (state ^ _CRC32[at]) << 8 & 0xFFFFFFFF | at
    return int.from_bytes((state ^ 0xFFFFFFFF).to_bytes(4, "little"))


def quote(value: str | bytes, no_backslash_escapes: bool = False) -> bytes:
    """A string as an SQL literal in single quotes, safe under the session's sql_mode."""
    text = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if not no_backslash_escapes:
        text = text.replace(b"\\", b"\\\\").replace(b"\0", b"\\0")
    return b"'" + text.replace(b"'", b"''") + b"'"


def _text(session: Session, value: str | None) -> bytes:
    if value is None:
        return b"NULL"
    if not value.isascii() and session.env.codec != "utf-8":
        return b"_utf8mb4 x'" + value.encode("utf-8", "surrogateescape").hex().encode() + b"'"
    return quote(value, session.no_backslash_escapes)


def _user(session: Session) -> bytes:
    return _text(session, f"{session.user.name}@{session.address.rpartition(':')[0] or session.address}")


def _lock_holders(session: Session) -> bytes:
    """`WHEN 57 THEN 3 …`, of at least one number that no connection has. Only the server knows the number of
    the statement's own connection, which GET_LOCK may take the lock on. The numbers have the function's type.
    """
    # connections of two hosts may have one number: the holders of locks on the locks' host come last
    own = {conn.thread_id: session.id for conn in session.transaction.held.values()}
    holders = {0: 0, **own, **session.lock_holders(), **(session.holders_elsewhere or {})}
    number = b"CAST(%d AS UNSIGNED)" if session.env.flavour.lock_holders_are_unsigned else b"%d"
    pairs = ((b"%d" % thread, id) for thread, id in holders.items())
    return b"".join(
        b" WHEN " + thread + b" THEN " + number % id
        for thread, id in ((b"CONNECTION_ID()", session.id), *pairs)
    )


def _in_transaction(session: Session) -> bytes:
    """MySQL has no such variable, and shall say so."""
    return (
        b"%d" % session.transaction.open
        if session.env.flavour.in_transaction_variable
        else b"@@in_transaction"
    )


def _tracking(name: str, session: Session) -> bytes:
    """What connections have for the proxy's own sake: the session's own, or else the servers' default."""
    return session.settings.get(name) or b"@@global." + name.encode()


_SLOTS: dict[str, Callable[[Session], bytes]] = {
    "LAST_INSERT_ID()": lambda session: b"%d" % session.last_insert_id,
    "@@last_insert_id": lambda session: b"%d" % session.last_insert_id,
    "@@identity": lambda session: b"%d" % session.last_insert_id,
    "DATABASE()": lambda session: _text(session, session.database),
    "CONNECTION_ID()": lambda session: b"%d" % session.id,
    "USER()": _user,
    "CURRENT_USER()": lambda session: _text(session, f"{session.user.name}@%"),
    "FOUND_ROWS()": lambda session: b"%d" % session.found_rows,
    "ROW_COUNT()": lambda session: b"%d" % session.row_count,
    "@@warning_count": lambda session: b"%d" % session.warning_count,
    "@@error_count": lambda session: b"%d" % session.error_count,
    "@@in_transaction": _in_transaction,
    "@@version": lambda session: _text(session, session.server_version),
    NUMBERED: lambda session: b"0x" + of_crc32(session.id).to_bytes(4).hex().encode(),
    LOCK_HOLDERS: lambda session: _lock_holders(session),
    "@@have_ssl": lambda session: b"'YES'" if session.tls else b"'DISABLED'",
    "@@pseudo_thread_id": lambda session: b"%d" % session.id,
    "@@transaction_mode": lambda session: _text(session, session.transaction_mode),
    "@@scatter_writes": lambda session: b"%d" % session.scatter_writes,
    "@@with_deleted": lambda session: b"%d" % session.with_deleted,
}


def _changed_on_shards(name: str, session: Session) -> bytes:
    """What the session has set, or else what a server has by default: `sql_log_bin` has no global value."""
    settings = session.shown_settings or session.settings
    value = settings.get(name) or (b"1" if name == "sql_log_bin" else b"@@global." + name.encode())
    return quote(value) if value.isalnum() and not value.isdigit() and value.upper() != b"NULL" else value


_SLOTS |= {f"@@{name}": partial(_changed_on_shards, name) for name in CHANGED_ON_SHARDS}
_SLOTS |= {f"@@{name}": partial(_tracking, name) for name in TRACKING}


def parameter(session: Session, name: str) -> bytes:
    """A parameter of the prepared statement that is executed: "?0", or "?L0" for a number of LIMIT."""
    value = session.prepared.values[int(name.lstrip("?L"))]
    if name[1] != "L" or value == b"?":
        return value
    if value == b"NULL" or value.startswith(TYPED_NULL):
        return b"0"  # as for a server
    try:
        return b"%d" % parameter_integer(value)
    except NotPlain:
        raise ProxyError("wrong_arguments", command="mysqld_stmt_execute") from None


def slot(session: Session, name: str) -> bytes:
    """The SQL literal for one slot of `Plan.session_slots`."""
    known = _SLOTS.get(name)
    if known is not None:
        return known(session)
    if name.startswith("?"):
        return parameter(session, name)
    variable = variable_of(name)
    if variable:
        value = session.settings.values.get(f"@{variable}", b"NULL")
        return b"NULL" if value.startswith(TYPED_NULL) else value
    raise KeyError(name)


@lru_cache(maxsize=4096)
def are_parameters(slots: tuple[str, ...]) -> bool:
    """Whether the slots are all parameters, once each and in their order."""
    return slots == tuple(f"?{number}" for number in range(len(slots)))


def values_of(session: Session, plan: Plan, literals: Values) -> Values:
    """The literals and the session's values, as templates and routing number them."""
    slots = plan.session_slots
    if slots:
        given = session.prepared.values
        if len(given) == len(slots) and are_parameters(slots):
            return literals + given
        return literals + tuple(slot(session, name) for name in plan.session_slots)
    return literals
