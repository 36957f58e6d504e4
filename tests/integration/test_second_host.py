"""A session that uses two hosts, one of which has a database that passes through, beside a plain server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
import yaml

from tests.integration.answers import answer
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.support.demo import Demo
from tests.support.servers import Connection, LocalServer

DATABASES = ("crm", "crm2")


class Sides(NamedTuple):
    """A proxy and a plain server, which both have the databases `crm` and `crm2`. `crm` passes through on the
    second host; the schema does not name `crm2`, which is on the default host.
    """

    proxy: OwnProxy
    plain: LocalServer

    def sessions(self, **arguments: Any) -> tuple[Connection, Connection]:
        """One session on each side."""
        return self.proxy.connect(**arguments), self.plain.connect(**{"database": "demo", **arguments})


@pytest.fixture
def sides(demo: Demo, plain: LocalServer, own: MakeOwn, tmp_path_factory: Any) -> Iterator[Sides]:
    schema = yaml.safe_load(demo.schema.read_text())
    schema["databases"]["crm"] = {"keyspace": "crm"}
    path = tmp_path_factory.mktemp("schema") / "second.json"
    path.write_text(json.dumps(schema))
    topology = json.loads((demo.directory / "topology.json").read_text())
    first, second = demo.masters[0].address, demo.masters[1].address
    topology["keyspaces"]["crm"] = {"master": second}
    assert topology["default"]["master"] == first
    with ExitStack() as stack:
        homes = ((demo.direct(0), ("crm2",)), (demo.direct(1), ("crm",)), (plain.connect(), DATABASES))
        for connection, databases in homes:
            stack.enter_context(connection)
            for name in databases:
                stack.callback(answer, connection, f"DROP DATABASE {name}")
                assert answer(connection, f"CREATE DATABASE {name}") == ()
                assert answer(connection, f"CREATE TABLE {name}.kept (a INT)") == ()
                assert answer(connection, f"INSERT INTO {name}.kept VALUES ({len(name)})") == ()
        yield Sides(own({"schema": str(path)}, topology), plain)


LOCKING = [
    ["CREATE TEMPORARY TABLE crm.held (a INT)", "LOCK TABLES usernames WRITE", "UNLOCK TABLES"],
    ["LOCK TABLES crm.kept WRITE", "UNLOCK TABLES"],
    ["SELECT GET_LOCK('second', 1)", "LOCK TABLES crm.kept WRITE", "UNLOCK TABLES"],
    ["LOCK TABLES usernames WRITE", "LOCK TABLES crm.kept WRITE"],
    ["LOCK TABLES crm.kept WRITE", "LOCK TABLES crm2.kept WRITE"],
    ["LOCK TABLES usernames WRITE", "LOCK TABLES crm.kept WRITE", "UNLOCK TABLES"],
    ["CREATE TEMPORARY TABLE crm.held (a INT)", "LOCK TABLES usernames WRITE", "BEGIN", "ROLLBACK"],
    ["LOCK TABLES crm.kept WRITE", "BEGIN", "ROLLBACK"],
    ["USE crm", "FLUSH TABLES kept WITH READ LOCK", "USE crm2", "UNLOCK TABLES"],
    ["USE crm", "FLUSH TABLES kept WITH READ LOCK", "BEGIN", "ROLLBACK"],
    ["LOCK TABLES usernames WRITE", "LOCK TABLES crm.kept WRIT"],
    ["LOCK TABLES usernames WRITE", "USE crm", "LOCK TABLES kept WRIT"],
    ["LOCK TABLES usernames WRITE", "LOCK TABLES crm.missing WRITE"],
]
WRITES = (
    "DELETE FROM demo.usernames WHERE username = 'nobody'",
    "UPDATE crm.kept SET a = a + 1",
    "UPDATE crm2.kept SET a = a + 1",
)


@pytest.mark.parametrize("script", LOCKING, ids="; ".join)
def test_locks_on_two_hosts_are_released_as_on_one_server(sides: Sides, script: list[str]) -> None:
    found = []
    for session, other in zip(sides.sessions(), sides.sessions(), strict=True):
        answers: list[Any] = [answer(session, sql)[:1] for sql in script]
        answers += [answer(other, sql)[:1] for sql in ("SET SESSION lock_wait_timeout = 1", *WRITES)]
        found.append(answers)
        session.close()
    assert found[0] == found[1]
