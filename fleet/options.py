"""The options that the commands of the fleet tools share, and their exit statuses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DONE, FAILED, REFUSED = 0, 1, 2
"""Exit statuses; refused: nothing was changed."""

ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The settings file.", metavar="FILE")]
UserOption = Annotated[
    str | None, typer.Option(help="Who logs in to the hosts, in place of the settings' `fleet.user`.")
]
PasswordOption = Annotated[
    str | None,
    typer.Option(
        "--password-env",
        help="The environment variable with its password; else it is asked for.",
        metavar="NAME",
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only print the steps.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
UndoOption = Annotated[bool, typer.Option("--undo", help="Take back what an unfinished run has done.")]
TopologyOption = Annotated[
    Path | None,
    typer.Option(
        "--topology", help="This topology file, in place of the one that is in use.", metavar="FILE"
    ),
]
CONFIG = Path("shardgate.yaml")
FileArgument = Annotated[Path, typer.Argument(help="The new document.", metavar="FILE")]
