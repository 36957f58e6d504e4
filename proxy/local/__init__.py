"""Statements the proxy answers itself, one file for each subject. `run_builtin` finds the right one by the
plan's variant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from proxy.engine import transactions
from rewriter.plans import Values, builtins
from rewriter.plans.cached import FlushCache, TouchingSet

from . import (
    advice,
    caches,
    catalog,
    diagnostics,
    distributed,
    explain,
    kill,
    loads,
    locks,
    processes,
    routines,
    set,
    show,
    status,
    use,
)

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

BUILTINS: Final[dict[type[builtins.Builtin], Callable[[Exchange, Any, Values], None]]] = {
    builtins.Begin: transactions.begin,
    builtins.Commit: transactions.commit,
    builtins.Rollback: transactions.rollback,
    builtins.SetSavepoint: transactions.savepoint,
    builtins.RollbackTo: transactions.rollback_to,
    builtins.ReleaseSavepoint: transactions.release_savepoint,
    builtins.SetVariables: set.set_variables,
    builtins.Use: use.use,
    builtins.CreateExisting: use.create_existing,
    builtins.DropUnknown: use.drop_unknown,
    builtins.Kill: kill.kill_statement,
    builtins.Empty: show.empty,
    builtins.ExplainRoute: explain.explain_route,
    builtins.ShowShards: loads.shards,
    builtins.ShowHotShards: loads.hot_shards,
    builtins.ShowTopology: show.topology,
    builtins.ShowPools: loads.pools,
    builtins.ShowProxyStatus: show.proxy_status,
    builtins.ShowProxyCaches: caches.proxy_caches,
    FlushCache: caches.flush_cache,
    TouchingSet: set.set_variables,
    builtins.ShowProxyQueries: loads.proxy_queries,
    builtins.ShowProxyAdvice: advice.proxy_advice,
    builtins.ShowProxySessions: show.proxy_sessions,
    builtins.ShowProxyTransactions: distributed.proxy_transactions,
    builtins.ShowStatus: status.show_status,
    builtins.ShowVariables: status.show_variables,
    builtins.ShowRoutines: routines.show_routines,
    builtins.ShowWarnings: show.warnings,
    builtins.ShowErrors: show.errors,
    builtins.GetDiagnostics: diagnostics.get_diagnostics,
    builtins.LockTables: locks.lock_tables,
    builtins.SwitchKeys: locks.switch_keys,
    builtins.ShowDatabases: catalog.databases,
    builtins.ShowTables: catalog.tables,
    builtins.ShowColumns: catalog.columns,
    builtins.ShowIndex: catalog.index,
    builtins.ShowCreateTable: catalog.create_table,
    builtins.ShowCreateDatabase: catalog.create_database,
    builtins.ShowProcessList: processes.process_list,
    builtins.ShowGrants: processes.grants,
    builtins.ShowNothing: catalog.nothing,
    builtins.ShowTableStatus: catalog.table_status,
}


def run_builtin(client: Exchange, plan: builtins.Builtin, values: Values) -> None:
    """Answer a statement of the proxy's own."""
    BUILTINS[plan.__class__](client, plan, values)
