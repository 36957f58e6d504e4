"""Statements that wait while shards move and masters change, with real servers: nobody hears of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.faults.link import Link
from tests.integration import raw as wire
from tests.integration.binary import Answer, Binary, integer
from tests.integration.fixtures import MakeOwn, make_id
from tests.integration.own import Document, OwnProxy, moved
from tests.integration.raw import LOCAL_FILES, Closed, Raw, Reply, packet, query
from tests.support.demo import Demo
from tests.support.waiting import wait_until

SHARD = 5
DATABASE = f"db{SHARD:05d}"
USER = make_id(SHARD, 3, 900_001)
NEIGHBOUR = make_id(6, 3, 900_001)  # on the same host
OTHER = make_id(40, 3, 900_001)  # on the second host
CLIENTS = 32


def with_state(topology: Document, state: str = "serving", master: str = "") -> Document:
    """The next version, with SHARD in a range of its own: in this state, on `master` or where it was."""
    changed = moved(topology, {})
    ranges: list[Document] = changed["keyspaces"]["main"]["ranges"]
    whole = next(one for one in ranges if one["range"][0] <= SHARD <= one["range"][1])
    first, last = whole["range"]
    own = whole | {"range": [SHARD, SHARD], "state": state}
    if master:
        own["master"] = master
        own.pop("slave", None)
    parts = [whole | {"range": [first, SHARD - 1]}] if first < SHARD else []
    parts += [own]
    parts += [whole | {"range": [SHARD + 1, last]}] if last > SHARD else []
    at = ranges.index(whole)
    ranges[at : at + 1] = parts
    return changed


def waiting(proxy: OwnProxy, count: int) -> None:
    wait_until(lambda: proxy.status()["clients"]["waiting"] == count, f"{count} statements wait")


def serve(proxy: OwnProxy, state: str = "serving", master: str = "") -> None:
    """Publish the state of SHARD."""
    now = proxy.status()["topology"]["version"]
    proxy.change_topology(with_state(proxy.topology | {"version": now}, state, master))


@pytest.fixture(autouse=True)
def clean(demo: Demo) -> Iterator[None]:
    """What the tests write is gone at the end, wherever the shard was."""
    yield
    for index, user in ((0, USER), (0, NEIGHBOUR), (1, OTHER)):
        with demo.direct(index) as server, server.cursor() as root:
            root.execute(f"DELETE FROM db{user >> 46:05d}.user_likes_pins WHERE user_id = {user}")
    with demo.direct(1) as server, server.cursor() as root:
        root.execute(f"DROP DATABASE IF EXISTS {DATABASE}")


def copy_shard(demo: Demo) -> None:
    """SHARD's database as it is now, on the second host."""
    with demo.direct(0) as old, demo.direct(1) as new, old.cursor() as source, new.cursor() as target:
        target.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        source.execute(f"SHOW TABLES FROM {DATABASE}")
        for (table,) in source.fetchall():
            source.execute(f"SHOW CREATE TABLE {DATABASE}.{table}")
            ((_, created),) = source.fetchall()
            target.execute(f"USE {DATABASE}")
            target.execute(created)
            source.execute(f"SELECT * FROM {DATABASE}.{table}")
            rows = source.fetchall()
            if rows:
                holes = ", ".join(["%s"] * len(rows[0]))
                target.executemany(f"INSERT INTO {table} VALUES ({holes})", rows)


def written(demo: Demo, index: int, user: int = USER) -> list[int]:
    """The numbers that the shard has on a host."""
    with demo.direct(index) as server, server.cursor() as root:
        root.execute(
            f"SELECT pin_id FROM db{user >> 46:05d}.user_likes_pins WHERE user_id = {user} ORDER BY pin_id"
        )
        return [int(row[0]) for row in root.fetchall()]


def insert(number: int, user: int = USER) -> str:
    return f"INSERT INTO user_likes_pins (user_id, pin_id, sequence) VALUES ({user}, {number}, {number})"


# -- writers through a move


