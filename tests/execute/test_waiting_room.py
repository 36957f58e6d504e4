"""The waiting room by itself: who comes in, who is let out in which order, who is told it was in vain."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from config.load import load_topology
from config.topology import Topology
from proxy.engine.waiting_room import Ticket, WaitingRoom, fenced, read_only
from proxy.engine.work import Work
from proxy.errors import Held, ProxyError
from proxy.wire.packets import Err

HOST = "a:3306"
AWAY = ProxyError("host_unreachable", host=HOST, reason="Connection refused")
READ_ONLY = Err(1290, "HY000", b"The MySQL server is running with the --read-only option so ...", HOST)


def frozen(*shards: int) -> Held:
    until = tuple(("main", shard) for shard in shards)
    return Held("shard_offline", until, shard=shards[0], keyspace="main", state="frozen")


def topology(*states: str) -> Topology:
    ranges = [{"range": [at, at], "master": HOST, "state": state} for at, state in enumerate(states)]
    main = {"layout": "pinterest", "database": "db{shard:05d}", "ranges": ranges}
    return load_topology({"version": 1, "keyspaces": {"main": main}})


class Rooms:
    """A room with a clock of its own."""

    def __init__(self, limit: int = 3, patience: float = 10.0, share: float = 1.0) -> None:
        self.now = 100.0
        self.away: set[str] = set()
        self.room = WaitingRoom(limit, patience, lambda host: host not in self.away, lambda: self.now, share)
        self.started: list[str] = []

    def client(self, name: str, *failures: ProxyError | Err, user: str = "u") -> Waiter:
        return Waiter(self, name, *failures, user=user)


class Waiter:
    """A client whose command fails by each of `failures` in turn, then is answered."""

    def __init__(self, rooms: Rooms, name: str, *failures: ProxyError | Err, user: str) -> None:
        self.session: Any = SimpleNamespace(user=SimpleNamespace(name=user))
        self.rooms, self.name, self.failures = rooms, name, list(failures)
        self.begun = rooms.now
        self.closed = False
        self.queued = 0.0
        self.ticket: Ticket | None = None
        self.work: Work | None = None
        self.answers: list[str] = []

    def run(self) -> None:
        if self.failures:
            self.fail(self.failures.pop(0))
        else:
            self.answer("ok")

    def answer(self, text: str) -> None:
        self.answers.append(text)
        self.work, self.begun = None, self.rooms.now + 0.001  # idle since

    def start_again(self) -> None:
        self.rooms.started.append(self.name)
        self.begun = self.rooms.now
        self.run()

    def fail(self, error: ProxyError | Err, seq: int | None = None) -> None:
        if not self.rooms.room.hold(self, error):
            self.answer(error.text() if isinstance(error, Err) else str(error))


def test_it_runs_with_the_next_topology_in_order() -> None:
    rooms = Rooms()
    clients = [rooms.client(name, frozen(0)) for name in "abc"]
    for client in clients:
        client.run()
    assert len(rooms.room) == 3
    assert [isinstance(one.work, Ticket) for one in clients] == [True] * 3
    rooms.now += 2
    rooms.room.topology_changed(topology("frozen", "serving"))
    assert rooms.started == [], "its shard is frozen still"
    rooms.room.topology_changed(topology("serving", "serving"))
    assert rooms.started == ["a", "b", "c"]
    assert [one.answers for one in clients] == [["ok"]] * 3
    assert [one.work for one in clients] == [None] * 3
    rooms.now += 1
    rooms.room.tick()
    assert (len(rooms.room), rooms.room.outcomes, rooms.room.seconds) == (0, {"ran": 3}, 6.0)


def test_who_comes_back_keeps_its_place_and_its_time() -> None:
    rooms = Rooms()
    first, second = rooms.client("a", frozen(0), frozen(1)), rooms.client("b", frozen(1))
    first.run()
    rooms.now += 6
    second.run()
    rooms.room.topology_changed(topology("serving", "frozen"))  # now its other shard
    assert rooms.started == ["a"]
    rooms.now += 3
    rooms.room.topology_changed(topology("serving", "serving"))
    assert rooms.started == ["a", "a", "b"]
    again = rooms.client("c", frozen(0), frozen(1))
    again.run()
    rooms.now += 6
    rooms.room.topology_changed(topology("serving", "frozen"))
    rooms.now += 6
    rooms.room.tick()
    assert "has waited 12.0 s" in again.answers[0]


def test_its_time_is_over() -> None:
    rooms = Rooms()
    client = rooms.client("a", frozen(0, 1))
    client.run()
    rooms.now += 9.9
    rooms.room.tick()
    assert client.answers == []
    rooms.now += 0.1
    rooms.room.tick()
    assert client.answers == [
        "Shard 0 of keyspace 'main' is frozen; the statement has waited 10.0 s for a change of the topology"
        " (timeouts.buffer). Try again when the topology serves it."
    ]
    assert (client.work, len(rooms.room), rooms.room.outcomes) == (None, 0, {"timeout": 1})


@pytest.mark.parametrize(("limit", "patience"), [(0, 10.0), (3, 0.0)])
def test_nobody_waits_where_none_may(limit: int, patience: float) -> None:
    rooms = Rooms(limit, patience)
    for error in (frozen(0), AWAY, READ_ONLY):
        client = rooms.client("a", error)
        client.run()
        assert (len(client.answers), client.work) == (1, None)


def test_the_limit() -> None:
    rooms = Rooms(limit=2)
    clients = [rooms.client(name, frozen(0)) for name in "abc"]
    for client in clients:
        client.run()
    assert [len(one.answers) for one in clients] == [0, 0, 1]
    assert clients[2].answers == [str(frozen(0))], "told at once, as without the room"
    assert rooms.room.outcomes == {"full": 1}
    clients[0].closed = True
    assert isinstance(clients[0].work, Ticket)
    clients[0].work.cancel()
    clients[2].failures = [frozen(0)]
    clients[2].run()
    assert len(rooms.room) == 2


def test_no_user_fills_the_room() -> None:
    """As with a host's connections: one alone gets its part, several less each, and something is always left
    for who has none.
    """
    rooms = Rooms(limit=20, share=0.8)
    for name in "abcdefghijklmnopqrst":
        rooms.client(name, frozen(0), user="flood").run()
    assert len(rooms.room) == 16
    for name in "ABCDEFGH":
        rooms.client(name, frozen(0), user="other").run()
    assert len(rooms.room) == 19
    rooms.client("Z", frozen(0), user="third").run()
    assert len(rooms.room) == 20
    assert rooms.room.outcomes == {"full": 9}
    rooms.room.topology_changed(topology("serving"))
    assert rooms.started == list("aAZbBcCdefghijklmnop"), "in turns"
    assert len(rooms.room) == 0
    for name in "abcdefghijklmnopqrst":
        rooms.client(name, frozen(0), user="other").run()
    assert len(rooms.room) == 16, "its places are free again"


def test_who_is_let_out_later_has_its_turn_among_those_that_are_still_leaving() -> None:
    rooms = Rooms(limit=100)
    rooms.room._start_some = lambda: None  # type: ignore[method-assign]  # all stay on their way out
    flood = [rooms.client(f"f{at}", frozen(0), user="flood") for at in range(3)]
    for client in flood:
        client.run()
    rooms.room.topology_changed(topology("serving", "frozen"))
    late = rooms.client("late", frozen(1), user="other")
    late.run()
    rooms.room.topology_changed(topology("serving", "serving"))
    assert [one.user for one in rooms.room._leaving] == ["flood", "other", "flood", "flood"]


def test_a_client_that_kills_it_or_goes_leaves() -> None:
    rooms = Rooms()
    killed, gone = rooms.client("a", frozen(0)), rooms.client("b", frozen(0))
    killed.run()
    gone.run()
    assert killed.work is not None
    assert gone.work is not None
    killed.work.kill_query()
    gone.work.cancel()
    rooms.room.topology_changed(topology("serving"))
    rooms.now += 20
    rooms.room.tick()
    assert (killed.answers, gone.answers, rooms.started) == (["Query execution was interrupted"], [], [])
    assert rooms.room.outcomes == {"left": 2}


@pytest.mark.parametrize("error", [AWAY, READ_ONLY])
def test_a_master_that_is_replaced(error: Any) -> None:
    rooms = Rooms()
    client = rooms.client("a", error)
    client.run()
    assert isinstance(client.work, Ticket)
    assert client.work.reason == f"master {HOST}"
    rooms.room.topology_changed(topology("serving"))
    assert client.answers == ["ok"]


def test_a_master_that_comes_back() -> None:
    """One statement tries it at each tick; when that one is through the others follow, in order."""
    rooms = Rooms()
    clients = [rooms.client("a", AWAY, AWAY, AWAY), rooms.client("b", AWAY), rooms.client("c", AWAY)]
    for client in clients:
        client.run()
    for _ in range(4):
        rooms.now += 0.2
        rooms.room.tick()
    assert rooms.started == ["a", "a", "a", "b", "c"]
    assert [one.answers for one in clients] == [["ok"]] * 3
    rooms.room.tick()
    assert rooms.room.outcomes == {"ran": 3}, "who was only tried is not counted"


def test_a_master_that_stays_away() -> None:
    """After its time nobody waits for it, until it was well for as long, or a topology comes."""
    rooms = Rooms()

    def waits() -> bool:
        client = rooms.client("a", *[AWAY] * 100)
        client.run()
        return client.work is not None

    early = rooms.client("a", *[AWAY] * 100)
    early.run()
    while rooms.now < 110:
        rooms.now += 1
        rooms.room.tick()
    assert "Connection refused; the statement has waited 10.0 s" in early.answers[0]
    assert not waits()
    rooms.now += 9
    assert not waits()
    rooms.now += 11
    assert waits()
    rooms.now += 10
    assert not waits()
    rooms.room.topology_changed(topology("serving"))
    assert waits()


def test_a_master_that_is_away_is_broken_for_all_at_once() -> None:
    """When the first has waited out its time; those behind it would wait for what is known by then."""
    rooms = Rooms()
    rooms.away.add(HOST)
    elsewhere = ProxyError("host_unreachable", host="b:3306", reason="Connection refused")
    first = rooms.client("first", *[AWAY] * 100)
    first.run()
    rooms.now += 6
    later, other = rooms.client("later", *[AWAY] * 100), rooms.client("other", *[elsewhere] * 100)
    later.run()
    other.run()
    while rooms.now < 109.7:
        rooms.now += 0.25
        rooms.room.tick()
    assert [first.answers, later.answers] == [[], []]
    rooms.now += 0.25
    rooms.room.tick()
    assert [len(one.answers) for one in (first, later, other)] == [1, 1, 0]
    assert "the statement has waited 4.0 s" in later.answers[0]


@pytest.mark.parametrize("away", [True, False])
def test_a_master_that_nobody_has_asked_for_meanwhile(away: bool) -> None:
    """As long as it is known to be away it is broken, however seldom anybody wants it."""
    rooms = Rooms()
    rooms.away.add(HOST)
    rooms.client("a", *[AWAY] * 100).run()
    while rooms.now < 111:
        rooms.now += 1
        rooms.room.tick()
    rooms.now += 300
    if not away:
        rooms.away.clear()  # it was there again
    late = rooms.client("late", *[AWAY] * 100)
    late.run()
    assert (late.work is None) == away


def test_rights_that_an_account_lacks() -> None:
    """Of one shard, once somebody has waited for a change: until a topology comes nobody waits again, and a
    change of its master is none the less one.
    """
    denied = Err(1142, "42000", b"INSERT command denied to user 's'@'h' for table `db00001`.`pins`", HOST)
    served = topology("serving", "serving")
    rooms = Rooms()

    def waits(error: ProxyError | Err) -> bool:
        client = rooms.client("a", *[error] * 100)
        client.run()
        found = client.work is not None
        if isinstance(client.work, Ticket) and error is not lacking:
            client.work.cancel()
        return found

    lacking = fenced(denied, served)
    elsewhere = fenced(replace(denied, message=denied.message.replace(b"db00001", b"db00000")), served)
    assert (lacking.fenced, elsewhere.fenced) == ("db00001", "db00000")
    assert waits(lacking)
    while rooms.now < 111:
        rooms.now += 1
        rooms.room.tick()
    assert not waits(lacking)
    assert waits(elsewhere)
    assert waits(READ_ONLY)
    rooms.now += 300
    assert not waits(lacking)
    rooms.room.topology_changed(served)
    assert waits(lacking)


@pytest.mark.parametrize("error", [AWAY, READ_ONLY])
def test_a_master_that_stays_away_while_statements_come(error: Any) -> None:
    """Those that are told that it was in vain are no sign that it is well: the next ones do not wait."""
    rooms = Rooms(limit=8)
    clients, after = [], []
    killed = rooms.client("killed", *[error] * 200)
    killed.run()
    for second in range(30):
        clients.append(rooms.client(str(second), *[error] * 200))
        clients[-1].run()
        if second == 3:
            assert isinstance(killed.work, Ticket)
            killed.work.kill_query()
        if second > 10:
            after.append(clients[-1].work)
        for _ in range(4):
            rooms.now += 0.25
            rooms.room.tick()
    assert after == [None] * 19
    assert [len(one.answers) for one in clients] == [1] * 30
    assert rooms.room.outcomes == {"left": 1, "timeout": 8, "full": 2}, "the two behind the eighth"


def test_a_new_row_goes_elsewhere() -> None:
    """Run again it is answered by another master: that says nothing of the one that is away."""
    rooms = Rooms()
    rooms.away.add(HOST)
    stays = rooms.client("stays", *[AWAY] * 100)
    for second in range(12):
        rooms.client(f"new {second}", AWAY).run()
        if not second:
            stays.run()
        rooms.now += 1
        rooms.room.tick()
    assert "Connection refused; the statement has waited" in stays.answers[0]
    late = rooms.client("late", *[AWAY] * 100)
    late.run()
    assert late.work is None, "it does not wait"


def test_a_change_for_nobody_starts_nothing() -> None:
    rooms = Rooms()
    rooms.room.topology_changed(topology("serving"))
    rooms.room.tick()
    assert (len(rooms.room), rooms.started) == (0, [])


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (1290, b"The MariaDB server is running with the --read-only option so it cannot execute", True),
        (1290, b"The MySQL server is running with the --super-read-only option so it cannot", True),
        (1290, b"The MySQL server is running with the --secure-file-priv option so it cannot", False),
        (1836, b"Running in read-only mode", True),
        (3989, b"Schema 'db00001' is in read only mode.", True),
        (1064, b"... near 'read-only'", False),
    ],
)
def test_what_read_only_masters_say(code: int, message: bytes, expected: bool) -> None:
    assert read_only(Err(code, "HY000", message)) is expected


@pytest.mark.parametrize(
    ("words", "table", "expected"),
    [
        (b"INSERT", b"`db00001`.`pins`", True),
        (b"DELETE", b"`db00001`.`pins`", True),
        (b"INSERT, UPDATE", b"`db00001`.`pins`", True),
        (b"SELECT", b"`db00001`.`pins`", False),
        (b"DROP", b"`db00001`.`pins`", False),
        (b"INSERT", b"`db00007`.`pins`", False),
        (b"INSERT", b"'pins'", False),
    ],
)
def test_a_fence_by_rights(words: bytes, table: bytes, expected: bool) -> None:
    """Only rows of the shards' databases; the client reads the logical name."""
    text = words + b" command denied to user 'sg'@'localhost' for table "
    own = Err(1142, "42000", text + table)
    shown = Err(1142, "42000", text + b"`demo`.`pins`", HOST, own.message)
    for error in (own, shown):
        assert not read_only(error)
        assert read_only(fenced(error, topology("serving", "serving"))) is expected
