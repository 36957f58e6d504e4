"""A proxy and a plain server side by side, for scripts that both are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from pymysql.cursors import Cursor

from tests.integration.fixtures import Connect
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer


@contextmanager
def logged_in(demo: Demo, plain: LocalServer, database: str = "demo") -> Iterator[tuple[Raw, Raw]]:
    """A client of the proxy and one of a server, in `database`."""
    with Raw(demo.host, demo.port) as through, Raw("127.0.0.1", plain.port) as direct:
        assert through.login("demo", "demo", database).kind == "ok"
        assert direct.login(plain.user, plain.password, database).kind == "ok"
        yield through, direct


@contextmanager
def both_sides(demo: Demo, plain: LocalServer, table: str) -> Iterator[tuple[Raw, Raw]]:
    """A client of the proxy and one of a server, in `table` of one row (n: 0), which both have."""
    with ExitStack() as stack:
        for connection in (demo.connect(), plain.connect()):
            cursor = stack.enter_context(connection).cursor()
            cursor.execute("CREATE DATABASE IF NOT EXISTS scripts")
            cursor.execute(f"CREATE TABLE scripts.{table} (n INT)")
            cursor.execute(f"INSERT INTO scripts.{table} VALUES (0)")
            stack.callback(cursor.execute, f"DROP TABLE scripts.{table}")
        yield stack.enter_context(logged_in(demo, plain, "scripts"))


@contextmanager
def both_cursors(connect: Connect, plain: LocalServer, table: str) -> Iterator[tuple[Cursor, Cursor]]:
    """Cursors of the proxy and of a server in the database `legacy`, with a table as `table` defines it."""
    name = table.partition(" ")[0]
    with closing(plain.connect()) as direct:
        cursors = connect(database="legacy").cursor(), direct.cursor()
        for cursor in cursors:
            cursor.execute("USE legacy")
            cursor.execute(f"CREATE TABLE {table}")
        yield cursors
        for cursor in cursors:
            cursor.execute(f"DROP TABLE legacy.{name}")