class Writer(threading.Thread):
    """Writes numbers of its own, one after another, and keeps what was acknowledged."""

    def __init__(self, proxy: OwnProxy, index: int, stop: threading.Event) -> None:
        super().__init__()
        self.client = Raw(proxy.proxy.host, proxy.proxy.port, timeout=60.0)
        assert self.client.login(database="demo").kind == "ok"
        self.way: Callable[[], None] = (self.plain, self.prepared, self.transaction, self.pipelined)[
            index % 4
        ]
        self.base = (index + 1) * 1_000_000
        self.stop = stop
        self.acknowledged: list[int] = []
        self.problems: list[object] = []
        self.rounds = 0
        self.binary = Binary(self.client)
        self.statement = self.binary.statement(
            "INSERT INTO user_likes_pins (user_id, pin_id, sequence) VALUES (?, ?, ?)"
        )

    def run(self) -> None:
        while not self.stop.is_set() and not self.problems:
            self.way()
            self.rounds += 1
        self.client.close()

    def number(self) -> int:
        return self.base + len(self.acknowledged) + 1

    def take(self, reply: Reply | Answer, *numbers: int) -> None:
        if reply.kind == "ok":
            self.acknowledged += numbers
        else:
            self.problems.append(reply)

    def plain(self) -> None:
        number = self.number()
        self.take(self.client.ask(insert(number)), number)

    def prepared(self) -> None:
        number = self.number()
        values = [integer(USER), integer(number), integer(number)]
        self.take(self.binary.execute(self.statement.id, values), number)

    def transaction(self) -> None:
        number = self.number()
        for sql in ("BEGIN", insert(number), insert(number + 1)):
            self.take(self.client.ask(sql))
        self.take(self.client.ask("COMMIT"), number, number + 1)

    def pipelined(self) -> None:
        first = self.number()
        numbers = range(first, first + 3)
        self.client.write(b"".join(query(insert(number)) for number in numbers))
        for number in numbers:
            self.take(self.client.reply(), number)


def test_writers_through_a_move(own: MakeOwn, demo: Demo) -> None:
    """Frozen, copied, served by the other host: no error, every acknowledged row is there, once and in
    order.
    """
    proxy = own()
    stop = threading.Event()
    writers = [Writer(proxy, index, stop) for index in range(CLIENTS)]
    try:
        for writer in writers:
            writer.start()
        wait_until(lambda: all(one.rounds > 3 or one.problems for one in writers), "all write")
        serve(proxy, "frozen")
        waiting(proxy, CLIENTS)
        copy_shard(demo)
        before = [one.rounds for one in writers]
        left_behind = written(demo, 0)
        serve(proxy, "serving", demo.masters[1].address)
        wait_until(
            lambda: all(
                one.rounds > rounds + 3 or one.problems for one, rounds in zip(writers, before, strict=True)
            ),
            "all write again",
        )
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert [problem for one in writers for problem in one.problems] == []
    assert written(demo, 0) == left_behind, "nothing was written to the old master"
    assert written(demo, 1) == sorted(number for one in writers for number in one.acknowledged)
    ran = 'shardgate_statements_waited_total{outcome="ran"}'
    wait_until(lambda: proxy.metric(ran) >= CLIENTS, "all are counted")
    assert proxy.metric("shardgate_statements_waiting ") == 0


def test_a_transaction_that_is_open_ends_on_its_master(own: MakeOwn, demo: Demo) -> None:
    """Its statements and its COMMIT do not wait; a new one does, and one that is open elsewhere only."""
    proxy = own()
    inside, fresh, elsewhere = proxy.raw(), proxy.raw(), proxy.raw()
    for sql in ("BEGIN", insert(1)):
        assert inside.ask(sql).kind == "ok"
    for sql in ("BEGIN", insert(2, OTHER)):
        assert elsewhere.ask(sql).kind == "ok"
    serve(proxy, "frozen")
    assert inside.ask(insert(3)).kind == "ok"
    assert inside.ask("COMMIT").kind == "ok"
    inside.write(query(insert(4)))
    assert fresh.ask("BEGIN").kind == "ok"
    fresh.write(query(insert(5)))
    elsewhere.write(query(insert(6)))
    waiting(proxy, 3)
    assert written(demo, 0) == [1, 3]
    serve(proxy)
    assert [one.reply().kind for one in (inside, fresh, elsewhere)] == ["ok"] * 3
    assert written(demo, 0) == [1, 3, 4]
    assert [one.ask("COMMIT").kind for one in (fresh, elsewhere)] == ["ok"] * 2
    assert written(demo, 0) == [1, 3, 4, 5, 6]
    assert written(demo, 1, OTHER) == [2]


