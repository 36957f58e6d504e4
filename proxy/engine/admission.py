"""Whether a statement may run now: an ordered tuple of checks at each point of its way.

    PREPARED  the plan is known, of PREPARE, which runs nothing
    PLANNED   the plan is known, and is to run
    PLACED    the shards and hosts are known, and nothing has been sent
    SENT      what the one host of a statement with routines gets is known

A check is a function of values that answers Proceed, Wait or Refuse, and does nothing else; the first that
does not say Proceed decides. A new check is one more entry. `admit…` run them, and act.

Where nothing restricts a statement (the usual point select) the callers' own tests find that out, and no
check runs: `pipeline.execute`, `pipeline._ask_point`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, assert_never

from config.topology import State, Topology
from proxy.engine.lease import end_transaction
from proxy.errors import Held, ProxyError
from proxy.session.transaction import STATE_GONE, XA, Spot
from rewriter.fingerprint import first_word
from rewriter.plan import Access, AfterLoss
from rewriter.plans import Bound, HostStatement, OneHost, Plan
from rewriter.sql.privileges.beyond import EVERY_DATABASE
from rewriter.sql.statements.forms import Kind, Runs
from rewriter.sql.statements.table import UNKNOWN

if TYPE_CHECKING:
    from proxy.session.state import Session, User
    from rewriter.sql.statements.routines import Routines

    from .exchange import Exchange


# -- what a check says


@dataclass(frozen=True, slots=True)
class Proceed:
    """Nothing is against it."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now: when another topology serves the shards that `error` names. It is the client's if none
    comes.
    """

    error: Held


@dataclass(frozen=True, slots=True)
class Refuse:
    """`error` is the client's. `ends`: and its transaction is over."""

    error: ProxyError
    ends: bool = False


Verdict = Proceed | Wait | Refuse
PROCEED: Final = Proceed()


# -- what a check is given


class Planned(NamedTuple):
    """A statement whose plan is known."""

    session: Session
    plan: Plan
    sql: bytes


class Placed(NamedTuple):
    """A statement whose shards and hosts are known. `scatter`: it has no condition that names its shards;
    `joins`: it takes part in the client's transaction; `begins_xa`: it is XA START.
    """

    session: Session
    topology: Topology
    spots: Sequence[Spot]
    write: bool = False
    scatter: bool = False
    joins: bool = True
    begins_xa: bool = False


class Sent(NamedTuple):
    """A statement that may run routines, on its host. `bodies`: what is known of the routines there;
    `results`: whether the client understands more than one result.
    """

    session: Session
    host: str
    plan: Plan
    bodies: Routines | None
    results: bool = True


# -- the plan is known


def check_reserved(asked: Planned) -> Verdict:
    """Databases that only those may use who have them in their list, and admins."""
    user, plan = asked.session.user, asked.plan
    if plan.reserved and user.role < Access.ADMIN:
        return _listed(user, (one for one in plan.reserved if not user.may_use(one)))
    return PROCEED


def check_role(asked: Planned) -> Verdict:
    """What the user's role allows."""
    user, plan = asked.session.user, asked.plan
    needed = plan.listed_access if plan.reserved and user.role < Access.ADMIN else plan.access
    if needed <= user.role:
        return PROCEED
    return Refuse(
        ProxyError(
            "role_denied",
            statement=_label(asked),
            user=user.name,
            role=user.role.name.lower(),
            needed=Access(needed).name.lower(),
        )
    )


def check_databases(asked: Planned) -> Verdict:
    """The user's list of databases. It comes before the role, and before any refusal of the statement, so
    that no answer depends on what a database outside of the list is.
    """
    user = asked.session.user
    if user.databases is None:
        return PROCEED
    named = (one for one in asked.plan.databases if one != EVERY_DATABASE)
    return _listed(user, (one for one in named if one not in user.databases))


def check_every_database(asked: Planned) -> Verdict:
    """Statements that show all databases or act on a whole server, for users with a list."""
    user = asked.session.user
    if user.databases is None or EVERY_DATABASE not in asked.plan.databases:
        return PROCEED
    return Refuse(ProxyError("list_denied", user=user.name, statement=_label(asked)))


def _label(asked: Planned) -> str:
    """The name of a statement in an error's text."""
    form = asked.plan.facts.form
    return first_word(asked.sql) if form is UNKNOWN else form.label


def _listed(user: User, missing: Iterable[str]) -> Verdict:
    database = min(missing, default=None)  # of several the same one, whatever plan there is for them
    if database is None:
        return PROCEED
    return Refuse(ProxyError("database_denied", user=user.name, database=database))


