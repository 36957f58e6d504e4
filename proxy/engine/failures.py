"""A statement's error from a server: whether a shard lacks something, or an account a right."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from proxy.engine.problems import DENIED, place
from proxy.errors import Held, ProxyError
from proxy.load import missed as count_missed
from proxy.session.outcome import Diagnostic
from proxy.session.transaction import CUT, STATE_GONE, Transaction
from proxy.session.values import values_of
from proxy.stats import Visit
from proxy.wire.constants import UNKNOWN_COLUMN
from proxy.wire.packets import Err
from rewriter.bound import BindError
from rewriter.plans.sharded import is_routed

if TYPE_CHECKING:
    from .at_work import AtWork

ENDED: Final = frozenset({1053, 1927, 3169})
"""What a server says of a statement when it ends the connection: it shuts down, or the connection was killed
(on MariaDB, on MySQL)."""
_SHOWN: Final = 300
"""Characters of a server's message in the log."""
_LOOK: Final = 1 << 16
"""Bytes of a statement in which its tables are looked for."""
_DATABASE: Final = re.compile(r"'([^'.]+)[.']")
_COLUMN: Final = re.compile(r"'(?:([^']*)\.)?([^'.]+)' in ")


def lost_with(transaction: Transaction, error: ProxyError | Err) -> ProxyError | Err:
    """What the client is told of an error while its transaction is lost: of a connection that went with it,
    what became of the transaction, unless that is not known. It also tells of state that is gone.
    """
    gone = error.lost if isinstance(error, ProxyError) else error.code in ENDED
    if transaction.lost_by == STATE_GONE:
        if gone:
            transaction.forget_loss()
        return error
    transaction.told = True
    return transaction.loss if gone and transaction.lost_by == CUT else error


def missed(client: AtWork, error: ProxyError) -> Visit | None:
    """Where a statement was to go that got no connection, or has waited in vain for its shards. Nobody else
    counts it, and who looks for what fails would see that host, and these shards, do nothing. What a user has
    no more share of is well.
    """
    loads, host = client.services.backends.loads, error.unsent
    if isinstance(error, Held):
        keyspaces = client.snapshot.topology.keyspaces
        count_missed([load for name, shard in error.until for load in loads.of(keyspaces[name], [shard])])
        return None
    if not host:
        return None
    if error.failing:
        count_missed([loads.host(host), *error.shards])
    return Visit(host, error.shards)


def note_error(client: AtWork, host: str, error: Err) -> None:
    """A server's error, in its own words, may be that a shard lacks something: tell where, behind the error
    in SHOW WARNINGS too; or that its account lacks a right: tell the operator. `host`: "" where it is not
    known.
    """
    services, plan, text = (
        client.services,
        client.plan,
        (error.own or error.message).decode("utf-8", "replace"),
    )
    if error.code in DENIED:
        own = services.settings.backends.user_for(host)[0]
        account = services.backends.account_of(client.session.capability_set) or own
        services.serving.problems.denied(host, account, client.session.user.name, error.code, text[:_SHOWN])
        return
    if error.code == UNKNOWN_COLUMN:
        services.serving.columns_doubted(plan)
        if not _lacks_column(client, text):
            return  # a client's mistake, which no shard could answer otherwise
    if plan is None or plan.names_physical or not plan.databases:
        return
    named = _DATABASE.search(text)
    topology = client.snapshot.topology
    physical = topology.physical(named[1]) if named is not None and error.code != UNKNOWN_COLUMN else None
    if physical is not None and named is not None:
        if physical[1] is None:
            return  # not a shard's: what it lacks, the error says
        where = place(topology, named[1], host)
    elif error.code == UNKNOWN_COLUMN:
        where = _asked(client, host)
    else:
        return
    if where:
        services.serving.problems.note(error.code, where, text)
        client.session.diagnostics.append(Diagnostic("Note", error.code, f"{where}: {text}"))


def _lacks_column(client: AtWork, text: str) -> bool:
    """Whether one of the statement's tables has the column elsewhere. What is no table's name or alias in
    the statement cannot have it.
    """
    found = _COLUMN.search(text)
    if found is None:
        return False
    qualifier, column = (name.lower() for name in ((found[1] or "").rpartition(".")[2], found[2]))
    names = client.snapshot.rewriter.names(client.sql[:_LOOK], client.session.env)
    return not names.isdisjoint(client.services.serving.columns_seen.get(column, ())) and (
        not qualifier or qualifier in names
    )


def _asked(client: AtWork, host: str) -> str:
    """The shard that the statement at work was for, if it was one; else the host."""
    snapshot, session = client.snapshot, client.session
    if client.plan is not None and is_routed(client.plan):
        plan, literals = snapshot.rewriter.plan(client.sql, session.env)
        if plan is client.plan:
            try:
                values = values_of(session, plan, literals)
                statements = plan.bind(values, snapshot.topology, lambda shards: shards[0]).statements
            except BindError:
                statements = ()
            own = [one for one in statements if one.host == host]
            if len(own) == 1 and len(own[0].shards) == 1:
                keyspace = snapshot.topology.keyspaces[client.plan.keyspace]
                return place(snapshot.topology, keyspace.database_of(own[0].shards[0]).decode(), host)
    return host