# -- every way


WAYS = {
    "point select": f"SELECT id FROM users WHERE id = {USER}",
    "IDs on both hosts": f"SELECT id FROM users WHERE id IN ({USER}, {OTHER})",
    "scatter": "SELECT COUNT(*) FROM users",
    "gather": "SELECT id, ROW_NUMBER() OVER (ORDER BY id) FROM users",
    "write": insert(1),
    "write to both hosts": insert(2) + f", ({OTHER}, 2, 2)",
    "INSERT … SELECT": (
        "INSERT INTO user_likes_pins (user_id, pin_id, sequence)"
        f" SELECT {USER}, 3, COUNT(*) FROM users WHERE id = {OTHER}"
    ),
    "reads from it": (
        "INSERT INTO user_likes_pins (user_id, pin_id, sequence)"
        f" SELECT {OTHER}, 4, COUNT(*) FROM user_likes_pins WHERE user_id = {USER}"
    ),
    "update": f"UPDATE user_likes_pins SET sequence = 7 WHERE user_id = {USER} AND pin_id = 1",
    "a reference table": "UPDATE countries SET name = name WHERE code = 'XX'",
    "definition": "ALTER TABLE user_likes_pins COMMENT ''",
    "the shard by its name": f"SELECT COUNT(*) FROM {DATABASE}.users",
    "a long one": f"DELETE FROM user_likes_pins WHERE user_id = {USER} AND pin_id = 0 /* {'x' * 70_000} */",
    "what opens a snapshot": f"SELECT SQL_CALC_FOUND_ROWS id FROM users WHERE id = {USER} LIMIT 1",
}


def test_every_way_waits(own: MakeOwn) -> None:
    proxy = own({"timeouts": {"buffer": "60s"}})
    watcher = proxy.raw()
    clients = {name: proxy.raw(timeout=90.0) for name in WAYS}
    prepared = Binary(proxy.raw(timeout=90.0))
    kinds: dict[str, Any] = {
        name: prepared.statement(sql)
        for name, sql in {
            "read": f"SELECT id FROM users WHERE id = ? OR id = {OTHER}",
            "gathered": "SELECT id, ROW_NUMBER() OVER (ORDER BY id) FROM users WHERE id > ?",
            "one host": f"SELECT COUNT(*) FROM {DATABASE}.users WHERE local_id > ?",
            "long data": "INSERT INTO user_likes_pins (user_id, pin_id, sequence) VALUES (?, 900, 0)",
        }.items()
    }
    several = proxy.raw(login=False, timeout=90.0)
    assert several.login(database="demo", flags=wire.MULTI_STATEMENTS).kind == "ok"
    serve(proxy, "frozen")
    assert watcher.ask(f"SELECT COUNT(*) FROM users WHERE id = {OTHER}").kind == "rows"
    for count, (name, sql) in enumerate(WAYS.items(), 1):
        clients[name].write(query(sql))
        waiting(proxy, count)
    several.write(query(f"SELECT 1; {insert(50)}; SELECT 2; {insert(51)}"))
    waiting(proxy, len(WAYS) + 1)
    shown = watcher.ask("SHOW PROXY SESSIONS").rows
    assert [row[-1] for row in shown].count(None) == 2  # the watcher, and the one with prepared statements
    assert f"shard {SHARD} of main, frozen".encode() in [row[-1] for row in shown]
    states = [row[6] for row in watcher.ask("SHOW PROCESSLIST").rows]
    assert b"waiting for shard %d of main, frozen" % SHARD in states
    serve(proxy)
    for name in WAYS:
        reply = clients[name].reply()
        assert reply.kind in ("ok", "rows"), (name, reply)
        assert clients[name].ping().kind == "ok"
    assert [one.kind for one in several.replies()] == ["rows", "ok", "rows", "ok"]
    for name, statement in kinds.items():
        serve(proxy, "frozen")
        value = integer(USER)
        if name == "long data":
            prepared.long_data(statement.id, 0, str(USER).encode())
            prepared.raw.write(prepared.execute_packet(statement.id, [value], sent=[0]))
        else:
            prepared.raw.write(
                prepared.execute_packet(statement.id, [integer(0) if name == "gathered" else value])
            )
        waiting(proxy, 1)
        serve(proxy)
        answer = prepared.answer()
        assert answer.kind in ("ok", "rows"), (name, answer)


