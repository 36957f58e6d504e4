"""USE and COM_INIT_DB: logical databases of the schema, physical ones (a session in one shard), and the
default host's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.engine.lease import borrowed
from proxy.engine.task import TaskWork
from proxy.engine.work import Leaving
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic, Outcome
from rewriter.plans import Values
from rewriter.plans.builtins import CreateExisting, DropUnknown, Use
from rewriter.route.scope import INFORMATION_SCHEMA

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def use(client: Exchange, plan: Use, values: Values) -> None:
    use_database(client, plan.database)


def use_database(client: Exchange, database: str, *, at_login: bool = False) -> None:
    """Make `database` the session's current one and answer OK; 1049 when there is none, 1044 when the user
    may not. `at_login`: an error ends the connection, for it means that the log-in has failed.
    """
    snapshot, session = client.snapshot, client.session
    if not database:
        raise ProxyError("no_database")
    if database.lower() == INFORMATION_SCHEMA:  # every server has it, by any case of its name, for all users
        _chosen(client, INFORMATION_SCHEMA)
        return
    if not session.user.may_use(database):
        raise ProxyError("database_denied", user=session.user.name, database=database)
    known = snapshot.schema.databases.get(database)
    if known is not None and known.keyspace is None:
        _chosen(client, database)
        return
    if known is None and snapshot.topology.physical(database) is not None:
        _chosen(client, database)
        return
    host = (
        snapshot.topology.keyspaces[known.keyspace].master
        if known and known.keyspace
        else snapshot.topology.default
    )
    if host is None:
        raise ProxyError("unknown_database", database=database)
    TaskWork(client).start(_use_on(client, host, database, at_login))


def _chosen(client: Exchange, database: str) -> None:
    client.session.database = database
    client.session.refresh_env()
    session, kept, shown = client.session, 0, None
    if client.kind == "command" and client.session.env.flavour.commands_keep_warnings:
        kept = session.warning_count  # MySQL's COM_INIT_DB tells of what there was before
    else:
        shown = session.without_tables()
    session.apply(Outcome(0, diagnostics=shown))
    if session.tracker is not None:
        session.tracker.schema = database
    client.reply_ok(warnings=kept)


async def _use_on(client: Exchange, host: str, database: str, at_login: bool) -> None:
    """Only the host knows whether it has the database."""
    try:
        async with borrowed(client, host, database):
            pass
    except ProxyError:
        if at_login:
            client.leaving = Leaving.NOW
        raise
    _chosen(client, database)


def drop_unknown(client: Exchange, plan: DropUnknown, values: Values) -> None:
    """DROP TABLE of tables of a sharded database that the schema does not name."""
    every = ",".join(plan.tables)
    if not plan.if_exists:
        raise ProxyError("unknown_dropped", tables=every)
    tables = (every,) if client.session.env.flavour.notes_tables_together else plan.tables
    errors = [ProxyError("unknown_dropped", tables=table) for table in tables]
    found = [Diagnostic("Note", error.code, str(error)) for error in errors]
    client.session.apply(Outcome(0, diagnostics=found))
    client.reply_ok(warnings=len(found))


def create_existing(client: Exchange, plan: CreateExisting, values: Values) -> None:
    """CREATE DATABASE of a sharded one: it exists, which IF NOT EXISTS takes for done."""
    error = ProxyError("database_exists", database=plan.database)
    if not plan.if_not_exists:
        raise error
    client.session.apply(Outcome(diagnostics=[Diagnostic("Note", error.code, str(error))]))
    client.reply_ok(affected=int(client.session.env.flavour.noted_create_counts), warnings=1)
