"""What triggers, functions and procedures leave behind in a session, by host: learnt from the catalogs.

A statement does not show that it runs a trigger that assigns a user variable. So the hosts of databases
that are not sharded are asked for such bodies: at start, after every definition of one that the proxy runs,
and now and then, for those that others have made. Nearly always there are none, and nobody pays anything.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import structlog

from config.topology import Topology
from proxy.backends import Backends
from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.backends.own import own_connection
from proxy.catalog.tables import text_literal
from proxy.errors import ProxyError
from proxy.peers import Peers
from proxy.tasks import Tasks
from rewriter.sql.statements.routines import Body, Routines

log = structlog.get_logger("proxy")

_SYSTEM = frozenset({"information_schema", "mysql", "performance_schema", "sys"})

#: Name and text of what may run by itself, of one database. Views come last: if there is something else
#: for them to run, else those that read what a connection keeps.
_BODIES = (
    "SELECT event_object_table, action_statement FROM information_schema.triggers"
    " WHERE event_object_schema = {database}",
    "SELECT routine_name, routine_definition FROM information_schema.routines"
    " WHERE routine_schema = {database}",
)
_VIEWS = "SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = {database}"
_READING_VIEWS = _VIEWS + " AND view_definition LIKE '%last_insert_id%'"


def hosts_of(topology: Topology) -> tuple[str, ...]:
    """The hosts that have databases which are not sharded."""
    masters = [one.master for one in topology.keyspaces.values() if not one.sharded]
    return tuple(dict.fromkeys(one for one in [topology.default, *masters] if one is not None))


async def look(topology: Topology, backends: Backends, hosts: Iterable[str]) -> dict[str, Routines | None]:
    """What the hosts have; None for one that does not answer."""
    found: dict[str, Routines | None] = {}
    for host in hosts:
        try:
            async with own_connection(backends, host) as conn:
                found[host] = await routines_on(conn, topology)
        except ProxyError as error:
            log.info("routines not looked at", host=host, reason=str(error))
            found[host] = None
    return found


async def routines_on(conn: BackendConnection, topology: Topology) -> Routines:
    """What the server behind `conn` has in databases that are not sharded. ProxyError when it does not
    answer.
    """
    names = [row[0] or b"" for row in await _rows(conn, "SHOW DATABASES")]
    databases = [
        text_literal(name)
        for name in names
        if name.decode("utf-8", "replace").lower() not in _SYSTEM and not _is_shard(topology, name)
    ]
    bodies: list[Body] = []
    for database in databases:
        for sql in _BODIES:
            bodies += [_body(row) for row in await _rows(conn, sql.format(database=database))]
    views = _VIEWS if Routines(bodies) else _READING_VIEWS
    for database in databases:
        bodies += [_body(row) for row in await _rows(conn, views.format(database=database))]
    return Routines(bodies)


def _is_shard(topology: Topology, database: bytes) -> bool:
    found = topology.physical(database)
    return found is not None and found[1] is not None


def _body(row: list[bytes | None]) -> Body:
    name, text = (None if value is None else value.decode("utf-8", "replace") for value in row)
    return Body(name or "", text)


async def _rows(conn: BackendConnection, sql: str) -> list[list[bytes | None]]:
    reply = await Collector().query(conn, sql.encode())
    if reply.err is not None:
        raise ProxyError("host_unreachable", host=conn.host, reason=reply.err.text())
    return reply.values()


class KnownRoutines:
    """What the hosts have, as far as it is known. `leaving`: by host, of those only that have any which leave
    something behind in a session. `bodies`: of all that were looked at.
    """

    def __init__(self, backends: Backends, tasks: Tasks, peers: Peers | None) -> None:
        self.leaving: dict[str, Routines] = {}
        self.bodies: dict[str, Routines] = {}
        self._backends = backends
        self._spawn = tasks.spawn
        self._peers = peers
        self._doubt_from = 0.0

    async def learn(self, topology: Topology, hosts: Sequence[str] = ()) -> None:
        """Learn which triggers, functions and procedures these hosts, or all, have now."""
        for host, found in (await look(topology, self._backends, hosts or hosts_of(topology))).items():
            if found is not None:
                self.bodies[host] = found
            if found:
                self.leaving[host] = found
            elif found is not None:
                self.leaving.pop(host, None)

    def doubted(self, topology: Topology, host: str) -> None:
        """A host has run code that is not among what is known: look now, if that was not done just before."""
        now = time.monotonic()
        if now >= self._doubt_from:
            self._doubt_from = now + 1
            self._spawn(self.learn(topology, (host,)), "routines")

    async def changed(self, topology: Topology, host: str) -> None:
        """A definition was run there: learn what it has changed, here and in the other workers."""
        await self.learn(topology, (host,))
        if self._peers is not None:
            await self._peers.ask_others("routines", host=host)
