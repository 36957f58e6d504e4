"""`shardgate fleet`: tools over all hosts. What they need is imported when one is called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from fleet.options import (
    CONFIG,
    DONE,
    FAILED,
    ConfigOption,
    DryRunOption,
    PasswordOption,
    TopologyOption,
    UndoOption,
    UserOption,
    YesOption,
)

if TYPE_CHECKING:
    from fleet.command import Fleet
    from fleet.faults import Fault

app = typer.Typer(help="Tools over all hosts of a fleet.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Tools over all hosts of a fleet. Exit status: 0 done, 1 failed, 2 refused: nothing was changed."""


@app.command()
def create(
    config: ConfigOption = CONFIG,
    user: UserOption = None,
    password_env: PasswordOption = None,
    client: Annotated[
        str, typer.Option("--from", help="Where the accounts may log in from, as in 'user'@'FROM'.")
    ] = "%",
    topology_file: TopologyOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    undo: UndoOption = False,
) -> None:
    """Make the databases, tables and accounts that are missing, on every master. Nothing that exists changes,
    but accounts get the rights that they lack.
    """
    from fleet.command import finish, run_on_fleet, schema_served
    from fleet.creating import Creating

    async def work(fleet: Fleet) -> int:
        creating = Creating(fleet.settings, fleet.schema, fleet.topology, fleet.hosts, client)
        report = await fleet.run(creating.tool(), dry_run=dry_run, yes=yes, undo=undo)
        if undo and not report.problems and not dry_run:
            gone = f"{len(report.done)} databases and tables are dropped again"
            fleet.console.print(gone if report.done else "nothing of it is there to take back", markup=False)
        if not undo:
            for line in creating.told(report, dry_run=dry_run):
                fleet.console.print(line, markup=False)
        if not undo and not report.interrupted:
            report.problems += await creating.unsound()
        if report.done and not dry_run and not undo:
            await schema_served(fleet)
        return finish(report)

    raise typer.Exit(run_on_fleet(config, user, password_env, work, topology_file))


@app.command(name="open")
def open_shards(
    keyspace: Annotated[str, typer.Option("--keyspace", help="Where the shards are.", metavar="K")],
    shards: Annotated[str, typer.Option("--shards", help="First and last, both included.", metavar="A-B")],
    master: Annotated[str, typer.Option("--master", help="The host that gets them.", metavar="H:P")],
    slave: Annotated[str | None, typer.Option("--slave", help="Its slave.", metavar="H:P")] = None,
    config: ConfigOption = CONFIG,
    user: UserOption = None,
    password_env: PasswordOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    undo: UndoOption = False,
) -> None:
    """New shards: made, verified, published, and opened for new objects when all proxies know them."""
    from fleet.command import finish, run_on_fleet, shards_of
    from fleet.opening import Opening

    async def work(fleet: Fleet) -> int:
        opening = Opening(
            fleet.settings,
            fleet.schema,
            fleet.store,
            fleet.hosts,
            keyspace,
            *shards_of(shards),
            master,
            slave,
        )
        report = await fleet.run(opening.tool(), dry_run=dry_run, yes=yes, undo=undo)
        if opening.was_open and not undo:
            fleet.console.print(f"{opening.what} is open already: nothing is left to do", markup=False)
        elif not report.problems and not dry_run:
            done = "taken back" if undo else "open"
            fleet.console.print(f"{keyspace} {shards} on {master}: {done}", markup=False)
        return finish(report)

    raise typer.Exit(run_on_fleet(config, user, password_env, work))


