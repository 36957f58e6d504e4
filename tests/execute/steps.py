"""What can happen to a proxy, step by step: clients that say things, servers that answer, are lost or change.
A `Side` is a proxy without sockets in which steps are taken.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from time import monotonic
from typing import Any

from config.layout import PINTEREST
from config.load import load_schema, load_topology
from config.schema import Schema
from config.topology import Topology
from demo.documents import SCHEMA, topology_document
from proxy.backends.pool import FOUND_ROWS
from proxy.backends.settings import LOGIN
from proxy.frontend.client import Client
from proxy.session.prepared import Statement
from proxy.session.state import Role, Session, User
from proxy.session.tracking import Tracker
from proxy.wire.packets import frame, lenenc_bytes
from proxy.wire.resultset import encode_row
from rewriter.plans import ShardSelect
from tests.backends.fakes import FakeTransport
from tests.execute.world import ServerConn, World
from tests.wire.streams import Err, Ok, Result, Rows

SHARDS = 4
CHANGED = 0x40
"""The high byte of SERVER_SESSION_STATE_CHANGED."""


def pin(shard: int, kind: int = 1) -> int:
    return PINTEREST.compose(shard=shard, type=kind, local=7 + shard)


STATEMENTS: list[bytes] = [
    *(b"SELECT id, data, ts FROM pins WHERE id = %d" % pin(shard) for shard in range(SHARDS)),
    *(b"SELECT data FROM pins WHERE id = %d LIMIT 1" % pin(shard) for shard in (0, 3)),
    b"SELECT pin_id FROM board_has_pins WHERE board_id = %d ORDER BY sequence DESC LIMIT 5" % pin(1, 2),
    b"SELECT 1, data FROM pins WHERE id = %d" % pin(2),
    b"UPDATE pins SET data = '{}' WHERE id = %d" % pin(1),
    b"SELECT id, ts FROM pins WHERE id IN (%d, %d)" % (pin(0), pin(3)),
    b"SELECT a FROM legacy.items",
    b"BEGIN", b"COMMIT", b"ROLLBACK", b"SET autocommit = 0", b"SET autocommit = 1", b"SET @a = 1",
    b"SELECT 1", b"SHOW WARNINGS", b"no SQL",
    *(b"SELECT id, data, ts FROM pins WHERE id = %s" % one for one in (
        b"0", b"00%d" % pin(1), b"%d" % pin(1, 2), b"%d" % pin(500), b"9" * 19, b"9" * 39, b"9" * 60,
        b"%d;" % pin(1), b"-%d" % pin(1), b"%d " % pin(1), b" %d" % pin(1), b"", b"@a",
        b"'%d'" % pin(1), b"1e3",
    )),
    b"SELECT data FROM pins WHERE id = %d LIMIT 7" % pin(1), b"select data FROM pins WHERE id = 12a LIMIT 1",
    b"SELECT data FROM pins WHERE id = %d LIMIT 1" % 5, b"SELECT data FROM pins WHERE id =  LIMIT 1",
    b"SELECT data FROM pins WHERE id = %d LIMIT 1" % (1 << 70),
    b"SELECT data FROM pins WHERE id = %s LIMIT 1" % (b"0" * 2000), b"5", b" 5", b"SELECT 5",
    b"SELECT LAST_INSERT_ID() FROM pins WHERE id = %d" % pin(1), b"DELETE FROM pins WHERE id = %d" % pin(1),
    b"SELECT id FROM pins LIMIT 5", b"EXPLAIN SELECT id FROM pins WHERE id = %d" % pin(1),
    b"SELECT id, data, ts FROM pins WHERE id = %d" % pin(1) + b" " * 70_000 + b"1",
    b"SELECT id, data FROM pins WHERE id IN (%d, %d, %d, %d)" % (pin(0), pin(1), pin(2), pin(3)),
    b"INSERT INTO board_has_pins (pin_id, sequence, board_id) VALUES (5, 1, %d)" % pin(1, 2),
    b"INSERT INTO comments (data) VALUES ('{\"pin_id\": %d}')" % pin(500),
    b"INSERT INTO comments (data) VALUES ('{\"text\": \"a\", \"pin_id\" : \"%d\"}')" % pin(2),
    b"INSERT INTO comments (data) VALUES ('{\"pin_id\": %d}')" % pin(1),
    b"INSERT INTO pins (data) VALUES ('{\"board_id\": %d}')" % pin(2, 2),
    b"INSERT INTO legacy.items (a) VALUES (1)", b"UPDATE legacy.items SET a = LAST_INSERT_ID(3)",
    b"SELECT a FROM legacy.items WHERE b = 1", b"CALL legacy.run()",
]  # fmt: skip
LIST, LISTED, _, _, COMMENT, PIN, ITEM = range(len(STATEMENTS) - 10, len(STATEMENTS) - 3)


@cache
def documents() -> tuple[Schema, Topology]:
    hosts = [("h1:3306", None), ("h2:3306", None)]
    return load_schema(SCHEMA), load_topology(topology_document(SHARDS, hosts))


def column(database: bytes, name: bytes) -> bytes:
    names = (b"def", database, b"pins", b"pins", name, b"local_id" if name == b"id" else name)
    return b"".join(map(lenenc_bytes, names)) + b"\x0c" + bytes((45, 0, 80, 0, 0, 0, 253, 0, 0, 0, 0, 0))


USERS = {
    "nobody": User("u", Role.READ, frozenset()),
    "reader": User("u", Role.READ),
    "of demo": User("u", Role.WRITE, frozenset({"demo"})),
    "of more": User("v", Role.ADMIN, frozenset({"demo", "legacy"})),
}


class Surprising(FakeTransport):
    """Does something else within the next write."""

    def __init__(self) -> None:
        super().__init__()
        self.surprise: Callable[[], object] | None = None

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        super().write(data)
        surprise, self.surprise = self.surprise, None
        if surprise is not None:
            surprise()


class Side:
    """A proxy, its servers and its clients."""

    def __init__(self, clients: int) -> None:
        schema, topology = documents()
        self.world = World(schema=schema, topology=topology)
        self.reply: tuple[int, int, bool] = (1, 0, False)  # rows, warnings, an error
        self.ok = Ok(1)
        self.statements: dict[tuple[int, bytes], Statement] = {}
        self.clients: list[Client] = []
        for name in ("h1:3306", "h2:3306"):
            self.world.server(name).script = self._script
        for number in range(clients):
            client = Client(self.world.services)
            client.transport = Surprising()
            user = User("u", Role.ADMIN)
            session = Session(number + 1, user, "127.0.0.1:1", "9.7.0", {"autocommit": b"1"}, "demo", LOGIN)
            session.refresh_env()
            client.begin_session(session)
            client.ready = True
            self.world.services.clients.sessions[session.id] = client
            self.clients.append(client)

    def _script(self, conn: ServerConn, sql: bytes) -> list[Result]:
        rows, warnings, error = self.reply
        if error:
            return [Err(1146, "Table 'db00001.pins' doesn't exist")]
        if not sql.lstrip(b"(").startswith(b"SELECT"):
            if conn.server.name == "h1:3306" and b"pins" in sql:
                conn.write(sql)
            return [replace(self.ok, warnings=warnings)]
        at = sql.find(b"`db0")
        database = sql[at + 1 : at + 8] if at >= 0 else b"legacy"
        if sql.startswith(b"("):
            database = b""  # as those of a UNION
        names = (b"id", b"data", b"ts")[: 1 + sql.count(b",", 0, sql.find(b"FROM"))]
        made = [encode_row([b"%d" % n] * len(names)) for n in range(rows)]
        return [Rows(made, len(names), warnings, definitions=[column(database, name) for name in names])]

    @property
    def ready(self) -> list[ServerConn]:
        """The servers' connections with something to say."""
        return [one for one in self.world.everywhere() if one.out]

    def send(self, number: int, sql: bytes) -> None:
        client = self.clients[number % len(self.clients)]
        if not client.closed:
            client.data_received(frame(b"\x03" + sql))

    def execute(self, number: int, sql: bytes) -> None:
        """As a prepared statement that was executed before; it is a point select."""
        client, rewriter = (
            self.clients[number % len(self.clients)],
            self.world.services.serving.snapshot.rewriter,
        )
        if not client.ready or client.closed:
            return
        session, snapshot = client.session, self.world.services.serving.snapshot
        plan, literals = rewriter.find(sql, session.env) or rewriter.plan(sql, session.env)
        point = plan.at_point(literals, snapshot.topology) if isinstance(plan, ShardSelect) else None
        if point is None:
            return  # the client has gone to another database
        host, _, text, shard = point
        made = Statement(sql, session.env, session.settings, plan, literals, None)
        statement = self.statements.setdefault((session.id, sql), made)
        client.ready, client.seq, client.begun = False, 0, monotonic()
        client.snapshot, client.sql, client.kind, client.plan = snapshot, sql, plan.kind, plan
        client.relay.ask(host, text, plan.column_metadata, shard, statement)

    def deliver(self, number: int, size: int | None, *, changed: bool) -> None:
        if not self.ready:
            return
        one = self.ready[number % len(self.ready)]
        if changed and one.out[-9:-4] == b"\5\0\0" + one.out[-6:-5] + b"\xfe":
            one.out = one.out[:-1] + bytes((one.out[-1] | CHANGED,))
        one.deliver(size)

    def garble(self, number: int, place: int, byte: int, more: bytes) -> None:
        """One byte of what waits is another one, or is missing; and more comes behind it."""
        if self.ready:
            one = self.ready[number % len(self.ready)]
            place %= len(one.out)
            changed = b"" if byte < 0 else bytes((byte,))
            one.out = one.out[:place] + changed + one.out[place + 1 :] + more

    def while_written(self, number: int, what: str) -> None:
        """Something happens while the next reply is written to the client."""
        client = self.clients[number % len(self.clients)]
        transport = client.transport
        if not isinstance(transport, Surprising) or client.closed:
            return
        happens: dict[str, Callable[[], object]] = {
            "pause": lambda: self.pause(number, on=True),
            "leave": lambda: self.leave(number),
            "lose": lambda: self.lose_of(client),
            "kill": lambda: self.kill(number),
            "soon": client.end_soon,
            "behind": lambda: self.send(number, STATEMENTS[0]),
        }
        transport.surprise = happens[what]

    @staticmethod
    def lose_of(client: Client) -> None:
        if client.relay.conn is not None:
            client.relay.conn.connection_lost(None)

    def kill(self, number: int) -> None:
        client = self.clients[number % len(self.clients)]
        if client.work is not None:
            client.work.kill_query()

    def host(self, number: int, what: str) -> None:
        """Something happens to a host's pool."""
        pools = list(self.world.backends.pools)
        if pools:
            pool = pools[number % len(pools)]
            {"renew": pool.renew, "retire": pool.retire, "changed": pool.database_changed}[what]()

    def be(self, number: int, what: str) -> None:
        """A client is another kind of client from now on."""
        client = self.clients[number % len(self.clients)]
        if what == "slow":
            client.observe_after = -1.0
        elif what == "other" and client.ready:
            client.session.capability_set ^= FOUND_ROWS
        elif what == "soon":
            client.end_soon()
        elif what == "tracked":
            client.session.tracker = client.session.tracker or Tracker()
            client.session.tracks_replies = True
        elif what == "told":
            client.session.tracker = Tracker()
        elif what == "once":
            client.relay.once = lambda sql: None  # type: ignore[assignment, return-value]
        elif not client.ready:
            return
        elif what == "single":
            client.session.transaction_mode = "single"
        elif what == "gbk":
            client.session.unsafe_charset = True
        elif what == "lost":
            client.session.transaction.lost = "its connection was lost"
        elif what == "attributes":
            client.attributes = True
        else:
            client.session.user = USERS[what]

    def feed(self, number: int, sql: bytes, how: str) -> None:
        """The packet of a statement comes in another way."""
        client, packet = self.clients[number % len(self.clients)], frame(b"\x03" + sql)
        pieces = {
            "halves": [packet[:9], packet[9:]],
            "beginning": [packet[:3], packet[3:]],
            "two": [packet + packet],
            "more": [packet + b"\0"],
            "number": [packet[:3] + b"\1" + packet[4:]],
            "other": [packet[:4] + b"\x02" + packet[5:]],
            "text": [frame(b"\x03" + sql.decode("latin-1").encode())],
            "empty": [frame(b"\x03")],
            "attributes": [frame(b"\x03\0\1" + sql)],
        }[how]
        for piece in pieces:
            if not client.closed:
                client.data_received(piece)

    def serve(self, *, all_serving: bool) -> None:
        serving = self.world.services.serving
        serving.snapshot = replace(serving.snapshot, all_serving=all_serving)

    def tick(self) -> None:
        self.world.now += 1.0
        for pool in self.world.backends.pools:
            pool.tick()

    def behind_much(self) -> None:
        """What is free was sent 16 MB and more, which are answered by other numbers."""
        for pool in self.world.backends.pools:
            for idle in pool.state.idle:
                for conn in idle:
                    conn._numbers = [2]
                    conn.scanner.first_number = 2

    def pause(self, number: int, *, on: bool) -> None:
        client = self.clients[number % len(self.clients)]
        if client.writing_paused != on and not client.closed:
            client.pause_writing() if on else client.resume_writing()

    def leave(self, number: int) -> None:
        client = self.clients[number % len(self.clients)]
        if not client.closed:
            client.connection_lost(None)

    def lose(self, number: int) -> None:
        live = self.world.everywhere()
        if live:
            live[number % len(live)].lose()


