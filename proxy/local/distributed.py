"""SHOW PROXY TRANSACTIONS: those that are open, those at COMMIT, and branches that are prepared."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from proxy.engine.task import TaskWork
from proxy.peers import of_all
from proxy.session.state import Role
from proxy.wire.resultset import integer_column, text_column
from rewriter.plans import Values
from rewriter.plans.builtins import Listing

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


def proxy_transactions(client: Exchange, plan: Listing, values: Values) -> None:
    """One row for each transaction of all worker processes that the user may see, and (for admins) one for
    each branch that is prepared on a master, whichever proxy has left it.
    """
    TaskWork(client).start(_proxy_transactions(client, plan, values))


async def _proxy_transactions(client: Exchange, plan: Listing, values: Values) -> None:
    services, user = client.services, client.session.user
    admin = user.role >= Role.ADMIN
    own = transactions(services, user.name, admin=admin)
    parts = await of_all(services.peers, "transactions", own, user=user.name, admin=admin)
    found = [row for part in parts for row in part]
    if admin and services.settings.xa.enabled:
        found += await _prepared(services)
    answer_rows(client, _COLUMNS, liked(plan, values, found))


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
    return rows


async def _prepared(services: Services) -> list[list[object]]:
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
        for one in await services.resolver.look()
    ]
