"""A shard's reply to a write of an object, with the composed ID where the shard knows a local one."""

from __future__ import annotations

from dataclasses import replace

from proxy.backends.connection import BackendConnection
from proxy.session.state import Diagnostics
from proxy.wire.packets import err_packet, ok_packet
from rewriter.bound import composed_message


def composed(conn: BackendConnection, data: bytes, base: int) -> bytes:
    """The reply with the composed ID in the place of the local one."""
    ok, err = conn.scanner.ok, conn.scanner.err
    if err is not None and not conn.scanner.rows_begun:
        text = composed_message(err.code, err.text(), base).encode()
        conn.scanner.err = replace(err, message=text)
        return err_packet(data[3], err.code, err.sqlstate, text)
    if ok is None or not ok.insert_id:
        return data
    ok = conn.scanner.ok = ok._replace(insert_id=ok.insert_id + base)
    return ok_packet(
        data[3],
        ok.status,
        affected=ok.affected,
        insert_id=ok.insert_id,
        warnings=ok.warnings,
        info=ok.info,
    )


def composed_rows(rows: Diagnostics, base: int) -> Diagnostics:
    """The same of what SHOW WARNINGS shows."""
    shown = Diagnostics(replace(one, message=composed_message(one.code, one.message, base)) for one in rows)
    shown.total = rows.total
    return shown
