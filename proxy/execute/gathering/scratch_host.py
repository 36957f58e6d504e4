"""The scratch database: what a new connection to it does first, and errors that name its tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.wire.packets import Err
from rewriter.plans.gather import SCRATCH, Piece, quoted

from .batch import Batch

_NO_DATABASE: Final = 1049
CREATE_DATABASE: Final = b"CREATE DATABASE IF NOT EXISTS " + SCRATCH + b" CHARACTER SET utf8mb4"
_OURS: Final = re.compile(r"g[0-9]+_[0-9a-f]{16}")
LEFT_BEHIND: Final = 86400
"""A table of that age (seconds) belongs to no statement any more: its proxy, or the way to it, was lost."""


async def begin(conn: BackendConnection) -> None:
    """Prepare a new connection. Without the privilege for `sql_log_bin` replicas get the copies as well."""
    await Collector().query(conn, b"SET SESSION sql_log_bin = 0")
    used = await Collector().query(conn, b"USE " + SCRATCH)  # its character set is JSON_TABLE's
    if used.err is not None and used.err.code == _NO_DATABASE:
        await Batch().run(conn, [CREATE_DATABASE, b"USE " + SCRATCH])
        return
    reply = await Collector().query(conn, left_behind(LEFT_BEHIND))
    if reply.err is None:
        names = ours([(row[0] or b"").decode("utf-8", "replace") for row in reply.values()])
        if names:
            await Collector().query(conn, drop(names))


def left_behind(seconds: int) -> bytes:
    """The query for tables of the scratch database that are older than that."""
    return (
        b"SELECT table_name FROM information_schema.tables WHERE table_schema = '%b'"
        b" AND create_time < NOW() - INTERVAL %d SECOND LIMIT 1000" % (SCRATCH, seconds)
    )


def ours(names: Sequence[str]) -> list[str]:
    """Those that are named as tables of gathered rows are."""
    return [name for name in names if _OURS.fullmatch(name)]


def drop(names: Sequence[str]) -> bytes:
    """DROP TABLE."""
    return b"DROP TABLE IF EXISTS " + b", ".join(SCRATCH + b"." + quoted(name) for name in names)


def in_own_words(err: Err, names: Sequence[bytes], pieces: Sequence[Piece]) -> Err:
    """A server's error about the statement over copies, with the names that the client knows. `names` are
    the pieces' tables, quoted.
    """
    message = err.message
    if SCRATCH not in message or not pieces:
        return err
    for name, piece in zip(names, pieces, strict=True):
        table = piece.label.partition(" AS ")[0].partition(".")[2]
        message = message.replace(SCRATCH + b"." + name, table.encode("utf-8", "surrogateescape"))
    database = pieces[0].label.partition(".")[0].encode("utf-8", "surrogateescape")
    return replace(err, message=message.replace(SCRATCH + b".", database + b"."))
