"""`shardgate topology`: the topology's document, in its file or in ZooKeeper."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleet.options import CONFIG, ConfigOption, DryRunOption, FileArgument, YesOption

if TYPE_CHECKING:
    from rich.console import Console

    from config.schema import Schema
    from config.settings import Settings
    from config.topology import Topology
    from fleet.core.hosts import Hosts
    from fleet.core.run import Report
    from fleet.core.store import Store
    from fleet.publishing import Publishing

DropOption = Annotated[
    bool,
    typer.Option(
        "--drop-shards",
        help="Shards that the document lacks are given up. Their hosts must say that they have no rows.",
    ),
]

MoveOption = Annotated[
    bool,
    typer.Option(
        "--move-shards",
        help="Databases may go to a master that is not their current copy: you know that nothing is missing.",
    ),
]

app = typer.Typer(help="The topology's document, in its file or in ZooKeeper.", no_args_is_help=True)

WATCH_SECONDS = 0.5


@app.callback()
def main() -> None:
    """The topology's document. Exit status: 0 done, 1 failed, 2 refused before anything was changed."""


@app.command()
def get(config: ConfigOption = CONFIG) -> None:
    """Print the document that is in use."""
    from fleet.command import with_open_store

    def work(settings: Settings, store: Store) -> None:
        typer.echo(_stored(store), nl=False)

    with_open_store(config, work)


@app.command()
def put(
    file: FileArgument,
    config: ConfigOption = CONFIG,
    move: MoveOption = False,
    drop: DropOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Make FILE the topology: its version is higher, the databases are where it says with all their rows, and
    no shard with rows is left out. What changes is shown first.
    """
    from fleet.command import read_document

    def document(store: Store) -> tuple[bytes, str]:
        return read_document(file), str(file)

    arguments = {"FILE": str(file)} | ({"move-shards": True} if move else {})
    arguments |= {"drop-shards": True} if drop else {}
    _publish(config, document, "topology put", arguments, dry_run, yes, move=move, drops=drop)


@app.command()
def diff(file: FileArgument, config: ConfigOption = CONFIG) -> None:
    """What FILE would change."""
    from config.load import load_topology
    from fleet.command import terminal, with_store

    def work(settings: Settings, schema: Schema, store: Store) -> None:
        from fleet.changes import changes

        new = load_topology(file, layouts=settings.all_layouts, schema=schema)
        old = load_topology(_stored(store), name=store.where, layouts=settings.all_layouts)
        console = terminal()
        console.print(f"version {old.version} → {new.version}")
        for one in changes(old, new):
            console.print(str(one), markup=False)

    with_store(config, work)


@app.command()
def history(config: ConfigOption = CONFIG) -> None:
    """The versions that were published: when, by whom, by which command."""
    from fleet.command import history_table, terminal, with_open_store
    from fleet.core.publish import history as versions
    from fleet.core.publish import version_of

    def work(settings: Settings, store: Store) -> None:
        found = versions(store)
        now = store.topology()
        used = [one.number for one in found if now is not None and one.content == now.content]
        table = history_table("version", found, used)
        if now is not None and not used:
            table.add_row(str(version_of(now.content)), "", "", "written without this tool", "in use")
        terminal().print(table)

    with_open_store(config, work)


@app.command()
def rollback(
    version: Annotated[int, typer.Argument(help="One of the history.", metavar="VERSION", min=1)],
    config: ConfigOption = CONFIG,
    move: MoveOption = False,
    drop: DropOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Publish what VERSION was, as a new version. Refused when databases would go back to a master that has
    not all their rows, and when VERSION lacks shards of the one in use.
    """
    from fleet.core.publish import kept, latest_version, version_of
    from fleet.publishing import rolled_back

    def document(store: Store) -> tuple[bytes, str]:
        stored = store.topology()
        latest = max(latest_version(store), version_of(stored.content) if stored is not None else 0)
        content = rolled_back(kept(store, version).content, latest + 1)
        return content, f"version {version} of the history"

    arguments = {"VERSION": version} | ({"move-shards": True} if move else {})
    arguments |= {"drop-shards": True} if drop else {}
    _publish(config, document, "topology rollback", arguments, dry_run, yes, move=move, drops=drop)


@app.command()
def watch(
    config: ConfigOption = CONFIG,
    seconds: Annotated[
        float, typer.Option("--for", help="End after so many seconds.", metavar="SECONDS")
    ] = 0,
) -> None:
    """Say what changes, and which proxies serve what, until Ctrl-C."""
    from fleet.command import terminal, with_open_store

    def work(settings: Settings, store: Store) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            _watch(settings, store, terminal(), time.monotonic() + seconds if seconds else None)

    with_open_store(config, work)


def _watch(settings: Settings, store: Store, console: Console, deadline: float | None) -> None:
    from config.document import ConfigError
    from config.load import load_topology
    from fleet.changes import changes

    seen: bytes | None = None
    old: Topology | None = None
    served: dict[str, int] = {}
    while deadline is None or time.monotonic() < deadline:
        found = store.topology()
        content = found.content if found is not None else b""
        now = time.strftime("%H:%M:%S")
        if content != seen:
            seen = content
            try:
                new = load_topology(content, name=store.where, layouts=settings.all_layouts)
            except ConfigError as error:
                console.print(f"{now} cannot be used: {error}", markup=False)
            else:
                console.print(f"{now} version {new.version}", markup=False)
                for one in changes(old, new) if old is not None else ():
                    console.print(f"{now}   {one}", markup=False)
                old = new
        serving = {one.name: one.version for one in store.proxies()}
        for name in serving.keys() | served.keys():
            if serving.get(name) != served.get(name):
                text = f"serves version {serving[name]}" if name in serving else "is gone"
                console.print(f"{now} proxy {name} {text}", markup=False)
        served = serving
        time.sleep(WATCH_SECONDS)


def _publish(
    config: Path,
    document: Callable[[Store], tuple[bytes, str]],
    name: str,
    arguments: Mapping[str, object],
    dry_run: bool,
    yes: bool,
    *,
    move: bool,
    drops: bool,
) -> None:
    """Publish what `document` gives, with what it is called. `move`, `drops`: see `Publishing`."""
    from fleet.command import finish, run_until_done, take, with_store
    from fleet.core.hosts import Hosts, connector
    from fleet.publishing import Publishing

    def work(settings: Settings, schema: Schema, store: Store) -> int:
        hosts = Hosts(connector(settings.backends, settings.backends.user_for))
        login = settings.fleet.login if settings.fleet is not None else settings.backends.user_for
        tools = Hosts(connector(settings.backends, login))
        content, source = document(store)
        publishing = Publishing(
            settings, schema, store, hosts, content, source, tools=tools, move=move, drops=drops
        )
        report = run_until_done(_taken(publishing, hosts, tools))
        done = "would be published" if dry_run else "is published"
        if not report.steps:
            typer.echo(f"version {publishing.new.version} is in use: nothing to do")
        elif not report.problems:
            typer.echo(f"version {publishing.new.version} {done}: {publishing.summary}")
        return finish(report)

    async def _taken(publishing: Publishing, hosts: Hosts, tools: Hosts) -> Report:
        async with hosts, tools:
            tool = publishing.tool(name, arguments)
            return await take(publishing.store, hosts, tool, dry_run=dry_run, yes=yes)

    status = with_store(config, work)
    raise typer.Exit(status)


def _stored(store: Store) -> bytes:
    from fleet.core.errors import Refused

    found = store.topology()
    if found is None:
        raise Refused(f"there is no topology in {store.where}")
    return found.content