def check_unseen(asked: Planned) -> Verdict:
    """Refuse what the proxy does not check to users with a list. Existing routines run under these users'
    separate account, which has rights in their databases only. Text and bodies that they write do not run:
    servers require no privilege for XA ROLLBACK, for a change of the account's own password, or for KILL of
    a session of the same account, and the account has rights in shardgate's own databases.
    """
    user, plan = asked.session.user, asked.plan
    if user.databases is None:
        return PROCEED
    unseen = plan.hidden or ("" if user.account else plan.unseen)
    return Refuse(ProxyError("routine_denied", user=user.name, what=unseen)) if unseen else PROCEED


def check_lost(asked: Planned) -> Verdict:
    """After a transaction was lost with a connection, only its end may follow: nothing of it may run by
    itself. BEGIN is its COMMIT, too, so that one who has not been told yet is told by it.
    """
    transaction, plan = asked.session.transaction, asked.plan
    if not transaction.lost:
        return PROCEED
    if transaction.lost_by == STATE_GONE:
        return Refuse(transaction.loss)
    match plan.after_loss:
        case AfterLoss.REFUSED:
            return Refuse(transaction.loss)
        case AfterLoss.RUNS:
            return PROCEED
        case AfterLoss.BEGINS:
            return PROCEED if transaction.told else Refuse(transaction.loss, ends=True)
        case AfterLoss.COMMITS:
            return Refuse(transaction.loss, ends=True)
    assert_never(plan.after_loss)


# -- shards and hosts are known


def check_scatter(placed: Placed) -> Verdict:
    """Whether the user may scatter. (Of writes the plan has decided that.)"""
    user = placed.session.user
    if not placed.scatter or user.scatter_allowed:
        return PROCEED
    return Refuse(
        ProxyError(
            "scatter_denied",
            statement="SELECT",
            shards=sum(spot.shard is not None for spot in placed.spots),
            reason=f"user '{user.name}' may not scatter",
            column="the routing column",
            alternative="ask for scatter: allow",
        )
    )


def check_states(placed: Placed) -> Verdict:
    """Shards whose state does not allow the statement. On a frozen one it waits, unless it is of a
    transaction that is open on the master already: that one ends there.
    """
    frozen: list[tuple[str, int]] = []
    for host, name, shard in placed.spots:
        found = placed.topology.keyspaces[name].range_of(shard) if name and shard is not None else None
        if found is None or shard is None or found.state is State.SERVING:
            continue
        if found.state is State.OFFLINE or (found.state is State.READ_ONLY and placed.write):
            error = ProxyError("shard_offline", shard=shard, keyspace=name, state=found.state.value)
            return Refuse(error)
        if found.state is State.FROZEN and not _begun(placed, host):
            frozen.append((name, shard))
    if not frozen:
        return PROCEED
    name, shard = frozen[0]
    until = tuple(frozen[:_NAMED])  # behind them it waits again
    return Wait(Held("shard_offline", until, shard=shard, keyspace=name, state=State.FROZEN.value))


_NAMED: Final = 10
"""So many shards of a scatter are kept while it waits."""


def _begun(placed: Placed, host: str) -> bool:
    """Whether the statement's transaction is open on the host."""
    conn = placed.session.transaction.held.get(host)
    return placed.joins and conn is not None and conn.in_transaction


def check_single(placed: Placed) -> Verdict:
    """transaction_mode = 'single': a transaction stays on the shard it began on. Tables that are not sharded
    are on no shard, so they may take part as long as they are on the same host.
    """
    if not placed.joins or not _stays(placed.session):
        return PROCEED
    transaction = placed.session.transaction
    found = list(transaction.spots) if transaction.open else []
    for spot in placed.spots:
        for other in found:
            if other.excludes(spot):
                return Refuse(ProxyError("second_shard", first=str(other), second=str(spot)))
        found.append(spot)
    return PROCEED


def check_own_xa(placed: Placed) -> Verdict:
    """An XA transaction that the client itself began is on one host. A write on another one would commit by
    itself, whatever becomes of it.
    """
    kept = placed.session.transaction.pins.items()
    host = next((host for host, pins in kept if XA in pins), None)
    if not placed.write or host is None or all(spot.host == host for spot in placed.spots):
        return PROCEED
    return Refuse(
        ProxyError(
            "not_supported_yet",
            what="a write on another host within XA START … XA END",
            reason=f"the XA transaction is on {host}",
            alternative="Use transaction_mode = 'xa', which commits on several hosts.",
        )
    )