@app.command()
def ddl(
    statement: Annotated[
        str | None,
        typer.Option("--statement", help="ALTER TABLE, CREATE INDEX or DROP INDEX.", metavar="SQL"),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="A file with the one statement.", metavar="FILE")
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="By pt-online-schema-change or gh-ost, which must be installed.")
    ] = False,
    config: ConfigOption = CONFIG,
    user: UserOption = None,
    password_env: PasswordOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    undo: Annotated[
        bool,
        typer.Option(
            "--undo", help="Give up an unfinished run, and say which shards have the definition by now."
        ),
    ] = False,
) -> None:
    """Change the definition of a table of the schema on all shards. The table is named as clients name it. A
    shard that cannot be changed stops no other; run again, it goes on with those that are not done.
    """
    from fleet.altering import Altering
    from fleet.command import finish, run_on_fleet, statement_of
    from fleet.giving_up import GivingUp
    from fleet.online import Online, find
    from fleet.statement import read_statement

    async def give_up(fleet: Fleet) -> int:
        text = None if statement is None and file is None else statement_of(statement, file)
        giving_up = GivingUp(text, fleet.schema, fleet.topology, fleet.hosts)
        report = await fleet.run(giving_up.tool(), dry_run=dry_run, yes=yes, undo=True)
        for line in giving_up.told(report, dry_run=dry_run):
            fleet.console.print(line, markup=False)
        return finish(report)

    async def work(fleet: Fleet) -> int:
        found = read_statement(statement_of(statement, file), fleet.schema)
        program = Online(find(), fleet.settings.backends, fleet.login) if online else None
        altering = Altering(found, fleet.schema, fleet.topology, fleet.hosts, fleet.store, program)
        report = await fleet.run(altering.tool(), dry_run=dry_run, yes=yes)
        for line in altering.told(report, fleet.settings.schema_place, dry_run=dry_run):
            fleet.console.print(line, markup=False)
        return finish(report)

    raise typer.Exit(run_on_fleet(config, user, password_env, give_up if undo else work))


@app.command()
def promote(
    host: Annotated[str, typer.Option("--host", help="The master that goes.", metavar="H:P")],
    to: Annotated[str | None, typer.Option("--to", help="The slave that comes.", metavar="H:P")] = None,
    dead: Annotated[bool, typer.Option("--dead", help="The master is dead.")] = False,
    config: ConfigOption = CONFIG,
    user: UserOption = None,
    password_env: PasswordOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    undo: UndoOption = False,
) -> None:
    """Make a slave the master, and the master its slave: nothing is lost, clients wait for a moment. --dead:
    in the place of one that is dead.
    """
    from fleet.command import finish, run_on_fleet
    from fleet.failover import FailingOver
    from fleet.promoting import Promoting

    async def work(fleet: Fleet) -> int:
        kind = FailingOver if dead else Promoting
        promoting = kind(fleet.settings, fleet.schema, fleet.store, fleet.hosts, host, to)
        report = await fleet.run(promoting.tool(), dry_run=dry_run, yes=yes, undo=undo)
        if not report.problems and not dry_run:
            fleet.console.print(promoting.told(undo=undo), markup=False)
        return finish(report)

    raise typer.Exit(run_on_fleet(config, user, password_env, work))


@app.command()
def verify(
    config: ConfigOption = CONFIG,
    user: UserOption = None,
    password_env: PasswordOption = None,
    topology_file: TopologyOption = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Look for rows on the wrong shard, too: reads every row.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each fault.")] = False,
) -> None:
    """Say what is wrong on the hosts, and what to do. Changes nothing. Exit status 1: something is wrong."""
    import json

    from fleet import unfinished
    from fleet.command import on_errors, run_on_fleet
    from fleet.core.interrupt import to_end
    from fleet.core.progress import Shown
    from fleet.verifying import Verifying

    async def work(fleet: Fleet) -> list[Fault]:
        progress = Shown(on_errors(), "verify")
        verifying = Verifying(fleet.settings, fleet.schema, fleet.topology, fleet.hosts, progress, deep=deep)
        changes = await to_end(unfinished.faults, fleet.store, fleet.topology, f" --config {config}")
        return [*changes, *await verifying.faults()]

    faults = run_on_fleet(config, user, password_env, work, topology_file)
    if as_json:
        for one in faults:
            typer.echo(json.dumps(vars(one)))
    else:
        _show(faults)
    raise typer.Exit(FAILED if faults else DONE)


def _show(faults: Sequence[Fault]) -> None:
    """Faults that differ in the database only in one row."""
    from fleet.command import terminal
    from fleet.faults import grouped

    console = terminal()
    for group in grouped(faults):
        console.print(f"[red]{group.fault.kind}[/]  ", end="")
        console.print(f"{group.where}: {group.fault.text}", markup=False)
        if group.fault.remedy:
            console.print(f"    {group.fault.remedy}", markup=False)
    databases = len({(one.host, one.database) for one in faults if one.database})
    if faults:
        console.print(f"{len(faults)} faults, in {databases} databases")
    else:
        console.print("[green]ok[/]  all is as it should be")