def test_a_file_for_a_frozen_shard(own: MakeOwn, demo: Demo) -> None:
    with demo.direct() as server, server.cursor() as root:
        root.execute("SET GLOBAL local_infile = 1")
    proxy = own()
    client = proxy.raw(login=False)
    assert client.login(database=DATABASE, flags=LOCAL_FILES).kind == "ok"
    serve(proxy, "frozen")
    client.write(query("LOAD DATA LOCAL INFILE 'f' INTO TABLE user_likes_pins (user_id, pin_id, sequence)"))
    waiting(proxy, 1)
    serve(proxy)
    sequence: list[int] = []
    assert client.packet(sequence) == b"\xfbf"
    client.write(packet(f"{USER}\t77\t1\n".encode(), sequence[-1] + 1) + packet(b"", sequence[-1] + 2))
    assert client.reply().kind == "ok"
    assert written(demo, 0) == [77]


# -- who leaves


@pytest.mark.one_server
def test_the_limit_in_count(own: MakeOwn) -> None:
    proxy = own({"limits": {"buffered": 2}})
    clients = [proxy.raw() for _ in range(3)]
    serve(proxy, "frozen")
    for count, client in enumerate(clients[:2], 1):
        client.write(query(insert(count)))
        waiting(proxy, count)
    refused = clients[2].ask(insert(3))
    assert (refused.code, "is frozen" in refused.message) == (1105, True)
    assert proxy.metric('shardgate_statements_waited_total{outcome="full"}') == 1
    serve(proxy)
    assert [client.reply().kind for client in clients[:2]] == ["ok", "ok"]


@pytest.mark.one_server
def test_one_users_flood_leaves_others_their_place(own: MakeOwn) -> None:
    proxy = own({"limits": {"buffered": 5}})
    flood = [proxy.raw() for _ in range(5)]
    reader = proxy.raw(login=False)
    assert reader.login("reader", "reader", database="demo").kind == "ok"
    serve(proxy, "frozen")
    for count, client in enumerate(flood[:4], 1):
        client.write(query(insert(count)))
        waiting(proxy, count)
    assert flood[4].ask(insert(5)).code == 1105, "its user's share (backends.user_share)"
    reader.write(query(f"SELECT id FROM users WHERE id = {USER}"))
    waiting(proxy, 5)
    serve(proxy)
    assert [client.reply().kind for client in (*flood[:4], reader)] == ["ok"] * 4 + ["rows"]


@pytest.mark.one_server
def test_the_limit_in_time(own: MakeOwn) -> None:
    proxy = own({"timeouts": {"buffer": "300ms"}})
    client = proxy.raw()
    serve(proxy, "frozen")
    reply = client.ask(insert(1))
    assert reply.code == 1105
    assert "is frozen; the statement has waited 0." in reply.message
    assert "(timeouts.buffer). Try again when the topology serves it." in reply.message
    serve(proxy)
    assert client.ask(insert(1)).kind == "ok"


def test_who_kills_it_and_who_goes(own: MakeOwn, demo: Demo) -> None:
    proxy = own({"timeouts": {"buffer": "60s"}})
    admin, killed, ended, gone = (proxy.raw() for _ in range(4))
    numbers = [int(one.ask("SELECT CONNECTION_ID()").value or 0) for one in (killed, ended)]
    serve(proxy, "frozen")
    for count, client in enumerate((killed, ended, gone), 1):
        client.write(query(insert(count)))
        waiting(proxy, count)
    assert admin.ask(f"KILL QUERY {numbers[0]}").kind == "ok"
    assert killed.reply().code == 1317
    assert killed.ping().kind == "ok"
    assert admin.ask(f"KILL {numbers[1]}").kind == "ok"
    with pytest.raises(Closed):
        ended.reply()
    gone.close()
    waiting(proxy, 0)
    assert proxy.metric('shardgate_statements_waited_total{outcome="left"}') == 3
    serve(proxy)
    assert admin.ask(insert(9)).kind == "ok"
    assert written(demo, 0) == [9]


