"""`shardgate advise`."""

from __future__ import annotations

import json
import shutil
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.text import Text

from config.flavour import flavour_of
from proxy.errors import error_lines
from proxy.offline import DEFAULT, ConfigOption, SchemaOption, TopologyOption, fail, loaded, only_sharded
from proxy.printable import printable

from .entries import Notes
from .lines import Lines
from .logs import Format, entries, format_of
from .words import count, size

if TYPE_CHECKING:
    from .report import About
    from .tally import Tally

_NOT_A_TERMINAL = 100
"""Columns of what is not printed on one."""

_NO_SQL = 0.9
"""What is taken for SQL, as for nothing else, is none when more of its statements than this part are syntax
errors.
"""

_LONGEST = 150
"""Characters of an error, which may quote what it is about."""

_EACH = 2000
"""So many statements between two looks at the clock of the progress."""


def advise(
    log: Annotated[
        Path,
        typer.Argument(
            help="A general log, a slow log, performance_schema's digests as TSV or CSV, or a file of SQL; "
            "also with gzip. - is stdin.",
            metavar="LOG",
        ),
    ],
    config: ConfigOption = DEFAULT,
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            "-D",
            help="The current database where the log tells none, or one that the schema does not have.",
        ),
    ] = None,
    format: Annotated[
        Format | None, typer.Option("--format", help="What the log is; found out by what is in it.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Show so many of each kind.", min=1)] = 20,
    everything: Annotated[
        bool, typer.Option("--all", help="Show the statements that need no advice, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All of it as one JSON object.")] = False,
    topology_file: TopologyOption = None,
    schema_file: SchemaOption = None,
) -> None:
    """Say how the statements in an application's log would run over shards, what that would cost, and what
    would route them. No server is asked, and no value of a statement is printed.
    """
    from rewriter.env import Env
    from rewriter.planner import Rewriter

    from .document import document
    from .findings import findings
    from .report import About, Report
    from .tally import Tally

    settings, schema, topology = loaded(config, topology_file, schema_file)
    if database is not None and database not in schema.databases:
        raise fail(f"the schema has no database {database!r}: it has {', '.join(sorted(schema.databases))}")
    limits = settings.limits
    rewriter = Rewriter(schema, topology, in_list=limits.in_list, parse_depth=limits.parse_depth)
    notes = Notes()
    try:
        lines = Lines(log)
        kind = format or format_of(lines.beginning())
        env = Env(database=database or only_sharded(schema))
        tally = Tally(rewriter, env, notes, renamed=database is not None)
        _read(tally, lines, kind, notes)
        lines.close()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise fail(f"{log} cannot be read: {reason}") from None
    skipped = dict(notes.skipped)
    name = "stdin" if str(log) == "-" else log.name
    about = About(
        name,
        {"general": "general log", "slow": "slow log", "digest": "digests", "sql": "SQL"}[kind],
        lines.size,
        notes.version,
    )
    no_sql = kind is Format.SQL and tally.unread > tally.statements * _NO_SQL
    if no_sql or not tally.statements:
        raise fail(_useless(log, about, tally, skipped), 1)
    found = findings(tally)
    if as_json:
        text = json.dumps(document(about, tally, found, skipped), indent=2, ensure_ascii=False)
        typer.echo(text.encode(errors="replace"))  # UTF-8, as JSON is, whatever the terminal's is
        return
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else _NOT_A_TERMINAL
    console = Console(highlight=False, width=width)
    for line in Report(width, limit, everything=everything).lines(about, tally, found, skipped):
        console.print(Text(line.text, style=line.style), soft_wrap=True)


def _useless(log: Path, about: About, tally: Tally, skipped: dict[str, int]) -> str:
    """What is said of a log that tells nothing."""
    read = f"read as {about.format} ({size(about.size)})"
    hint = "give --format if it is something else"
    if not tally.statements:
        told = "".join(f"\n  not looked at: {what}: {number:,}" for what, number in skipped.items())
        return f"there is no statement in {log}, {read}: {hint}{told}"
    first = next((one.cost.error for one in tally.kinds.values() if one.unread), None)
    why = "" if first is None else "\n  " + printable(error_lines(first.name, first.arguments)[0])[:_LONGEST]
    found = count(tally.statements, "piece")
    good = tally.statements - tally.unread
    return (
        f"{log} is no log of statements: {read}, {good or 'none'} of {found} can be understood; {hint}{why}"
    )


def _read(tally: Tally, lines: Lines, kind: Format, notes: Notes) -> None:
    """Read the log, with a sign of life on a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    errors = Console(stderr=True)
    with Progress(*columns, console=errors, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("reading")
        version = ""
        for number, entry in enumerate(entries(lines, kind, notes)):
            if notes.version != version:
                version = notes.version
                tally.serve(flavour_of(version), version)
            tally.add(entry)
            if not number % _EACH:
                read = f"{size(lines.size)}, {tally.statements:,} statements"
                progress.update(task, description=f"{read} of {len(tally.kinds):,} kinds")
