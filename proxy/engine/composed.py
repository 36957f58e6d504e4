"""Replies of servers with what they cannot know: the composed ID where a shard has a local one, and the
logical database's name.
"""

from __future__ import annotations

from dataclasses import replace
from struct import Struct
from typing import TYPE_CHECKING

from proxy.backends.connection import BackendConnection
from proxy.engine.naming import logical_error
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostics
from proxy.wire.packets import Ok, err_packet, ok_packet
from rewriter.bound import composed_message

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


_ERR = 0xFF
_HEADER = 4
_OK = Struct("<IBBBQHH")
_SHORT = 251
"""Smaller numbers are one byte."""
_EIGHT_BYTES = 1 << 24
"""Larger ones are eight bytes behind 0xFE."""
_MOST = (1 << 64) - 1
_BEFORE_MESSAGE = 13  # the packet's header, 0xFF, the code, # and the SQLSTATE


def broken_reply(conn: BackendConnection, data: bytes) -> tuple[bytes, ProxyError]:
    """A reply with an error at its end, and the error: code has ended one host's part of a transaction. The
    proxy cannot know whether by COMMIT or ROLLBACK, so the other hosts cannot follow. `left_behind` asks the
    server for such effects; then the relay answers.
    """
    reason = f"a procedure has ended its part on {conn.host}; what it had done elsewhere was rolled back"
    error = ProxyError("transaction_lost", reason=reason)
    size = conn.scanner.ok_size if conn.scanner.ok is not None else conn.scanner.ending
    return data[:-size] + err_packet(data[3 - size], error.code, error.sqlstate, str(error)), error


def logical_reply(client: Exchange, conn: BackendConnection, data: bytes) -> bytes:
    """A reply that ends with an error: that with the logical database in the place of the shard's."""
    err = conn.scanner.err
    first = len(data) - len(err.message) - _BEFORE_MESSAGE if err is not None else -1
    if err is None or first < 0 or data[first + 4] != _ERR or not data.endswith(err.message):
        return data
    shown = logical_error(client, err)
    if shown is err:
        return data
    conn.scanner.err = shown
    return data[:first] + err_packet(data[first + 3], shown.code, shown.sqlstate, shown.message)


def composed(conn: BackendConnection, data: bytes, id_offset: int) -> bytes:
    """The reply with the composed ID in the place of the local one."""
    ok, err = conn.scanner.ok, conn.scanner.err
    if err is not None and not conn.scanner.rows_begun:
        text = composed_message(err.code, err.text(), id_offset).encode()
        conn.scanner.err = replace(err, message=text)
        return err_packet(data[3], err.code, err.sqlstate, text)
    if ok is None or not ok.insert_id:
        return data
    affected, insert_id, status, warnings, info = ok
    insert_id += id_offset
    if insert_id > _MOST:
        return data  # LAST_INSERT_ID(expr): no row has it
    conn.scanner.ok = Ok(affected, insert_id, status, warnings, info)
    if affected < _SHORT and insert_id >= _EIGHT_BYTES:  # as nearly always
        size = _OK.size - _HEADER + len(info)
        return _OK.pack(size | data[3] << 24, 0, affected, 0xFE, insert_id, status, warnings) + info
    return ok_packet(data[3], status, affected=affected, insert_id=insert_id, warnings=warnings, info=info)


def composed_rows(rows: Diagnostics, id_offset: int) -> Diagnostics:
    """The same of what SHOW WARNINGS shows."""
    shown = Diagnostics(
        replace(one, message=composed_message(one.code, one.message, id_offset)) for one in rows
    )
    shown.total = rows.total
    return shown
