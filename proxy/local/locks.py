"""LOCK TABLES of sharded tables, and ALTER TABLE … DISABLE KEYS: accepted, and nothing done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.engine.warned import notices
from proxy.session.outcome import Outcome
from rewriter.plans import Notice, Values
from rewriter.plans.builtins import LockTables, SwitchKeys

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def lock_tables(client: Exchange, plan: LockTables, values: Values) -> None:
    """OK with a warning: dumps lock what they read, and only single tables can be."""
    found = notices([Notice("tables_not_locked", {"tables": plan.tables})])
    client.session.apply(Outcome(diagnostics=found))
    client.reply_ok(warnings=1)


def switch_keys(client: Exchange, plan: SwitchKeys, values: Values) -> None:
    """OK."""
    client.reply_ok()