def check_xa_start(placed: Placed) -> Verdict:
    """XA START while a transaction is open on another host, which that host's server does not know of."""
    if placed.begins_xa and any(placed.session.transaction.elsewhere(spot.host) for spot in placed.spots):
        return Refuse(ProxyError("xa_outside"))
    return PROCEED


def check_distributed(placed: Placed) -> Verdict:
    """transaction_mode = 'xa': which host holds the decision must be known before a second one takes part,
    and it must be able to write that.
    """
    session = placed.session
    if not placed.joins or not session.distributes:
        return PROCEED
    transaction = session.transaction
    if not (transaction.explicit or not session.autocommit):
        return PROCEED
    hosts = {spot.host for spot in placed.spots}
    if transaction.explicit:
        hosts |= transaction.opened
    if len(hosts) < 2 or session.in_read_only:
        return PROCEED
    if transaction.locks_tables:
        return Refuse(
            ProxyError(
                "not_supported_yet",
                what="a transaction over several hosts under LOCK TABLES",
                reason="with transaction_mode = 'xa' its decision is written to a table that is not locked",
                alternative="UNLOCK TABLES first, or use transaction_mode = 'multi'.",
            )
        )
    unknown = [host for host in sorted(hosts) if host not in session.identities]
    if not unknown:
        return PROCEED
    names = ", ".join(unknown)
    if any(host in session.undeciding for host in unknown):
        return Refuse(ProxyError("xa_not_ready", hosts=names))
    return Refuse(ProxyError("xa_not_ready", hosts=names, host=unknown[0]))  # it waits: a new master, perhaps


def _stays(session: Session) -> bool:
    """Whether the statement is of a transaction that may be on one shard only."""
    within = session.transaction.explicit or not session.autocommit
    return within and session.transaction_mode == "single"


# -- the text is known


def check_results(sent: Sent) -> Verdict:
    """CALL, for a client that does not understand more than one result. A server would let procedures without
    result sets run, but which these are, only it knows.
    """
    effects = sent.plan.effects
    if not sent.results and effects is not None and effects.procedure:
        return Refuse(ProxyError("one_result_only", procedure=effects.procedure))
    return PROCEED


def check_begins(sent: Sent) -> Verdict:
    """CALL of what begins a transaction of its own, or ends one, while the client's is on other hosts: one
    host's part would be committed, and nothing would tell. If it is open here, too, the reply tells.
    """
    bodies, transaction = sent.bodies, sent.session.transaction
    if bodies is None or not transaction.elsewhere(sent.host):
        return PROCEED
    here = transaction.held.get(sent.host)
    open_here = transaction.explicit or (here is not None and here.in_transaction)
    ends = not open_here and bodies.ends(sent.plan.names)
    if not ends and not bodies.begins(sent.plan.names):
        return PROCEED
    return Refuse(
        ProxyError(
            "not_supported_yet",
            what=f"CALL of a procedure that {'ends' if ends else 'begins'} a transaction",
            reason="the transaction that is open is on several hosts",
            alternative="COMMIT first.",
        )
    )


# -- the lists


def check_read_only(asked: Planned) -> Verdict:
    """A write in a read-only transaction, which a server refuses before it looks at locks and tables."""
    plan, session = asked.plan, asked.session
    if plan.facts.form.kind is not Kind.CHANGE or not (plan.unknown_table or plan.sharded_tables):
        return PROCEED
    return Refuse(ProxyError(session.env.flavour.read_only_error)) if session.writes_nothing else PROCEED


def check_table_locks(asked: Planned) -> Verdict:
    """While LOCK TABLES holds, a statement may name no other tables; it locks no sharded ones."""
    if not asked.session.transaction.locks_tables:
        return PROCEED
    tables, unknown = asked.plan.sharded_tables, asked.plan.unknown_table
    table = tables[0].rpartition(".")[2] if tables else unknown  # a server does not look whether it exists
    return Refuse(ProxyError("table_not_locked", table=table)) if table else PROCEED


RIGHTS: Final = (check_reserved, check_databases, check_role, check_every_database, check_unseen)
PREPARED: Final = (*RIGHTS, check_read_only, check_table_locks)
PLANNED: Final = (*RIGHTS, check_lost, check_read_only, check_table_locks)
PLACED: Final = (
    check_scatter,
    check_states,
    check_single,
    check_own_xa,
    check_xa_start,
    check_distributed,
)
SENT: Final = (check_results, check_begins)

Known = TypeVar("Known", Planned, Placed, Sent)


