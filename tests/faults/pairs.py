"""`Pairs`: a demo whose two hosts have slaves, and the fleet tools on it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from demo.process import kill_all, spawn
from proxy.cli import app
from tests.faults.writers import Place
from tests.support.demo import Demo, DemoHost, gone
from tests.support.waiting import wait_until


class Pairs:
    """`flavour`: of the servers. Masters and slaves change; the hosts' names stay. `address`: the proxy's."""

    def __init__(self, demo: Demo, flavour: str, address: tuple[str, int]) -> None:
        self.demo, self.flavour, self.address = demo, flavour, address
        self.hosts = {one.name: one for one in demo.hosts}
        self._restarted: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, *arguments: str, command: str = "fleet") -> tuple[int, str]:
        """Exit status and all that was printed, of `shardgate fleet ARGUMENTS --config …`."""
        words = [command, *arguments, "--config", str(self.demo.settings)]
        done = CliRunner().invoke(app, words)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    @property
    def replica_word(self) -> str:
        """As in STOP SLAVE."""
        return "SLAVE" if self.flavour == "mariadb" else "REPLICA"

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.demo.directory / "topology.json").read_text())
        return document

    def pair(self, index: int) -> tuple[DemoHost, DemoHost | None]:
        """Master and slave of the first shards, or of the last."""
        one = self.document["keyspaces"]["main"]["ranges"][-index]
        return self._host(one["master"]), self._host(one["slave"]) if "slave" in one else None

    def _host(self, address: str) -> DemoHost:
        return next(one for one in self.hosts.values() if one.address == address)

    def execute(self, host: DemoHost, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last statement."""
        index = list(self.hosts.values()).index(host)
        with self.demo.direct(index) as connection, connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
            return list(cursor.fetchall())

    def written(self, host: DemoHost, places: list[Place]) -> list[int]:
        """What writers have written to these places."""
        found: list[int] = []
        for database, user in places:
            rows = self.execute(host, f"SELECT pin_id FROM {database}.user_likes_pins WHERE user_id = {user}")
            found += [int(number) for (number,) in rows]
        return found

    def has_it_all(self, slave: DemoHost, master: DemoHost) -> None:
        """Wait until a slave has what its master has."""
        mysql = self.flavour != "mariadb"
        name = "gtid_executed" if mysql else "gtid_binlog_pos"
        wait = "WAIT_FOR_EXECUTED_GTID_SET" if mysql else "MASTER_GTID_WAIT"
        ((position,),) = self.execute(master, f"SELECT @@GLOBAL.{name}")
        assert self.execute(slave, f"SELECT {wait}('{position}', 120)") == [(0,)]

    def is_read_only(self, host: DemoHost) -> bool:
        name = "read_only" if self.flavour == "mariadb" else "super_read_only"
        return bool(self.execute(host, f"SELECT @@GLOBAL.{name}")[0][0])

    # --- death -----------------------------------------------------------------------------------

    def kill(self, host: DemoHost) -> list[str]:
        """SIGKILL; how it is started again."""
        started = self._restarted.get(host.name)
        return kill(host.pid if started is None else started.pid)

    def start(self, host: DemoHost, command: list[str]) -> None:
        """On its port, with its data."""
        log = self.demo.directory / "again.log"
        self._restarted[host.name] = spawn(command, log, cwd=self.demo.directory)

        def answers() -> bool:
            try:
                self.execute(host, "DO 0")
            except Exception:
                return False
            return True

        wait_until(answers, f"{host.name} is up again")

    def close(self) -> None:
        kill_all(self._restarted.values())


def kill(pid: int) -> list[str]:
    """SIGKILL; the words of its command line."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    os.kill(pid, 9)
    wait_until(lambda: gone(pid), "its end")
    return [one.decode() for one in words]
