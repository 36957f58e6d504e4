"""The `shardgate` command."""

from __future__ import annotations

import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from config.check_addresses import itself_problems, own_addresses
from config.checks import access_problems, fit_problems
from config.document import ConfigError
from config.doubts import doubts
from config.layout import BUILTIN
from config.load import check as check_files
from config.load import load_schema, load_settings, load_topology, open_document
from config.references import reference_tables
from config.schema import Schema
from config.settings import Settings, ZooKeeper
from config.topology import Topology
from fleet.binlog.cli import changes
from fleet.cli import app as fleet_app
from fleet.importing.cli import import_rows, propose
from fleet.schema_cli import app as schema_app
from fleet.topology_cli import app as topology_app

from .advising.cli import advise
from .offline import DEFAULT, ConfigOption, SchemaOption, TopologyOption, fail, loaded, only_sharded
from .printable import printable, printable_lines, simplify

app = typer.Typer(
    name="shardgate",
    help="A MySQL proxy that makes a fleet of sharded MySQL servers look like one database.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_TERMINAL = sys.stdout is not None and sys.stdout.isatty()  # None: started with the stream closed
console = Console(highlight=False, width=None if _TERMINAL else 200)

_BEHIND = 5.0
"""So many seconds may a slave be behind its master, as right behind `fleet create`."""
_MOMENT = 0.2


def main() -> None:
    """Entry point of the command."""
    simplify(sys.stdout)
    app()


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"shardgate {version('shardgate')}")
        raise typer.Exit


