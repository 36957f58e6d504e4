"""What the tools do where a transaction is prepared: they wait for it, and say so when they may not look."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any, TypeVar, cast

import pymysql
import pytest

from config import xa
from demo.servers import hosts_of
from fleet import distributed, fence, filling
from fleet.core.errors import Failed, HostError
from fleet.core.hosts import Hosts
from tests.faults.prepared import leave, names
from tests.support.servers import LocalServer
from tests.support.waiting import wait_until

T = TypeVar("T")
WORK = ("Com_xa_recover", "Com_lock_tables", "Com_alter_db")


@pytest.fixture
def server(servers: list[LocalServer]) -> Iterator[LocalServer]:
    """With a branch that is prepared, which its connection has left."""
    server = servers[0]
    with server.connect() as connection, connection.cursor() as cursor:
        for sql in (
            *xa.create_sql(),
            "CREATE DATABASE prepared",
            "CREATE TABLE prepared.t (n INT PRIMARY KEY)",
        ):
            cursor.execute(sql)
        with server.connect() as branch:
            leave(branch, connection, server.address, "INSERT INTO prepared.t VALUES (5)", committed=True)
        yield server
        for left in names(connection):
            cursor.execute(f"XA ROLLBACK {left}")
        for name in ("prepared", xa.DATABASE):
            cursor.execute(f"DROP DATABASE {name}")


def meanwhile(server: LocalServer, work: Callable[[Hosts], Awaitable[T]]) -> T:
    """`work`, which must be at it before the branch is committed."""
    with server.connect() as connection, connection.cursor() as cursor:

        def steps() -> int:
            cursor.execute(f"SHOW GLOBAL STATUS WHERE Variable_name IN {WORK}")
            return sum(int(value) for _, value in cursor.fetchall())

        before = steps()
        (name,) = names(connection)

        def committed() -> bool:
            try:
                cursor.execute(f"XA COMMIT {name}")
            except pymysql.MySQLError as error:
                if error.args[0] != 1397:
                    raise
                return False  # its connection is not gone yet
            return True

        def finish() -> None:
            wait_until(lambda: steps() > before + 1, "it has looked")
            wait_until(committed, "it is committed")

        async def main() -> T:
            async with hosts_of([server]) as hosts:
                return await work(hosts)

        thread = threading.Thread(target=finish)
        thread.start()
        try:
            return asyncio.run(main())
        finally:
            thread.join()


def numbers(server: LocalServer) -> list[int]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT n FROM prepared.t")
        return [int(n) for (n,) in cursor.fetchall()]


def test_databases_that_are_closed(server: LocalServer) -> None:
    """What was prepared there is finished then."""

    async def close(hosts: Hosts) -> None:
        closed = await fence.fence_of(hosts, server.address, ["prepared"], [])
        try:
            await fence.close_databases(hosts, server.address, closed, 5.0)
            assert await distributed.prepared(hosts, server.address) == []
        finally:
            await fence.open_databases(hosts, server.address, closed)

    meanwhile(server, close)
    assert numbers(server) == [5]


def test_a_copy(server: LocalServer) -> None:
    """It has the rows: else what commits them behind its position would find nothing."""

    async def copy(hosts: Hosts) -> list[Any]:
        async with AsyncExitStack() as stack:
            reader = await stack.enter_async_context(hosts.own(server.address))
            await filling._Copy(hosts, server.address, "")._snapshots([reader])
            return list(await hosts.rows(reader, server.address, "SELECT n FROM prepared.t"))

    assert meanwhile(server, copy) == [(5,)]


class Denied:
    """Hosts that tell the tools nothing."""

    async def query(self, host: str, sql: str) -> list[tuple[Any, ...]]:
        raise HostError(host, "Access denied", 1401)


def test_who_may_not_look_is_told() -> None:
    """Nothing is moved away under what cannot be seen."""
    with pytest.raises(Failed, match="GRANT XA_RECOVER_ADMIN"):
        asyncio.run(distributed.finished(cast("Hosts", Denied()), "db:3306"))
