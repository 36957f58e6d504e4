"""Who is asked for a decision, by what is known of the masters: without servers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from config.xa import BranchName, new_bqual
from proxy.xa.decisions import Decisions, Prepared, Undecided

MINE, ANOTHER = "1" * 16, "2" * 16
LONG = "mysql-0.mysql.a-namespace-with-a-rather-long-name.svc.cluster.local:3306"


class Masters(Decisions):
    """`identities` are what was known; `told` what the hosts say now, those that are not there nothing."""

    def __init__(self, known: dict[str, str], told: dict[str, str] | None = None, *away: str) -> None:
        topology = cast("Any", SimpleNamespace(hosts=(*known, *away)))
        super().__init__(cast("Any", Mock()), lambda: topology)
        self.identities |= known
        self.told = known if told is None else told
        self.asked: list[str] = []

    async def _learn(self, host: str) -> None:
        if host in self.told:
            self.identities[host] = self.told[host]

    async def _settle(self, host: str, name: BranchName, prepared: Prepared) -> bool:
        self.asked.append(host)
        return False

    async def ask(self, first: str) -> list[str]:
        gtrid = b"%s.7.%020x" % (MINE.encode(), 1)
        self.asked.clear()
        await self.settle(BranchName(gtrid, new_bqual(5, first), MINE, 7), AsyncMock(return_value=True))
        return self.asked


@pytest.mark.parametrize(
    ("known", "first", "asked"),
    [
        ({"a:1": MINE, "b:1": ANOTHER}, "a:1", ["a:1"]),
        ({"a:1": MINE, "copy:1": MINE}, "a:1", ["a:1"]),
        ({"new:1": MINE, "copy:1": MINE, "b:1": ANOTHER}, "a:1", ["new:1", "copy:1"]),
        ({LONG: MINE, LONG.replace("3306", "3307"): MINE}, LONG, [LONG, LONG.replace("3306", "3307")]),
    ],
)
async def test_who_may_have_it(known: dict[str, str], first: str, asked: list[str]) -> None:
    """The last: of a long name the branch has only the begin."""
    assert await Masters(known).ask(first) == asked


async def test_another_server_at_an_address() -> None:
    """Of what was known nothing is forgotten while nobody is found: sessions need it."""
    known = {"a:1": ANOTHER, "b:1": ANOTHER}
    assert await Masters(known, {"a:1": MINE}).ask("a:1") == ["a:1"]
    lost = Masters(known)
    for _ in range(2):
        with pytest.raises(Undecided, match="no master is, or has replicated from, a:1"):
            await lost.ask("a:1")
        assert lost.identities == known


async def test_hosts_of_which_nothing_is_known() -> None:
    assert await Masters({"a:1": MINE}, None, "b:1").ask("a:1") == ["a:1"]
    with pytest.raises(Undecided, match="b:1 cannot be asked"):
        await Masters({"new:1": MINE}, None, "b:1").ask("a:1")
