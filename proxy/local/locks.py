"""LOCK TABLES of sharded tables, and ALTER TABLE … DISABLE KEYS: accepted, and nothing done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.engine.warned import notices
from proxy.session.outcome import Outcome
from rewriter.plans import Builtin, Notice, Values

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def lock_tables(client: Exchange, plan: Builtin, values: Values) -> None:
    """OK with a warning: dumps lock what they read, and only single tables can be."""
    tables = str(plan.arguments["tables"])
    found = notices([Notice("tables_not_locked", {"tables": tables})])
    client.session.apply(Outcome(diagnostics=found))
    client.reply_ok(warnings=1)


def switch_keys(client: Exchange, plan: Builtin, values: Values) -> None:
    """OK."""
    client.reply_ok()
