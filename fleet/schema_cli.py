"""`shardgate schema`: the schema's document, in its file or in ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleet.options import CONFIG, ConfigOption, DryRunOption, FileArgument, YesOption

if TYPE_CHECKING:
    from config.settings import Settings
    from fleet.core.run import Report
    from fleet.core.store import Store
    from fleet.schema_publishing import PublishingSchema

app = typer.Typer(help="The schema's document, in its file or in ZooKeeper.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """The schema's document. Exit status: 0 done, 1 failed, 2 refused before anything was changed."""


@app.command()
def get(config: ConfigOption = CONFIG) -> None:
    """Print the document that is in use."""
    from fleet.command import schema_text, with_open_store

    def work(settings: Settings, store: Store) -> None:
        typer.echo(schema_text(settings, store).decode(errors="replace").encode(), nl=False)

    with_open_store(config, work)


@app.command()
def put(
    file: FileArgument, config: ConfigOption = CONFIG, dry_run: DryRunOption = False, yes: YesOption = False
) -> None:
    """Make FILE the schema, if the topology can serve it, and wait until all proxies do."""
    from fleet.command import read_document

    def document(store: Store) -> tuple[bytes, str]:
        return read_document(file), str(file)

    _publish(config, document, "schema put", {"FILE": str(file)}, dry_run, yes)


@app.command()
def history(config: ConfigOption = CONFIG) -> None:
    """The schemas that were published, counted: when, by whom, by which command."""
    from fleet.command import history_table, terminal, with_open_store
    from fleet.core.publish import SCHEMAS
    from fleet.core.publish import history as versions

    def work(settings: Settings, store: Store) -> None:
        now, found = store.schema(), versions(store, SCHEMAS)
        used = [one.number for one in found if now is not None and one.content == now.content][-1:]
        terminal().print(history_table("number", found, used))

    with_open_store(config, work)


@app.command()
def rollback(
    number: Annotated[int, typer.Argument(help="One of the history.", metavar="NUMBER", min=1)],
    config: ConfigOption = CONFIG,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Make what was number NUMBER the schema again."""
    from fleet.core.publish import SCHEMAS, kept

    def document(store: Store) -> tuple[bytes, str]:
        return kept(store, number, SCHEMAS).content, f"number {number} of the history"

    _publish(config, document, "schema rollback", {"NUMBER": number}, dry_run, yes)


def _publish(
    config: Path,
    document: Callable[[Store], tuple[bytes, str]],
    name: str,
    arguments: Mapping[str, object],
    dry_run: bool,
    yes: bool,
) -> None:
    """Publish what `document` gives, with what it is called."""
    from fleet.command import finish, run_until_done, take, with_open_store
    from fleet.core.hosts import Hosts, connector
    from fleet.schema_publishing import PublishingSchema

    def work(settings: Settings, store: Store) -> int:
        publishing = PublishingSchema(settings, store, *document(store))
        report = run_until_done(_taken(settings, store, publishing))
        if not report.steps:
            typer.echo("this is the schema already: nothing to do")
        elif not report.problems:
            done = "would be published" if dry_run else "is published"
            typer.echo(f"the schema {done}: {publishing.summary}")
        return finish(report)

    async def _taken(settings: Settings, store: Store, publishing: PublishingSchema) -> Report:
        async with Hosts(connector(settings.backends, settings.backends.user_for)) as hosts:
            tool = publishing.tool(name, arguments)
            return await take(store, hosts, tool, dry_run=dry_run, yes=yes)

    raise typer.Exit(with_open_store(config, work))
