"""`shardgate fleet ddl`: looks at a table on all shards, and defines it anew where that is not done (`ddl`).

What a statement comes to is seen on empty copies in a database of the tool's own, in no binary log. Where a
tool was killed the server finishes what it has begun: so each ALTER holds a lock by GET_LOCK, which ends with
its connection, and who gets the lock looks at the table again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from aiomysql import Connection

from config.schema import Schema, quote
from config.topology import Host, Topology
from fleet.core.errors import HostError, Refused
from fleet.core.hosts import Hosts
from fleet.core.journal import Journal, Operation
from fleet.core.run import Report, Tool
from fleet.core.steps import Step
from fleet.core.store import Store
from fleet.ddl import (
    Actual,
    Alteration,
    alteration,
    check,
    declaration,
    digest,
    known_targets,
    places,
)
from fleet.faults import Definition, differences, read_definition
from fleet.online import Online
from fleet.statement import Statement

AT_ONCE: Final = 2
"""On a host: each may rebuild a table."""
LOCK_SECONDS: Final = 2
"""An ALTER that waits for a table's lock holds up all who come after it."""
OWN_SECONDS: Final = 60
"""To wait for what a run that was killed has begun."""
ATTEMPTS: Final = 12
PAUSE_SECONDS: Final = 3.0

_TOGETHER: Final = 50
COPIES: Final = "shardgate_ddl"
_FOR_COPIES: Final = ("sql_log_bin", "foreign_key_checks", "sql_notes")
_BUSY: Final = frozenset({1205, 1213})


