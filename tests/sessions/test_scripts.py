"""Sessions through the proxy, statement by statement, beside the same on a server itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.binary import Answer, Binary
from tests.integration.raw import Closed, Raw, Reply
from tests.sessions.pinned_scripts import PINNED_SCRIPTS
from tests.sessions.scripts import SCRIPTS
from tests.sessions.told_scripts import TOLD_SCRIPTS
from tests.support.demo import Demo
from tests.support.servers import LocalServer

#: AUTOCOMMIT, IN_TRANS, NO_BACKSLASH_ESCAPES, IN_TRANS_READONLY: what a client goes by.
FLAGS = 0x2 | 0x1 | 0x200 | 0x2000


class Side:
    """One of the two: sessions by number."""

    def __init__(self, host: str, port: int, user: str, password: str) -> None:
        self.login = host, port, user, password
        self.sessions: dict[int, Raw] = {}

    def ask(self, session: int, sql: bytes) -> Reply | Answer:
        if session not in self.sessions:
            host, port, user, password = self.login
            self.sessions[session] = client = Raw(host, port)
            reply = client.login(user, password, "scripts" if session == 1 else None)
            assert reply.kind == "ok", reply
        try:
            if sql[:3] == b"P: ":
                return Binary(self.sessions[session]).run(sql[3:])
            return self.sessions[session].ask(sql)
        except Closed:
            return Reply("closed")

    def close(self) -> None:
        for client in self.sessions.values():
            client.close()
        self.sessions.clear()


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[tuple[Side, Side]]:
    """The proxy and a plain server, each with an empty database `scripts`."""
    both = (
        Side(demo.host, demo.port, "demo", "demo"),
        Side("127.0.0.1", plain.port, plain.user, plain.password),
    )
    for connection in (demo.connect(), plain.connect()):
        with connection, connection.cursor() as cursor:
            cursor.execute("DROP DATABASE IF EXISTS scripts")
            cursor.execute("CREATE DATABASE scripts")
    yield both
    for side in both:
        side.close()


def told(reply: Reply | Answer) -> tuple[object, ...]:
    """What a client can tell of a reply."""
    if isinstance(reply, Answer):
        return reply.kind, reply.code, reply.names, reply.rows, reply.warnings, reply.status & FLAGS
    if reply.kind == "err":
        return reply.kind, reply.code, reply.sqlstate, reply.rows
    return (
        reply.kind,
        reply.affected,
        reply.insert_id,
        reply.info,
        reply.warnings,
        reply.columns,
        reply.rows,
        reply.status & FLAGS,
    )


ALL = SCRIPTS | PINNED_SCRIPTS | TOLD_SCRIPTS


@pytest.mark.parametrize("name", ALL)
def test_script(sides: tuple[Side, Side], flavour: str, name: str) -> None:
    through, direct = sides
    names = (
        {"isolation": "tx_isolation", "read_only": "tx_read_only"}
        if flavour == "mariadb"
        else {"isolation": "transaction_isolation", "read_only": "transaction_read_only"}
    )
    differences = []
    for line in ALL[name]:
        only, colon, rest = line.partition(": ")
        if colon and only in ("mariadb", "mysql9"):
            if only != flavour:
                continue
            line = rest
        session = 2 if line.startswith("2: ") else 1
        sql = line.removeprefix("2: ")
        for word, meaning in names.items():
            sql = sql.replace("{" + word + "}", meaning)
        raw = sql.removeprefix("bytes: ")
        text = raw.encode("latin-1" if raw != sql else "utf-8")
        expected, got = direct.ask(session, text), through.ask(session, text)
        if told(expected) != told(got):
            differences.append(f"{line}\n    direct  {expected}\n    through {got}")
    assert not differences, "\n" + "\n".join(differences)
