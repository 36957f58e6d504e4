"""`shardgate propose` and `shardgate fleet import`. What they need is imported when one is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleet.options import (
    CONFIG,
    ConfigOption,
    DryRunOption,
    PasswordOption,
    UndoOption,
    UserOption,
    YesOption,
)

if TYPE_CHECKING:
    from fleet.command import Fleet


def propose(
    dump: Annotated[
        Path | None, typer.Argument(help="The output of mysqldump --no-data.", metavar="DUMP")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            help="In place of a dump: mysql://user@host:3306/database, or an option file.",
            metavar="URL-OR-FILE",
        ),
    ] = None,
    source_password: Annotated[
        str | None,
        typer.Option(
            "--source-password-env", help="The environment variable with the password there.", metavar="NAME"
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--out", help="Where schema.yaml and plan.yaml are written.", metavar="DIR")
    ] = Path("proposed"),
    database: Annotated[
        str | None, typer.Option("--database", help="What clients will call the database.", metavar="NAME")
    ] = None,
    root: Annotated[
        str, typer.Option("--root", help="The table that others are to be near to.", metavar="TABLE")
    ] = "",
    first_type: Annotated[
        int, typer.Option("--first-type", help="The first type number.", min=1, max=1023, metavar="N")
    ] = 1,
) -> None:
    """Propose a schema for an unsharded database, and a plan for its import, from its CREATE TABLEs."""
    from fleet.command import ending
    from fleet.importing.command import propose as work

    with ending():
        lines = work(
            dump, source, source_password, folder, database=database, root=root, first_type=first_type
        )
    for line in lines:
        typer.echo(line)


def import_rows(
    plan: Annotated[Path, typer.Option("--plan", help="Which tables become which.", metavar="FILE")],
    source: Annotated[
        str,
        typer.Option(
            "--source", help="mysql://user@host:3306/database, or an option file.", metavar="URL-OR-FILE"
        ),
    ],
    source_password: Annotated[
        str | None,
        typer.Option(
            "--source-password-env", help="The environment variable with the password there.", metavar="NAME"
        ),
    ] = None,
    cut_over: Annotated[
        str | None,
        typer.Option(
            "--cut-over",
            help="End it: read-only makes the source so; stopped: the application is, by you.",
            metavar="HOW",
        ),
    ] = None,
    rows_per_second: Annotated[
        int,
        typer.Option("--rows-per-second", help="Read no more than that; 0: no limit.", min=0, metavar="N"),
    ] = 0,
    dask: Annotated[
        str | None, typer.Option("--dask", help="Let a Dask cluster do it.", metavar="ADDRESS")
    ] = None,
    config: ConfigOption = CONFIG,
    user: UserOption = None,
    password_env: PasswordOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    undo: UndoOption = False,
) -> None:
    """Copy an unsharded database into the shards, and mend what differs until nothing does; the source may be
    written meanwhile. With --cut-over nobody writes there any more, and every row is compared at last.
    """
    from fleet.command import run_on_fleet
    from fleet.core.errors import Refused
    from fleet.importing.command import run_import
    from fleet.importing.importing import CUT_OVERS

    async def work(fleet: Fleet) -> int:
        if cut_over is not None and cut_over not in CUT_OVERS:
            raise Refused(f"--cut-over {cut_over}: must be {' or '.join(CUT_OVERS)}")
        return await run_import(
            fleet,
            plan,
            source,
            source_password,
            cut_over=CUT_OVERS[cut_over] if cut_over is not None else None,
            rows_per_second=rows_per_second,
            dask=dask,
            dry_run=dry_run,
            yes=yes,
            undo=undo,
        )

    raise typer.Exit(run_on_fleet(config, user, password_env, work))
