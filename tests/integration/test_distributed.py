"""transaction_mode = 'xa': a transaction over two hosts is committed on both or on none."""

from __future__ import annotations


import pytest

from config import xa
from tests.integration.accounts import flags, number_of, setting
from tests.integration.fixtures import MakeRaw, Things, shard_of
from tests.integration.raw import Raw
from tests.support.demo import Demo


@pytest.fixture
def far(things: Things) -> tuple[int, int]:
    """Two users on different hosts, the first on the first."""
    found: dict[bool, int] = {}
    while len(found) < 2:
        id = things.insert("users", {"n": 1})
        found.setdefault(shard_of(id) < 32, id)
    return found[True], found[False]


@pytest.fixture
def client(raw: MakeRaw) -> Raw:
    made = raw()
    assert made.ask("SET transaction_mode = 'xa'").kind == "ok"
    return made


def prepared(demo: Demo) -> list[bytes]:
    """The branches that are prepared on the masters."""
    found = []
    for number in range(len(demo.masters)):
        with demo.direct(number) as server, server.cursor() as cursor:
            cursor.execute("XA RECOVER")
            found += [bytes(str(row[3]), "latin-1") for row in cursor.fetchall()]
    return found


def decisions(demo: Demo) -> list[int]:
    """How many decisions each master has."""
    found = []
    for number in range(len(demo.masters)):
        with demo.direct(number) as server, server.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM {xa.DATABASE}.{xa.DECISIONS} WHERE committed = 1")
            found.append(int(cursor.fetchone()[0]))
    return found


@pytest.mark.parametrize("opening", ["BEGIN", "SET autocommit = 0"])
def test_commit_and_rollback(
    demo: Demo, raw: MakeRaw, client: Raw, far: tuple[int, int], opening: str
) -> None:
    other = raw()
    assert client.ask(opening).kind == "ok"
    for order, end, expected in ((far, "ROLLBACK", 1), (far, "COMMIT", 8), (far[::-1], "COMMIT", 8)):
        before = decisions(demo)
        client.ask("BEGIN") if opening == "BEGIN" else None
        for user in order:
            assert flags(client.ask(setting(user, 8)))[1]
        assert [number_of(client, user) for user in far] == [8, 8]
        if expected == 1 or order is far:
            assert [number_of(other, user) for user in far] == [1, 1]
        assert not flags(client.ask(end))[1]
        assert [number_of(other, user) for user in far] == [expected, expected]
        assert prepared(demo) == []
        first = 0 if order is far else 1
        made = [now - was for now, was in zip(decisions(demo), before, strict=True)]
        assert made == ([0, 0] if end == "ROLLBACK" else [1 - first, first])
