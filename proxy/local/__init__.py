"""Statements the proxy answers itself, one file for each subject. `run_builtin` finds the right one by the
plan's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from proxy.engine import transactions
from proxy.errors import ProxyError
from rewriter.plans import Builtin, Values

from . import catalog, explain, kill, locks, processes, set, show, status, use

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

Handler = Callable[["Exchange", Builtin, Values], None]

_HANDLERS: dict[str, Handler] = {
    "begin": transactions.begin,
    "commit": transactions.commit,
    "rollback": transactions.rollback,
    "savepoint": transactions.savepoint,
    "rollback_to": transactions.rollback_to,
    "release_savepoint": transactions.release_savepoint,
    "set": set.set_variables,
    "use": use.use,
    "create_existing": use.create_existing,
    "kill": kill.kill_statement,
    "empty": show.empty,
    "explain_route": explain.explain_route,
    "show_shards": show.shards,
    "show_topology": show.topology,
    "show_pools": show.pools,
    "show_proxy_status": show.proxy_status,
    "show_proxy_queries": show.proxy_queries,
    "show_proxy_sessions": show.proxy_sessions,
    "show_status": status.show_status,
    "show_variables": status.show_variables,
    "show_warnings": show.warnings,
    "show_errors": show.errors,
    "lock_tables": locks.lock_tables,
    "switch_keys": locks.switch_keys,
    "show_databases": catalog.databases,
    "show_tables": catalog.tables,
    "show_columns": catalog.columns,
    "show_index": catalog.index,
    "show_create_table": catalog.create_table,
    "show_create_database": catalog.create_database,
    "show_process_list": processes.process_list,
    "show_grants": processes.grants,
    "show_nothing": catalog.nothing,
    "show_table_status": catalog.table_status,
}


def run_builtin(client: Exchange, plan: Builtin, values: Values) -> None:
    """Answer a statement of the proxy's own."""
    handler = _HANDLERS.get(plan.name)
    if handler is None:
        what = plan.name.replace("_", " ").upper()
        raise ProxyError(
            "not_supported_yet", what=what, reason="this version has no such statement", alternative=""
        )
    handler(client, plan, values)
