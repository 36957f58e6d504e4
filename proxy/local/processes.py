"""SHOW PROCESSLIST, information_schema.PROCESSLIST and SHOW GRANTS: clients and users of the proxy.

What a server would tell here is about the proxy's own connections and its own account, and of no use to a
client: KILL takes the proxy's ids.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.backends.settings import LOGIN
from proxy.engine.diagnostics import fetch_warnings
from proxy.engine.lease import asking, borrowed
from proxy.engine.outside_transaction import write_result
from proxy.engine.seen import threads_now, waits_now
from proxy.engine.task import TaskWork
from proxy.engine.waiting_room import Ticket
from proxy.engine.work import Work
from proxy.errors import ProxyError
from proxy.peers import of_all
from proxy.session.outcome import Outcome
from proxy.session.state import Role, User
from proxy.wire.resultset import NUMERIC, Column, decode_column, encode_row, text_column, text_value
from rewriter.plans import Values
from rewriter.plans.builtins import ShowGrants, ShowProcessList

from .rows import constant

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.engine.services import Services

Process = dict[str, Any]
EXECUTING: Final = "executing"
"""One session, by the columns of the list in lower case; values as JSON has them."""

States = Mapping[int, str]
"""What a server says that its connections do, by their numbers."""

_MOST_HOSTS: Final = 64
_PATIENCE: Final = 1.0
"""So many hosts are asked at most, for so many seconds, what the statements that run there do."""

_SHORT = 100
"""So many characters of a statement are shown without FULL."""

_PRIVILEGES = {
    Role.READ: "SELECT",
    Role.WRITE: "SELECT, INSERT, UPDATE, DELETE, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE",
    Role.ADMIN: "ALL PRIVILEGES",
}
_ALL = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES,"
    " LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER"
)
"""What ALL PRIVILEGES means for a database, one row each in information_schema."""


# -- sessions
# -------------------------------------------------------------------------------------------------------


def processes(services: Services, user: str, *, admin: bool) -> list[Process]:
    """The sessions of this worker process that the user may see: all of them, or the user's own."""
    now, waiting, threads = time.monotonic(), waits_now(services), threads_now(services)
    found: list[Process] = []
    for id, other in sorted(services.clients.sessions.items()):
        session = other.session
        if not admin and session.user.name != user:
            continue
        busy = other.work is not None
        found.append(
            {
                "id": id,
                "user": session.user.name,
                "host": session.address,
                "db": session.database,
                "command": "Query" if busy else "Sleep",
                "time": int(now - other.begun) if other.begun else 0,
                "state": _state(other.work, waiting.get(id)),
                "threads": threads.get(id, []),
                "info": other.sql.decode("utf-8", "replace") if busy and other.sql else None,
            }
        )
    return found


def _state(work: Work | None, waits_for: str | None) -> str:
    reason = work.reason if isinstance(work, Ticket) else waits_for
    if reason:
        return f"waiting for {reason}"
    return EXECUTING if work is not None else ""


async def all_processes(client: Exchange) -> list[Process]:
    """The sessions of all worker processes."""
    user = client.session.user
    admin = user.sees_others
    own = processes(client.services, user.name, admin=admin)
    parts = await of_all(client.services.peers, "processes", own, user=user.name, admin=admin)
    return sorted((one for part in parts for one in part), key=lambda one: int(one["id"]))


def _states(columns: Sequence[Column], rows: Sequence[Sequence[bytes | None]]) -> dict[int, str]:
    """The states that a server's SHOW PROCESSLIST tells, by the numbers of its connections."""
    names = [column.name.lower() for column in columns]
    if b"id" not in names:
        return {}  # it is an error
    id, state = names.index(b"id"), names.index(b"state")
    return {int(row[id] or 0): (row[state] or b"").decode("utf-8", "replace") for row in rows}


async def _with_states(client: Exchange, host: str, states: States) -> list[Process]:
    """The sessions, with the states that the hosts of their statements tell. `states`: those of `host`."""
    found = await all_processes(client)
    running = [process for process in found if process["state"] == EXECUTING]
    places = {place for process in running for place, _ in process["threads"]} - {host}
    others = sorted(places & set(client.snapshot.topology.hosts))[:_MOST_HOSTS]
    told = await asyncio.gather(*(_asked(client, other) for other in others))
    known = {host: states, **dict(zip(others, told, strict=True))}
    for process in running:
        shown = (known.get(place, {}).get(thread) for place, thread in process["threads"])
        process["state"] = next(filter(None, shown), EXECUTING)
    return found


async def _asked(client: Exchange, host: str) -> States:
    """The states that a host tells; none where it does not answer soon."""
    try:
        async with asyncio.timeout(_PATIENCE), asking(client, host, LOGIN) as conn:
            reply = await Collector().query(conn, b"SHOW PROCESSLIST")
            return _states([decode_column(payload) for payload in reply.columns], reply.values())
    except (ProxyError, TimeoutError):
        return {}


