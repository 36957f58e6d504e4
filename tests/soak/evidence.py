"""What a failed run leaves behind: where everybody was when the first thing went wrong. And who waits for too
long is a thing that went wrong.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from bench.usage import family
from demo.process import tail
from tests.soak.faults import Scene
from tests.support import stacks
from tests.support.servers import Connection

OVERDUE = 75.0
"""Seconds that no statement may take: less than after what clients give up."""


class Watchdog:
    """A thread that looks at the journal. At the first problem it collects the evidence in `folder`, which is
    the proxy's; a client that waits for longer than `overdue` seconds is one.
    """

    def __init__(
        self, scene: Scene, folder: Path, plain: Callable[..., Connection], overdue: float = OVERDUE
    ) -> None:
        """`plain`: connects to the plain server."""
        self.scene, self.folder, self.overdue = scene, folder, overdue
        demo = scene.servers.demo
        self._ways: dict[str, Callable[..., Connection]] = {
            one.name: partial(demo.direct, index) for index, one in enumerate(demo.hosts)
        }
        self._ways["plain"] = plain
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        journal = self.scene.traffic.journal
        while not journal.problems and not self._stop.wait(0.2):
            long_ago = time.monotonic() - self.overdue
            for client, (since, text) in dict(journal.at_work).items():  # others write there
                if since < long_ago:
                    journal.trouble(
                        f"{client} has waited for {self.overdue:g} s\n    {text[:2000]}"
                        f"\n    faults: {journal.windows[-2:]}"
                    )
        if journal.problems:  # also when they came with the end
            self._collect()

    def _collect(self) -> None:
        parts: dict[str, Callable[[], str]] = {
            "statements.txt": lambda: "\n".join([*self.scene.traffic.journal.told(), ""]),
            "servers.txt": self._servers,
            "servers.log": self._logs,
            "status.json": lambda: json.dumps(self.scene.proxy.status(), indent=1),
        }
        with suppress(OSError):
            stacks.collect(family(self.scene.proxy.proxy.pid), self.folder)
        with (self.folder / "stacks-soak.txt").open("w") as out:
            stacks.write(out)
        for name, make in parts.items():
            try:
                text = make()
            except Exception as error:  # what can be had is kept
                text = repr(error)
            (self.folder / name).write_text(text)

    def _servers(self) -> str:
        """What each server has under way. One that is stopped says nothing."""
        lines = []
        for name, connect in self._ways.items():
            lines.append(name)
            try:
                with connect(connect_timeout=3, read_timeout=3) as connection, connection.cursor() as cursor:
                    cursor.execute("SHOW FULL PROCESSLIST")
                    lines += [f"  {row}" for row in cursor.fetchall()]
            except Exception as error:
                lines.append(f"  {error!r}")
        return "\n".join([*lines, ""])

    def _logs(self) -> str:
        """The last words of each."""
        hosts = self.scene.servers.demo.hosts
        return "\n".join(
            f"{one.name}\n{tail(Path(one.socket).with_name('error.log'), lines=200)}" for one in hosts
        )

    def close(self) -> None:
        """What is being collected is collected to its end."""
        self._stop.set()
        self._thread.join(60)


def leave(folder: Path) -> None:
    """Of a failed run's folder only what is needed to understand it: not the servers' data."""
    for log in (*folder.glob("*/error.log"), *folder.glob("demo/demo/*/error.log")):
        for path in sorted(log.parent.rglob("*"), reverse=True):
            if path != log:
                with suppress(OSError):
                    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
