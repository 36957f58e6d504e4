"""`Faulty`: a proxy whose way to each server is a `Link`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from tests.faults.link import Link
from tests.integration.own import OwnProxy
from tests.integration.raw import Raw
from tests.support.demo import Demo

STILL = 0.3


@dataclass
class Faulty:
    """`links[0]` leads to the first host (shards 0 to 31 and the unsharded), `links[1]` to the other."""

    demo: Demo
    proxy: OwnProxy
    links: list[Link]

    def users(self) -> tuple[list[str], list[str]]:
        """IDs of users on the first host and on the second."""
        client = self.proxy.raw()
        ids = [int(row[0] or 0) for row in client.ask("SELECT id FROM users ORDER BY id").rows]
        client.close()
        return [str(id) for id in ids if id >> 46 < 32], [str(id) for id in ids if id >> 46 >= 32]

    def client(self, database: str = "demo") -> Raw:
        return self.proxy.raw(database=database)

    @property
    def read(self) -> int:
        """Bytes that the links have taken from the servers so far."""
        return sum(link.from_server for link in self.links)

    def stands_still(self, beyond: int = 0) -> Callable[[], bool]:
        """A condition to wait for: `read` is above `beyond`, and has been the same for `STILL` seconds."""
        last, since = -1, 0.0

        def still() -> bool:
            nonlocal last, since
            if (now := self.read) != last:
                last, since = now, monotonic()
            return last > beyond and monotonic() - since >= STILL

        return still