Step = Callable[[Side], None]


def send(client: int, statement: int) -> Step:
    return lambda side: side.send(client, STATEMENTS[statement])


def say(client: int, sql: bytes) -> Step:
    return lambda side: side.send(client, sql)


def twice(client: int, sql: bytes) -> Step:
    """Of which the second one is known."""

    def step(side: Side) -> None:
        side.send(client, sql)
        side.deliver(0, None, changed=False)
        side.send(client, sql)

    return step


def deliver(number: int = 0, size: int | None = None, changed: bool = False) -> Step:
    return lambda side: side.deliver(number, size, changed=changed)


def reply(rows: int = 1, warnings: int = 0, error: bool = False) -> Step:
    def step(side: Side) -> None:
        side.reply = (rows, warnings, error)

    return step


def wrote(affected: int = 1, insert_id: int = 0, info: bytes = b"") -> Step:
    """What servers say of writes from now on."""
    return lambda side: setattr(side, "ok", Ok(affected, insert_id, info=info))


def execute(client: int, statement: int) -> Step:
    return lambda side: side.execute(client, STATEMENTS[statement])


def tick() -> Step:
    return lambda side: side.tick()


def behind_much() -> Step:
    return lambda side: side.behind_much()


def pause(client: int, on: bool) -> Step:
    return lambda side: side.pause(client, on=on)


