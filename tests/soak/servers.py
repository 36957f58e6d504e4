"""`Servers`: the demo's servers, which are killed, started again, and change places."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from pymysql.cursors import DictCursor
from typer.testing import CliRunner

from demo.process import kill_all
from proxy.cli import app
from tests.faults.pairs import Pairs
from tests.soak.ledger import Entry
from tests.support.demo import Demo, DemoHost
from tests.support.waiting import wait_until


class Servers(Pairs):
    """`settings`, `topology`: the files of the proxy, whose topology names `link` in the place of the second
    host's address.
    """

    def __init__(
        self, demo: Demo, flavour: str, address: tuple[str, int], settings: Path, topology: Path, link: str
    ) -> None:
        super().__init__(demo, flavour, address)
        self.settings, self.topology, self.link = settings, topology, link

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.topology.read_text())
        return document

    def master(self, index: int) -> DemoHost:
        """Of the first host's shards, or of the second's."""
        address = self.document["keyspaces"]["main"]["ranges"][index]["master"]
        return self._at(address)

    def pid(self, host: DemoHost) -> int:
        again = self._restarted.get(host.name)
        return host.pid if again is None else again.pid

    def replicates(self, slave: DemoHost, master: DemoHost) -> None:
        """Wait until a slave hears from its master and is not behind: it is not promoted before. It tries
        again only a minute after it has lost a master that was started again, which an operator does not wait
        for, and has to catch up then.
        """
        word = self.replica_word
        running = f"{word.capitalize()}_IO_Running"
        late = f"Seconds_Behind_{'Master' if self.flavour == 'mariadb' else 'Source'}"

        def state() -> dict[str, object]:
            index = list(self.hosts.values()).index(slave)
            with self.demo.direct(index, cursorclass=DictCursor) as connection, connection.cursor() as cursor:
                cursor.execute(f"SHOW {word} STATUS")
                return dict(cursor.fetchone() or {})

        if state()[running] != "Yes":
            self.execute(slave, f"STOP {word}", f"START {word}")
            wait_until(lambda: state()[running] == "Yes", f"{slave.name} replicates", 30)
        self.has_it_all(slave, master)
        wait_until(lambda: state()[late] in (0, 1), f"{slave.name} has caught up", 120)

    def promote(self) -> None:
        """AssertionError with what the tool said when it fails."""
        first = self.document["keyspaces"]["main"]["ranges"][0]
        self.replicates(self._host(first["slave"]), self._host(first["master"]))
        words = [
            "fleet",
            "promote",
            "--host",
            self.master(0).address,
            "--yes",
            "--config",
            str(self.settings),
        ]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, f"{' '.join(words)}: {done.output} {done.exception!r}"

    # --- what is on them
    # ----------------------------------------------------------------------------------------------

    def entries(self, shards: int) -> tuple[Counter[Entry], dict[int, int]]:
        """All entries of the soak's ledgers on the masters, and the sum of purses by account."""
        found: Counter[Entry] = Counter()
        purses: dict[int, int] = {}
        for shard in range(shards):
            host, database = self.master(0 if shard < shards // 2 else 1), f"db{shard:05d}"
            rows = self.execute(host, f"SELECT account, entry, COUNT(*) FROM {database}.ledger GROUP BY 1, 2")
            found.update({(account, entry): count for account, entry, count in rows})
            sums = self.execute(
                host, f"SELECT account, SUM(sequence) FROM {database}.purses GROUP BY account"
            )
            purses.update((account, int(total)) for account, total in sums)
        rows = self.execute(
            self.master(0), "SELECT account, entry, COUNT(*) FROM global.plain_ledger GROUP BY 1, 2"
        )
        found.update({(account, entry): count for account, entry, count in rows})
        return found, purses

    def prepared(self) -> int:
        """Branches that are prepared on the masters."""
        return sum(len(self.execute(self.master(index), "XA RECOVER")) for index in (0, 1))

    def connections(self) -> dict[str, int]:
        """Of proxies, by what the servers say, by the server's name. After a promotion slaves have an account
        whose name begins as theirs.
        """
        sql = (
            "SELECT COUNT(*) FROM information_schema.processlist"
            " WHERE user LIKE 'shardgate%' AND user <> 'shardgate_replication'"
        )
        return {host.name: int(self.execute(host, sql)[0][0]) for host in self.hosts.values()}

    def name(self, address: str) -> str:
        """Of the server that a topology names so."""
        return self._at(address).name

    def _at(self, address: str) -> DemoHost:
        return self.demo.masters[1] if address == self.link else self._host(address)

    def close(self) -> None:
        kill_all(self._restarted.values())
