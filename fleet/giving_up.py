"""`shardgate fleet ddl --undo`: gives a definition up that is not on all shards, and says which have it.

A server has no way back from a definition, so none is taken: the operation's entry in the journal is closed.
Which tables have it is told by what the journal has planned (`ddl`), whatever schema and topology say by now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from config.schema import Schema, quote
from config.topology import Host, Topology
from fleet.altering import lock_name
from fleet.core.errors import HostError, Refused
from fleet.core.hosts import Hosts
from fleet.core.journal import Operation
from fleet.core.run import Report, Tool
from fleet.core.steps import Step
from fleet.ddl import digest, known_targets, places, planned_tables
from fleet.faults import read_definition
from fleet.statement import read_statement

_TOGETHER: Final = 50


@dataclass
class State:
    """What a host has: databases with the definition, without it, without the table; and those where the
    server is still at the statement. `problem`: why it cannot be asked.
    """

    having: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    at_work: list[str] = field(default_factory=list)
    problem: str = ""


class GivingUp:
    """One run. `statement`: of the ddl that is given up; None: of the last that is unfinished."""

    def __init__(self, statement: str | None, schema: Schema, topology: Topology, hosts: Hosts) -> None:
        self._statement = None if statement is None else _as_kept(statement, schema)
        self._schema, self._topology, self._hosts = schema, topology, hosts
        self._operation = Operation(0)
        self._table = ""
        self._places: Mapping[Host, Sequence[str]] = {}
        self._found: dict[Host, State] = {}

    def tool(self) -> Tool:
        """For the runner, which takes it back only."""
        return Tool(
            "ddl",
            {} if self._statement is None else {"statement": self._statement},
            self._never,
            undo=self._steps,
            actions={"give up": self._close},
            undoes=lambda one: self._statement in (None, one.arguments.get("statement")),
            undone="given up",
        )

    async def _never(self, operation: Operation | None) -> Sequence[Step]:
        raise Refused("a definition is given up with --undo only")

    async def _steps(self, operation: Operation) -> Sequence[Step]:
        self._operation = operation
        text = str(operation.arguments.get("statement", ""))
        self._table, planned = planned_tables(operation)
        self._places = planned
        try:
            known = places(read_statement(text, self._schema).table, self._topology)
            self._places = {host: known.get(host) or planned[host] for host in [*known, *planned]}
        except Refused:  # the schema has no such table any more
            pass
        targets = known_targets([operation])
        states = await asyncio.gather(*(self._look(host, targets) for host in self._places))
        self._found = dict(zip(self._places, states, strict=True))
        return [Step("give up", f"give up operation {operation.number}: {text}", action="give up")]

    async def _close(self, step: Step) -> Mapping[str, Any]:
        return {}  # the runner ends the operation

    async def _look(self, host: Host, targets: frozenset[str]) -> State:
        found = State()
        try:
            await self._sort(host, targets, found)
        except HostError as error:
            return State(problem=str(error))
        return found

    async def _sort(self, host: Host, targets: frozenset[str], found: State) -> None:
        listed = f"SELECT table_schema FROM information_schema.tables WHERE table_name = '{self._table}'"
        there = {str(database) for (database,) in await self._hosts.query(host, listed)}
        found.missing = [one for one in self._places[host] if one not in there]
        asked = [one for one in self._places[host] if one in there]
        for at in range(0, len(asked), _TOGETHER):
            some = asked[at : at + _TOGETHER]
            names = [f"{quote(one)}.{quote(self._table)}" for one in some]
            answers = await self._hosts.many(host, [f"SHOW CREATE TABLE {name}" for name in names])
            for database, rows in zip(some, answers, strict=True):
                has = digest(read_definition(str(rows[0][1]))) in targets
                (found.having if has else found.lacking).append(database)
        for at in range(0, len(found.lacking), _TOGETHER):
            some = found.lacking[at : at + _TOGETHER]
            locks = [f"SELECT IS_FREE_LOCK('{lock_name(f'{one}.{self._table}')}')" for one in some]
            answers = await self._hosts.many(host, locks)
            found.at_work += [one for one, rows in zip(some, answers, strict=True) if rows[0][0] == 0]

    def told(self, report: Report, *, dry_run: bool) -> Iterator[str]:
        """Which shards have the definition, and which do not."""
        having = sum(len(one.having) for one in self._found.values())
        count = sum(map(len, self._places.values()))
        yield f"{self._operation.arguments.get('statement', '')}"
        yield f"a definition cannot be taken back: {having} of {count} tables {self._table} have this one"
        for host, state in self._found.items():
            if state.problem:
                yield f"  {host}: cannot be told: {state.problem}"
            for what, names in (
                ("has it", state.having),
                ("has it not", state.lacking),
                ("has no such table", state.missing),
                ("is still at work on it, and finishes that", state.at_work),
            ):
                if names:
                    yield f"  {host}: {what}: {', '.join(_runs(names, self._places[host]))}"
        if report.problems:
            return
        yield f"operation {self._operation.number} {'would be' if dry_run else 'is'} given up"
        if having:
            yield "To have one definition again, run the statement once more, or the other way round."


def _as_kept(statement: str, schema: Schema) -> str:
    """As the journal has it; as it is when the schema has no such table any more."""
    try:
        return read_statement(statement, schema).text
    except Refused:
        return statement.strip()


def _runs(names: Sequence[str], order: Sequence[str]) -> Iterator[str]:
    """Databases that follow one another in `order` as one: db00000 to db00511."""
    place = {name: number for number, name in enumerate(order)}
    numbered = enumerate(sorted(names, key=lambda one: place[one]))
    for _, run in groupby(numbered, lambda one: place[one[1]] - one[0]):
        listed = [name for _, name in run]
        yield listed[0] if len(listed) == 1 else f"{listed[0]} to {listed[-1]}"
