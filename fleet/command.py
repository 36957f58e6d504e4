"""What the commands of the fleet tools share: documents, who logs in, and how they end."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
import warnings
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import aiomysql
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from config.document import ConfigError
from config.load import load_schema, load_settings, load_topology
from config.schema import Schema, quote
from config.settings import Settings
from config.sources.schema import digest_of
from config.topology import Host, Topology
from fleet import unfinished
from fleet.core.errors import Failed, HostError, Refused
from fleet.core.hosts import DENIED, Hosts, Login, connector
from fleet.core.interrupt import Interrupted, asking, cancelled_by_signals
from fleet.core.progress import Shown
from fleet.core.publish import FILE_SECONDS, Version, behind_schema
from fleet.core.run import AGAIN, NothingToUndo, Report, Runner, Tool
from fleet.core.steps import Step
from fleet.core.store import FileStore, Store, Stored
from fleet.core.zookeeper import ZooKeeperStore
from fleet.options import DONE, FAILED, REFUSED

_T = TypeVar("_T")
_NO_ACCOUNT = (
    "shardgate: is the account there, with this password? `fleet` in the settings names it, accounts.sql "
    "makes it; or log in as another: --user USER --password-env NAME"
)
_DATABASE = "\0"
_MANY = 4
"""Databases with which the same is done."""
_FEW = 20
"""Steps that are shown before it is asked whether to take them, and problems that are printed."""


def terminal() -> Console:
    """For what is printed. Where it is no terminal nothing is broken into lines."""
    made = Console(highlight=False, soft_wrap=True)
    return made if made.is_terminal else Console(highlight=False, soft_wrap=True, width=1000)


def history_table(number: str, found: Iterable[Version], used: Collection[int]) -> Table:
    """What was published; `number`: what its numbers are called; `used`: those in use."""
    table = Table(number, "published", "by", "command", "", box=None, pad_edge=False)
    for one in found:
        said = (Text(one.at[:19]), Text(one.by), Text(one.reason))  # brackets in them are no markup
        table.add_row(str(one.number), *said, "in use" if one.number in used else "")
    return table


def on_errors() -> Console:
    """Standard error: progress, so that what is printed can be piped."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """A line for who looks; a terminal that is closed meanwhile is none of our troubles."""
    with suppress(OSError):
        on_errors().print(f"shardgate: {text}", markup=False)


@contextmanager
def ending() -> Iterator[None]:
    """Turns what is raised within into a message and an exit status."""
    try:
        yield
    except (Refused, ConfigError) as error:
        print(f"shardgate: {error}", file=sys.stderr)
        raise typer.Exit(REFUSED) from None
    except (Failed, HostError) as error:
        where = f"{error.host}: " if isinstance(error, HostError) else ""
        print(f"shardgate: {where}{error}", file=sys.stderr)
        if isinstance(error, HostError) and error.code in DENIED:
            print(_NO_ACCOUNT, file=sys.stderr)
        raise typer.Exit(FAILED) from None
    except NothingToUndo as error:
        print(error)
        raise typer.Exit(DONE) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("shardgate: interrupted", file=sys.stderr)
        raise typer.Exit(FAILED) from None


def shards_of(text: str) -> tuple[int, int]:
    """First and last of `A-B`. Refused for anything else."""
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal()) or int(first) > int(last):
        raise Refused(f"--shards {text}: must be the first and the last, as in 512-1023")
    return int(first), int(last)


def statement_of(statement: str | None, file: Path | None) -> str:
    """Of --statement and --file the one that is given. Refused for both, neither, and no readable file."""
    if (statement is None) == (file is None):
        raise Refused("give the statement: --statement SQL, or --file FILE")
    if statement is not None:
        return statement
    assert file is not None
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{file} cannot be read: {error}") from None


def store_of(settings: Settings) -> Store:
    """Where the settings say that the topology is; not open yet."""
    if settings.topology.zookeeper is not None:
        return ZooKeeperStore(settings.topology.zookeeper)
    assert settings.topology.file is not None
    return FileStore(settings.topology.file, settings.topology.registry, settings.schema_file)


def not_serving(settings: Settings, store: Store) -> list[str]:
    """A line for each range of shards that clients wait for, or are refused. None where the topology cannot
    be read: others say why.
    """
    try:
        stored = store.topology()
        if stored is None:
            return []
        topology = load_topology(stored.content, name=store.where, layouts=settings.all_layouts)
    except ConfigError:
        return []
    return [f"{one.host}: {one.text}" for one in unfinished.not_serving(topology)]


def schema_text(settings: Settings, store: Store) -> bytes:
    """The schema's document, of its file or its node. Refused when there is none."""
    if settings.schema_file is not None:
        return read_document(settings.schema_file)
    stored = store.schema()
    if stored is None:
        raise Refused(f"there is no schema in {settings.schema_place}: `shardgate schema put FILE`")
    return stored.content


