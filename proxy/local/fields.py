"""COM_FIELD_LIST: a table's columns as definitions, for the CLI's completion and mysql_list_fields()."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.errors import ProxyError
from proxy.wire.packets import eof_packet, frame

from .catalog import select_nothing
from .rows import like_pattern

if TYPE_CHECKING:
    from proxy.session.client import ClientConnection


async def field_list(client: ClientConnection, table: str, pattern: bytes) -> None:
    """Answer with the definitions of the logical columns whose names match `pattern` (LIKE; empty: all)."""
    database = client.session.database
    if database is None:
        raise ProxyError("no_database")
    reply = await select_nothing(client, database, table)
    if reply.err is not None:
        client.fail(reply.err)
        return
    matches = like_pattern(pattern.decode("utf-8", "replace")) if pattern else None
    pieces = []
    seq = client.seq
    for payload, name in reply.named_columns():
        if matches is None or matches(name):
            seq += 1
            pieces.append(frame(payload + b"\xfb", seq))  # no default value is told
    pieces.append(eof_packet(seq + 1, client.session.status()))
    client.write(b"".join(pieces))
    client.finish("ok")
