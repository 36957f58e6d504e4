"""A shop that was never sharded, and a schema that it could have: 64 shards on two hosts."""

from __future__ import annotations

import json
from pathlib import Path

from config.load import load_schema, load_topology
from demo.documents import topology_document
from proxy.advising.entries import Notes
from proxy.advising.lines import Lines
from proxy.advising.logs import Format, entries, format_of
from proxy.advising.tally import Counted, Tally
from rewriter.env import Env
from rewriter.planner import Rewriter

SCHEMA = """
databases:
  shop:
    tables:
      users:
        kind: object
        keyspace: main
        type: 1
        unique: per_shard
        columns:
          local_id: BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY
          email: VARCHAR(100) UNIQUE
          name: VARCHAR(64)
          active: BOOLEAN
      orders:
        kind: object
        keyspace: main
        type: 2
        columns:
          local_id: BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY
          user_id: BIGINT UNSIGNED NOT NULL
          state: INT
          note: TEXT
      states: {kind: single, keyspace: global, columns: {id: INT PRIMARY KEY, name: VARCHAR(20)}}
"""

TOPOLOGY = topology_document(64, [("a:3306", None), ("b:3306", None)])
TOPOLOGY.pop("default")

TABLES = (
    "CREATE TABLE users (id BIGINT PRIMARY KEY AUTO_INCREMENT, email VARCHAR(100) UNIQUE, name VARCHAR(64), "
    "active BOOLEAN)",
    "CREATE TABLE orders (id BIGINT PRIMARY KEY AUTO_INCREMENT, user_id BIGINT NOT NULL, state INT, "
    "note TEXT)",
    "CREATE TABLE states (id INT PRIMARY KEY, name VARCHAR(20))",
)


def rewriter() -> Rewriter:
    schema = load_schema(SCHEMA.encode(), name="shop")
    return Rewriter(schema, load_topology(TOPOLOGY, schema=schema))


def configuration(folder: Path) -> Path:
    """Settings, schema and topology as files; where the settings are."""
    (folder / "schema.yaml").write_text(SCHEMA)
    (folder / "topology.json").write_text(json.dumps(TOPOLOGY))
    settings = folder / "shardgate.yaml"
    settings.write_text(
        "schema: schema.yaml\n"
        "topology: {file: topology.json}\n"
        "users: [{name: app, password: app, databases: ['*']}]\n"
        "backends: {user: shardgate, password: shardgate}\n"
    )
    return settings


class Read:
    """A log that was read: its format, its kinds of statements by digest, and what was not used."""

    def __init__(self, path: Path, format: Format | None = None) -> None:
        lines = Lines(path)
        self.format = format or format_of(lines.beginning())
        self.notes = Notes()
        self.tally = Tally(rewriter(), Env(database="shop"), self.notes)
        for entry in entries(lines, self.format, self.notes):
            self.tally.add(entry)
        lines.close()
        self.size = lines.size

    @property
    def kinds(self) -> dict[str, Counted]:
        return {one.digest: one for one in self.tally.kinds.values()}
