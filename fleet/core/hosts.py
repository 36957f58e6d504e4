"""`Hosts`: connections of the tools to the hosts, a few to each, never more than `MOST` in all.

aiomysql logs in in the clear when TLS was asked for and the server offers none: `_Secured` refuses before
anything of the password is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

import aiomysql
from aiomysql import MySQLError

from config.backends import Backends
from config.tls import BackendTls
from config.topology import Host
from fleet.core.errors import HostError

MOST: Final = 64
PER_HOST: Final = 4
LOOK_SECONDS: Final = 120.0
"""For a statement that only looks."""

_TOGETHER: Final = 1000
_LOOK: Final = 0.02
_CLIENT_SSL: Final = 1 << 11

Row = tuple[Any, ...]
Login = Callable[[Host], tuple[str, str]]
"""User name and password for a host."""
Connect = Callable[[Host], Awaitable[aiomysql.Connection]]

_NO_TLS: Final = "the server offers no TLS, which backends.tls asks for: nothing was sent to it"
warnings.filterwarnings("ignore", category=aiomysql.Warning)  # they would be printed, with lines of code
DENIED: Final = frozenset({1045, 2059})
"""The host refuses who logs in. MySQL asks whom it does not know in a way taken at random: 2059."""
_LOST: Final = frozenset({2006, 2013, 2055, 1053, 1927, 4031})
#: What a server says of a statement, and not of the connection.
_SERVERS: Final = range(1000, 2000)


class _Secured(aiomysql.Connection):  # type: ignore[misc]
    """Does not log in to a server without TLS."""

    async def _request_authentication(self) -> None:
        if self._ssl_context and not self.server_capabilities & _CLIENT_SSL:
            raise MySQLError(2026, _NO_TLS)
        await super()._request_authentication()


def connector(backends: Backends, login: Login) -> Connect:
    """Connects as the settings say, over TLS where they ask for it."""

    async def connect(host: Host) -> aiomysql.Connection:
        user, password = login(host)
        tls = backends.tls_for(host)
        made = _Secured(
            user=user,
            password=password,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=backends.connect_timeout,
            ssl=None if tls is None else tls.context(),
            **address_of(host),
        )
        try:
            async with asyncio.timeout(backends.connect_timeout * 2):
                await made._connect()
        except TimeoutError:
            made.close()
            raise MySQLError(2003, f"no answer within {backends.connect_timeout * 2:g} s") from None
        return made

    return connect


def address_of(host: Host) -> dict[str, Any]:
    """A host's address as drivers take it."""
    if host.startswith("unix:"):
        return {"unix_socket": host.removeprefix("unix:")}
    name, _, port = host.rpartition(":")
    return {"host": name.strip("[]"), "port": int(port)}


def problem(host: Host, error: Exception) -> HostError:
    """What a driver's error says, its cause included."""
    numbered = len(error.args) > 1 and isinstance(error.args[0], int)
    code, text = (error.args[0], str(error.args[1])) if numbered else (0, str(error) or type(error).__name__)
    cause = error.__cause__
    if cause is not None and str(cause) and str(cause) not in text:
        text = f"{text}: {cause}"
    lost = not isinstance(error, MySQLError) or code in _LOST or not (numbered and code in _SERVERS)
    return HostError(host, text, code, lost=lost and code < 3000)