def read_document(file: Path) -> bytes:
    """The file's content. Refused when it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None


def _schema_of(settings: Settings, store: Store) -> Schema:
    return load_schema(schema_text(settings, store), name=settings.schema_place)


def shown(steps: Sequence[Step]) -> Iterator[str]:
    """Lines for people. Of steps that do the same with one database after another the first only."""
    for (host, lines), run in groupby(steps, lambda one: (one.host, _alike(one))):
        alike = list(run)
        some = alike if len(alike) < _MANY or not any(_DATABASE in line for line in lines) else alike[:1]
        for one in some:
            for line in one.lines:
                yield f"{host}: {line}" if host else line
        if len(some) < len(alike):
            names = [one.key.split("\t")[2] for one in alike]
            yield f"{host}: the same for {len(names) - 1} more, {names[1]} to {names[-1]}"


def _alike(step: Step) -> tuple[str, ...]:
    """What a step does, whatever its database is called."""
    parts = step.key.split("\t")
    name = quote(parts[2].partition(".")[0]) if len(parts) > 2 else ""
    return tuple(line.replace(name, _DATABASE) for line in step.lines) if name else step.lines


async def take(
    store: Store, hosts: Hosts, tool: Tool, *, dry_run: bool, yes: bool, undo: bool = False
) -> Report:
    """Take the tool's steps, or with `dry_run` only print them. Asks unless `yes`."""
    console = terminal()

    def show(steps: Sequence[Step]) -> None:
        for line in shown(steps):
            console.print(line, markup=False)

    def confirm(steps: Sequence[Step]) -> bool:
        if yes:
            return True
        if len(list(shown(steps))) <= _FEW:
            show(steps)
        places = ", ".join(dict.fromkeys(one.host for one in steps if one.host)) or store.where
        if not sys.stdin.isatty():
            return False
        with asking():
            return typer.confirm(f"{len(steps)} steps on {places}. Go on?")

    progress = Shown(on_errors(), tool.name)
    runner = Runner(store, hosts, progress, confirm, say)
    try:
        if not dry_run:
            return await runner.run(tool, undo=undo)
        steps = await runner.dry_run(tool, undo=undo)
    except asyncio.CancelledError:
        found = runner.operation
        if found is not None:
            ended = f"by then operation {found.number} was {found.outcome}"
            text = ended if found.outcome else f"see `shardgate fleet status`, then {AGAIN}"
            raise Interrupted(f"interrupted: {text}") from None
        if runner.found is not None:
            raise Interrupted(f"interrupted: operation {runner.found.number} is as it was: {AGAIN}") from None
        raise Interrupted("interrupted: nothing was changed") from None
    show(steps)
    if undo and not steps:
        console.print("there is nothing to take back")
    return Report(steps, list(steps), list(tool.problems))


async def schema_served(fleet: Fleet) -> None:
    """Wait a little for the proxies to know the tables that were made, and tell which do not: a schema file
    may come to another machine later.
    """
    digest = digest_of(schema_text(fleet.settings, fleet.store))
    late = await behind_schema(fleet.store, digest, FILE_SECONDS)
    if late:
        print(f"shardgate: note: {', '.join(late)} still serve another schema than this", file=sys.stderr)


def finish(report: Report) -> int:
    """Print what went wrong, and how to go on; the exit status."""
    for one in report.problems[:_FEW]:
        print(f"shardgate: {one}", file=sys.stderr)
    if len(report.problems) > _FEW:
        more = len(report.problems) - _FEW
        print(f"shardgate: and {more} more: shardgate fleet status", file=sys.stderr)
    if any("cannot log in: " in one for one in report.problems):
        print(_NO_ACCOUNT, file=sys.stderr)
    operation = report.operation
    if report.problems and operation is not None and not operation.outcome:
        first = "" if report.interrupted else "see to these, then "
        back = ""
        if operation.blocks and not operation.final:
            back = ", or with --undo, which takes it back; until then no other tool begins"
        print(
            f"shardgate: operation {operation.number} is not finished ({operation.progress}): {first}run the "
            f"same command again, which goes on where it was{back}",
            file=sys.stderr,
        )
    return FAILED if report.problems else DONE