@pytest.mark.one_server
def test_workers_show_all_that_wait(own: MakeOwn) -> None:
    proxy = own({"workers": 2, "timeouts": {"buffer": "60s"}})
    clients = [proxy.raw() for _ in range(8)]
    watcher = proxy.raw()
    serve(proxy, "frozen")
    for count, client in enumerate(clients, 1):
        client.write(query(insert(count)))
        waiting(proxy, count)
    shown = [row[-1] for row in watcher.ask("SHOW PROXY SESSIONS").rows]
    assert shown.count(f"shard {SHARD} of main, frozen".encode()) == len(clients)
    serve(proxy)
    assert [client.reply().kind for client in clients] == ["ok"] * len(clients)


# -- masters


@contextmanager
def read_only(demo: Demo, flavour: str) -> Iterator[Callable[[], None]]:
    """The first host takes no writes from now on, until it is called or the end."""
    name = "read_only" if flavour == "mariadb" else "super_read_only"

    def end() -> None:
        if flavour != "mariadb":
            root.execute("SET GLOBAL super_read_only = OFF")
        root.execute("SET GLOBAL read_only = OFF")

    with demo.direct() as server, server.cursor() as root:
        root.execute(f"SET GLOBAL {name} = ON")
        try:
            yield end
        finally:
            end()


def test_a_read_only_master_and_its_successor(own: MakeOwn, demo: Demo, flavour: str) -> None:
    """Writes wait, reads do not; what was open there is to be run again."""
    proxy = own({"timeouts": {"buffer": "60s"}})
    copy_shard(demo)
    plain, fresh, inside, reader = (proxy.raw() for _ in range(4))
    prepared = Binary(proxy.raw())
    statement = prepared.statement(f"INSERT INTO {DATABASE}.user_likes_pins VALUES (?, ?, ?)")
    assert inside.ask("BEGIN").kind == "ok"
    assert inside.ask(f"SELECT id FROM users WHERE id = {USER} FOR UPDATE").kind == "rows"
    with read_only(demo, flavour):
        assert fresh.ask("BEGIN").kind == "ok"
        refused = inside.ask(insert(1))
        assert (refused.code, refused.sqlstate) == (1213, "40001")
        assert "try restarting transaction" in refused.message
        assert inside.ask("SELECT 1").status & wire.IN_TRANS == 0
        plain.write(query(insert(2)))
        waiting(proxy, 1)
        fresh.write(query(insert(3)))
        waiting(proxy, 2)
        prepared.raw.write(prepared.execute_packet(statement.id, [integer(USER), integer(5), integer(5)]))
        waiting(proxy, 3)
        assert reader.ask(f"SELECT COUNT(*) FROM users WHERE id = {USER}").kind == "rows"
        shown = [row[-1] for row in reader.ask("SHOW PROXY SESSIONS").rows]
        assert f"master {demo.masters[0].address}".encode() in shown
        serve(proxy, "serving", demo.masters[1].address)
        assert [one.reply().kind for one in (plain, fresh)] == ["ok"] * 2
        assert prepared.answer().kind == "ok"
        assert fresh.ask("COMMIT").kind == "ok"
        assert inside.ask(insert(6)).kind == "ok"
    assert written(demo, 0) == []
    assert written(demo, 1) == [2, 3, 5, 6]


def test_a_commit_that_a_read_only_master_refuses(own: MakeOwn, demo: Demo, flavour: str) -> None:
    """The transaction is rolled back, and its client is told to run it again."""
    if flavour == "mariadb":
        pytest.skip("MariaDB waits with read_only until who has written has committed")
    proxy = own()
    client = proxy.raw()
    for sql in ("BEGIN", insert(1)):
        assert client.ask(sql).kind == "ok"
    with read_only(demo, flavour):
        refused = client.ask("COMMIT")
    assert (refused.code, refused.sqlstate) == (1213, "40001")
    assert client.ask("SELECT 1").status & wire.IN_TRANS == 0
    assert client.ask(insert(2)).kind == "ok"
    assert written(demo, 0) == [2]


