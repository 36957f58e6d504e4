"""`shardgate fleet changes`. What it needs is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleet.options import CONFIG, ConfigOption, PasswordOption, UserOption


def changes(
    positions: Annotated[
        Path,
        typer.Option("--positions", help="Where to go on: read first, written as it goes.", metavar="FILE"),
    ],
    databases: Annotated[
        list[str] | None, typer.Option("--database", help="Only of this one.", metavar="NAME")
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option("--table", help="Only of this one: NAME, or DATABASE.NAME.", metavar="NAME"),
    ] = None,
    oldest: Annotated[
        bool,
        typer.Option("--from-oldest", help="Begin with what the binary logs still have, not with now."),
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="End where the binary logs end now.")] = False,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            "--skip",
            help="Leave out this transaction, or what this host's log has no more.",
            metavar="GTID-OR-H:P",
        ),
    ] = None,
    in_stream: Annotated[
        bool, typer.Option("--print-positions", help="Print them, too, behind what they cover.")
    ] = False,
    config: ConfigOption = CONFIG,
    user: UserOption = None,
    password_env: PasswordOption = None,
) -> None:
    """Print the changes of rows on all shards, by their logical names, from the masters' binary logs: one
    JSON object a line. It goes on where it was, and follows the topology.
    """
    from fleet.binlog.command import run_changes
    from fleet.binlog.follow import Wanted
    from fleet.command import run_on_fleet

    wanted = Wanted(
        positions,
        tuple(databases or ()),
        tuple(tables or ()),
        oldest=oldest,
        once=once,
        skip=tuple(skip or ()),
        in_stream=in_stream,
    )
    raise typer.Exit(run_on_fleet(config, user, password_env, lambda fleet: run_changes(fleet, wanted)))
