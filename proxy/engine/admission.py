"""Whether a statement may run: by the user's rights, the transaction, the state of its shards.

transaction_mode = 'single': a transaction stays on the shard it began on. Tables that are not sharded are on
no shard, so they may take part as long as they are on the same host.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from config.topology import State, Topology
from proxy.errors import ProxyError
from proxy.session.transaction import Spot
from rewriter.plan import Access
from rewriter.plans import (
    Bound,
    Builtin,
    Ddl,
    HostStatement,
    Insert,
    OneHost,
    Opened,
    Physical,
    Plan,
    Several,
    ShardSelect,
    ShardWrite,
)

if TYPE_CHECKING:
    from proxy.session.state import Session

    from .exchange import Exchange


def check_results(session: Session, sql: bytes) -> None:
    """Refuse CALL to a client that does not understand more than one result. A server would let procedures
    without result sets run, but which these are, only it knows.
    """
    words = sql.replace(b"(", b" ").split(None, 2)
    if not session.multi_results and len(words) > 1 and words[0].upper() == b"CALL":
        raise ProxyError("one_result_only", procedure=words[1].decode("utf-8", "replace").strip(";"))


def check_begins(client: Exchange, host: str, sql: bytes) -> None:
    """Refuse a CALL of what begins a transaction of its own while the client's is on other hosts, too: it
    would commit one host's part of it, and nothing would tell.
    """
    bodies = client.services.routines.bodies.get(host)
    if bodies is not None and client.session.transaction.elsewhere(host) and bodies.begins(sql):
        raise ProxyError(
            "not_supported_yet",
            what="CALL of a procedure that begins a transaction",
            reason="the transaction that is open is on several hosts",
            alternative="COMMIT first.",
        )


def check_access(session: Session, plan: Plan, sql: bytes) -> None:
    """Refuse what the user's role or list of databases does not allow."""
    user = session.user
    needed = plan.access
    if plan.reserved and user.role < Access.ADMIN:
        for database in plan.reserved:
            if not user.may_use(database):
                raise ProxyError("database_denied", user=user.name, database=database)
        needed = plan.listed_access
    if needed > user.role:
        words = sql.split(None, 1)
        raise ProxyError(
            "role_denied",
            statement=words[0].decode("latin-1").upper()[:20] if words else "",
            user=user.name,
            role=user.role.name.lower(),
            needed=Access(needed).name.lower(),
        )
    if user.databases is not None:
        for database in plan.databases:
            if database not in user.databases:
                raise ProxyError("database_denied", user=user.name, database=database)
        if plan.unseen and not user.account:  # an account of their own is what holds a routine
            raise ProxyError("routine_denied", user=user.name, routine=plan.unseen)


def refuse_lost(session: Session, plan: Plan) -> None:
    """After a transaction was lost with a connection, only its end may follow: nothing of it may run by
    itself.
    """
    if isinstance(plan, Several | Opened):
        return  # each statement comes here by itself
    if isinstance(plan, Builtin) and plan.name in (
        "rollback",
        "begin",
        "show_warnings",
        "show_errors",
        "set",
    ):
        return
    reason = session.transaction.lost
    lost_by = session.transaction.lost_by
    if isinstance(plan, Builtin) and plan.name == "commit":
        session.transaction.end()
    raise ProxyError(lost_by, reason=reason, limit=reason)


def check_scatter(client: Exchange, bound: Bound) -> int | None:
    """Whether the user may scatter; the most rows such a read may give, None for no limit."""
    user = client.session.user
    if not user.scatter_allowed:
        shards = sum(len(statement.shards) for statement in bound.statements)
        raise ProxyError(
            "scatter_denied",
            statement="SELECT",
            shards=shards,
            reason=f"user '{user.name}' may not scatter",
            column="the routing column",
            alternative="ask for scatter: allow",
        )
    return user.scatter_rows or client.services.settings.limits.scatter_rows or None


def check_states(
    client: Exchange, plan: Ddl | ShardSelect | ShardWrite | Insert, bound: Bound, *, write: bool
) -> None:
    """Refuse shards whose state does not allow the statement."""
    if client.snapshot.all_serving or not plan.keyspace:
        return
    shards = (shard for statement in bound.statements for shard in statement.shards)
    check_places(client.snapshot.topology, ((plan.keyspace, shard) for shard in shards), write=write)


def check_places(topology: Topology, places: Iterable[tuple[str, int | None]], *, write: bool) -> None:
    """The same for (keyspace, shard) pairs; shard None is of no sharded keyspace."""
    refused = {State.OFFLINE, State.FROZEN, State.READ_ONLY} if write else {State.OFFLINE}
    for name, shard in places:
        found = topology.keyspaces[name].range_of(shard) if shard is not None else None
        if found is not None and found.state in refused:
            raise ProxyError("shard_offline", shard=shard, keyspace=name, state=found.state.value)


def check_place(client: Exchange, plan: OneHost, host: str) -> None:
    """Refuse what one host would run, when the state of a shard that it names does not allow it, or it would
    be a second shard.
    """
    places = plan.locations if isinstance(plan, Physical) else ()
    if places and not client.snapshot.all_serving:
        check_places(client.snapshot.topology, places, write=plan.access > Access.READ)
    if client.session.transaction_mode == "single":
        check_single(client, [Spot(host, *place) for place in places] or [Spot(host)])


def spots_of(keyspace: str, statements: Iterable[HostStatement]) -> list[Spot]:
    """Where statements on sharded tables run."""
    return [Spot(one.host, keyspace, shard) for one in statements for shard in one.shards or (None,)]


def check_single(client: Exchange, spots: Iterable[Spot]) -> None:
    """Refuse a statement that would take the transaction to a second shard, naming both; note where it is."""
    session = client.session
    transaction = session.transaction
    if not transaction.explicit and session.autocommit:
        return
    if not transaction.open:
        transaction.spots = []
    found = list(transaction.spots)
    for spot in spots:
        for other in found:
            if other.excludes(spot):
                raise ProxyError("second_shard", first=str(other), second=str(spot))
        if spot not in found:
            found.append(spot)
    transaction.spots = found
