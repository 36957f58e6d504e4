"""Branches of distributed transactions as a proxy leaves them that has died between PREPARE and COMMIT."""

from __future__ import annotations

import os
from typing import Any

from config import xa
from tests.support.servers import Connection


def identity(connection: Connection) -> str:
    """That of the server."""
    (found,) = _rows(connection, f"SELECT id FROM {xa.DATABASE}.{xa.IDENTITY}")[0]
    return found if isinstance(found, str) else str(found, "ascii")


def leave(
    branch: Connection, first: Connection, address: str, *writes: str, committed: bool, thread: int = 1
) -> bytes:
    """Run `writes` as a branch on one server, and prepare it; its gtrid. `committed`: the first server, which
    the topology names `address`, has decided so; else nobody has decided. `thread`: whose that was to do.
    """
    gtrid = b"%s.%d.%s" % (identity(first).encode(), thread, os.urandom(10).hex().encode())
    mine = identity(branch)
    branch.rollback()  # with autocommit off that was a transaction
    name = xa.literal(gtrid, xa.new_bqual(branch.thread_id(), address)).decode()
    for sql in (f"XA START {name}", *writes, f"XA END {name}", f"XA PREPARE {name}"):
        _rows(branch, sql)
    if committed:
        values = f"X'{gtrid.hex()}', 1, '{mine}'"
        _rows(first, f"INSERT INTO {xa.DATABASE}.{xa.DECISIONS} (gtrid, committed, hosts) VALUES ({values})")
    return gtrid


def names(connection: Connection) -> list[str]:
    """What is prepared there, as XA statements name it."""
    found = []
    for _, length, _, data in _rows(connection, "XA RECOVER"):
        text = data if isinstance(data, bytes) else bytes(str(data), "latin-1")
        found.append(xa.literal(text[: int(length)], text[int(length) :]).decode())
    return found


def _rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())