@dataclass
class Fleet:
    """The documents, the store that is open, and the hosts."""

    settings: Settings
    schema: Schema
    store: Store
    hosts: Hosts
    topology: Topology
    login: Login
    console: Console = field(default_factory=terminal)

    async def run(self, tool: Tool, *, dry_run: bool, yes: bool, undo: bool = False) -> Report:
        """See `take`."""
        return await take(self.store, self.hosts, tool, dry_run=dry_run, yes=yes, undo=undo)


def with_store(config: Path, work: Callable[[Settings, Schema, Store], _T]) -> _T:
    """Open the topology's store, do `work` without any host, close it. Raises typer.Exit."""
    return with_open_store(config, lambda settings, store: work(settings, _schema_of(settings, store), store))


def with_open_store(config: Path, work: Callable[[Settings, Store], _T]) -> _T:
    """The same, whatever the documents are."""
    with ending():
        settings = load_settings(config)
        store = store_of(settings)
        store.open()
        try:
            return work(settings, store)
        finally:
            store.close()


def run_on_fleet(
    config: Path,
    user: str | None,
    password_env: str | None,
    work: Callable[[Fleet], Awaitable[_T]],
    topology_file: Path | None = None,
) -> _T:
    """Open everything, do `work`, close everything. Raises typer.Exit."""

    async def main() -> _T:
        async with opened(config, user, password_env, topology_file) as fleet:
            return await work(fleet)

    with ending():
        return run_until_done(main())


def run_until_done(work: Coroutine[Any, Any, _T]) -> _T:
    """`asyncio.run`, in which Ctrl-C, SIGTERM and a terminal that is closed cancel the work once: what it
    leaves in order then nobody hastens.
    """

    async def main() -> _T:
        with cancelled_by_signals(lambda: say("interrupted already: about to end, wait for it")):
            return await work

    return asyncio.run(main())


@asynccontextmanager
async def opened(
    config: Path, user: str | None, password_env: str | None, topology_file: Path | None = None
) -> AsyncIterator[Fleet]:
    """Raises Refused or ConfigError for documents that cannot be used."""
    settings = load_settings(config)
    login = _login(settings, user, password_env)
    warnings.filterwarnings("ignore", category=aiomysql.Warning)  # "Slave is already running"
    store = store_of(settings)
    await asyncio.to_thread(store.open)
    try:
        schema = await asyncio.to_thread(_schema_of, settings, store)
        stored = await asyncio.to_thread(store.topology)
        topology = _topology(settings, schema, store, stored, topology_file)
        for host in (*topology.hosts, *topology.slaves):
            _try_login(login, host)
        backends = settings.backends
        async with Hosts(connector(backends, login), tls_for=backends.tls_for) as hosts:
            yield Fleet(settings, schema, store, hosts, topology, login)
    finally:
        await asyncio.to_thread(store.close)


def _topology(
    settings: Settings, schema: Schema, store: Store, stored: Stored | None, file: Path | None
) -> Topology:
    if file is not None:
        return load_topology(file, layouts=settings.all_layouts, schema=schema)
    if stored is None:
        raise Refused(f"there is no topology in {store.where}: write it there, `shardgate topology put FILE`")
    return load_topology(stored.content, name=store.where, layouts=settings.all_layouts, schema=schema)


def _try_login(login: Login, host: Host) -> None:
    try:
        login(host)
    except ValueError as error:
        raise Refused(f"fleet: {error}") from None


def _login(settings: Settings, user: str | None, password_env: str | None) -> Login:
    """Who logs in: the user given, else the settings', else root."""
    if user is None and password_env is None and settings.fleet is not None:
        return settings.fleet.login
    name = user or (settings.fleet.user if settings.fleet is not None else "root")
    if password_env is not None:
        if password_env not in os.environ:
            raise Refused(f"the environment variable {password_env} is not set")
        password = os.environ[password_env]
    elif sys.stdin.isatty():
        with asking():
            password = getpass.getpass(f"Password of {name} on the hosts: ")
    else:
        raise Refused(
            f"give the password of {name} in the settings (`fleet`), or in an environment variable, and its "
            "name: --password-env NAME"
        )
    return lambda host: (name, password)
