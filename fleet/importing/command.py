"""What `shardgate fleet import` does around the tool: documents, connections, and what a person is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from rich.table import Table

from fleet.command import Fleet, finish, read_document, run_until_done, say
from fleet.command import schema_text as schema_in_use
from fleet.core.errors import Refused
from fleet.importing.cluster import connected
from fleet.importing.definitions import Look, SourceTable, read_dump
from fleet.importing.importing import CutOver, Importing
from fleet.importing.kinds import SMALL, Proposal
from fleet.importing.proposal import Names, plan_text, schema_text
from fleet.importing.ranges import AT_ONCE, Here, Job, Pace, working
from fleet.importing.source import Source, opened, others_of, read_source, sizes_of, tables_of


def job_of(fleet: Fleet, plan: Path, source: str, password_env: str | None, rows_per_second: int) -> Job:
    """What is imported. Refused."""
    stored = fleet.store.topology()
    assert stored is not None
    return Job(
        read_source(source, password_env),
        read_document(plan),
        schema_in_use(fleet.settings, fleet.store),
        stored.content,
        fleet.settings.all_layouts,
        fleet.settings.backends,
        {host: fleet.login(host) for host in fleet.topology.hosts},
        AT_ONCE if not rows_per_second else 1,
    )


async def run_import(
    fleet: Fleet,
    plan: Path,
    source: str,
    password_env: str | None,
    *,
    cut_over: CutOver | None,
    rows_per_second: int,
    dask: str | None,
    dry_run: bool,
    yes: bool,
    undo: bool,
) -> int:
    """The exit status."""
    job = await asyncio.to_thread(job_of, fleet, plan, source, password_env, rows_per_second)
    arguments = {"plan": str(plan), "source": job.source.name}
    if password_env is not None:
        arguments["source-password-env"] = password_env
    async with working(job) as worker, contextlib.AsyncExitStack() as stack:
        here = dask is None or undo or dry_run
        executor = Here(worker) if here else await stack.enter_async_context(connected(dask or "", job))
        importing = Importing(
            arguments,
            worker,
            executor,
            fleet.topology,
            fleet.store,
            fleet.hosts,
            say,
            cut_over=cut_over,
            pace=Pace(rows_per_second),
        )
        report = await fleet.run(importing.tool(), dry_run=dry_run, yes=yes, undo=undo)
        if not report.problems and not dry_run:
            if undo:
                fleet.console.print("the tables are empty again", markup=False)
            else:
                _show(fleet, importing, cut_over)
    return finish(report)


def _show(fleet: Fleet, importing: Importing, cut_over: CutOver | None) -> None:
    told = importing.told
    for line in _lines(importing, cut_over):
        fleet.console.print(line, markup=False)
    if told.verified:
        table = Table("table", "rows", "left out", "checksum", box=None, pad_edge=False)
        for name, one in told.verified.items():
            table.add_row(name, str(one.rows), str(one.skipped), f"{one.checksum:032x}")
        fleet.console.print(table)


def _lines(importing: Importing, cut_over: CutOver | None) -> Iterator[str]:
    told = importing.told
    for column, some in told.dangling.items():
        yield f"{column}: {some} IDs of rows that are not there, done with as the plan says"
    if cut_over is None:
        yield (
            f"copied: {told.differed} rows differed in the last of {told.passes} passes, which took "
            f"{told.seconds:.1f} s. When the application is to change over: the same with --cut-over"
        )
    else:
        yield "verified: every row of the source, with its IDs mapped, is in its place, and no other"
        if cut_over == "read-only":
            yield "the source stays read-only: let the application connect to the proxy now"


def propose(
    dump: Path | None,
    source: str | None,
    password_env: str | None,
    folder: Path,
    *,
    database: str | None,
    root: str,
    first_type: int,
) -> list[str]:
    """Write a schema and a plan; lines that say so. Refused, HostError."""
    if (dump is None) == (source is None):
        raise Refused("name the dump, the output of mysqldump --no-data, or give --source")
    found = _read(dump, source or "", password_env)
    tables, what = found.tables, found.what
    if not tables:
        raise Refused(f"{what} has no tables")
    if root and root not in tables:
        raise Refused(f"--root {root}: {what} has no such table")
    proposal = Proposal(tables, found.rows, root)
    for one, seen in found.doubts.items():
        proposal.tables[one].doubts = seen
    names = Names(database or found.name, what, first_type=first_type, others=found.others)
    texts = {"schema.yaml": schema_text(proposal, names), "plan.yaml": plan_text(proposal, names)}
    there = [one for one in texts if (folder / one).exists()]
    if there:
        raise Refused(f"{folder / there[0]} is there already: nothing is overwritten")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (folder / file).write_text(text)
    except OSError as error:
        raise Refused(f"{folder}: cannot be written: {error.strerror}") from None
    return list(_proposed(proposal, folder, texts, found.others))


@dataclass
class _Found:
    """What a proposal is made from. `name`: the database's; `rows`: of tables, where they were counted;
    `others`: what there is beside tables; `doubts`: see `Proposed`.
    """

    what: str
    name: str
    tables: dict[str, SourceTable]
    rows: dict[str, int] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    doubts: dict[str, tuple[str, ...]] = field(default_factory=dict)


def _read(dump: Path | None, source: str, password_env: str | None) -> _Found:
    from fleet.importing.second import differences  # sqlglot, which takes a while

    doubts: dict[str, tuple[str, ...]] = {}

    def look(table: SourceTable, text: str) -> None:
        if seen := differences(table, text):
            doubts[table.name] = tuple(seen)

    if dump is not None:
        with _opened(dump) as lines:
            tables = {one.name: one for one in read_dump(lines, str(dump), look)}
        return _Found(str(dump), "app", tables, doubts=doubts)
    asked = read_source(source, password_env)
    tables, rows, others = run_until_done(_asked(asked, look))
    return _Found(asked.name, asked.database, tables, rows, others, doubts)


async def _asked(source: Source, look: Look) -> tuple[dict[str, SourceTable], dict[str, int], list[str]]:
    async with opened(source) as reader:
        found = await tables_of(reader, source, look)
        return found, await sizes_of(reader, source, found, SMALL), await others_of(reader, source)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[TextIO]:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as lines:
            yield lines
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None


def _proposed(proposal: Proposal, folder: Path, texts: Iterable[str], others: Sequence[str]) -> Iterator[str]:
    kinds = Counter(str(one.kind) for one in proposal.tables.values() if not one.skip)
    yield f"{len(proposal.tables)} tables: {', '.join(f'{some} {kind}' for kind, some in kinds.items())}"
    if skipped := [one.name for one in proposal.tables.values() if one.skip]:
        yield f"left out, without a PRIMARY KEY: {', '.join(skipped)}"
    if others:
        yield f"not imported: {', '.join(others)}"
    if doubtful := [one.name for one in proposal.tables.values() if one.doubts]:
        yield f"read in two ways, see the comments there: {', '.join(doubtful)}"
    yield f"written to {' and '.join(str(folder / one) for one in texts)}: look through them, then edit them"
