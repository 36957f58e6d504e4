"""`shardgate fleet changes`, with the documents read and the hosts at hand."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import os
import sys

from fleet.binlog.follow import Following, Wanted
from fleet.command import Fleet
from fleet.core.errors import Failed, Refused
from fleet.options import DONE


async def run_changes(fleet: Fleet, wanted: Wanted) -> int:
    """Exit status; Ctrl-C is the usual end. Refused, Failed, HostError."""
    if importlib.util.find_spec("pymysqlreplication") is None:
        raise Refused("what reads binary logs is not installed: pip install 'shardgate[cdc]'")
    known = {table.name for one in fleet.schema.databases.values() for table in one.tables.values()}
    for name in wanted.databases:
        if name not in fleet.schema.databases:
            raise Refused(f"--database {name}: is not in the schema")
    whole = any(one.keyspace or one.others for one in fleet.schema.databases.values())
    for name in wanted.tables:
        if name.rpartition(".")[2] not in known and not whole:
            raise Refused(f"--table {name}: is not in the schema")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")  # JSON is, whatever the terminal
    try:
        await Following(fleet, wanted, _print).run()
    except BrokenPipeError:
        _no_more_output()
        raise Failed("who reads the output has gone: what was not read is told of again") from None
    except asyncio.CancelledError:  # Ctrl-C; what was written out is in the positions
        pass
    return DONE


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


def _no_more_output() -> None:
    """The interpreter flushes at its end what nobody takes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
