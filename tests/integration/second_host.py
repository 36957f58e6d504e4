"""A proxy that has two databases on two hosts, beside a plain server that has both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

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


@contextmanager
def second_host(demo: Demo, plain: LocalServer, own: MakeOwn, folder: Path) -> Iterator[Sides]:
    """Both sides, for one test."""
    schema = yaml.safe_load(demo.schema.read_text())
    schema["databases"]["crm"] = {"keyspace": "crm"}
    path = folder / "second.json"
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
