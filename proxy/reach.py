"""Asking the hosts of a topology what they are and what the settings' accounts may do there, for `check`.

Connections are made as the proxy itself makes them, so that what works here works there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from config.references import MISSING, Name, count_sql
from config.schema import Schema
from config.settings import Settings
from config.sources import open_source
from config.topology import Topology

from .backends import OWN_ACCOUNT
from .backends.collect import Collector
from .backends.connecting import LoginConnector
from .backends.connection import BackendConnection
from .backends.host import AccountRefused
from .backends.pool import OWN
from .certificates import CertificateStore
from .errors import ProxyError

_AT_ONCE = 16
"""Hosts that are asked at the same time."""
_COUNTING = 60.0
"""Seconds for the rows of all reference tables of a host."""


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


class _Nobody:
    """The owner of connections that are in no pool."""

    def connection_closed(self, conn: BackendConnection) -> None:
        """Nothing depends on it."""

    def release(self, conn: BackendConnection) -> None:
        conn.close()

    def discard(self, conn: BackendConnection, *, kill: bool) -> None:
        conn.close()

    def database_changed(self) -> None:
        """Nothing depends on it."""


def topology_now(settings: Settings, schema: Schema) -> Topology:
    """The topology from wherever the settings say. ConfigError when there is none that can be used."""
    return asyncio.run(_topology(settings, schema))


async def _topology(settings: Settings, schema: Schema) -> Topology:
    source = open_source(settings, schema)
    try:
        return await source.start(lambda topology: None, lambda reason: None)
    finally:
        await source.stop()


def ask_hosts(
    settings: Settings, hosts: Iterable[str], tables: Sequence[Name] = ()
) -> dict[tuple[str, str], Reached]:
    """By host and account ("" is the proxy's own, who counts the rows of `tables`). ValueError for a
    certificate that cannot be used.
    """
    return asyncio.run(_ask_hosts(settings, list(hosts), tables))


async def _ask_hosts(
    settings: Settings, hosts: Sequence[str], tables: Sequence[Name]
) -> dict[tuple[str, str], Reached]:
    certificates = CertificateStore(settings)
    accounts = [OWN_ACCOUNT, *(one.user for one in settings.backends.accounts)]
    turns = asyncio.Semaphore(_AT_ONCE)

    async def ask(host: str, account: str) -> Reached:
        timeout = settings.backends.connect_timeout
        connect = LoginConnector(
            lambda host, variant: settings.backends.user_for(host, account),
            timeout,
            certificates.of_host(host),
        )
        try:
            async with turns, asyncio.timeout(2 * timeout):
                found = await _ask(connect, host)
        except TimeoutError:
            return Reached(error=f"no answer within {2 * timeout:g} s")
        if found.error or account != OWN_ACCOUNT or not tables:
            return found
        async with turns:
            return replace(found, rows=await _count(connect, host, tables))

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
        mariadb = "mariadb" in conn.version.lower()
        await _rows(conn, b"SET SESSION sql_mode = ''")  # ANSI_QUOTES would change how grants are printed
        return Reached(
            version=conn.version,
            account=(await _rows(conn, b"SELECT CURRENT_USER()"))[0],
            grants=await _rows(conn, b"SHOW GRANTS"),
            databases=await _rows(conn, b"SHOW DATABASES"),
            patterns=mariadb or (await _rows(conn, b"SELECT @@GLOBAL.partial_revokes"))[0] in ("0", "OFF"),
        )
    except ProxyError as error:
        return Reached(error=str(error.details.get("reason", error)))
    finally:
        conn.close()


async def _count(connect: LoginConnector, host: str, tables: Sequence[Name]) -> dict[Name, int | str]:
    """How many rows each of the tables has."""
    found: dict[Name, int | str] = dict.fromkeys(tables, f"no answer within {_COUNTING:g} s")
    try:
        async with asyncio.timeout(_COUNTING):
            conn = await connect(host, _Nobody(), OWN)
            try:
                for name in tables:
                    reply = await Collector().query(conn, count_sql(name).encode())
                    if reply.err is None:
                        found[name] = int(reply.values()[0][0] or 0)
                    else:
                        found[name] = MISSING if reply.err.code in (1049, 1146) else reply.err.text()
            finally:
                conn.close()
    except TimeoutError:
        pass
    except ProxyError as error:
        found = dict.fromkeys(tables, str(error.details.get("reason", error)))
    return found


async def _rows(conn: BackendConnection, sql: bytes) -> list[str]:
    """The first column. ProxyError for an error."""
    reply = await Collector().query(conn, sql)
    if reply.err is not None:
        raise ProxyError("host_unreachable", host=conn.host, reason=reply.err.text())
    return [(row[0] or b"").decode("utf-8", "replace") for row in reply.values()]
