"""A table of `others` that one user creates is there for all others, in each worker, when he is told so."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import Raw
from tests.support.demo import Demo

NAMES = (
    "SELECT table_name FROM information_schema.tables"
    " WHERE table_schema = 'demo' AND table_name LIKE 'fresh%'"
)


def of_each_worker(proxy: OwnProxy) -> list[Raw]:
    """A client of each of two workers."""
    found: dict[int, Raw] = {}
    for _ in range(200):
        client = proxy.raw()
        found.setdefault(int(client.ask("SELECT CONNECTION_ID()").value or 0) >> 24, client)
        if len(found) == 2:
            break
    assert len(found) == 2
    return list(found.values())


def test_a_new_table_is_shown_to_everybody(own: MakeOwn, demo: Demo, tmp_path: Path) -> None:
    document = yaml.safe_load(demo.schema.read_text())
    document["databases"]["demo"]["others"] = {"keyspace": "global"}
    schema = tmp_path / "others.yaml"
    schema.write_text(yaml.safe_dump(document, sort_keys=False))
    one, other = of_each_worker(own({"schema": str(schema), "workers": 2}))
    try:
        for number in range(5):
            table = f"fresh{number}"
            assert one.ask(f"CREATE TABLE {table} (a INT)").kind == "ok"
            for client in (other, one):
                assert client.ask(f"SHOW TABLES LIKE '{table}'").rows == [(table.encode(),)]
                assert (table.encode(),) in client.ask(NAMES).rows
            assert one.ask(f"DROP TABLE {table}").kind == "ok"
            for client in (other, one):
                assert client.ask(f"SHOW TABLES LIKE '{table}'").rows == []
                assert (table.encode(),) not in client.ask(NAMES).rows
    finally:
        for number in range(5):
            one.ask(f"DROP TABLE IF EXISTS fresh{number}")
