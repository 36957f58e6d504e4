"""A SET on a server: whether it was refused, and what the connection has then.

What a server refuses has mostly set nothing, and the session goes on, in the middle of a transaction, too.
Where that is not sure the connection is told anew what the session has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.engine.diagnostics import fetch_warnings
from proxy.engine.session_sync import primes, priming_packet, sync_packets
from proxy.session.outcome import Diagnostic
from proxy.session.transaction import PLAINLY
from proxy.wire.packets import Err, query_packet
from rewriter.plans.builtins import SetVariables

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

#: Errors that a server gives before it has set anything: no right, no such variable, read-only, not for a
#: session, not for all, wrong value or type, unknown character set, collation, time zone, column; syntax.
#: The second line: no default, read-only for a session, no such engine, locale, collation, flags, not now.
#: The third: not within a transaction, not beside temporary tables.
_CHECKED: Final = frozenset(
    {1227, 1193, 1238, 1228, 1229, 1231, 1232, 1115, 1273, 1298, 1054, 1064}
    | {1230, 1621, 1286, 1649, 3721, 1923, 1925, 1210, 3640}
    | {1679, 1685, 1694, 1766, 1929, 1953, 1179, 3745}
)
#: Errors from before any assignment: no such variable, read-only, global only, session only; syntax.
_BEFORE_ALL: Final = frozenset({1193, 1238, 1228, 1229, 1064})
#: What one of the servers at least does not let a session set within a transaction.
_FIXED: Final = frozenset(
    {
        "binlog_direct_non_transactional_updates", "binlog_format", "binlog_row_value_options",
        "binlog_transaction_compression", "binlog_transaction_compression_level_zstd",
        "explicit_defaults_for_timestamp", "group_replication_consistency", "gtid_domain_id", "gtid_next",
        "pseudo_replica_mode", "pseudo_slave_mode", "session_track_gtids", "skip_replication", "sql_log_bin",
        "wsrep_on", "xa_detach_on_prepare",
    }
)  # fmt: skip


async def run_set(
    client: Exchange, conn: BackendConnection, plan: SetVariables, statement: bytes, touched: list[str]
) -> list[Diagnostic] | Err:
    """Run it on `conn`: the server's error, or its warnings. `touched`: what it sets."""
    session = client.session
    held = conn.host in session.transaction.held
    packets, count = sync_packets(session, conn) if plan.reads_tables else (b"", 0)
    # BEGIN has sent nothing, but the server must judge as within the transaction
    begun = session.transaction.explicit and not (held or packets or _FIXED.isdisjoint(touched))
    if begun:
        packets, count = query_packet(b"START TRANSACTION"), 1
    if counts_rows(client, plan) and primes(session, conn):
        packets, count = packets + priming_packet(session), count + 1
    conn.settings = session.settings.base.unsure_of(touched)  # until it is known what was set
    reply = await Collector(own=False).run(conn, packets + query_packet(b"SET " + statement), count)
    found = await fetch_warnings(conn, reply.warnings) if reply.err is None and reply.warnings else []
    if begun:
        await Collector().query(conn, b"ROLLBACK" + PLAINLY)
    if reply.err is None:
        return found
    # a variable of which the session has no other value is at its DEFAULT, whether the SET got there or not
    default = {one.name for one in plan.assignments if one.value is None} - session.settings.values.keys()
    touched = [one for one in touched if one not in default]
    if conn.host not in session.transaction.held:
        conn.pinned = True  # it is reset before anybody else gets it
    elif reply.err.code in _BEFORE_ALL or (reply.err.code in _CHECKED and _checks_first(plan)):
        conn.has(session.settings.base)
    elif conn.in_transaction:  # they cannot be set back there, but have not been set either
        conn.has(session.settings.base.unsure_of([one for one in touched if one not in _FIXED]))
    else:
        conn.settings = session.settings.base.unsure_of(touched)
    return reply.err


def counts_rows(client: Exchange, plan: SetVariables) -> bool:
    """Whether a subquery or a stored function in the SET may change FOUND_ROWS()."""
    return plan.reads_tables and client.session.env.flavour.set_counts_subqueries


def _checks_first(plan: SetVariables) -> bool:
    """Whether a server looks at all assignments before it makes one: it looks at a DEFAULT in its turn."""
    return len(plan.assignments) == 1 or all(one.value is not None for one in plan.assignments)
