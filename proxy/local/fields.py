"""COM_FIELD_LIST: a table's columns as definitions, for the CLI's completion and mysql_list_fields()."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.errors import ProxyError
from proxy.wire.packets import Err, eof_packet, frame
from proxy.wire.resultset import fitted
from rewriter.plans import BindError

from .catalog import definitions, own_host
from .rows import like_pattern
from .whole_server import pass_fields

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


async def field_list(client: Exchange, table: str, pattern: bytes, payload: bytes) -> None:
    """Answer with the definitions of the logical columns whose names match `pattern` (LIKE; empty: all).
    `payload`: the command, which goes to a server as it is where the database is not sharded.
    """
    database = client.session.database
    if database is None:
        raise ProxyError("no_database")
    user, views = client.session.user, database.lower() == "information_schema"
    if not (views or user.may_use(database)):  # it was taken from the user's list meanwhile
        raise ProxyError("database_denied", user=user.name, database=database)
    host = None if views else own_host(client, database)
    if host is not None:
        await pass_fields(client, host, database, payload)
        return
    try:
        found = await definitions(client, database, table)
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None
    if isinstance(found, Err):
        client.fail(found)
        return
    matches = like_pattern(pattern.decode("utf-8", "replace")) if pattern else None
    pieces = []
    seq, extended = client.seq, client.session.extended
    for column in found:
        if matches is None or matches(column.name.decode("utf-8", "replace")):
            seq += 1
            pieces.append(
                frame(fitted(column.encode(), extended=extended) + b"\xfb", seq)
            )  # no default value is told
    pieces.append(eof_packet(seq + 1, client.session.status()))
    client.write(b"".join(pieces))
    client.finish("ok")
