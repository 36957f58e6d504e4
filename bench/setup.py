"""What another proxy is configured for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.cluster import Cluster, Server


@dataclass(frozen=True)
class Setup:
    """A program, a folder for what it writes, the servers behind it, its ports, its threads for clients."""

    program: str
    folder: Path
    cluster: Cluster
    ports: tuple[int, ...]
    threads: int

    @property
    def pairs(self) -> Iterator[tuple[int, Server]]:
        """A port, and the server behind it."""
        return zip(self.ports, self.cluster.servers, strict=True)