def decide(checks: Iterable[Callable[[Known], Verdict]], known: Known) -> Verdict:
    """What the first check says that does not say Proceed."""
    for check in checks:
        verdict = check(known)
        if verdict is not PROCEED:
            return verdict
    return PROCEED


def _act(verdict: Verdict, session: Session) -> None:
    if isinstance(verdict, Proceed):
        return
    if isinstance(verdict, Refuse) and verdict.ends:
        end_transaction(session)  # of one that is lost a connection may be left
    raise verdict.error


# -- who runs them


def admit_plan(
    session: Session, plan: Plan, sql: bytes, checks: Iterable[Callable[[Planned], Verdict]] = PLANNED
) -> None:
    """PLANNED, PREPARED or RIGHTS. Raises ProxyError."""
    _act(decide(checks, Planned(session, plan, sql)), session)


def admit_pinned(client: Exchange) -> None:
    """PLANNED for what the locks of the session's own connections say of a point query. Raises ProxyError."""
    session, plan = client.session, client.plan
    if session.transaction.pins and plan is not None:
        _act(decide((check_table_locks,), Planned(session, plan, client.sql)), session)


def admit_bound(client: Exchange, keyspace: str, bound: Bound, *, write: bool, joins: bool = True) -> None:
    """PLACED for a statement on the tables of `keyspace` ("": of none that is sharded). Raises ProxyError."""
    scatter = bound.scatter and not write
    if not is_free(client) or (scatter and not client.session.user.scatter_allowed):
        _admit_placed(client, spots_of(keyspace, bound.statements), write=write, scatter=scatter, joins=joins)


def admit_everywhere(client: Exchange, bound: Bound) -> None:
    """PLACED for a write to reference tables, which has no shard. While shards are frozen, it waits: the host
    that is to be their master has not what is written now. Raises ProxyError.
    """
    admit_bound(client, "", bound, write=True)
    if client.snapshot.all_serving:
        return
    topology = client.snapshot.topology
    frozen = [
        Spot(one.master, name, one.first)
        for name, keyspace in topology.keyspaces.items()
        for one in keyspace.columns.in_state(State.FROZEN)
    ]
    _act(decide((check_states,), Placed(client.session, topology, frozen, write=True)), client.session)


def admit_host(client: Exchange, plan: OneHost, host: str, *, write: bool | None = None) -> None:
    """PLACED for what one host runs. `write`: it may write; None: the plan tells. Raises ProxyError."""
    begins_xa = plan.effects is not None and XA in plan.effects.pins
    if is_free(client) and not begins_xa:
        return
    if write is None:
        write = plan.access > Access.READ or plan.facts.form.runs is Runs.ANYTHING
    spots = [Spot(host, *place) for place in plan.named_places] or [Spot(host)]
    _admit_placed(client, spots, write=write, begins_xa=begins_xa)


def admit_assignment(client: Exchange, host: str, *, write: bool) -> None:
    """PLACED for a SET that a host evaluates. `write`: code that it calls may write. Raises ProxyError."""
    if not is_free(client):
        _admit_placed(client, [Spot(host)], write=write, joins=False)


def is_free(client: Exchange) -> bool:
    """The usual case: neither a shard's state nor the transaction's mode restricts anything, nor what the
    session keeps on a host.
    """
    session = client.session
    usual = client.snapshot.all_serving and session.transaction_mode == "multi"
    return usual and not session.transaction.pins


def _admit_placed(
    client: Exchange,
    spots: Sequence[Spot],
    *,
    write: bool,
    scatter: bool = False,
    joins: bool = True,
    begins_xa: bool = False,
) -> None:
    session = client.session
    placed = Placed(session, client.snapshot.topology, spots, write, scatter, joins, begins_xa)
    _act(decide(PLACED, placed), session)
    if joins and _stays(session):
        before = session.transaction.spots if session.transaction.open else ()
        session.transaction.spots = tuple(dict.fromkeys((*before, *spots)))


def admit_routine(client: Exchange, host: str, plan: Plan, *, results: bool) -> None:
    """SENT. Raises ProxyError."""
    session = client.session
    bodies = client.services.routines.bodies.get(host)
    _act(decide(SENT, Sent(session, host, plan, bodies, results)), session)


def spots_of(keyspace: str, statements: Iterable[HostStatement]) -> list[Spot]:
    """Where statements run: `keyspace` is that of their tables."""
    return [Spot(one.host, keyspace, shard) for one in statements for shard in one.shards or (None,)]


def scatter_ceiling(client: Exchange) -> int | None:
    """The most rows that a scatter of the user may give, None for no limit."""
    return client.session.user.scatter_rows or client.services.settings.limits.scatter_rows or None
