"""What a demo can be told, checked before anything is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from config.layout import INSTAGRAM


class OptionError(Exception):
    """Options that do not go together; the text says which and why."""


@dataclass(frozen=True)
class DemoOptions:
    """The options of ``shardgate demo``.

    `spares`: servers without data that no shard is on, for what the fleet tools move.
    `mysqld`: the server's program or its folder; None: what is found. `port` 0: a free one. `directory` None:
    a temporary one. `ready_file` gets one JSON object when all is up (`demo.ready`).
    `fast`: servers that do not wait for the disk, and may lose in a crash what they have acknowledged.
    """

    hosts: int = 2
    shards: int = 64
    slaves: bool = False
    spares: int = 0
    zookeeper: bool = False
    mysqld: Path | None = None
    port: int = 3307
    workers: int = 1
    directory: Path | None = None
    ready_file: Path | None = None
    empty: bool = False
    no_page: bool = False
    fast: bool = False

    def check(self) -> None:
        """OptionError for what cannot work."""
        most = INSTAGRAM.max_shard + 1
        if self.hosts < 1:
            raise OptionError("--hosts must be at least 1")
        if self.spares < 0:
            raise OptionError("--spares must not be negative")
        if not self.hosts <= self.shards <= most:
            raise OptionError(f"--shards must be {self.hosts} (one a host) to {most}, not {self.shards}")
        if self.workers < 1:
            raise OptionError("--workers must be at least 1")
        if not 0 <= self.port <= 65535:
            raise OptionError(f"--port must be 0 to 65535, not {self.port}")
        if self.ready_file is not None and not self.ready_file.absolute().parent.is_dir():
            raise OptionError(f"--ready-file: the folder of {self.ready_file} does not exist")
