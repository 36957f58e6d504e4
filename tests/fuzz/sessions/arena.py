"""A runner for a demo and a plain server, with the rows and routines of world.py on both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from tests.fuzz.sessions import world
from tests.fuzz.sessions.client import Session
from tests.fuzz.sessions.runner import Runner
from tests.support.demo import Demo
from tests.support.servers import LocalServer


@contextmanager
def comparing(demo: Demo, plain: LocalServer, *, mariadb: bool) -> Iterator[Runner]:
    """The runner; at the end nothing of it is left, nor at the beginning of one that was killed."""

    def on_proxy(database: str | None) -> Session:
        proxy = demo.ready["proxy"]
        return Session(demo.host, demo.port, proxy["user"], proxy["password"], database)

    def on_plain(database: str | None) -> Session:
        return Session(plain.host, plain.port, plain.user, plain.password, database)

    for connect in (on_proxy, on_plain):
        with connect("demo") as session:
            for statement in (*world.removal(mariadb=mariadb), *world.routines(mariadb=mariadb)):
                world.run(session, statement)
    try:
        with closing(Runner(on_proxy, on_plain, mariadb=mariadb)) as runner:
            yield runner
    finally:
        for connect in (on_proxy, on_plain):
            with connect("demo") as session:
                for statement in world.removal(mariadb=mariadb):
                    world.run(session, statement)