@app.command()
def split(
    keyspace: Annotated[
        str, typer.Option("--keyspace", help="Where the shards are; K1,K2 for several.", metavar="K")
    ],
    shards: Annotated[str, typer.Option("--shards", help="First and last, both included.", metavar="A-B")],
    master: Annotated[str, typer.Option("--master", help="The host that gets them.", metavar="H:P")],
    slave: Annotated[str | None, typer.Option("--slave", help="Its slave.", metavar="H:P")] = None,
    provision: Annotated[
        bool, typer.Option("--provision", help="Fill the pair, which is empty, and let it replicate.")
    ] = False,
    config: ConfigOption = CONFIG,
    user: UserOption = None,
    password_env: PasswordOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    undo: UndoOption = False,
) -> None:
    """Move shards of one master to another pair, which replicates from it. Clients wait for a moment."""
    from fleet.command import finish, run_on_fleet, shards_of
    from fleet.promoting import address
    from fleet.split import Move
    from fleet.splitting import Splitting

    async def work(fleet: Fleet) -> int:
        names = tuple(dict.fromkeys(keyspace.split(",")))
        move = Move(names, *shards_of(shards), address(master), address(slave) if slave else None)
        splitting = Splitting(
            fleet.settings, fleet.schema, fleet.store, fleet.hosts, move, provision=provision
        )
        report = await fleet.run(splitting.tool(), dry_run=dry_run, yes=yes, undo=undo)
        if there := " and ".join(splitting.not_filled):
            ignored = f"--provision is ignored for {there}: replicating already, so there is a copy"
            fleet.console.print(ignored, markup=False)
        if not report.problems and not (dry_run and report.steps):
            fleet.console.print(splitting.told(undo=undo), markup=False)
        return finish(report)

    raise typer.Exit(run_on_fleet(config, user, password_env, work))


@app.command()
def cleanup(
    config: ConfigOption = CONFIG,
    user: UserOption = None,
    password_env: PasswordOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Drop what splits have left behind: databases on masters that do not serve them any more."""
    from fleet.cleaning import Cleaning
    from fleet.command import finish, run_on_fleet

    async def work(fleet: Fleet) -> int:
        cleaning = Cleaning(fleet.settings, fleet.store, fleet.hosts, fleet.topology)
        report = await fleet.run(cleaning.tool(), dry_run=dry_run, yes=yes)
        if not (dry_run and report.steps):
            for line in cleaning.told(report):
                fleet.console.print(line, markup=False)
        return finish(report) or (FAILED if cleaning.left else DONE)

    raise typer.Exit(run_on_fleet(config, user, password_env, work))


@app.command()
def status(
    config: ConfigOption = CONFIG,
    most: Annotated[int, typer.Option("--last", help="How many operations.", min=1, metavar="N")] = 10,
) -> None:
    """The latest operations, whether a tool is at work, which shards do not serve, and which version the
    proxies serve.
    """
    from fleet.command import not_serving, terminal, with_open_store
    from fleet.core.journal import Journal
    from fleet.unfinished import how_to_go_on

    console = terminal()
    holder, proxies, operations, closed = with_open_store(
        config,
        lambda settings, store: (
            store.holder(),
            store.proxies(),
            Journal(store).latest(most),
            not_serving(settings, store),
        ),
    )
    console.print(f"at work: {holder or 'no tool'}", markup=False)
    for line in closed:
        console.print(line, style="yellow", markup=False)
    for proxy in proxies:
        console.print(f"proxy {proxy.name} serves version {proxy.version}", markup=False)
    table = Table("operation", "begun", "by", "steps", "outcome", "command", box=None, pad_edge=False)
    for one in operations:
        unfinished = "[red]failed[/]" if one.problems else "[yellow]unfinished[/]"
        said = (str(one.number), one.began[:19], Text(one.by), one.progress, one.outcome or unfinished)
        table.add_row(*said, Text(one.command))
    if operations:
        console.print(table)
    for one in operations:
        for problem in one.problems if one.outcome != "done" else ():
            console.print(f"operation {one.number}: {problem}", markup=False)
        if not one.outcome:
            text = how_to_go_on(one, holder, f" --config {config}")
            console.print(f"operation {one.number}: {text}", style="yellow", markup=False)