def leave(client: int) -> Step:
    return lambda side: side.leave(client)


def lose(number: int) -> Step:
    return lambda side: side.lose(number)


def garble(number: int, place: int, byte: int, more: bytes = b"") -> Step:
    return lambda side: side.garble(number, place, byte, more)


def while_written(client: int, what: str) -> Step:
    return lambda side: side.while_written(client, what)


def kill(client: int) -> Step:
    return lambda side: side.kill(client)


def host(number: int, what: str) -> Step:
    return lambda side: side.host(number, what)


def feed(client: int, statement: int, how: str) -> Step:
    return lambda side: side.feed(client, STATEMENTS[statement], how)


def serve(all_serving: bool) -> Step:
    return lambda side: side.serve(all_serving=all_serving)


def be(client: int, what: str) -> Step:
    return lambda side: side.be(client, what)


PREPARED = (
    (b"SELECT id, data, ts FROM pins WHERE id = ?", 1),
    (b"SELECT data FROM pins WHERE id = ? LIMIT 1", 1),
    (b"SELECT pin_id FROM board_has_pins WHERE sequence > ? AND board_id = ?", 2),
    (b"SELECT 1, data FROM pins WHERE id = ? AND ts > '2020-01-01'", 1),
)
FORMS = {"q": b"\x08\x00", "Q": b"\x08\x80", "i": b"\x03\x00", "I": b"\x03\x80", "b": b"\x01\x00"}
HOW = ("plain", "unbound", "null", "cursor", "other", "short", "more", "halves", "two", "number")


