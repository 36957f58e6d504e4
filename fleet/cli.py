"""`shardgate fleet`: tools over all hosts."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from config.document import ConfigError
from config.load import check, load_topology
from config.schema import Schema
from config.settings import Settings
from config.topology import Topology

if TYPE_CHECKING:
    from fleet.accounts import Made
    from fleet.create import Connect

app = typer.Typer(help="Tools over all hosts of a fleet.", no_args_is_help=True)

DONE, FAILED, REFUSED = 0, 1, 2
"""Exit statuses; refused: nothing was changed."""


@app.callback()
def main() -> None:
    """Tools over all hosts of a fleet."""


def _refuse(message: str) -> typer.Exit:
    print(f"shardgate: {message}", file=sys.stderr)
    return typer.Exit(REFUSED)


def read_documents(config: Path, topology_file: Path | None) -> tuple[Settings, Schema, Topology]:
    """The three documents. typer.Exit when they cannot be used."""
    try:
        settings, schema, topology = check(config)
        if topology_file is not None:
            topology = load_topology(topology_file, layouts=settings.all_layouts, schema=schema)
    except ConfigError as error:
        raise _refuse(f"the configuration cannot be used:\n{error}") from None
    if topology is None:
        raise _refuse("the topology is in ZooKeeper: give --topology FILE")
    return settings, schema, topology


def _password(user: str, variable: str | None) -> str:
    """The password of the account that the tool logs in with."""
    if variable is not None:
        if variable not in os.environ:
            raise _refuse(f"the environment variable {variable} is not set")
        return os.environ[variable]
    if not sys.stdin.isatty():
        raise _refuse(
            f"give the password of {user} in an environment variable, and its name: --password-env NAME"
        )
    return getpass.getpass(f"Password of {user} on the hosts: ")


@app.command()
def create(
    config: Annotated[Path, typer.Option("--config", "-c", help="The settings file.", metavar="FILE")] = Path(
        "shardgate.yaml"
    ),
    user: Annotated[
        str, typer.Option(help="Who logs in to the hosts; may create databases and accounts.")
    ] = "root",
    password_env: Annotated[
        str | None,
        typer.Option(
            help="The environment variable with its password; else it is asked for.", metavar="NAME"
        ),
    ] = None,
    client: Annotated[
        str, typer.Option("--from", help="Where the accounts may log in from, as in 'user'@'FROM'.")
    ] = "%",
    topology_file: Annotated[
        Path | None,
        typer.Option("--topology", help="A topology file, when the settings name ZooKeeper.", metavar="FILE"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be run.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Make the databases, tables and accounts that are missing, on every master. Nothing that exists changes,
    but accounts get the rights that they lack.
    """
    from fleet.connect import connector

    settings, schema, topology = read_documents(config, topology_file)
    connect = connector(settings.backends, user, _password(user, password_env))
    console = Console(highlight=False, soft_wrap=True)
    if not dry_run and not yes:
        hosts = ", ".join(topology.hosts)
        if not sys.stdin.isatty() or not typer.confirm(f"Make databases, tables and accounts on {hosts}?"):
            raise _refuse("nothing was changed: give --yes, or --dry-run to see what would be")
    problems = _databases(settings, schema, topology, connect, console, dry_run=dry_run)
    if problems == [] and settings.backends.accounts:
        problems = _accounts(settings, schema, topology, connect, client, console, dry_run=dry_run)
    for problem in problems:
        print(f"shardgate: {problem}", file=sys.stderr)
    raise typer.Exit(FAILED if problems else DONE)


def _databases(
    settings: Settings,
    schema: Schema,
    topology: Topology,
    connect: Connect,
    console: Console,
    *,
    dry_run: bool,
) -> list[str]:
    from fleet.create import create as make

    report = make(schema, topology, connect, dry_run=dry_run)
    for one in report.hosts:
        for sql in one.statements:
            console.print(f"{one.host}: {sql}", markup=False)
        if one.unknown:
            continue
        found = f"{one.databases_found} databases and {one.tables_found} tables are there"
        made = f"{one.databases_created} databases and {one.tables_created} tables"
        console.print(f"{one.host}: {'would make' if dry_run else 'made'} {made}; {found}", markup=False)
    return report.problems


def _told(made: Made, *, dry_run: bool) -> str:
    """What was done, or would be."""
    new = f"{'would make' if dry_run else 'made'} {made.accounts - made.found} accounts with their rights"
    lacked = "; would give them the rights that they lack" if dry_run else ", and have all their rights now"
    return f"{new}; {made.found} are there{lacked if made.found else ''}"


def _accounts(
    settings: Settings,
    schema: Schema,
    topology: Topology,
    connect: Connect,
    client: str,
    console: Console,
    *,
    dry_run: bool,
) -> list[str]:
    from fleet.accounts import make_everywhere

    made = make_everywhere(
        settings.backends,
        schema,
        topology,
        topology.hosts,
        connect,
        client=client,
        dry_run=dry_run,
    )
    for one in made:
        for sql in one.statements:
            console.print(f"{one.host}: {sql}", markup=False)
        if not one.problem:
            console.print(f"{one.host}: {_told(one, dry_run=dry_run)}", markup=False)
        for account in one.anonymous:
            text = (
                f"goes before the accounts made for '{client}' when they log in from there, and refuses them"
            )
            console.print(f"{one.host}: {account} {text}: DROP USER {account}", markup=False)
    return [f"{one.host}: {one.problem}. Run it again when that is mended" for one in made if one.problem]