def _values(process: Mapping[str, Any], columns: Sequence[Column]) -> list[bytes | None]:
    """A session in these columns; what the proxy does not know is 0, or NULL for a text."""
    row: list[bytes | None] = []
    for column in columns:
        name = column.name.decode("utf-8", "replace").lower()
        unknown = 0 if column.type in NUMERIC else None
        value = process.get(name, unknown)
        row.append(None if value is None else text_value(value))
    return row


def process_list(client: Exchange, plan: ShowProcessList, values: Values) -> None:
    """SHOW [FULL] PROCESSLIST."""
    TaskWork(client).start(_process_list(client, full=plan.full))


async def _process_list(client: Exchange, *, full: bool) -> None:
    topology = client.snapshot.topology
    async with borrowed(client, topology.default or topology.hosts[0], all_rows=True) as conn:
        reply = await Collector().query(conn, b"SHOW PROCESSLIST")
        found = await fetch_warnings(conn, reply.warnings) if reply.warnings else []  # MySQL's: deprecated
    if reply.err is not None:
        client.fail(reply.err)
        return
    columns = [decode_column(payload) for payload in reply.columns]
    rows = []
    for process in await _with_states(client, conn.host, _states(columns, reply.values())):
        info = process["info"]
        shown = process if full or info is None else process | {"info": info[:_SHORT]}
        rows.append(encode_row(_values(shown, columns)))
    client.session.apply(Outcome(diagnostics=found or None))
    write_result(client, reply.columns, rows, len(found), counts=False)


async def process_constants(
    client: Exchange, conn: BackendConnection, definitions: Sequence[bytes], before: bytes
) -> list[bytes]:
    """The sessions as lists of constants, for columns with these definitions; see `rows.constant`. Their
    states are those that the host of `conn` tells.
    """
    told = await Collector().query(conn, b"SHOW PROCESSLIST")
    states = _states([decode_column(payload) for payload in told.columns], told.values())
    return _constants(await _with_states(client, conn.host, states), definitions, before)


def _constants(rows: Sequence[Mapping[str, Any]], definitions: Sequence[bytes], before: bytes) -> list[bytes]:
    columns = [decode_column(payload) for payload in definitions]
    return [
        b", ".join(
            constant(value, column, before)
            for value, column in zip(_values(row, columns), columns, strict=True)
        )
        for row in rows
    ]


# -- grants
# ---------------------------------------------------------------------------------------------------------


def grants(client: Exchange, plan: ShowGrants, values: Values) -> None:
    """SHOW GRANTS: what the settings allow the user, in MySQL's words. Others' are for admins to see."""
    me = client.session.user
    user = me if plan.user is None else client.services.clients.users.get(plan.user)
    if user is None and me.sees_others:
        topology = client.snapshot.topology
        host = topology.default or topology.hosts[0]
        client.relay.run(host, client.sql, facts=plan.facts)  # an account of the servers
        return
    if user is None or (user.name != me.name and not me.sees_others):
        raise ProxyError("no_grant", user=str(plan.user))
    codec = client.session.results_codec
    rows = [encode_row([line.encode(codec, "replace")]) for line in _grants(user)]
    number = client.services.collations.of_results(client.session.settings)
    column = replace(text_column(f"Grants for {user.name}@%"), collation=number)
    write_result(client, [column.encode()], rows, counts=False)


def _grants(user: User) -> list[str]:
    account = "`" + user.name.replace("`", "``") + "`@`%`"
    if user.databases is None:
        return [f"GRANT {_PRIVILEGES[user.role]} ON *.* TO {account}"]
    return [f"GRANT USAGE ON *.* TO {account}"] + [
        f"GRANT {_PRIVILEGES[user.role]} ON `{database}`.* TO {account}"
        for database in sorted(user.databases)
    ]


def privilege_constants(user: User, view: str, definitions: Sequence[bytes], before: bytes) -> list[bytes]:
    """The user's privileges as lists of constants, for a view of information_schema with columns of these
    definitions. Privileges are for everything or for databases: views of tables and columns have none.
    """
    names = (_ALL if user.role is Role.ADMIN else _PRIVILEGES[user.role]).split(", ")
    row = {"grantee": f"'{user.name}'@'%'", "table_catalog": "def", "is_grantable": "NO"}
    rows: list[Mapping[str, Any]] = []
    if view == "USER_PRIVILEGES":
        rows = [row | {"privilege_type": name} for name in (names if user.databases is None else ["USAGE"])]
    elif view == "SCHEMA_PRIVILEGES":
        rows = [
            row | {"table_schema": database, "privilege_type": name}
            for database in sorted(user.databases or ())
            for name in names
        ]
    return _constants(rows, definitions, before)
