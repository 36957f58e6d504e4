"""LOCK TABLES of sharded tables, and ALTER TABLE … DISABLE KEYS: accepted, and nothing done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.engine.table_locks import unlock_everywhere
from proxy.engine.task import TaskWork
from proxy.engine.warned import notices
from proxy.session.outcome import Outcome
from rewriter.plans import Notice, Values
from rewriter.plans.builtins import LockTables, SwitchKeys

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def lock_tables(client: Exchange, plan: LockTables, values: Values) -> None:
    """OK with a warning: dumps lock what they read, and only single tables can be. As on a server, the tables
    that were locked before are locked no more.
    """
    if client.session.transaction.locks_tables:
        TaskWork(client).start(_unlock(client, plan))
    else:
        _answer(client, plan)


async def _unlock(client: Exchange, plan: LockTables) -> None:
    await unlock_everywhere(client)
    _answer(client, plan)


def _answer(client: Exchange, plan: LockTables) -> None:
    found = notices([Notice("tables_not_locked", {"tables": plan.tables})])
    client.session.apply(Outcome(diagnostics=found))
    client.reply_ok(warnings=1)


def switch_keys(client: Exchange, plan: SwitchKeys, values: Values) -> None:
    """OK."""
    client.reply_ok()
