"""The demo that runs beside: how to connect to it, and tables of an example's own added to it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml
from sqlalchemy import URL

READY_FILE = Path(__file__).parents[2] / ".demo.json"
"""Where `make demo` says that it is up."""


class NoDemoError(Exception):
    """No demo is running; the text says what to do."""


@dataclass(frozen=True)
class Demo:
    """`url`: the proxy, as SQLAlchemy connects to it; `config`: the path of the fleet's shardgate.yaml."""

    url: URL
    config: Path

    @classmethod
    def find(cls, ready_file: Path = READY_FILE) -> Self:
        """NoDemoError without one."""
        try:
            ready: dict[str, Any] = json.loads(ready_file.read_text())
        except FileNotFoundError:
            raise NoDemoError(
                f"No demo is running: {ready_file} is not there. Start `make demo` in another terminal."
            ) from None
        proxy = ready["proxy"]
        url = URL.create(
            "mysql+aiomysql", proxy["user"], proxy["password"], proxy["host"], proxy["port"], database="demo"
        )
        return cls(url, Path(ready["config"]))

    def add_tables(self, file: Path) -> bool:
        """Add a schema document's tables to the fleet's, and make them on every shard; False if they are
        there.

        This is how a fleet gets a new table: the proxy sees the changed schema within a second, `create`
        makes what is missing.
        """
        path = self.config.with_name("schema.yaml")
        schema = yaml.safe_load(path.read_text())
        for name, database in yaml.safe_load(file.read_text())["databases"].items():
            tables = schema["databases"][name]["tables"]
            if tables.keys() >= database["tables"].keys():
                return False
            tables |= database["tables"]
        draft = path.with_suffix(".draft")
        draft.write_text(yaml.safe_dump(schema, sort_keys=False, allow_unicode=True))
        draft.replace(path)
        create = [sys.executable, "-m", "proxy", "fleet", "create", "--config", str(self.config), "--yes"]
        subprocess.run(create, check=True)
        return True
