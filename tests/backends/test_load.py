"""What hosts and shards have to do, as it is counted."""

from __future__ import annotations

from time import monotonic
from typing import Any

import pytest

from config.load import load_topology
from proxy.load import BOUNDS, BUCKETS, OTHER_CODE, WINDOW, Load, Loads, bucket_of, is_own, missed, quantile
from tests.backends.fakes import FakeOwner, connection
from tests.status.conftest import DOCUMENT
from tests.wire.streams import Err, Ok, reply_packets


class Anybody:
    """A receiver of whatever comes. `own`: the question was the proxy's."""

    whole = True

    def __init__(self, *, own: bool = False) -> None:
        self.own = own

    def accepts(self, conn: Any, changed: bool) -> bool:
        return True

    def reply_data(self, conn: Any, data: bytes) -> None: ...
    def reply_done(self, conn: Any) -> None: ...
    def reply_lost(self, conn: Any, error: Any, clean: bool) -> None: ...


def ok(affected: int = 0) -> bytes:
    return b"".join(reply_packets([Ok(affected, status=2)]))


@pytest.mark.parametrize("seconds", [0.0, 0.00006, 0.001, 0.5, 16.0, 17.0, 1e6])
def test_a_time_is_in_its_bucket(seconds: float) -> None:
    number = bucket_of(seconds)
    assert 0 <= number < BUCKETS
    assert number == 0 or BOUNDS[number - 1] <= seconds
    assert number == BUCKETS - 1 or seconds < BOUNDS[number]


def test_quantiles_are_capped_by_what_was_seen() -> None:
    load = Load()
    for seconds in (0.001, 0.0011, 0.0012, 0.3):
        load.add(seconds, 1, bucket_of(seconds))
    assert quantile(load.buckets, 1.0, load.longest) == 0.3
    assert 0.0005 < quantile(load.buckets, 0.5, load.longest) < 0.0021
    assert quantile([0] * BUCKETS, 0.95, 0.0) == 0.0
    forever = [0] * (BUCKETS - 1) + [1]
    assert quantile(forever, 0.99, 40.0) <= 40.0


def test_what_was_long_ago_is_not_recent() -> None:
    load = Load()
    now = load.recent(0.0).at  # any moment: only differences count
    load.add(0.5, 3, bucket_of(0.5))
    load.mark(now)
    load.add(0.001, 1, bucket_of(0.001))
    assert load.recent(now).statements == 2
    load.mark(now + WINDOW)
    assert (load.recent(now + WINDOW).statements, load.recent(now + WINDOW).rows) == (1, 1)
    load.mark(now + 2 * WINDOW)
    assert load.quiet
    assert load.recent(now + 2 * WINDOW).at == pytest.approx(WINDOW)
    assert load.count == 2


def test_what_could_not_be_sent_is_an_error_and_no_statement() -> None:
    load, now, quiet = Load("main", 3), monotonic(), []
    for second in range(6):
        load.mark(now + second)
        if second == 2:
            missed([load, load])
            recent = load.recent(now + second)
            assert (recent.statements, recent.errors) == (0, 2)
        quiet.append(load.quiet)
    assert quiet == [True, True, False, False, True, True]
    assert (load.recent(now + 6).errors, load.errors) == (0, 2)


def test_all_loads_are_marked_within_a_window() -> None:
    loads, now = Loads(), 1000.0
    topology = load_topology(DOCUMENT)
    found = loads.of(topology.keyspaces["main"], range(500))
    for load in found:
        load.add(0.001, 0, 5)
    for _ in range(3):
        for _ in range(41):
            loads.tick(now)
            now += 0.25
    assert all(load.quiet for load in found)


def test_a_shard_keeps_its_counts_when_it_moves_and_not_when_it_is_another() -> None:
    loads, topology = Loads(), load_topology(DOCUMENT)
    first = loads.shard(b"db00003", topology)
    assert first is not None
    assert (first.keyspace, first.shard) == ("main", 3)
    assert loads.of(topology.keyspaces["main"], [3]) == [first]
    assert loads.shard(b"nothing", topology) is None
    loads.keep_only(topology, topology)
    assert loads.shards[b"db00003"] is first
    keyspaces = DOCUMENT["keyspaces"] | {"main": DOCUMENT["keyspaces"]["main"] | {"database": "x{shard:05d}"}}
    loads.keep_only(load_topology(DOCUMENT | {"version": 8, "keyspaces": keyspaces}), topology)
    assert not loads.shards


def test_codes_that_routines_make_up_are_one() -> None:
    loads = Loads()
    for code in range(10_000, 10_500):
        loads.failed(code)
    loads.failed(10_000)
    assert loads.codes["10000"] == 2
    assert loads.codes[OTHER_CODE] == 400
    assert len(loads.codes) == 101


def test_replies_are_counted_for_host_and_shard() -> None:
    owner = FakeOwner()
    conn, _ = connection(owner)
    shard, other = Load("main", 3), Load("main", 4)
    conn.ask(b"Q", Anybody())
    conn.shard = shard
    conn.data_received(ok(7))
    assert (owner.load.count, owner.load.rows, shard.count, shard.rows) == (1, 7, 1, 7)
    conn.send(b"\x01\0\0\0\x0e", Anybody())
    conn.shards = (shard, other)
    conn.data_received(ok(3))
    assert (owner.load.count, owner.load.rows) == (2, 10)
    assert (shard.rows, other.rows) == (9, 1)
    assert shard.seconds + other.seconds == pytest.approx(owner.load.seconds)
    conn.ask(b"Q", Anybody())
    conn.data_received(b"".join(reply_packets([Err(1062, "twice")])))
    assert (owner.load.count, owner.load.errors, shard.count) == (3, 0, 2)
    conn.ask(b"Q", Anybody())
    conn.shard = shard
    conn.data_received(b"".join(reply_packets([Err(1146, "a table")])))
    assert (owner.load.count, owner.load.errors, shard.count, shard.errors) == (4, 1, 3, 1)
    conn.send(b"\x01\0\0\0\x0e", Anybody(own=True))
    conn.data_received(ok())
    assert owner.load.count == 4


def test_a_statement_that_is_given_up_is_an_error() -> None:
    owner = FakeOwner()
    conn, _ = connection(owner)
    shard = Load("main", 3)
    conn.ask(b"Q", Anybody())
    conn.shard = shard
    conn.connection_lost(None)
    assert (owner.load.count, owner.load.errors, shard.errors) == (1, 1, 1)
    conn, _ = connection(owner)
    conn.ask(b"Q", Anybody())
    conn.close()
    conn.close()
    assert (owner.load.count, owner.load.errors) == (2, 2)


@pytest.mark.parametrize(
    ("code", "sqlstate", "own"),
    [
        (1062, "23000", True),  # a duplicate key
        (1064, "42000", True),
        (1241, "21000", True),
        (1366, "HY000", True),
        (1690, "22003", True),
        (1213, "40001", True),
        (1644, "45000", True),
        (1146, "42S02", False),  # the shard lacks a table
        (1054, "42S22", False),  # a column, as in the middle of an ALTER TABLE
        (1305, "42000", False),
        (1932, "42S02", False),  # InnoDB does not know the table
        (1461, "42000", False),
        (1142, "42000", False),  # and the account a right
        (1030, "HY000", False),
        (1205, "HY000", False),
        (1290, "HY000", False),
        (1969, "70100", False),
        (2013, "HY000", False),
    ],
)
def test_whose_an_error_is(code: int, sqlstate: str, own: bool) -> None:
    assert is_own(code, sqlstate) is own
