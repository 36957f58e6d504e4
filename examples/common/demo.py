"""The demo that runs beside: how to connect to it, and tables of an example's own added to it."""

from __future__ import annotations

import asyncio
import fcntl
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml
from sqlalchemy import URL, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncSession

from examples.common.database import NO_TABLE, Database, code_of

READY_FILE = Path(__file__).parents[2] / ".demo.json"
"""Where `make demo` says that it is up."""


class DemoError(Exception):
    """There is no demo, or it cannot do what it must; the text says what to do."""


@dataclass(frozen=True)
class Demo:
    """`url`: the proxy, as SQLAlchemy connects to it; `config`: the path of the fleet's shardgate.yaml."""

    url: URL
    config: Path

    @classmethod
    def find(cls, ready_file: Path = READY_FILE) -> Self:
        """DemoError without one."""
        try:
            ready: dict[str, Any] = json.loads(ready_file.read_text())
        except FileNotFoundError:
            raise DemoError(
                f"No demo is running: {ready_file} is not there. Start `make demo` in another terminal."
            ) from None
        proxy = ready["proxy"]
        url = URL.create(
            "mysql+aiomysql", proxy["user"], proxy["password"], proxy["host"], proxy["port"], database="demo"
        )
        return cls(url, Path(ready["config"]))

    def add_tables(self, file: Path) -> None:
        """Add a schema document's tables to the fleet's, and make those that are missing on the shards.

        This is how a fleet gets a new table: the schema names it, and `create` makes it. Safe to repeat, also
        after an end halfway. DemoError when `create` fails, which has said why.
        """
        path = self.config.with_name("schema.yaml")
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # both examples may be started at once
            schema = yaml.safe_load(path.read_text())
            for name, database in yaml.safe_load(file.read_text())["databases"].items():
                schema["databases"][name]["tables"] |= database["tables"]
            draft = path.with_suffix(".draft")
            draft.write_text(yaml.safe_dump(schema, sort_keys=False, allow_unicode=True))
            draft.replace(path)
            create = [sys.executable, "-m", "proxy", "fleet", "create", "--config", str(self.config), "--yes"]
            if subprocess.run(create, check=False, stdout=subprocess.DEVNULL).returncode != 0:
                raise DemoError("The tables could not be made (see above). Is the demo still running?")


async def fill(database: Database, table: str, rows: str) -> None:
    """Run `rows`, an INSERT … SELECT, if `table` is empty. A proxy serves a changed schema within a second,
    so a table that it does not know yet is waited for.
    """

    async def work(session: AsyncSession) -> None:
        if await session.scalar(text(f"SELECT 1 FROM {table} LIMIT 1")) is None:
            await session.execute(text(rows))

    for _ in range(50):
        try:
            return await database.write(work)
        except ProgrammingError as error:
            if code_of(error) != NO_TABLE:
                raise
            await asyncio.sleep(0.2)
    raise DemoError(f"The proxy does not serve the table {table}: its log says why.")