class Hosts:
    """Statements on hosts. HostError for what a host refuses, and when it cannot be reached. `tls_for`: what
    the settings say of encryption, for who else is to connect to a host.
    """

    def __init__(
        self,
        connect: Connect,
        per_host: int = PER_HOST,
        tls_for: Callable[[Host], BackendTls | None] = lambda host: None,
    ) -> None:
        self.per_host = per_host
        self.tls_for = tls_for
        self._connect = connect
        self._all = asyncio.Semaphore(MOST)
        self._turns: dict[Host, asyncio.Semaphore] = {}
        self._free: dict[Host, list[aiomysql.Connection]] = {}
        self._cut_off: list[tuple[Host, int]] = []
        """Connections that were left with a statement under way, by the server's number."""

    async def __aenter__(self) -> Hosts:
        return self

    async def __aexit__(self, *_: object) -> None:
        for free in self._free.values():
            for one in free:
                with contextlib.suppress(MySQLError, OSError):
                    await one.ensure_closed()  # one that only goes away is counted and logged as aborted
                one.close()
        self._free.clear()

    @contextlib.asynccontextmanager
    async def connection(self, host: Host) -> AsyncIterator[aiomysql.Connection]:
        """One connection, kept for the next unless something went wrong on it."""
        turns = self._turns.setdefault(host, asyncio.Semaphore(self.per_host))
        async with turns, self._all:
            free = self._free.setdefault(host, [])
            conn = free.pop() if free else await self._new(host)
            try:
                yield conn
            except BaseException as error:
                if not isinstance(error, HostError) or error.lost:
                    self._cut_off.append((host, conn.thread_id()))
                conn.close()
                raise
            free.append(conn)

    async def end_cut_off(self, seconds: float) -> None:
        """Statements that were left under way are ended: none of them changes anything after this. A server
        that does not do so within the time, or cannot be reached, is left.
        """
        left, self._cut_off = self._cut_off, []
        by_host: dict[Host, set[int]] = {}
        for host, number in left:
            by_host.setdefault(host, set()).add(number)

        async def end(host: Host, numbers: set[int]) -> None:
            with contextlib.suppress(HostError, TimeoutError):
                async with asyncio.timeout(seconds):
                    for one in numbers:
                        with contextlib.suppress(HostError):  # it is gone
                            await self.query(host, f"KILL {one}")
                    while True:
                        rows = await self.query(host, "SHOW PROCESSLIST")
                        if not numbers & {int(row[0]) for row in rows}:
                            break
                        await asyncio.sleep(_LOOK)

        await asyncio.gather(*(end(*one) for one in by_host.items()))

    async def _new(self, host: Host) -> aiomysql.Connection:
        try:
            return await self._connect(host)
        except (MySQLError, OSError, ValueError) as error:
            found = problem(host, error)
            what = "cannot log in" if found.code in DENIED else "cannot be reached"
            raise HostError(host, f"{what}: {found.text}", found.code, lost=True) from error

    @contextlib.asynccontextmanager
    async def own(self, host: Host) -> AsyncIterator[aiomysql.Connection]:
        """A connection whose session may be changed: beside those that are bounded, and closed at the end."""
        conn = await self._new(host)
        try:
            yield conn
        finally:
            conn.close()

    async def query(self, host: Host, sql: str, seconds: float | None = LOOK_SECONDS) -> list[Row]:
        """The rows of one statement."""
        async with self.connection(host) as conn:
            return await self.rows(conn, host, sql, seconds)

    async def rows(
        self, conn: aiomysql.Connection, host: Host, sql: str, seconds: float | None = LOOK_SECONDS
    ) -> list[Row]:
        """The same, over a connection that is held."""
        try:
            async with asyncio.timeout(seconds), conn.cursor() as cursor:
                await cursor.execute(sql)
                return list(await cursor.fetchall())
        except (MySQLError, OSError) as error:
            raise problem(host, error) from error
        except TimeoutError:
            raise HostError(host, f"no answer within {seconds:g} s", lost=True) from None

    async def records(self, host: Host, sql: str) -> list[dict[str, Any]]:
        """The rows of one statement, by the names of their columns."""
        async with self.connection(host) as conn:
            try:
                async with asyncio.timeout(LOOK_SECONDS), conn.cursor(aiomysql.DictCursor) as cursor:
                    await cursor.execute(sql)
                    return list(await cursor.fetchall())
            except (MySQLError, OSError) as error:
                raise problem(host, error) from error

    async def many(self, host: Host, statements: Sequence[str]) -> list[list[Row]]:
        """The rows of each of several statements, asked in one network write."""
        found: list[list[Row]] = []
        async with self.connection(host) as conn:
            try:
                async with asyncio.timeout(LOOK_SECONDS), conn.cursor() as cursor:
                    await cursor.execute(";\n".join(statements))
                    found.append(list(await cursor.fetchall()))
                    while await cursor.nextset():
                        found.append(list(await cursor.fetchall()))
            except (MySQLError, OSError) as error:
                raise problem(host, error) from error
            except TimeoutError:
                raise HostError(host, f"no answer within {LOOK_SECONDS:g} s", lost=True) from None
        return found

    async def stream(self, host: Host, sql: str) -> AsyncIterator[Row]:
        """The rows of one statement, as they come."""
        async with self.connection(host) as conn:
            try:
                async with conn.cursor(aiomysql.SSCursor) as cursor:
                    await cursor.execute(sql)
                    while rows := await cursor.fetchmany(_TOGETHER):
                        for row in rows:
                            yield row
            except (MySQLError, OSError) as error:
                raise problem(host, error) from error

    async def run(self, host: Host, statements: Sequence[str]) -> None:
        """Statements one after another in one network write; those after one that is refused do not run."""
        async with self.connection(host) as conn:
            try:
                async with conn.cursor() as cursor:
                    await cursor.execute(";\n".join(statements))
                    while await cursor.nextset():
                        pass
            except (MySQLError, OSError) as error:
                raise problem(host, error) from error
