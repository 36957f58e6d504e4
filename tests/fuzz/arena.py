"""A proxy of its own on the servers of a demo, with an account and a table for spoilt clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.faults.link import Link
from tests.fuzz.clients import PASSWORD, USER
from tests.integration.own import OwnProxy, log_problems, moved
from tests.support.demo import Demo


def settings(demo: Demo) -> dict[str, Any]:
    """What the proxy has beyond the demo's settings: the account, and statements that end soon."""
    users = json.loads(demo.settings.read_text())["users"]
    mine = {"name": USER, "password": PASSWORD, "role": "write", "scatter": "allow"}
    return {
        "users": [*users, mine],
        "timeouts": {"statement": "1s"},
        "backends": {"connect_timeout": "2s", "queue_timeout": "2s"},
    }


def topology(demo: Demo, link: Link) -> dict[str, Any]:
    """The demo's, with `link` on the way to the first host."""
    document = json.loads((demo.directory / "topology.json").read_text())
    return moved(document, {demo.masters[0].address: link.address})


@contextmanager
def arena(demo: Demo, directory: Path, topology: dict[str, Any] | None = None) -> Iterator[OwnProxy]:
    """The proxy; at the end its log must have no error in it."""
    with closing(demo.direct(0)) as server, server.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS legacy.fuzz (a TEXT)")
        try:
            with OwnProxy(demo, directory, settings(demo), topology) as proxy:
                try:
                    yield proxy
                    proxy.close_clients()
                    proxy.wait_idle(clients=0)
                finally:
                    problems = log_problems(proxy.log.read_text(errors="replace"))
                    print("\n".join(problems))
            assert not problems, "see the log's errors above"
        finally:
            cursor.execute("DROP TABLE IF EXISTS legacy.fuzz")
