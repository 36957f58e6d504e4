"""A demo with spare servers: what a split needs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from typer.testing import CliRunner

from fleet import replication
from fleet.core.hosts import Hosts
from proxy.cli import app
from tests.support.demo import Demo, DemoHost
from tests.support.links import until_linked


class Moving:
    """`old` has what is to be moved; `new` and `slave` are the pair that gets it, the first of the spares or
    the second. `address`: the proxy's.
    """

    def __init__(self, demo: Demo, address: tuple[str, int], pair: int = 0) -> None:
        self.demo, self.address = demo, address
        self.old = demo.masters[0]
        self.new, self.slave = [one for one in demo.hosts if one.role == "spare"][pair * 2 : pair * 2 + 2]

    async def caught_up(self, hosts: Hosts) -> None:
        for source, host in ((self.old, self.new), (self.new, self.slave)):
            position = await replication.position(hosts, source.address)
            await replication.wait_until(hosts, host.address, position, 60.0)
            await until_linked(hosts, host)

    def arguments(self, keyspace: str, shards: str) -> list[str]:
        """Of `shardgate fleet`."""
        pair = ["--master", self.new.address, "--slave", self.slave.address]
        return ["split", "--keyspace", keyspace, "--shards", shards, *pair]

    def run(self, *arguments: str, command: str = "fleet") -> tuple[int, str]:
        """Exit status and all that was printed, of `shardgate fleet ARGUMENTS --config …`."""
        words = [command, *arguments, "--config", str(self.demo.settings)]
        done = CliRunner().invoke(app, words)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    @property
    def document(self) -> dict[str, Any]:
        """The topology."""
        status, output = self.run("get", command="topology")
        assert status == 0, output
        document: dict[str, Any] = json.loads(output)
        return document

    def catch_up(self) -> None:
        """Until the new pair has all."""

        async def run() -> None:
            async with self.demo.as_hosts() as hosts:
                await self.caught_up(hosts)

        asyncio.run(run())

    def ask(self, host: DemoHost, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last."""
        with self.demo.direct(self.demo.hosts.index(host)) as connection, connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
            return list(cursor.fetchall())

    def owners(self, keyspace: str) -> dict[int, tuple[str, str]]:
        """The master of each shard, and its state."""
        return {
            shard: (one["master"], one.get("state", "serving"))
            for one in self.document["keyspaces"][keyspace]["ranges"]
            for shard in range(one["range"][0], one["range"][1] + 1)
        }
