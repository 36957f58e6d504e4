"""Fences on real servers: what is begun before one, whoever holds a connection, what goes on beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import pymysql
import pytest

from demo.servers import hosts_of
from fleet import fence
from fleet.core.hosts import Hosts
from tests.support.servers import Connection, LocalServer

T = TypeVar("T")
CLOSED = (1142, 1044, 1290, 1370, 3989)
"""What servers refuse writes with."""
USERS = ("sg_every", "sg_pattern", "sg_exact", "sg_table", "sg_column")


@pytest.fixture
def server(servers: list[LocalServer]) -> Iterator[LocalServer]:
    """With two databases and accounts of each kind of rights."""
    server = servers[0]
    grants = ("*.*", r"`fence\_0000_`.*", r"`fence\_00001`.*", "fence_00001.t", "fence_00001.t")
    with server.connect() as connection, connection.cursor() as cursor:
        for name in ("fence_00001", "fence_00002"):
            cursor.execute(f"CREATE DATABASE {name}")
            cursor.execute(f"CREATE TABLE {name}.t (n INT PRIMARY KEY)")
        for user, scope in zip(USERS, grants, strict=True):
            cursor.execute(f"CREATE USER {user}@'%' IDENTIFIED BY 'x'")
            rights = "ALL" if scope == "*.*" else "SELECT, INSERT, UPDATE, DELETE"
            rights = "SELECT (n), INSERT (n), UPDATE (n)" if user == "sg_column" else rights
            cursor.execute(f"GRANT {rights} ON {scope} TO {user}@'%'")
    yield server
    with server.connect() as connection, connection.cursor() as cursor:
        for name in ("fence_00001", "fence_00002"):
            cursor.execute(f"DROP DATABASE {name}")
        for user in USERS:
            cursor.execute(f"DROP USER {user}@'%'")


def run(server: LocalServer, work: Callable[[Hosts], Awaitable[T]]) -> T:
    async def main() -> T:
        async with hosts_of([server]) as hosts:
            return await work(hosts)

    return asyncio.run(main())


def writes(connection: Connection, number: int, database: str = "fence_00001") -> int:
    """0, or the error's number, 2013 for a lost connection."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {database}.t VALUES ({number})")
    except pymysql.MySQLError as error:
        return int(error.args[0]) or 2013  # 0: it was closed before
    return 0


def grants(server: LocalServer) -> list[str]:
    with server.connect() as connection, connection.cursor() as cursor:
        lines = []
        for user in USERS:
            cursor.execute(f"SHOW GRANTS FOR {user}@'%'")
            lines += sorted(str(line) for (line,) in cursor.fetchall())
    return lines


def numbers(server: LocalServer, database: str = "fence_00001") -> list[int]:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT n FROM {database}.t ORDER BY n")
        return [n for (n,) in cursor.fetchall()]


def test_databases(server: LocalServer, flavour: str) -> None:
    before = grants(server)
    address = server.address
    live = {user: server.connect(user=user, password="x") for user in USERS}
    inside = server.connect(user="sg_pattern", password="x", database="fence_00001")
    held = run(server, lambda hosts: fence.fence_of(hosts, address, ["fence_00001"], USERS))
    assert fence.Fence.read(held.document()) == held
    for _ in range(2):
        run(server, lambda hosts: fence.close_databases(hosts, address, held))
        assert writes(inside, 1) in (*CLOSED, 2006, 2013)
        for number, user in enumerate(USERS, 10):
            with server.connect(user=user, password="x") as new:
                assert writes(new, number) in CLOSED, user
                if user in ("sg_every", "sg_pattern"):
                    assert writes(new, number, "fence_00002") == 0, user
            found = writes(live[user], number)
            ended = flavour == "mariadb" and user == "sg_every"
            assert found in ((2006, 2013) if ended else CLOSED), user
        assert numbers(server) == []
        with server.connect() as root, root.cursor() as cursor:
            cursor.execute("DELETE FROM fence_00002.t")
    for _ in range(2):
        run(server, lambda hosts: fence.open_databases(hosts, address, held))
        assert grants(server) == before
    for number, user in enumerate(USERS):
        with server.connect(user=user, password="x") as new:
            assert writes(new, number) == 0, user


def test_opened_while_open(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an interrupted tool does: nobody is shut out, not for a moment."""
    address = server.address
    held = run(server, lambda hosts: fence.fence_of(hosts, address, ["fence_00001"], USERS))
    real, found = Hosts.run, []

    async def one_by_one(hosts: Hosts, host: str, statements: Sequence[str]) -> None:
        for number, sql in enumerate(statements):
            await real(hosts, host, [sql])
            found.append(await asyncio.to_thread(writes, client, number))

    with server.connect(user="sg_pattern", password="x") as client, monkeypatch.context() as patch:
        patch.setattr(Hosts, "run", one_by_one)
        run(server, lambda hosts: fence.open_databases(hosts, address, held))
    assert found
    assert set(found) == {0}


def test_what_is_open_before(server: LocalServer) -> None:
    """A transaction may end in time; one that does not is undone. One of another database is left alone."""
    address = server.address
    held = run(server, lambda hosts: fence.fence_of(hosts, address, ["fence_00001"], USERS))
    ends, stays = (server.connect(user="sg_pattern", password="x") for _ in range(2))
    ends.begin()
    assert writes(ends, 1) == 0

    async def close(hosts: Hosts) -> None:
        closing = asyncio.create_task(fence.close_databases(hosts, address, held, 60.0))
        while not await hosts.query(
            address, "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for%lock%'"
        ):
            assert not closing.done()
        await asyncio.to_thread(ends.commit)
        await closing

    run(server, close)
    assert numbers(server) == [1]
    run(server, lambda hosts: fence.open_databases(hosts, address, held))
    stays.begin()
    assert writes(stays, 2) == 0
    run(server, lambda hosts: fence.close_databases(hosts, address, held, 0.0))
    assert numbers(server) == [1]
    with pytest.raises(pymysql.MySQLError):
        stays.commit()
    run(server, lambda hosts: fence.open_databases(hosts, address, held))


def test_a_host(server: LocalServer, flavour: str) -> None:
    address = server.address
    live = {user: server.connect(user=user, password="x") for user in USERS[:2]}
    begun = server.connect(user="sg_pattern", password="x")
    begun.begin()
    assert writes(begun, 1) == 0
    try:
        run(server, lambda hosts: fence.close_host(hosts, address, USERS, 0.0))
        assert run(server, lambda hosts: fence.is_closed(hosts, address))
        assert run(server, lambda hosts: fence.passing(hosts, address, USERS)) == []
        with pytest.raises(pymysql.MySQLError):
            begun.commit()
        for user, connection in live.items():
            assert writes(connection, 2) in (1290, 2006, 2013), user
            with server.connect(user=user, password="x") as new:
                assert writes(new, 3) == 1290, user
    finally:
        run(server, lambda hosts: fence.open_host(hosts, address))
    assert not run(server, lambda hosts: fence.is_closed(hosts, address))
    with server.connect(user="sg_pattern", password="x") as new:
        assert writes(new, 4) == 0
    assert numbers(server) == [4]
