"""Reads and writes over many databases: one statement a host, or one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from aiomysql import MySQLError

from config.topology import Host
from fleet.core.errors import HostError
from fleet.core.hosts import Hosts, Row, problem

_PIECES: Final = 64
"""SELECTs of one UNION ALL."""
_BYTES: Final = 4 << 20
"""Characters of the statements of one network write, about."""
_PIECE_BYTES: Final = 1 << 20
"""Characters of the rows of one statement, about."""
_SECONDS: Final = 600.0
_AGAIN: Final = frozenset({1205, 1213})
_ATTEMPTS: Final = 5


async def unions(hosts: Hosts, selects: Mapping[Host, Sequence[str]]) -> dict[Host, list[Row]]:
    """The rows of the SELECTs of each host. HostError."""

    async def of(host: Host, listed: Sequence[str]) -> tuple[Host, list[Row]]:
        found: list[Row] = []
        for at in range(0, len(listed), _PIECES):
            text = " UNION ALL ".join(f"({one})" for one in listed[at : at + _PIECES])
            found += await hosts.query(host, text, _SECONDS)
        return host, found

    return dict(await asyncio.gather(*(of(*one) for one in selects.items())))


def pieces(rows: Sequence[str]) -> Iterator[list[str]]:
    """Rows for several statements, none of them much longer than its longest row."""
    some: list[str] = []
    size = 0
    for row in rows:
        if some and size + len(row) > _PIECE_BYTES:
            yield some
            some, size = [], 0
        some.append(row)
        size += len(row)
    if some:
        yield some


async def transaction(hosts: Hosts, statements: Mapping[Host, Sequence[str]]) -> None:
    """Run them, those of a host in transactions of some megabytes. Twice must do no harm. HostError."""

    async def on(host: Host, listed: Sequence[str]) -> None:
        part: list[str] = []
        size = 0
        for one in listed:
            if part and size + len(one) > _BYTES:
                await _committed(hosts, host, part)
                part, size = [], 0
            part.append(one)
            size += len(one)
        if part:
            await _committed(hosts, host, part)

    await asyncio.gather(*(on(*one) for one in statements.items() if one[1]))


async def _committed(hosts: Hosts, host: Host, statements: Sequence[str]) -> None:
    for left in reversed(range(_ATTEMPTS)):
        try:
            return await _once(hosts, host, statements)
        except HostError as error:
            if error.code not in _AGAIN or not left:
                raise


async def _once(hosts: Hosts, host: Host, statements: Sequence[str]) -> None:
    async with hosts.connection(host) as conn:
        try:
            async with asyncio.timeout(_SECONDS), conn.cursor() as cursor:
                await cursor.execute(";\n".join(("START TRANSACTION", *statements, "COMMIT")))
                while await cursor.nextset():
                    pass
        except (MySQLError, OSError) as error:
            with suppress(MySQLError, OSError):
                await conn.rollback()  # the connection serves others
            raise problem(host, error) from error
        except TimeoutError:
            raise HostError(host, f"no answer within {_SECONDS:g} s", lost=True) from None
