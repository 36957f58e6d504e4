"""GTIDs that one server tells go into statements for another."""

from __future__ import annotations

from typing import Any, cast

import pytest

from config.flavour import flavour_of
from fleet import orphans, replication, servers
from fleet.core.errors import HostError
from fleet.core.hosts import Hosts
from fleet.promote import Server

EVIL = "'); GRANT ALL PRIVILEGES ON *.* TO someone; -- "


class Told:
    """Hosts of which one tells what it wants."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.asked: list[str] = []

    async def query(self, host: str, sql: str, seconds: float = 0) -> list[tuple[Any, ...]]:
        self.asked.append(sql)
        if "VERSION" in sql:
            return [(self.version,)]
        return [(EVIL if host == "evil:1" else "11111111-2222:1-5,\n33333333-4444:tag_1:7",)]

    async def records(self, host: str, sql: str) -> list[dict[str, Any]]:
        return []


@pytest.mark.parametrize("version", ["9.7.0", "11.4.2-MariaDB"])
async def test_what_are_no_gtids_goes_into_no_statement(version: str) -> None:
    told = Told(version)
    hosts = cast("Hosts", told)
    positions = flavour_of(version).gtid_positions
    assert await replication.position(hosts, "good:1") == "11111111-2222:1-5,33333333-4444:tag_1:7"
    assert (await orphans.orphan(hosts, "good:1", positions, alone=True)).received
    with pytest.raises(HostError, match="tells what are no GTIDs"):
        await replication.position(hosts, "evil:1")
    with pytest.raises(HostError, match="no GTIDs"):
        await orphans.orphan(hosts, "evil:1", positions, alone=True)
    if not positions:
        good = Server("good:1", flavour_of(version), (9, 7), 1, True, {})
        with pytest.raises(HostError, match="no GTIDs"):
            await servers.only_on(hosts, good, "evil:1")
    assert not any("GRANT" in sql for sql in told.asked)


class Behind(Told):
    """`old:1` counts the slave's last transaction as its own only when it is asked once more."""

    async def query(self, host: str, sql: str, seconds: float = 0) -> list[tuple[Any, ...]]:
        self.asked.append(sql)
        if sql.startswith("SELECT GTID_SUBTRACT"):
            return [("" if sql.endswith("1-9')") else "11111111-2222:9",)]
        if "gtid_executed" in sql:
            looks = sum("gtid_executed" in one for one in self.asked)
            return [("11111111-2222:1-9" if host == "new:1" or looks > 2 else "11111111-2222:1-8",)]
        looks = sum("gtid_current_pos" in one for one in self.asked)
        return [("0-1-9" if host == "new:1" or looks > 1 else "0-1-8",)]


@pytest.mark.parametrize("version", ["9.7.0", "11.4.2-MariaDB"])
async def test_a_master_may_send_what_it_does_not_count_yet(version: str) -> None:
    """Its binary log goes out before the transaction is among the executed ones."""
    told = Behind(version)
    new = Server("new:1", flavour_of(version), (9, 7), 2, True, {})
    assert await servers.only_on(cast("Hosts", told), new, "old:1") == ""
    names = ("gtid_current_pos", "gtid_executed")
    assert sum(any(name in one for name in names) for one in told.asked) == 3
