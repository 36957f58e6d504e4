"""Asking the hosts of a topology what they are and what the settings' accounts may do there, for `check`.

Connections are made as the proxy itself makes them, so that what works here works there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from config.flavour import flavour_of
from config.references import MISSING, Name, count_sql
from config.routing_columns import ServerColumn
from config.settings import Settings

from .backends import OWN_ACCOUNT
from .backends.collect import Collector
from .backends.connecting import LoginConnector
from .backends.connection import BackendConnection
from .backends.pool import OWN
from .backends.refusals import AccountRefused
from .certificates import CertificateStore
from .errors import ProxyError
from .load import Load

_AT_ONCE = 16
"""Hosts that are asked at the same time."""
_COUNTING = 60.0
"""Seconds for the tables of a host, and the rows of its reference tables."""
_COLUMNS = (
    "SELECT table_schema, table_name, column_name, column_type, collation_name, column_default, extra"
    " FROM information_schema.columns WHERE (table_name, column_name) IN ({})"
)
_TABLES = b"SELECT table_schema, table_name FROM information_schema.tables"


@dataclass(frozen=True, slots=True)
class Reached:
    """What a host says to one account; `error` why it says nothing. `denied`: it is there, but does not let
    the account in, with error `code`.
    """

    error: str = ""
    denied: bool = False
    code: int = 0
    version: str = ""
    account: str = ""  # as CURRENT_USER() has it: `user@host`
    grants: Sequence[str] = ()
    databases: Sequence[str] = ()
    patterns: bool = True  # whether names in GRANT may have wildcards
    rows: Mapping[Name, int | str] = field(default_factory=dict)
    """How many rows the reference tables have, or why that is not known; what is not there has `MISSING`."""
    tables: Mapping[str, Collection[str]] | str = ""
    """The tables of each database that has some, or why that is not known."""
    columns: Sequence[ServerColumn] = ()
    """The routing columns that were asked for, in all databases."""


class _Nobody:
    """The owner of connections that are in no pool."""

    def __init__(self) -> None:
        self.load = Load()

    def connection_closed(self, conn: BackendConnection) -> None:
        """Nothing depends on it."""

    def release(self, conn: BackendConnection) -> None:
        conn.close()

    def discard(self, conn: BackendConnection, *, kill: bool) -> None:
        conn.close()

    def kill_soon(self, thread_id: int, capability_set: int, *, query_only: bool = False) -> None:
        """Nobody ends a question of the proxy's own."""

    def database_changed(self) -> None:
        """Nothing depends on it."""


def ask_hosts(
    settings: Settings,
    hosts: Iterable[str],
    tables: Sequence[Name] = (),
    columns: Collection[tuple[str, str]] = (),
) -> dict[tuple[str, str], Reached]:
    """By host and account ("" is the proxy's own, who lists all tables and counts the rows of `tables`).
    `columns`: the (table, column) whose definitions in every database are wanted. ValueError for a
    certificate that cannot be used.
    """
    return asyncio.run(_ask_hosts(settings, list(hosts), tables, columns))


async def _ask_hosts(
    settings: Settings,
    hosts: Sequence[str],
    tables: Sequence[Name],
    columns: Collection[tuple[str, str]],
) -> dict[tuple[str, str], Reached]:
    certificates = CertificateStore(settings)
    accounts = [OWN_ACCOUNT, *(one.user for one in settings.backends.accounts)]
    turns = asyncio.Semaphore(_AT_ONCE)

    async def ask(host: str, account: str) -> Reached:
        timeout = settings.backends.connect_timeout
        connect = LoginConnector(
            lambda host, capability_set: settings.backends.user_for(host, account),
            timeout,
            certificates.of_host(host),
        )
        try:
            async with turns, asyncio.timeout(2 * timeout):
                found = await _ask(connect, host)
        except TimeoutError:
            return Reached(error=f"no answer within {2 * timeout:g} s")
        if found.error or account != OWN_ACCOUNT:
            return found
        async with turns:
            rows, names, definitions = await _look(connect, host, tables, columns)
        return replace(found, rows=rows, tables=names, columns=definitions)

    wanted = [(host, account) for host in hosts for account in accounts]
    answers = await asyncio.gather(*(ask(host, account) for host, account in wanted))
    return dict(zip(wanted, answers, strict=True))


