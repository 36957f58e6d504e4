"""What the commands share that read the settings and ask no server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from config.document import ConfigError
from config.load import load_all
from config.schema import Schema
from config.settings import FILE, Settings
from config.topology import Topology

DEFAULT = FILE
ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The settings file.", metavar="FILE")]
TopologyOption = Annotated[
    Path | None,
    typer.Option("--topology", help="A topology file, when the settings name ZooKeeper.", metavar="FILE"),
]
SchemaOption = Annotated[
    Path | None,
    typer.Option("--schema", help="A schema file, when the settings name ZooKeeper.", metavar="FILE"),
]


def fail(message: str, status: int = 2) -> typer.Exit:
    """Say why on stderr; what is returned ends the command."""
    print(f"shardgate: {message}", file=sys.stderr)
    return typer.Exit(status)


def loaded(config: Path, topology: Path | None, schema: Path | None) -> tuple[Settings, Schema, Topology]:
    """All three documents. Raises typer.Exit, with every problem told."""
    try:
        return load_all(config, topology, schema)
    except ConfigError as error:
        raise fail(f"the configuration cannot be used:\n{error}") from None


def only_sharded(schema: Schema) -> str | None:
    """The one database that is sharded, if it is one."""
    sharded = [name for name, one in schema.databases.items() if one.keyspace is None]
    return sharded[0] if len(sharded) == 1 else None
