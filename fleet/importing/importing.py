"""`shardgate fleet import`: the tool.

    map        the table of old and new IDs, where it is missing
    copy       each table, a range at a time; how far it came is beside the journal
    passes     all tables compared and mended, until nothing differs or it gets no less
    cut-over   with --cut-over: nobody writes to the source, the last passes, all rows compared once more

Until the cut-over is done the operation stays open: the same command goes on with it, --undo empties the
tables.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Literal

from config.schema import quote
from config.topology import Host, Topology
from fleet.core.errors import Failed, HostError, Refused
from fleet.core.hosts import Hosts
from fleet.core.interrupt import to_end
from fleet.core.journal import Operation
from fleet.core.run import Tool
from fleet.core.steps import Step
from fleet.core.store import Store
from fleet.create import existing
from fleet.importing.ids import key_of
from fleet.importing.ranges import Executor, Pace, Ranges, Worker
from fleet.importing.rows import Outcome
from fleet.importing.source import look_at, tables_of, unlike
from fleet.importing.tables import ImportedTable
from fleet.importing.writing import unions

CutOver = Literal["read-only", "stopped"]
CUT_OVERS: Final[dict[str, CutOver]] = {"read-only": "read-only", "stopped": "stopped"}
"""By how they are written."""
_LAST_PASSES: Final = 10
KEPT: Final = 1.0
"""Seconds between two notes of how far a copy came."""
_SECONDS: Final = 5.0
"""Between two lines of progress."""
_RELEASE_SECONDS: Final = 30.0
_COUNT_SECONDS: Final = 600.0


@dataclass
class Verified:
    """One table, compared row by row: how many rows, and the checksum of all."""

    rows: int
    skipped: int
    checksum: int


@dataclass
class Told:
    """What a person is to know at the end. `differed`: in the last pass, which took `seconds`."""

    differed: int = 0
    seconds: float = 0.0
    passes: int = 0
    dangling: dict[str, int] = field(default_factory=dict)
    verified: dict[str, Verified] = field(default_factory=dict)


class Importing:
    """One run. `arguments`: those of the command, for the journal."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        worker: Worker,
        executor: Executor,
        topology: Topology,
        store: Store,
        hosts: Hosts,
        say: Callable[[str], None],
        *,
        cut_over: CutOver | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._arguments, self._worker, self._topology = dict(arguments), worker, topology
        self._store, self._hosts, self._say = store, hosts, say
        self._cut_over = cut_over
        self._ranges = Ranges(worker, executor, pace or Pace())
        self._tables = worker.work.tables
        self._source = worker.job.source
        digest = hashlib.sha256(json.dumps(self._arguments, sort_keys=True).encode()).hexdigest()
        self._document = f"import/{digest[:16]}"
        self._state: dict[str, Any] = {}
        self._said = time.monotonic()
        self.told = Told()

    def tool(self) -> Tool:
        """For the runner."""
        return Tool(
            "import",
            self._arguments,
            self._steps,
            self._undo,
            actions={
                "copy": self._copy,
                "passes": self._passes,
                "cut-over": self._last,
                "end": self._end,
                "release": self._released,
            },
            stays_open=self._cut_over is None,
        )

    # --- what is to be done ------------------------------------------------------------------------

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        held = {host: await existing(self._worker.hosts, host) for host in self._topology.hosts}
        self._refuse_missing(held)
        if operation is None:
            await self._refuse_rows(held)
            await self._refuse_ids()
            self._state = {}
        else:
            await self._read_state()
        done = {} if operation is None else operation.done
        steps = self._map_steps(held)
        for stage, table in enumerate(self._tables, 1):
            key = f"copy\t{table.name}"
            if key not in done:
                text = f"copy {table.source} to {table.name} ({table.table.kind})"
                steps.append(Step(key, text, action="copy", stage=stage))
        stage = len(self._tables) + 1
        text = "compare all tables with the source and mend them, until nothing differs or it gets no less"
        steps.append(Step("passes", text, action="passes", stage=stage))
        if self._cut_over is not None:
            await self._refuse_read_only()
            how = (
                "make the source read-only" if self._cut_over == "read-only" else "the source is not written"
            )
            text = f"{how}, mend the last differences, compare all rows"
            steps.append(Step("cut-over", text, action="cut-over", stage=stage + 1))
            steps.append(Step("end", "the import is done", action="end", stage=stage + 2, final=True))
        return steps

    def _refuse_missing(self, held: Mapping[Host, Mapping[str, frozenset[str]]]) -> None:
        missing = [
            f"{host} has no {database}.{name}"
            for name, rows in self._worker.rows.items()
            for host, database in rows.places()
            if name not in held[host].get(database, ())
        ]
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise Refused(f"{missing[0]}{more}: make the tables first, shardgate fleet create")

    def _map_places(self) -> list[tuple[Host, str]]:
        keyspace = self._topology.keyspaces[self._worker.work.map.keyspace]
        return [(host, name.decode()) for host, name in keyspace.places.values()]

    def _map_steps(self, held: Mapping[Host, Mapping[str, frozenset[str]]]) -> list[Step]:
        table = self._worker.work.map
        missing: dict[Host, list[str]] = {}
        for host, database in self._map_places():
            if database not in held[host]:
                raise Refused(f"{host} has no database {database}: shardgate fleet create makes it")
            if table.name not in held[host][database]:
                missing.setdefault(host, []).append(table.create_sql(database))
        return [
            Step(f"map\t{host}", f"make {table.name} in {len(listed)} databases", host, tuple(listed))
            for host, listed in missing.items()
        ]

    async def _refuse_rows(self, held: Mapping[Host, Mapping[str, frozenset[str]]]) -> None:
        """The tables must be empty: what is there might be overwritten. The map, too, of these tables."""
        for name, rows in self._worker.rows.items():
            selects: dict[Host, list[str]] = {}
            for host, database in rows.places():
                place = f"{quote(database)}.{quote(name)}"
                selects.setdefault(host, []).append(f"SELECT '{database}' FROM {place} LIMIT 1")
            for host, found in (await unions(self._worker.hosts, selects)).items():
                if found:
                    raise Refused(
                        f"{host}: {found[0][0]}.{name} has rows: an import is into empty tables. Of "
                        "one that was begun, the same command with --undo empties them"
                    )

        table, own = self._worker.work.map, self._own_in_map()
        for host, database in self._map_places() if own else ():
            if table.name in held[host][database]:
                place = f"{quote(database)}.{quote(table.name)}"
                sql = f"SELECT {quote(table.routing)} FROM {place} WHERE {own} LIMIT 1"
                if there := await self._worker.hosts.query(host, sql):
                    raise Refused(
                        f"{host}: {database}.{table.name} has rows of another import, as {there[0][0]!r}, "
                        "which may say other shards: delete them, or name another `map` in plan and schema"
                    )

    def _own_in_map(self) -> str:
        """SQL: rows of the map that are of these tables; "" when none can be."""
        old = quote(self._worker.work.map.routing)
        return " OR ".join(
            f"({old} >= '{key_of(one.name, 0)[:-1]}' AND {old} < '{key_of(one.name, 0)[:-2]};')"
            for one in self._tables
            if one.id
        )

    async def _refuse_ids(self) -> None:
        """An old ID is the local part of the new one: none may be larger than that, or less than 1."""
        wrong = []
        for table in self._tables:
            if not table.id:
                continue
            _, layout, _ = self._worker.ids.keyspace(table)
            name = quote(table.id)
            sql = f"SELECT MIN({name}), MAX({name}) FROM {quote(self._source.database)}.{quote(table.source)}"
            ((least, most),) = await self._worker.reader.query(self._source.address, sql)
            wrong += [
                f"{table.source}.{table.id} {one}"
                for one in (least, most)
                if one is not None and not 0 < int(one) <= layout.local_mask
            ]
        if wrong:
            raise Refused(
                f"{self._source.name}: IDs that cannot be local IDs, which are 1 to {layout.local_mask}: "
                f"{', '.join(wrong)}. Give these rows others, or the table another kind in the schema"
            )

    async def _refuse_read_only(self) -> None:
        """A source that is read-only as a whole must not be a host of the fleet."""
        if self._cut_over != "read-only":
            return
        own = await look_at(self._worker.reader, self._source.address)
        for host in self._topology.hosts:
            if (await look_at(self._worker.hosts, host)).identity == own.identity:
                raise Refused(
                    f"the source is on {host}, a host of the fleet, which must stay writable: stop the "
                    "application, or take its rights to write there, and say --cut-over stopped"
                )

    async def _undo(self, operation: Operation) -> Sequence[Step]:
        """Empty the tables, and take the rows out of the map."""
        await self._read_state()
        steps = [Step("release", "the source takes writes again", action="release")]
        checks = "SET SESSION foreign_key_checks = {}".format
        for name, rows in self._worker.rows.items():
            by_host: dict[Host, list[str]] = {}
            for host, database in rows.places():
                by_host.setdefault(host, []).append(f"TRUNCATE TABLE {quote(database)}.{quote(name)}")
            for host, listed in by_host.items():
                text = f"empty {name} in {len(listed)} databases"
                steps.append(
                    Step(f"empty\t{host}\t{name}", text, host, (checks(0), *listed, checks(1)), stage=1)
                )
        table, held = self._worker.work.map, {}
        for host in self._topology.hosts:
            held[host] = await existing(self._worker.hosts, host)
        wanted = self._own_in_map()
        forget: dict[Host, list[str]] = {}
        for host, database in self._map_places():
            if wanted and table.name in held[host].get(database, ()):
                sql = f"DELETE FROM {quote(database)}.{quote(table.name)} WHERE {wanted}"
                forget.setdefault(host, []).append(sql)
        for host, listed in forget.items():
            text = f"take the imported rows out of {table.name} in {len(listed)} databases"
            steps.append(Step(f"forget\t{host}", text, host, tuple(listed), stage=1))
        return steps

    # --- how far it came -----------------------------------------------------------------------------

    async def _read_state(self) -> None:
        content = await asyncio.to_thread(self._store.read, self._document)
        self._state = json.loads(content) if content else {}

    async def _keep(self, **changed: Any) -> None:
        self._state |= changed
        await to_end(self._store.put, self._document, json.dumps(self._state).encode())

    def _progress(self, text: str, *, now: bool = False) -> None:
        if now or time.monotonic() - self._said >= _SECONDS:
            self._said = time.monotonic()
            self._say(f"import: {text}")

    # --- the actions -----------------------------------------------------------------------------------

    async def _copy(self, step: Step) -> Mapping[str, Any]:
        table = self._worker.work.table(step.key.partition("\t")[2])
        begun = self._state.get("copying", {})
        mine = begun.get("table") == table.name
        start, before = (tuple(begun["after"]), int(begun["rows"])) if mine else (None, 0)
        rows, kept = before, time.monotonic()

        async def reached(upto: tuple[str, ...] | None, some: int) -> None:
            nonlocal rows, kept
            rows += some
            self._progress(f"{table.name}: {rows} rows copied")
            if upto is not None and time.monotonic() - kept >= KEPT:
                kept = time.monotonic()
                await self._keep(copying={"table": table.name, "after": list(upto), "rows": rows})

        await self._ranges.over(table, "copy", start, reached)
        await self._keep(copying={})
        return {"rows": rows}

    async def _passes(self, step: Step) -> Mapping[str, Any]:
        if self._state.get("read_only"):
            await self._release()  # a cut-over that was killed
        before: int | None = None
        for number in count(1):
            found = await self._pass(number)
            if not found or (before is not None and found >= before):
                break
            before = found
        return {"passes": self.told.passes, "differed": self.told.differed}

    async def _pass(self, number: int) -> int:
        """Compare and mend all tables; how many rows differed. Failed for IDs that may not be as they are."""
        began, differed, refused = time.monotonic(), 0, Outcome()
        self.told.dangling = {}
        for table in self._tables:
            outcome = await self._ranges.over(table, "mend")
            extra = await self._extras(table, outcome, mend=True)
            differed += outcome.changed + extra
            self._progress(f"pass {number}: {table.name}: {outcome.changed + extra} rows differed")
            for column, some in outcome.dangling.items():
                self.told.dangling[f"{table.source}.{column}"] = some
            if outcome.refused:
                outcome.examples = [f"{table.source} {one}" for one in outcome.examples]
                refused.add(outcome)
        self.told.passes, self.told.differed = number, differed
        self.told.seconds = time.monotonic() - began
        self._progress(f"pass {number}: {differed} rows differed, {self.told.seconds:.1f} s", now=True)
        if refused.refused:
            raise Failed(
                f"{self._source.name}: {refused.refused} rows refer to rows that are not there: "
                f"{', '.join(refused.examples)}. Mend them in the source, or say in the plan what is done "
                "with them (`dangling`: null, keep or skip)"
            )
        return differed

    async def _extras(self, table: ImportedTable, outcome: Outcome, *, mend: bool) -> int:
        """Rows that the source does not have; looked for where there are more than it has."""
        rows = self._worker.rows[table.name]
        counts = await rows.count()
        wanted = outcome.rows - outcome.skipped - outcome.refused
        everywhere = len({database for _, database in counts}) < len(counts) and not table.table.routing
        if max(counts.values(), default=0) <= wanted if everywhere else sum(counts.values()) <= wanted:
            return 0
        return sum([await rows.extras(place, mend=mend) for place, some in counts.items() if some])

    async def _last(self, step: Step) -> Mapping[str, Any]:
        """Nobody writes any more: nothing may differ at the end."""
        try:
            if self._cut_over == "read-only":
                await self._close()
            for number in range(1, _LAST_PASSES + 1):
                if not await self._pass(number):
                    break
            else:
                raise Failed(
                    f"{self._source.name}: {self.told.differed} rows still differ after {_LAST_PASSES} "
                    "passes: somebody writes there, or a column of the target cannot hold what is in its own"
                )
            self._worker.ids.forget()
            for table in self._tables:
                self.told.verified[table.name] = await self._verify(table)
            await self._refuse_changes()
        except BaseException:
            await self._back()
            raise
        sums = {name: f"{one.checksum:032x}" for name, one in self.told.verified.items()}
        return {"checksums": sums}

    async def _verify(self, table: ImportedTable) -> Verified:
        """Every row of the source, with its IDs mapped, and every row of the target. Failed."""
        outcome = await self._ranges.over(table, "look")
        extra = await self._extras(table, outcome, mend=False)
        count = await self._count(table)
        if outcome.changed or extra or outcome.sums[0] != outcome.sums[1] or count != outcome.rows:
            shown = ", ".join(outcome.examples) or "none is shown"
            raise Failed(
                f"{table.name}: of {count} rows of the source {outcome.rows} were compared, "
                f"{outcome.changed} differ ({shown}), {extra} more are not there: somebody writes to the "
                "source or to the table"
            )
        self._progress(f"verified {table.name}: {outcome.rows} rows")
        return Verified(outcome.rows, outcome.skipped, outcome.sums[0])

    async def _count(self, table: ImportedTable) -> int:
        place = f"{quote(self._source.database)}.{quote(table.source)}"
        ((count,),) = await self._worker.reader.query(
            self._source.address, f"SELECT COUNT(*) FROM {place}", _COUNT_SECONDS
        )
        return int(count)

    async def _refuse_changes(self) -> None:
        """The source's tables must be as they were when this began: a new column would be missing."""
        now = await tables_of(self._worker.reader, self._source)
        if changed := unlike(self._worker.there, now):
            raise Failed(
                f"{self._source.name}: {', '.join(changed)}: changed, made or dropped there meanwhile. See "
                "what that means for schema and plan, then run the same command again"
            )

    async def _end(self, step: Step) -> Mapping[str, Any]:
        await self._keep(read_only=False, copying={})
        return {}

    # --- the source takes no writes --------------------------------------------------------------------

    async def _variable(self) -> str:
        server = await look_at(self._worker.reader, self._source.address)
        return "read_only" if server.flavour.passes_read_only else "super_read_only"

    async def _close(self) -> None:
        reader, host = self._worker.reader, self._source.address
        name = await self._variable()
        ((on,),) = await reader.query(host, f"SELECT @@GLOBAL.{name}")
        if not int(on):
            await self._keep(read_only=True)
            await reader.run(host, ["SET SESSION lock_wait_timeout = 30", f"SET GLOBAL {name} = ON"])
        self._progress("the source is read-only", now=True)
        await self._refuse_prepared()

    async def _refuse_prepared(self) -> None:
        """XA COMMIT of what is prepared is let through by some servers that are read-only."""
        try:
            prepared = await self._worker.reader.query(self._source.address, "XA RECOVER")
        except HostError as error:
            if error.lost:
                raise
            return  # this account may not ask
        if prepared:
            raise Failed(
                f"{self._source.name}: {len(prepared)} XA transactions are prepared there (XA RECOVER), and "
                "could be committed later: end them, then run the same command again"
            )

    async def _release(self) -> None:
        if not self._state.get("read_only"):
            return
        statements = ["SET GLOBAL read_only = OFF"]
        if await self._variable() == "super_read_only":
            statements.insert(0, "SET GLOBAL super_read_only = OFF")
        await self._worker.reader.run(self._source.address, statements)
        await self._keep(read_only=False)
        self._progress("the source takes writes again", now=True)

    async def _back(self) -> None:
        """What stops the cut-over lets the source take writes again, at once."""
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._release()
        except (HostError, TimeoutError) as error:
            self._say(f"import: the source stays read-only: {error}. SET GLOBAL read_only = OFF there")

    async def _released(self, step: Step) -> Mapping[str, Any]:
        await self._release()
        await self._keep(copying={}, read_only=False)
        return {}
