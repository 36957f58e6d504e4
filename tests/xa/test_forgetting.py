"""Which decisions are deleted, and what of open ones is told, as hosts have answered: without servers."""

from __future__ import annotations

import asyncio
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from structlog.testing import capture_logs

from config.settings import Xa
from config.xa import BranchName, new_bqual
from proxy.xa import resolver
from proxy.xa.decisions import SOME, Decided, Undecided
from proxy.xa.resolver import Found, Resolver

FIRST, COPY, OTHER = "one:1", "copy:1", "other:1"
IDENTITIES = {FIRST: "1" * 16, COPY: "1" * 16, OTHER: "2" * 16}
"""The second host was copied from the first."""


def gtrid(number: int, thread: int = 7) -> bytes:
    return b"%s.%d.%020x" % (b"1" * 16, thread, number)


def committed(number: int, *identities: str) -> Decided:
    return Decided(gtrid(number), True, frozenset(identities))


class Told(Resolver):
    """`asked`: the hosts that answer; `has`: what is prepared, as soon as it is looked for."""

    def __init__(self, *asked: str, has: tuple[bytes, ...] = ()) -> None:
        nothing, topology = cast("Any", Mock()), cast("Any", SimpleNamespace(hosts=tuple(IDENTITIES)))
        super().__init__(nothing, nothing, lambda: topology, Xa(), regular=True)
        self._asked = frozenset(IDENTITIES)
        self.decisions.identities = dict(IDENTITIES)
        self.answering, self.has = frozenset(asked), has
        self.looks = 0
        self.since = 0.0  # when that was seen first
        self.threads: frozenset[int] = frozenset()

    async def look(self, patience: float = 5.0) -> list[Found]:
        self.looks += 1
        self._asked = self.answering
        return [
            Found(OTHER, BranchName(one, new_bqual(1, FIRST), "1" * 16, 7), self.since) for one in self.has
        ]

    async def _threads(self, host: str) -> frozenset[int]:
        return self.threads


async def test_what_is_prepared_is_looked_for_last() -> None:
    """A decision made between the last look and the reading of those that are old, whatever time it has."""
    told = Told(*IDENTITIES, has=(gtrid(1),))
    assert told.prepared == {}
    assert await told._not_needed(FIRST, [committed(1, "2" * 16), committed(2, "2" * 16)]) == [gtrid(2)]
    assert told.looks == 1


@pytest.mark.parametrize(
    ("away", "kept"),
    [
        ((), set[int]()),
        ((OTHER,), {2, 3}),
        ((COPY,), {1, 3}),  # it has the identity of the first, and perhaps a branch
        ((FIRST,), {1, 3}),
    ],
)
async def test_hosts_that_do_not_answer(away: tuple[str, ...], kept: set[int]) -> None:
    told = Told(*(host for host in IDENTITIES if host not in away))
    listed = [committed(1, "1" * 16), committed(2, "2" * 16), committed(3, "1" * 16, "2" * 16)]
    gone = await told._not_needed(FIRST, listed)
    assert {number for number in (1, 2, 3) if gtrid(number) not in gone} == kept
    for host in away:  # since the start: nobody knows who it is
        told.decisions.forget(host)
        assert await told._not_needed(FIRST, listed) == []


async def test_what_was_aborted_stays_with_its_connection() -> None:
    told = Told(*IDENTITIES)
    told.threads = frozenset({7})
    listed = [Decided(gtrid(1), False, frozenset()), Decided(gtrid(2, 8), False, frozenset())]
    assert await told._not_needed(FIRST, listed) == [gtrid(2, 8)]


async def test_all_of_many_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind those that must stay."""
    told = Told(*IDENTITIES)
    rows = [committed(number, "2" * 16 if number >= 2 * SOME else "?") for number in range(3 * SOME)]
    deleted: list[bytes] = []

    async def old(host: str, seconds: float, behind: bytes = b"") -> list[Decided]:
        return [one for one in rows if host == FIRST and one.gtrid > behind][:SOME]

    async def delete(host: str, gtrids: list[bytes]) -> None:
        deleted.extend(gtrids)

    monkeypatch.setattr(told.decisions, "old", old)
    monkeypatch.setattr(told.decisions, "delete", delete)
    await told._forget_old()
    assert deleted == [one.gtrid for one in rows[2 * SOME :]]


@pytest.mark.parametrize(
    ("answers", "there"),
    [
        ({OTHER: [1, 2]}, True),
        ({OTHER: [2]}, False),
        ({OTHER: None}, None),
        ({COPY: [2], OTHER: None}, None),  # it may be there
        ({COPY: None, OTHER: [1]}, True),
        ({COPY: "hangs", OTHER: [1]}, True),
        ({COPY: "hangs", OTHER: [2]}, None),
        ({}, False),
    ],
)
async def test_whether_it_is_prepared_now(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, list[int] | str | None], there: bool | None
) -> None:
    told = Told(*IDENTITIES)
    told.prepared = {(OTHER, gtrid(1), b""): Found(OTHER, BranchName.own(gtrid(1), FIRST), 0.0)}  # long ago

    async def recover(host: str, patience: float = 5.0) -> list[BranchName] | None:
        numbers = answers[host]
        if isinstance(numbers, str):
            await asyncio.sleep(patience)
            return None
        return None if numbers is None else [BranchName.own(gtrid(one), FIRST) for one in numbers]

    monkeypatch.setattr(resolver, "_PATIENCE", 0.02)
    monkeypatch.setattr(told, "_recover", recover)
    assert await told.prepared_now(gtrid(1), answers) is there


async def test_the_log_says_once_why_it_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look every two seconds through a night is no line every two seconds."""
    told = Told(*IDENTITIES)
    reasons = iter(("one is away", "one is away", "another is away"))

    async def settle(*_: object) -> bool:
        raise Undecided(next(reasons))

    monkeypatch.setattr(told.decisions, "settle", settle)
    found = [Found(OTHER, BranchName.own(gtrid(1), FIRST), 0.0)]
    with capture_logs() as logs:
        for _ in range(3):
            await told._resolve(found)
    assert [one["reason"] for one in logs] == ["one is away", "another is away"]


async def test_what_is_left_on_a_host_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is finished as soon as the host is back, however long that takes."""
    told = Told(FIRST, COPY)
    finished: list[bytes] = []

    async def resolve(found: list[Found]) -> None:
        finished.extend(one.name.gtrid for one in found)

    monkeypatch.setattr(told, "_resolve", resolve)
    told.left(gtrid(1), [OTHER], "committed")
    for _ in range(3):
        await told._look()
    assert list(told.soon) == [gtrid(1)]
    told.answering, told.has, told.since = frozenset(IDENTITIES), (gtrid(1), gtrid(2)), monotonic()
    await told._look()
    assert finished == [gtrid(1)], "the other is perhaps being committed"
    told.has = ()
    await told._look()
    assert not told.soon
