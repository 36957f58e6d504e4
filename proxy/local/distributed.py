"""SHOW PROXY TRANSACTIONS: those that are open, those at COMMIT, and branches that are prepared; of one that
is named by LIKE what became of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from config.xa import FORMAT_ID, BranchName
from proxy.engine.task import TaskWork
from proxy.peers import of_all
from proxy.wire.resultset import integer_column, text_column
from proxy.xa.decisions import Undecided
from rewriter.plans import Values
from rewriter.plans.builtins import Listing

from .rows import like_text
from .show import answer_rows, last_statement, liked, transaction_age

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.engine.services import Services

_COLUMNS = [
    text_column("State"),
    integer_column("Session"),
    text_column("User"),
    text_column("Age"),
    text_column("Hosts"),
    text_column("Gtrid"),
    text_column("Reason"),
    text_column("Last_statement"),
]
_GTRID: Final = 5
_STATES: Final = {True: "committed", False: "aborted", None: "unknown"}
_PATIENCE: Final = 1.0
"""Seconds that a host may take to say what is prepared there."""


def proxy_transactions(client: Exchange, plan: Listing, values: Values) -> None:
    """One row for each transaction of all worker processes that the user may see, and (for admins) one for
    each branch that is prepared on a master, whichever proxy has left it. LIKE and the name of a transaction:
    what became of it, for who knows the name.
    """
    TaskWork(client).start(_proxy_transactions(client, plan, values))


async def _proxy_transactions(client: Exchange, plan: Listing, values: Values) -> None:
    services, user = client.services, client.session.user
    admin = user.sees_others
    own = transactions(services, user.name, admin=admin)
    parts = await of_all(services.peers, "transactions", own, user=user.name, admin=admin)
    found = [row for part in parts for row in part]
    if admin and services.settings.xa.enabled:
        found = _and_prepared(found, await _prepared(services))
    pattern = like_text(plan.like, values) if plan.like is not None else ""
    named = BranchName.read(FORMAT_ID, pattern.encode(), b"0.")
    if named is None:
        answer_rows(client, _COLUMNS, liked(plan, values, found))
    else:
        rows = [row for row in found if row[_GTRID] == pattern]
        answer_rows(client, _COLUMNS, rows or [await _decided(services, named)])


def _and_prepared(found: list[list[object]], prepared: list[list[object]]) -> list[list[object]]:
    """What a worker has left is shown as it is prepared, once that is seen."""
    seen = {row[_GTRID] for row in prepared}
    return [row for row in found if row[1] is not None or row[_GTRID] not in seen] + prepared


async def _decided(services: Services, name: BranchName) -> list[object]:
    reason = None
    try:
        state = _STATES[await services.resolver.decisions.look_up(name)]
    except Undecided as why:
        state, reason = "undecided", str(why)
    if state == "unknown":
        reason = f"it has no decision: not committed, if it ended within {services.settings.xa.keep:g} s"
    return [state, None, None, None, None, name.gtrid.decode(), reason, None]


def transactions(services: Services, user: str, *, admin: bool) -> list[list[object]]:
    """The transactions of this worker process: all of them, or the user's own."""
    rows: list[list[object]] = []
    now = time.monotonic()
    for id, other in services.clients.sessions.items():
        session = other.session
        transaction = session.transaction
        if not transaction.open or not (admin or session.user.name == user):
            continue
        age = transaction_age(transaction, now)
        hosts, gtrid = ", ".join(transaction.held), transaction.gtrid.decode()
        state = "lost" if transaction.lost else "open"
        reason = transaction.lost or None
        last = last_statement(other)
        rows.append([state, id, session.user.name, age, hosts or None, gtrid or None, reason, last])
    for gtrid_, one in services.resolver.at_work.items():
        if admin or one.user == user:
            age = round(now - one.begun, 3)
            hosts = ", ".join(one.hosts)
            rows.append([one.state, one.session, one.user, age, hosts, gtrid_.decode(), None, None])
    for gtrid_, left in services.resolver.soon.items() if admin else ():
        age, hosts = round(now - left.since, 3), ", ".join(sorted(left.hosts))
        reason = f"a branch is left on {hosts}, which is finished when that is back"
        rows.append([left.state, None, None, age, hosts, gtrid_.decode(), reason, None])
    return rows


async def _prepared(services: Services) -> list[list[object]]:
    prepared = await services.resolver.look(_PATIENCE)
    now = time.monotonic()
    return [
        [
            one.state,
            None,
            None,
            round(now - one.since, 3),
            one.host,
            one.name.gtrid.decode(),
            one.reason or None,
            None,
        ]
        for one in prepared
    ]