class Altering:
    """One run of a statement. `program`: what alters the tables in the servers' place."""

    def __init__(
        self,
        statement: Statement,
        schema: Schema,
        topology: Topology,
        hosts: Hosts,
        store: Store,
        program: Online | None = None,
    ) -> None:
        self._program = program
        self._statement, self._schema, self._hosts, self._store = statement, schema, hosts, store
        self._places = places(statement.table, topology)
        self._problems: list[str] = []
        self._turns = {host: asyncio.Semaphore(AT_ONCE) for host in self._places}
        self._found = Alteration()
        self._before: dict[str, Definition] = {}
        self._after: dict[str, Definition] = {}
        self._declared: Definition | None = None

    def tool(self) -> Tool:
        """For the runner."""
        if self._program:
            if not self._statement.actions:
                raise Refused("--online is for ALTER TABLE: write the index as ALTER TABLE … ADD INDEX")
            self._program.check(self._places)
        arguments = {"statement": self._statement.text} | ({"online": True} if self._program else {})
        actions = {"alter": self._alter}
        return Tool("ddl", arguments, self._steps, actions=actions, problems=self._problems)

    # --- what is there, what is to be done -------------------------------------------------------

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        actual = Actual()
        await asyncio.gather(*(self._look(host, actual) for host in self._places))
        actual.tables = {host: actual.tables[host] for host in self._places if host in actual.tables}
        same = [
            one
            for one in await asyncio.to_thread(Journal(self._store).latest)
            if one.tool == "ddl" and one.arguments.get("statement") == self._statement.text
        ]
        self._found = alteration(self._statement, actual, known_targets(same))
        self._problems[:] = [*actual.problems, *self._found.problems]
        if self._problems and not self._found.steps and not self._found.done:
            raise Refused("; ".join(self._problems[:5]))
        for step in self._found.steps:
            _, host, name, target = step.key.split("\t")
            before = actual.tables[host][name.partition(".")[0]]
            after = actual.results[host][digest(before)]
            assert isinstance(after, Definition), target
            self._before[step.key], self._after[step.key] = before, after
        pairs = {(digest(one), digest(self._after[key])): key for key, one in self._before.items()}
        for key in pairs.values():
            check(self._statement.table, self._schema, self._before[key], self._after[key])
        return [self._shown(step) for step in self._found.steps]

    def _shown(self, step: Step) -> Step:
        if not self._program:
            return step
        _, host, name, _ = step.key.split("\t")
        database, _, table = name.partition(".")
        line = self._program.shown(host, database, table, self._statement.actions)
        return replace(step, shown=(line,))

    async def _look(self, host: Host, actual: Actual) -> None:
        try:
            texts = await self._definitions(host, actual)
            actual.tables[host] = {name: read_definition(text) for name, text in texts.items()}
            distinct = {digest(actual.tables[host][name]): text for name, text in texts.items()}
            actual.results[host] = await self._try(host, distinct) if distinct else {}
        except HostError as error:
            actual.tables.pop(host, None)
            actual.problems.append(f"{host}: {error}")

    async def _definitions(self, host: Host, actual: Actual) -> dict[str, str]:
        """By database what SHOW CREATE TABLE says."""
        name = self._statement.table.name
        listed = f"SELECT table_schema FROM information_schema.tables WHERE table_name = '{name}'"
        there = {str(database) for (database,) in await self._hosts.query(host, listed)}
        wanted = self._places[host]
        if missing := [one for one in wanted if one not in there]:
            which = f"{missing[0]} and {len(missing) - 1} more" if len(missing) > 1 else missing[0]
            text = f"the table {name} is missing: make it, shardgate fleet create"
            actual.problems.append(f"{host}: {which}: {text}")
        asked = [one for one in wanted if one in there]
        found: dict[str, str] = {}

        async def ask(databases: Sequence[str]) -> None:
            statements = [f"SHOW CREATE TABLE {quote(one)}.{quote(name)}" for one in databases]
            answers = await self._hosts.many(host, statements)
            found.update((one, str(rows[0][1])) for one, rows in zip(databases, answers, strict=True))

        await asyncio.gather(*(ask(asked[at : at + _TOGETHER]) for at in range(0, len(asked), _TOGETHER)))
        return {one: found[one] for one in asked}

    async def _try(self, host: Host, definitions: Mapping[str, str]) -> dict[str, Definition | str]:
        """What the statement makes of an empty copy of each definition, and of the schema's."""
        found: dict[str, Definition | str] = {}
        async with self._hosts.connection(host) as conn:
            await self._own(conn, host, COPIES)
            for setting in _FOR_COPIES:
                await self._hosts.rows(conn, host, f"SET SESSION {setting} = 0")
            await self._hosts.rows(conn, host, f"DROP DATABASE IF EXISTS {COPIES}")
            await self._hosts.rows(conn, host, f"CREATE DATABASE {COPIES} CHARACTER SET utf8mb4")
            for name, text in definitions.items():
                copy = text.replace("CREATE TABLE ", f"CREATE TABLE {COPIES}.", 1)
                found[name] = await self._made(conn, host, copy, self._statement.sql(COPIES))
            if self._declared is None and self._statement.table.columns:
                declared = await self._made(conn, host, self._statement.table.create_sql(COPIES), "DO 0")
                self._declared = declared if isinstance(declared, Definition) else None
            await self._hosts.rows(conn, host, f"DROP DATABASE {COPIES}")
            for setting in _FOR_COPIES:
                await self._hosts.rows(conn, host, f"SET SESSION {setting} = 1")
            await self._disown(conn, host, COPIES)
        return found

    async def _made(self, conn: Connection, host: Host, create: str, sql: str) -> Definition | str:
        """What `sql` makes of an empty table, or what the server says of it."""
        name = f"{COPIES}.{quote(self._statement.table.name)}"
        await self._hosts.rows(conn, host, f"DROP TABLE IF EXISTS {name}")
        try:
            await self._hosts.rows(conn, host, create)
            await self._hosts.rows(conn, host, sql)
            ((_, text, *_rest),) = await self._hosts.rows(conn, host, f"SHOW CREATE TABLE {name}")
        except HostError as error:
            if error.lost:
                raise
            return str(error)
        return read_definition(str(text))

    # --- a step ----------------------------------------------------------------------------------

    async def _alter(self, step: Step) -> Mapping[str, Any]:
        _, host, name, _ = step.key.split("\t")
        database, _, table = name.partition(".")
        async with self._turns[host], self._hosts.connection(host) as conn:
            await self._own(conn, host, name)
            if await self._is_left(conn, step, database, table):
                if self._program:
                    await self._program.run(host, database, table, self._statement.actions)
                else:
                    await self._run(conn, step)
                if await self._is_left(conn, step, database, table):
                    raise HostError(host, "the statement has changed nothing")
            await self._disown(conn, host, name)
        return {}

    async def _is_left(self, conn: Connection, step: Step, database: str, table: str) -> bool:
        """Whether it is still to be done. HostError when the table is not as it was, nor as it is to be."""
        sql = f"SHOW CREATE TABLE {quote(database)}.{quote(table)}"
        rows = await self._hosts.rows(conn, step.host, sql)
        found = read_definition(str(rows[0][1]))
        if found.lines == self._after[step.key].lines:
            return False
        if found.lines != self._before[step.key].lines:
            said = "; ".join(differences(self._after[step.key], found))
            raise HostError(step.host, f"it was changed by somebody else: it {said}")
        return True

    async def _run(self, conn: Connection, step: Step) -> None:
        await self._hosts.rows(conn, step.host, f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._hosts.rows(conn, step.host, step.statements[0], None)
                break
            except HostError as error:
                if error.code not in _BUSY:
                    raise
                if attempt == ATTEMPTS:
                    text = f"{error.text}: tried {ATTEMPTS} times; end the transactions that use the table"
                    raise HostError(step.host, text, error.code) from error
            await self._pause()
        await self._hosts.rows(conn, step.host, "SET SESSION lock_wait_timeout = DEFAULT")

    async def _pause(self) -> None:
        await asyncio.sleep(PAUSE_SECONDS)

    async def _own(self, conn: Connection, host: Host, what: str) -> None:
        """Wait until no connection of a tool is at work on it. HostError when that takes long."""
        sql = f"SELECT GET_LOCK('{lock_name(what)}', {OWN_SECONDS})"
        if (await self._hosts.rows(conn, host, sql))[0][0] != 1:
            raise HostError(
                host, "what an earlier run has begun is still at work there: run this again later"
            )

    async def _disown(self, conn: Connection, host: Host, what: str) -> None:
        await self._hosts.rows(conn, host, f"DO RELEASE_LOCK('{lock_name(what)}')")

    # --- what is told ----------------------------------------------------------------------------

    def told(self, report: Report, place: str, *, dry_run: bool) -> Iterator[str]:
        """What was done, or would be, and what the schema is to say."""
        table = self._statement.table
        count = sum(map(len, self._places.values()))
        there = f"; {self._found.done} have that definition already" if self._found.done else ""
        yield (
            f"{table.database}.{table.name}: {'would alter' if dry_run else 'altered'} {len(report.done)} of "
            f"{count} tables{there}"
        )
        if self._declared is None or self._found.target is None or not (report.done or self._found.done):
            return
        said = declaration(self._statement, self._declared, self._found.target)
        if said:
            yield "The schema is to say so, too: new shards are made by it, and `verify` goes by it."
            yield f"In {place}, {table.database}.{table.name}:"
            yield from (
                f'  "{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in said.items()
            )
        options = self._found.target.lines[-1]
        if self._declared.lines[-1] != options:
            yield f"The schema has no words for what stands behind the columns: {options}"


def lock_name(what: str) -> str:
    """Names of locks have 64 characters at most."""
    return "shardgate_" + hashlib.sha256(what.encode()).hexdigest()[:32]