async def _ask(connect: LoginConnector, host: str) -> Reached:
    try:
        conn = await connect(host, _Nobody(), OWN)
    except AccountRefused as refused:
        reason = str(refused.details["reason"])
        return Reached(error=reason, denied=True, code=refused.error, version=refused.version)
    except ProxyError as error:
        return Reached(error=str(error.details.get("reason", error)))
    try:
        always = flavour_of(conn.version).underscores_in_grants
        await _rows(conn, b"SET SESSION sql_mode = ''")  # ANSI_QUOTES would change how grants are printed
        return Reached(
            version=conn.version,
            account=(await _rows(conn, b"SELECT CURRENT_USER()"))[0],
            grants=await _rows(conn, b"SHOW GRANTS"),
            databases=await _rows(conn, b"SHOW DATABASES"),
            patterns=always or (await _rows(conn, b"SELECT @@GLOBAL.partial_revokes"))[0] in ("0", "OFF"),
        )
    except ProxyError as error:
        return Reached(error=str(error.details.get("reason", error)))
    finally:
        conn.close()


async def _look(
    connect: LoginConnector, host: str, tables: Sequence[Name], columns: Collection[tuple[str, str]]
) -> tuple[dict[Name, int | str], dict[str, set[str]] | str, list[ServerColumn]]:
    """How many rows each of the tables has, and which tables there are in all; or why that is not known. And
    how `columns` are defined.
    """
    definitions: list[ServerColumn] = []
    late = f"no answer within {_COUNTING:g} s"
    counts: dict[Name, int | str] = dict.fromkeys(tables, late)
    names: dict[str, set[str]] | str = late
    try:
        async with asyncio.timeout(_COUNTING):
            conn = await connect(host, _Nobody(), OWN)
            try:
                names = await _tables(conn)
                definitions = await _columns(conn, columns)
                for name in tables:
                    reply = await Collector().query(conn, count_sql(name).encode())
                    if reply.err is None:
                        counts[name] = int(reply.values()[0][0] or 0)
                    else:
                        counts[name] = MISSING if reply.err.code in (1049, 1146) else reply.err.text()
            finally:
                conn.close()
    except TimeoutError:
        pass
    except ProxyError as error:
        reason = str(error.details.get("reason", error))
        return dict.fromkeys(tables, reason), reason, definitions
    return counts, names, definitions


async def _tables(conn: BackendConnection) -> dict[str, set[str]]:
    """By database. ProxyError for an error."""
    found: dict[str, set[str]] = {}
    for row in await _values(conn, _TABLES):
        database, table = ((one or b"").decode("utf-8", "replace") for one in row)
        found.setdefault(database, set()).add(table)
    return found


async def _columns(conn: BackendConnection, wanted: Collection[tuple[str, str]]) -> list[ServerColumn]:
    """The columns of these (table, column), in all databases. ProxyError for an error."""
    if not wanted:
        return []
    pairs = ", ".join(f"(x'{table.encode().hex()}', x'{column.encode().hex()}')" for table, column in wanted)
    found = []
    for row in await _values(conn, _COLUMNS.format(pairs).encode()):
        values = [None if one is None else one.decode("utf-8", "replace") for one in row]
        database, table, name, type_, collation, default, extra = values
        found.append(
            ServerColumn(
                database or "",
                table or "",
                name or "",
                type_ or "",
                collation or "",
                None if default == "NULL" else default,
                extra or "",
            )
        )
    return found


async def _rows(conn: BackendConnection, sql: bytes) -> list[str]:
    """The first column. ProxyError for an error."""
    return [(row[0] or b"").decode("utf-8", "replace") for row in await _values(conn, sql)]


async def _values(conn: BackendConnection, sql: bytes) -> list[Sequence[bytes | None]]:
    reply = await Collector().query(conn, sql)
    if reply.err is not None:
        raise ProxyError("host_unreachable", host=conn.host, reason=reply.err.text())
    return list(reply.values())
