"""After a reply: what the session must still learn from the connection before it gives it back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.engine.lease import lost_after_reply
from proxy.engine.left_behind import (
    ask_after_code,
    ask_after_routine,
    ask_left_behind,
    counts,
    generated,
    pin,
)
from proxy.engine.naming import logical_rows
from proxy.engine.session_sync import OLDER, asks_for_warnings
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic, Diagnostics
from proxy.wire.charsets import values_codec
from proxy.wire.constants import Status
from proxy.wire.packets import Err, query_packet
from rewriter.plans import Values
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.found_rows import PRIMED

log = structlog.get_logger("proxy")

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.state import Session

_IN_TRANS = int(Status.IN_TRANS)
SHOW_WARNINGS: Final = query_packet(b"SHOW WARNINGS")


def opens(session: Session, conn: BackendConnection) -> bool:
    """Whether a transaction may be open on `conn` after a statement of the session, which opens none by
    itself.
    """
    transaction = session.transaction
    return transaction.explicit or not session.autocommit or transaction.held.get(conn.host) is conn


async def drain_diagnostics(
    client: Exchange, conn: BackendConnection, effects: Effects | None = None, literals: Values = ()
) -> Diagnostics:
    """After an error, with warnings or other `effects`: learn what the session must know before the
    connection is given back. Returns the warnings.

    An ERR packet has no status flags, and a deadlock ends the transaction: the reply to SHOW WARNINGS tells,
    and what else there is to know of the error. Warnings live on the server's connection, so they are fetched
    while it is still ours. A connection that does not answer is closed.
    """
    scanned = conn.scanner
    error, warnings, ok, rows = scanned.err, scanned.warnings, scanned.ok, scanned.rows
    failed = error is not None
    found = Diagnostics()
    try:
        async with asyncio.timeout(5):
            asks = effects is not None and asks_for_warnings(client.session, effects)
            if warnings or failed or effects is None or asks:
                found = await fetch_warnings(conn, warnings)
            if asks and any(one.message == OLDER for one in found):
                found = Diagnostics()
                found.keeps = True
            if failed and effects is not None and effects.locks:
                # locks that it has got are kept even if the statement fails
                pins = tuple(one for one in effects.pins if one[0] == "lock")
                pin(client.session, conn, effects._replace(pins=pins, unpins=()), literals)
            if effects is not None:
                # LAST_INSERT_ID(value) holds even if the statement fails, and so does a number for a row
                made = False if failed else generated(client, effects, ok, literals)
                asks_id = effects.may_ask_insert_id if failed else made is None
                tells = not failed or effects.found_rows == PRIMED
                counted = not (tells and counts(client.session, effects, ok, rows, literals))
                told = ok if asks_id else None
                given = await ask_left_behind(
                    client.session, conn, effects, told, asks=asks_id, counted=counted
                )
                if given and ok is not None:
                    client.services.given_ids.learn(client.plan, effects, literals, ok.insert_id)
            if effects is not None and effects.routine:
                conn.unclean = True
                await ask_after_routine(client, conn, effects, failed=failed)
            elif effects is not None and (effects.calls or effects.changed):
                await ask_after_code(client, conn, effects, failed=failed)
            if effects is not None and effects.defines:
                services = client.services
                await services.routines.changed(services.serving.topology, conn.host)
            if effects is not None and effects.tables and not failed:
                await client.services.serving.tables_changed()
    except (ProxyError, TimeoutError):
        _is_lost(client, conn, effects)
    except Exception as bug:  # the client gets its reply all the same, and nobody else this connection
        log.error("what a statement left behind cannot be read", host=conn.host, exc_info=bug)
        _is_lost(client, conn, effects)
    found[:] = logical_rows(client, found)
    if error is not None:
        say_state(found, error)
    return found


def _is_lost(client: Exchange, conn: BackendConnection, effects: Effects | None) -> None:
    """The connection does not answer behind a reply: with warnings alone nothing is lost but these."""
    if effects is None:
        conn.close()
    else:
        lost_after_reply(client, conn)


def say_state(found: list[Diagnostic], error: Err | ProxyError) -> None:
    """Put the SQLSTATE of the `error` with which a statement ended into the last row that shows it."""
    for at in range(len(found) - 1, -1, -1):
        if found[at].level == "Error" and found[at].code == error.code:
            found[at] = replace(found[at], sqlstate=error.sqlstate)
            return


async def fetch_warnings(conn: BackendConnection, total: int = 0) -> Diagnostics:
    """SHOW WARNINGS of the statement that `conn` ran last. `total`: how many its reply said there are."""
    reply = await Collector.after_statement(conn, b"SHOW WARNINGS")
    codec = values_codec(conn.settings.get("character_set_results"))
    return diagnostics_of(reply.values(), total, codec)


def diagnostics_of(rows: Iterable[Sequence[bytes | None]], total: int, codec: str = "utf-8") -> Diagnostics:
    """The rows of SHOW WARNINGS behind a statement whose reply said that there are `total`. `codec`: the one
    of their texts.
    """
    found = Diagnostics()
    found.total = total
    for level, code, message in rows:
        text = (message or b"").decode(codec, "replace")
        found.append(Diagnostic((level or b"").decode(), int(code or 0), text))
    return found