def statement_of(side: Side, client: int, which: int) -> Statement:
    """The client's statement, prepared when it is asked for first."""
    session, rewriter = side.clients[client].session, side.world.services.serving.snapshot.rewriter
    sql, parameters = PREPARED[which]
    for one in session.prepared.by_id.values():
        if one.sql == sql:
            return one
    env = session.prepared.env(session.env)
    plan, literals = rewriter.plan(sql, env)
    generation = rewriter.generation
    made = Statement(sql, env, session.settings.system, plan, literals, generation, learnt=generation)
    made.parameters = parameters
    session.prepared.add(made)
    return made


def packet_of(statement: Statement, numbers: tuple[int, ...], form: str, how: str) -> bytes:
    number = statement.id + 77 * (how == "other")
    head = struct.pack("<BIBI", 0x17, number, how == "cursor", 1)
    values = b"".join(struct.pack(f"<{form}", one & (1 << 8 * struct.calcsize(form)) - 1) if form in "QI"
                      else struct.pack(f"<{form}", one) for one in numbers)  # fmt: skip
    types = b"" if how == "unbound" else FORMS[form] * len(numbers)
    payload = head + bytes((how == "null", how != "unbound")) + types + values
    return frame(payload[:-1] if how == "short" else payload + b"\7" * (how == "more"))


def repeat(client: int, which: int, *numbers: int, form: str = "q", how: str = "plain") -> Step:
    """An EXECUTE, as many numbers as the statement has parameters."""

    def step(side: Side) -> None:
        one = side.clients[client % len(side.clients)]
        if one.closed:
            return
        statement = statement_of(side, client % len(side.clients), which)
        given = (numbers * 2)[: statement.parameters]
        packet = packet_of(statement, given, form, how)
        pieces = {
            "halves": [packet[:9], packet[9:]],
            "two": [packet * 2],
            "number": [packet[:3] + b"\1" + packet[4:]],
        }
        for piece in pieces.get(how, [packet]):
            if not one.closed:
                one.data_received(piece)

    return step