@app.callback()
def options(
    asked: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A MySQL proxy that makes a fleet of sharded MySQL servers look like one database."""


@app.command()
def serve(config: ConfigOption = DEFAULT) -> None:
    """Run the proxy. SIGTERM drains it, SIGHUP makes it look at users, topology and certificates again."""
    from .serving import serve as run

    raise typer.Exit(run(config))


app.add_typer(fleet_app, name="fleet")
app.add_typer(topology_app, name="topology")
app.add_typer(schema_app, name="schema")
app.command()(propose)
app.command()(advise)
fleet_app.command(name="import")(import_rows)
fleet_app.command()(changes)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to write; made when missing.", metavar="DIR")],
) -> None:
    """Write a first configuration, with comments: settings, schema, topology, and the GRANTs of the proxy's
    accounts. Nothing that exists is overwritten.
    """
    from fleet.core.errors import Refused
    from fleet.starter import NEXT, write

    try:
        write(folder)
    except Refused as error:
        raise fail(str(error)) from None
    typer.echo(NEXT.format(folder), nl=False)


@app.command()
def check(
    config: ConfigOption = DEFAULT,
    connect: Annotated[
        bool,
        typer.Option(
            "--connect",
            help="Ask the hosts, too: versions, what the accounts may, databases, tables, replication.",
        ),
    ] = False,
) -> None:
    """Validate the settings, the schema and, when it is a file, the topology. All errors are listed."""
    try:
        settings, schema, topology = check_files(config, closely=True)
    except ConfigError as error:
        raise fail(f"the configuration cannot be used:\n{error}") from None
    console.print(f"[green]ok[/]  settings  {config}: {len(settings.users)} users")
    problems: list[str] = []
    if connect and settings.topology.zookeeper is not None:
        schema, topology, problems = _in_zookeeper(settings, settings.topology.zookeeper, schema)
    for name, text in doubts(settings, schema, topology):
        console.print("[yellow]--[/]  settings  ", end="")
        console.print(f"{name}: {text}", markup=False, soft_wrap=True)  # [0] is no style
    for problem in problems:
        console.print("[red]!![/]  zookeeper ", end="")
        console.print(problem, markup=False, soft_wrap=True)
    if schema is not None:
        tables = sum(len(database.tables) for database in schema.databases.values())
        console.print(
            f"[green]ok[/]  schema    {settings.schema_place}: "
            f"{len(schema.databases)} databases, {tables} tables"
        )
    elif not connect:
        console.print("[yellow]--[/]  schema    in ZooKeeper: not looked at")
    if topology is not None:
        shards = sum(len(keyspace.all_shards) for keyspace in topology.keyspaces.values())
        console.print(
            f"[green]ok[/]  topology  {_topology_place(settings)}: "
            f"version {topology.version}, {shards} shards on {len(topology.hosts)} hosts"
        )
    elif not connect:
        console.print("[yellow]--[/]  topology  in ZooKeeper: not looked at")
    if not settings.backends.accounts:
        console.print(f"[yellow]--[/]  accounts  {_ONE_FOR_ALL.format(settings.backends.user)}")
    if not connect:
        return
    if schema is None or topology is None or not _connects(settings, schema, topology) or problems:
        raise typer.Exit(1)
    if not _finished(settings, topology, config):
        raise typer.Exit(1)


_ONE_FOR_ALL = (
    "all statements run as {}: only the proxy stands between a user and all that this account may do. "
    "Name accounts in backends.accounts"
)


def _topology_place(settings: Settings) -> str:
    zookeeper = settings.topology.zookeeper
    return (
        str(settings.topology.file) if zookeeper is None else f"zookeeper {zookeeper.hosts}{zookeeper.path}"
    )


def _in_zookeeper(
    settings: Settings, zookeeper: ZooKeeper, schema: Schema | None
) -> tuple[Schema | None, Topology | None, list[str]]:
    """What is there, `schema` if it is a file, and what is wrong."""
    from config.sources.zookeeper_check import look

    found, problems = look(zookeeper)
    problems = [f"{zookeeper.hosts}: {one}" for one in problems]
    topology = None
    name = f"zookeeper {zookeeper.schema_path}"
    try:
        if zookeeper.schema_path in found:
            schema = load_schema(found[zookeeper.schema_path], name=name)
    except ConfigError as error:
        problems += map(str, error.problems)
    try:
        if zookeeper.path in found:
            document = open_document(found[zookeeper.path], f"zookeeper {zookeeper.path}")
            topology = load_topology(
                found[zookeeper.path], name=document.source, layouts=settings.all_layouts
            )
            problems += map(str, itself_problems(own_addresses(settings), topology, document))
    except ConfigError as error:
        problems += map(str, error.problems)
    if schema is not None and topology is not None:
        databases = [one for user in settings.users for one in user.databases]
        misfits = fit_problems(schema, topology, source=name)
        misfits += access_problems(schema, topology, databases, name)
        problems += map(str, misfits)
    return schema, topology, problems


def _connects(settings: Settings, schema: Schema, topology: Topology) -> bool:
    """Ask the hosts and print what is wrong there; whether nothing is."""
    from fleet.asking import ask
    from fleet.verify import behind, hosts_of, references, routing_names, verify

    from .reachability import ask_hosts

    try:
        tables, columns = reference_tables(schema, topology), routing_names(schema)
        answers = ask_hosts(settings, hosts_of(topology), tables, columns)
        if references(topology, answers):  # or they were just being written
            answers = ask_hosts(settings, hosts_of(topology), tables, columns)
        patience = time.monotonic() + _BEHIND
        while behind(schema, topology, answers) and time.monotonic() < patience:
            time.sleep(_MOMENT)
            answers = ask_hosts(settings, hosts_of(topology), tables, columns)
    except ValueError as error:
        raise fail(f"the hosts cannot be asked:\n{error}") from None
    try:
        reached = [host for host in hosts_of(topology) if not answers[host, ""].error]
        replication = ask(settings, topology, reached)
    except ValueError as error:
        console.print(f"[yellow]--[/]  fleet     replication is not looked at: {error}")
        replication = {}
    verdicts = verify(settings, schema, topology, answers, replication)
    for verdict in verdicts:
        if not verdict.findings:
            console.print(f"[green]ok[/]  host      {verdict.host}: {verdict.summary}")
        for finding in verdict.findings:
            console.print(f"[red]!![/]  host      {verdict.host}: ", end="")
            console.print(finding.text, markup=False, soft_wrap=True)
            for sql in finding.remedy:
                console.print(f"        {sql};", markup=False, soft_wrap=True)
    return not any(verdict.findings for verdict in verdicts)


def _finished(settings: Settings, topology: Topology, config: Path) -> bool:
    """Print which changes of the fleet tools are not finished, and what is frozen; whether there are none."""
    from fleet import unfinished
    from fleet.command import store_of
    from fleet.core.errors import Failed

    store = store_of(settings)
    try:
        store.open()
        found = unfinished.faults(store, topology, f" --config {config}")
    except Failed as error:
        console.print(f"[red]!![/]  fleet     what is unfinished cannot be read: {error}", markup=True)
        return False
    finally:
        store.close()
    for one in found:
        console.print("[red]!![/]  fleet     ", end="")
        console.print(f"{one.host}: {one.text}", markup=False, soft_wrap=True)
        console.print(f"        {one.remedy}", markup=False, soft_wrap=True)
    return not found


@app.command(name="id")
def decode_id(
    ids: Annotated[list[str], typer.Argument(help="IDs, decimal or 0x… hexadecimal.", metavar="ID...")],
    layout: Annotated[
        str, typer.Option(help="The ID layout: pinterest, instagram, or one of the settings.")
    ] = "pinterest",
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Settings with further layouts.", metavar="FILE")
    ] = None,
) -> None:
    """Decode IDs: shard, type and local id, or time and sequence."""
    layouts = dict(BUILTIN)
    if config is not None:
        try:
            layouts = check_files(config)[0].all_layouts
        except ConfigError as error:
            raise fail(str(error)) from None
    if layout not in layouts:
        raise fail(f"there is no layout {layout!r}; known are {', '.join(sorted(layouts))}")
    chosen = layouts[layout]
    table = Table(box=None, pad_edge=False)
    names = [field.name for field in chosen.fields]
    for title in ["id", *names, *(["made at"] if chosen.epoch_ms is not None else [])]:
        table.add_column(title, justify="right")
    status = 0
    for text in ids:
        try:
            number = _number(text)
            parts = chosen.decompose(number)
        except ValueError as error:
            print(f"shardgate: {text}: {error}", file=sys.stderr)
            status = 1
            continue
        row = [str(number), *(str(parts.get(name, 0)) for name in names)]
        if chosen.epoch_ms is not None:
            row.append(_moment(chosen.time_ms(number)))
        table.add_row(*row)
    if table.row_count:
        console.print(table)
    raise typer.Exit(status)


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError("is not a number") from None


def _moment(milliseconds: int | None) -> str:
    from datetime import UTC, datetime

    if milliseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"


@app.command()
def explain(
    sql: Annotated[str, typer.Argument(help="One statement.")],
    config: ConfigOption = DEFAULT,
    database: Annotated[str | None, typer.Option("--database", "-D", help="The current database.")] = None,
    topology_file: TopologyOption = None,
    schema_file: SchemaOption = None,
) -> None:
    """Show how a statement would be routed and rewritten, without any server."""
    from proxy.errors import error_lines
    from rewriter.env import Env
    from rewriter.explain import explain as explain_route
    from rewriter.planner import Rewriter

    _, schema, topology = loaded(config, topology_file, schema_file)
    if database is None:
        database = only_sharded(schema)
    rows = explain_route(
        Rewriter(schema, topology),
        sql.encode(),
        Env(database=database),
        topology,
        lambda name: b"0",
        error_lines,
    )
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for section, detail in rows:
        table.add_row(Text(printable(section)), Text(printable_lines(detail)))
    console.print(table)


@app.command()
def top(
    config: ConfigOption = DEFAULT,
    url: Annotated[
        str | None,
        typer.Option(
            help="The status page's address, instead of that in the settings.",
            metavar="http://HOST:PORT",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        float, typer.Option(help="Seconds between two looks.", min=0.5, max=3600, metavar="SECONDS")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print one look, and end.")] = False,
) -> None:
    """What a running proxy does now: rates, hosts, hot shards, the costliest statements."""
    from .top import TopError, watch

    try:
        watch(console, url or _status_url(config), interval, once=once)
    except TopError as error:
        raise fail(str(error), 1) from None


def _status_url(config: Path) -> str:
    """Where the page of the proxy with these settings is."""
    try:
        listen = load_settings(config).status.listen
    except ConfigError as error:
        raise fail(f"the configuration cannot be used:\n{error}") from None
    if listen is None or listen.path is not None:
        raise fail("status.listen is no TCP address in these settings: name the page by --url")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen.host, listen.host)
    return f"http://[{host}]:{listen.port}" if ":" in host else f"http://{host}:{listen.port}"


@app.command()
def demo(
    hosts: Annotated[int, typer.Option(help="MySQL servers to start.", min=1, max=16)] = 2,
    shards: Annotated[
        int, typer.Option(help="Shards, spread evenly: one a host at least.", min=1, max=8192)
    ] = 64,
    slaves: Annotated[bool, typer.Option("--slaves", help="A replicating slave for each server.")] = False,
    spares: Annotated[
        int, typer.Option(help="Empty servers beside them, for the fleet tools.", min=0, max=16)
    ] = 0,
    zookeeper: Annotated[
        bool, typer.Option("--zookeeper", help="Keep the topology in a ZooKeeper of its own.")
    ] = False,
    mysqld: Annotated[
        Path | None, typer.Option(help="The server program, or its folder.", metavar="PATH")
    ] = None,
    port: Annotated[int, typer.Option(help="The proxy's port; 0 takes a free one.", min=0, max=65535)] = 3307,
    workers: Annotated[int, typer.Option(help="Worker processes of the proxy.", min=1, max=64)] = 1,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="Where to keep everything; removed at the end if new.", metavar="DIR"),
    ] = None,
    ready_file: Annotated[
        Path | None, typer.Option(help="Gets one JSON object when all is up.", metavar="FILE")
    ] = None,
    empty: Annotated[bool, typer.Option("--empty", help="No sample data.")] = False,
    no_page: Annotated[bool, typer.Option("--no-page", help="No status page.")] = False,
    fast: Annotated[
        bool, typer.Option("--fast", help="Servers that do not wait for the disk: a crash loses rows.")
    ] = False,
) -> None:
    """Start throw-away MySQL servers with shards and sample data, and the proxy in front of them."""
    from demo import DemoOptions, run

    options = DemoOptions(
        hosts=hosts,
        shards=shards,
        slaves=slaves,
        spares=spares,
        zookeeper=zookeeper,
        mysqld=mysqld,
        port=port,
        workers=workers,
        directory=directory,
        ready_file=ready_file,
        empty=empty,
        no_page=no_page,
        fast=fast,
    )
    raise typer.Exit(run(options))


if __name__ == "__main__":
    main()
