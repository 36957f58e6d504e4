"""`shardgate fleet verify`: asks the hosts, and says what is wrong (`faults`). Changes nothing: what the
schema's definitions come to on a server is seen on temporary tables, in no binary log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from config import xa
from config.flavour import flavour_of
from config.references import MISSING, count_sql, reference_tables
from config.schema import Kind, Schema, Table, quote
from config.settings import Settings
from config.topology import Host, Keyspace, Topology
from fleet import accounts, distributed
from fleet.accounts import accounts_on
from fleet.core.errors import Failed, HostError
from fleet.core.hosts import Hosts
from fleet.core.progress import Progress
from fleet.core.steps import Step
from fleet.create import Existing, Physical, Plan, existing, wanted
from fleet.faults import (
    Definition,
    Fault,
    Found,
    looks_like,
    of_databases,
    of_slave,
    of_tables,
    of_writes,
    orphans,
    pairs,
    read_definition,
    tables_by_keyspace,
    wrong_rows,
    wrong_rows_sql,
)
from fleet.grants import grants, grants_elsewhere, quoted_account
from fleet.moves import read_only_databases
from fleet.references import differing
from fleet.rights import compare, read_grants
from fleet.rows import databases_with_rows

_TOGETHER = 20
"""Databases whose definitions are asked for in one network write."""


class Verifying:
    """One run. `deep`: looks at the rows, too. `plan`: of these masters and their slaves only, and of these
    databases there.
    """

    def __init__(
        self,
        settings: Settings,
        schema: Schema,
        topology: Topology,
        hosts: Hosts,
        progress: Progress,
        *,
        deep: bool,
        plan: Plan | None = None,
    ) -> None:
        self._settings, self._schema, self._topology, self._hosts = settings, schema, topology, hosts
        self._progress, self._deep = progress, deep
        self._plan = plan if plan is not None else wanted(schema, topology)
        self._serves = plan is None
        """The masters take writes: asked by a tool, they may be about to."""
        self._faults: list[Fault] = []

    async def faults(self) -> list[Fault]:
        """All that is wrong."""
        with self._progress.of(sum(len(databases) for databases in self._plan.values())):
            answers = await asyncio.gather(*(self._look(host) for host in self._plan))
        found = {host: having for host, having in answers if having is not None}
        self._faults += of_databases(self._plan, self._topology, found)
        self._faults += of_tables(self._plan, self._topology, found)
        self._faults += of_writes(self._plan, found) if self._serves else ()
        await self._references(found)
        mine = [one for one in pairs(self._topology) if one[1] in self._plan]
        for faults in await asyncio.gather(*(slave_faults(self._hosts, *one) for one in mine)):
            self._faults += faults
        await asyncio.gather(*(self._accounts(host) for host in (*found, *(slave for slave, _ in mine))))
        if self._settings.xa.enabled:
            await asyncio.gather(*(self._distributed(host) for host in found))
        if self._deep:
            await self._rows(found)
        return self._faults

    def _unreachable(self, error: HostError) -> None:
        self._faults.append(_unreachable(error))

    async def _distributed(self, host: Host) -> None:
        """The tables of decisions, and what is prepared."""
        try:
            if not distributed.lacks_nothing(await existing(self._hosts, host)):
                text, remedy = f"{xa.DATABASE} is missing or not whole", "make it: shardgate fleet create"
                self._faults.append(Fault("missing", host, text, remedy))
            elif told := await distributed.lasting(self._hosts, host):
                remedy = "docs/operations.md says what to do about it"
                self._faults.append(Fault("prepared", host, told, remedy))
        except Failed as error:
            self._faults.append(Fault("prepared", host, str(error).removeprefix(f"{host}: "), ""))
        except HostError as error:
            self._unreachable(error)

    async def _look(self, host: Host) -> tuple[Host, Found | None]:
        try:
            held = await existing(self._hosts, host)
            found = Found(frozenset(held))
            left = orphans(self._plan, self._topology, host, held)
            found.full = frozenset(await databases_with_rows(self._hosts, host, left) if left else ())
            found.closed = bool(int((await self._hosts.query(host, "SELECT @@GLOBAL.read_only"))[0][0]))
            found.read_only = await read_only_databases(self._hosts, host)
            tables = {table.name: table for one in self._plan[host] for table in one.tables if table.columns}
            found.wanted = await self._wanted(host, list(tables.values()))
            listed = self._plan[host]
            chunks = [listed[at : at + _TOGETHER] for at in range(0, len(listed), _TOGETHER)]
            await asyncio.gather(*(self._definitions(host, chunk, held, found) for chunk in chunks))
        except HostError as error:
            self._unreachable(error)
            return host, None
        return host, found

    async def _definitions(
        self, host: Host, databases: Sequence[Physical], held: Existing, found: Found
    ) -> None:
        """The tables of some databases, as they are."""
        names = [
            (one.name, table.name)
            for one in databases
            for table in one.tables
            if table.name in held.get(one.name, ())
        ]
        if names:
            asked = [f"SHOW CREATE TABLE {quote(database)}.{quote(table)}" for database, table in names]
            answers = await self._hosts.many(host, asked)
            for name, rows in zip(names, answers, strict=True):
                found.tables[name] = read_definition(str(rows[0][1]))
        for one in databases:
            self._progress.step(Step(one.name, "", host))

    async def _wanted(self, host: Host, tables: Iterable[Table]) -> dict[str, Definition]:
        """What the server makes of the schema's definitions. One that it does not take is a fault."""
        found: dict[str, Definition] = {}
        database = "mysql"  # is there always; a temporary table in it is this session's alone
        async with self._hosts.connection(host) as conn:
            await self._hosts.rows(conn, host, "SET SESSION sql_log_bin = 0")
            try:
                for table in tables:
                    create = table.create_sql(database).replace(
                        "CREATE TABLE IF NOT", "CREATE TEMPORARY TABLE IF NOT"
                    )
                    name = f"{quote(database)}.{quote(table.name)}"
                    await self._hosts.rows(conn, host, create)
                    ((_, sql),) = await self._hosts.rows(conn, host, f"SHOW CREATE TABLE {name}")
                    await self._hosts.rows(conn, host, f"DROP TEMPORARY TABLE {name}")
                    found[table.name] = read_definition(str(sql))
            finally:
                await self._hosts.rows(conn, host, "SET SESSION sql_log_bin = 1")
        return found

    async def _references(self, found: dict[Host, Found]) -> None:
        for name in reference_tables(self._schema, self._topology):
            rows = {}
            for host, having in found.items():
                try:
                    there = name in having.tables
                    rows[host] = (
                        int((await self._hosts.query(host, count_sql(name)))[0][0]) if there else MISSING
                    )
                except HostError as error:
                    self._unreachable(error)
            for host, text in differing(name, rows).items():
                what, _, remedy = text.partition(". ")
                self._faults.append(Fault("reference", host, what, remedy, name[0]))

    async def _accounts(self, host: Host) -> None:
        needed = accounts_on(self._settings.backends, host, distributed=self._settings.xa.enabled)
        try:
            held = await accounts.look(self._hosts, host, [one.user for one in needed]) if needed else None
            names = [str(name) for (name,) in await self._hosts.query(host, "SHOW DATABASES")]
        except HostError as error:
            self._unreachable(error)
            return
        for one in needed if held is not None else ():
            assert held is not None
            name = quoted_account(one.user)
            if one.user not in held.grants:
                text, remedy = f"the account {name} is missing", "make it: shardgate fleet create"
                self._faults.append(Fault("grants", host, text, remedy))
                continue
            rights = grants(
                self._schema, self._topology, host, one.account, held.server, distributed=one.distributed
            )
            findings = compare(
                rights,
                read_grants(held.grants[one.user]),
                names,
                name,
                lambda name: bool(self._topology.physical(name) or looks_like(self._topology, name)),
                partial(grants_elsewhere, self._schema, self._topology, one.account, held.server),
            )
            for finding in findings:
                remedy = "; ".join(finding.remedy)
                self._faults.append(Fault("grants", host, f"{one.user} {finding.text}", remedy))

    async def _rows(self, found: dict[Host, Found]) -> None:
        """Rows on a shard that is not theirs."""
        asked = [
            (keyspace, shard, host, database.decode(), table)
            for name, tables in tables_by_keyspace(self._schema).items()
            for keyspace in [self._topology.keyspaces[name]]
            for shard, (host, database) in keyspace.places.items()
            for table in tables
            if host in found and (database.decode(), table.name) in found[host].tables
        ]

        async def ask(keyspace: Keyspace, shard: int, host: Host, database: str, table: Table) -> None:
            try:
                wrong = await self._wrong_rows(keyspace, shard, host, database, table)
            except HostError as error:
                self._unreachable(error)
            else:
                self._faults += [wrong_rows(host, database, table.name, *wrong)] if wrong else []
            self._progress.step(Step(database, "", host))

        with self._progress.of(len(asked)):
            await asyncio.gather(*(ask(*one) for one in asked))

    async def _wrong_rows(
        self, keyspace: Keyspace, shard: int, host: Host, database: str, table: Table
    ) -> tuple[int, object, object] | None:
        """How many, and the least and the greatest of their routing values. Keys are hashed here: not every
        server has MD5().
        """
        if table.kind is not Kind.HASHED:
            sql = wrong_rows_sql(keyspace, shard, table)
            found = await self._hosts.query(host, sql, None) if sql is not None else [(0, None, None)]
            return (int(found[0][0]), found[0][1], found[0][2]) if found[0][0] else None
        wrong: list[Any] = []
        sql = f"SELECT {quote(table.routing)} FROM {quote(database)}.{quote(table.name)}"
        async for (key,) in self._hosts.stream(host, sql):
            value = key.encode() if isinstance(key, str) else key
            if value is not None and keyspace.shard_of_key(value) != shard:
                wrong.append(key)
        return (len(wrong), min(wrong), max(wrong)) if wrong else None


def _unreachable(error: HostError) -> Fault:
    remedy = "see to the host and to the account that the tools log in with"
    return Fault("unreachable", error.host, str(error), remedy)


async def slave_faults(hosts: Hosts, slave: Host, master: Host) -> list[Fault]:
    """What is wrong with a slave, which is to replicate from `master`."""
    try:
        version = str((await hosts.query(slave, "SELECT VERSION()"))[0][0])
        word = flavour_of(version).replica_word
        status = await hosts.records(slave, f"SHOW {word} STATUS")
        read_only = int((await hosts.query(slave, "SELECT @@GLOBAL.read_only"))[0][0])
    except HostError as error:
        return [_unreachable(error)]
    return list(of_slave(slave, master, status, read_only=bool(read_only)))
