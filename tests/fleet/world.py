"""A small fleet on two bare servers, with its documents, for the commands of the fleet tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from config.schema import quote
from proxy.cli import app
from tests.support.servers import LocalServer

SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
SCHEMA = {
    "databases": {
        "app": {
            "tables": {
                "pins": {"kind": "object", "keyspace": "main", "type": 1, "columns": {"data": "JSON"}},
                "likes": {"kind": "mapping", "keyspace": "main", "from": "user_id", "to": "pin_id"},
                "emails": {
                    "kind": "hashed",
                    "keyspace": "lookup",
                    "key": "email",
                    "columns": {"email": "VARCHAR(255) PRIMARY KEY", "user_id": "BIGINT UNSIGNED"},
                },
            }
        }
    }
}


class World:
    """`servers` hold shards 0 to `shards` - 1 of the keyspaces main and lookup, half each."""

    def __init__(
        self,
        folder: Path,
        servers: Sequence[LocalServer],
        shards: int = 4,
        *,
        zookeeper: Mapping[str, Any] | None = None,
        accounts: bool = False,
    ) -> None:
        self.servers = list(servers)
        self.folder = folder
        self.settings = folder / "shardgate.yaml"
        self.topology = folder / "topology.json"
        half = shards // 2
        ranges = [
            {"range": [0, half - 1], "master": servers[0].address},
            {"range": [half, shards - 1], "master": servers[1].address},
        ]
        self.document: dict[str, Any] = {
            "version": 1,
            "keyspaces": {
                "main": {"layout": "pinterest", "database": "db{shard:05d}", "ranges": ranges},
                "lookup": {"hash": "md5", "shards": shards, "database": "ms{shard:05d}", "ranges": ranges},
            },
        }
        roles = ("read", "write", "admin") if accounts else ()
        backends: dict[str, Any] = {"user": "sg", "password": "own"}
        backends["accounts"] = [{"user": f"sg_{one}", "role": one, "password": one} for one in roles]
        logins = {one.address: {"password": one.password} for one in servers}
        settings: dict[str, Any] = {
            "users": [{"name": "app", "password": "x"}],
            "backends": backends,
            "fleet": {"user": "root", "hosts": logins},
            "topology": {"zookeeper": dict(zookeeper)} if zookeeper else {"file": "topology.json"},
        }
        if not zookeeper or "schema_path" not in zookeeper:
            settings["schema"] = "schema.json"
        self.settings.write_text(json.dumps(settings))
        (folder / "schema.json").write_text(json.dumps(SCHEMA))
        self.topology.write_text(json.dumps(self.document))

    def run(self, *arguments: str, command: str = "fleet", input: str | None = None) -> tuple[int, str]:
        """Exit status and all that was printed, of `shardgate fleet ARGUMENTS --config …`."""
        words = [command, *arguments, "--config", str(self.settings)]
        done = CliRunner().invoke(app, words, input=input)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    def execute(self, server: int, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last statement."""
        with self.servers[server].connect() as connection, connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
            return list(cursor.fetchall())

    def state(self) -> list[dict[str, list[str]]]:
        """The databases of each server, and their tables."""
        found = []
        for index in range(len(self.servers)):
            held: dict[str, list[str]] = {
                name: [] for (name,) in self.execute(index, "SHOW DATABASES") if name not in SYSTEM
            }
            tables = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2"
            for database, table in self.execute(index, tables):
                if database in held:
                    held[database].append(table)
            found.append(held)
        return found

    def clear(self) -> None:
        """As empty as the servers were."""
        for index, held in enumerate(self.state()):
            self.execute(
                index, "SET foreign_key_checks = 0", *(f"DROP DATABASE {quote(one)}" for one in held)
            )
            users = self.execute(index, "SELECT User, Host FROM mysql.user WHERE User LIKE 'sg%'")
            for user, host in users:
                self.execute(index, f"DROP USER '{user}'@'{host}'")