def test_a_read_only_master_that_takes_writes_again(own: MakeOwn, demo: Demo, flavour: str) -> None:
    proxy = own({"timeouts": {"buffer": "60s"}})
    clients = [proxy.raw() for _ in range(4)]
    two_shards = insert(4) + f", ({NEIGHBOUR}, 4, 4)"
    with read_only(demo, flavour) as end:
        for count, client in enumerate(clients, 1):
            client.write(query(two_shards if count == 4 else insert(count)))
            waiting(proxy, count)
        end()
        assert [client.reply().kind for client in clients] == ["ok"] * 4
    assert written(demo, 0) == [1, 2, 3, 4]
    assert written(demo, 0, NEIGHBOUR) == [4]


LOST = ("cannot connect",)


def cut(proxy: OwnProxy, link: Link) -> None:
    """The master is gone, and the proxy has noticed."""
    link.refuse()
    wait_until(lambda: proxy.host_state(link.address)["idle"] == 0, "its connections are closed")


def test_a_lost_master_and_its_successor(faulty: Any, demo: Demo) -> None:
    """What was not sent yet waits; what was under way, nobody knows; reads wait, too."""
    world = faulty({"timeouts": {"buffer": "60s"}}, expected=LOST)
    proxy, link = world.proxy, world.links[0]
    clients = [proxy.raw() for _ in range(4)]
    clients[3].ask("SET transaction_mode = 'xa'")
    inside, busy = proxy.raw(), proxy.raw()
    for sql in ("BEGIN", insert(1)):
        assert inside.ask(sql).kind == "ok"
    busy.write(query("DO SLEEP(60)"))
    with demo.direct() as server, server.cursor() as root:

        def sleeps() -> int:
            return root.execute("SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO = 'DO SLEEP(60)'")

        wait_until(sleeps, "it is at work")
    cut(proxy, link)
    assert busy.reply().code == 1158
    statements = [
        insert(2),
        f"SELECT COUNT(*) FROM users WHERE id = {USER}",
        "SELECT COUNT(*) FROM users",
        f"UPDATE users SET ts = ts WHERE id IN ({USER}, {OTHER})",
    ]
    for count, (client, sql) in enumerate(zip(clients, statements, strict=True), 1):
        client.write(query(sql))
        waiting(proxy, count)
    assert inside.ask(insert(3)).kind == "err", "its transaction is lost"
    assert inside.ask("ROLLBACK").kind == "ok"
    with Link(demo.masters[0].host, demo.masters[0].port) as other:
        proxy.change_topology(moved(proxy.topology, {link.address: other.address}))
        assert [client.reply().kind for client in clients] == ["ok", "rows", "rows", "ok"]
        assert inside.ask(insert(4)).kind == "ok"
        assert written(demo, 0) == [2, 4]
        proxy.close_clients()
        proxy.wait_idle(clients=0)


def test_a_lost_master_that_comes_back(faulty: Any, demo: Demo) -> None:
    world = faulty({"timeouts": {"buffer": "60s"}}, expected=LOST)
    proxy, link = world.proxy, world.links[0]
    clients = [proxy.raw() for _ in range(4)]
    prepared = Binary(proxy.raw())
    statement = prepared.statement(f"SELECT COUNT(*) FROM {DATABASE}.users WHERE local_id > ?")
    cut(proxy, link)
    for count, client in enumerate(clients, 1):
        client.write(query(insert(count)))
        waiting(proxy, count)
    prepared.raw.write(prepared.execute_packet(statement.id, [integer(0)]))
    waiting(proxy, 5)
    link.accept()
    assert [client.reply().kind for client in clients] == ["ok"] * 4
    assert prepared.answer().kind == "rows"
    assert written(demo, 0) == [1, 2, 3, 4]


def test_a_master_that_stays_away(faulty: Any) -> None:
    """Its first statements wait their time, later ones are refused at once."""
    world = faulty({"timeouts": {"buffer": "500ms"}}, expected=LOST)
    client, link = world.proxy.raw(), world.links[0]
    cut(world.proxy, link)
    first = client.ask(insert(1))
    assert (first.code, "the statement has waited 0." in first.message) == (1429, True)
    second = client.ask(insert(1))
    assert (second.code, "has waited" in second.message) == (1429, False)
    assert client.ask(insert(1, OTHER)).kind == "ok", "the other host serves"
