"""Several clients, few connections, and everything that can go wrong in any order.

Each client runs a program of statements and transactions. Meanwhile replies come in pieces, connections
break, hosts go down and up, statements are killed, clients leave, time passes. In the end everybody has been
answered once, nothing is left over, and the servers hold what the answers say: no more and no less.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.engine.admission import admit_plan
from proxy.engine.definitions import Definitions
from proxy.engine.task import TaskWork
from proxy.execute.fan.fanout import FanOut
from proxy.execute.writes import run_writes
from proxy.frontend.connection import ClientConnection
from proxy.local import run_builtin
from proxy.wire.constants import ColumnType
from proxy.wire.resultset import Column, encode_row
from rewriter.plans import Bound, HostStatement, Merge, SortKey
from rewriter.plans.builtins import Begin, Builtin, Commit, Empty, Rollback
from tests.execute.world import LIMITS, Client, ServerConn, World
from tests.wire.streams import Ok, Result, Rows

HOSTS = ("h1", "h2")
COLUMN = Column(b"n", ColumnType.LONGLONG, 63).encode()
ENDS: dict[str, Builtin] = {
    "begin": Begin(),
    "commit": Commit(),
    "rollback": Rollback(),
}
ORDERED = Merge((SortKey(0, False, None),))


def script(conn: ServerConn, sql: bytes) -> list[Result]:
    if sql.startswith(b"WRITE"):
        return [Ok(1)]
    return [Rows([encode_row([number]) for number in range(20)], 1, definitions=[COLUMN])]


@dataclass
class Statement:
    """`kind`: write, both (a write on both hosts), read, fan, begin, commit, rollback."""

    kind: str
    host: str
    numbers: tuple[int, ...] = ()
    answer: int | None = None  # index among the client's answers

    def run(self, client: ClientConnection) -> None:
        admit_plan(client.session, ENDS.get(self.kind, Empty()), b"")
        if self.kind in ENDS:
            run_builtin(client, ENDS[self.kind], ())
        elif self.kind == "write":
            client.relay.run(self.host, b"WRITE %d" % self.numbers[0])
        elif self.kind == "both":
            pairs = zip(HOSTS, self.numbers, strict=True)
            bound = Bound(tuple(HostStatement(host, (1,), b"WRITE %d" % number) for host, number in pairs))
            work = TaskWork(client)
            work.start(run_writes(client, bound, work.conns))
        elif self.kind == "read":
            client.relay.run(self.host, b"READ")
        else:
            parts = tuple(HostStatement(host, (1, 2), b"FAN") for host in (*HOSTS, self.host))
            FanOut(client, Bound(parts, ORDERED), Definitions(), None).start()


@dataclass
class Program:
    """One client's statements, and what became of them."""

    client: Client
    statements: list[Statement]
    asked: int = 0
    killed: bool = field(default=False)

    def ask(self) -> None:
        statement = self.statements[self.asked]
        statement.answer = self.asked
        self.asked += 1
        self.client.ask(statement.run)

    @property
    def more(self) -> bool:
        return self.asked < len(self.statements) and not self.client.left and self.client.transport.open


@st.composite
def programs(draw: st.DrawFn, numbers: Any) -> list[Statement]:
    """Some statements by themselves and some transactions."""
    found: list[Statement] = []

    def statement() -> Statement:
        kind = draw(st.sampled_from(("write", "both", "read", "fan")))
        size = {"write": 1, "both": 2}.get(kind, 0)
        return Statement(kind, draw(st.sampled_from(HOSTS)), tuple(next(numbers) for _ in range(size)))

    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            found.append(statement())
        else:
            found.append(Statement("begin", "h1"))
            found += [statement() for _ in range(draw(st.integers(0, 3)))]
            found.append(Statement(draw(st.sampled_from(("commit", "rollback"))), "h1"))
    return found


class Chaos:
    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.world = World(replace(LIMITS, max_connections=data.draw(st.integers(2, 4))))
        for host in HOSTS:
            self.world.server(host).script = script
        numbers = count(1)
        clients = [Client(self.world) for _ in range(data.draw(st.integers(1, 3)))]
        self.programs = [Program(client, data.draw(programs(numbers))) for client in clients]
        self.broken = False

    async def run(self) -> None:
        for _ in range(self.data.draw(st.integers(5, 40))):
            await self.event()
        for host in HOSTS:
            self.world.server(host).down = False
        for program in self.programs:
            if program.client.conn.writing_paused:
                program.client.conn.resume_writing()
        while True:
            await self.pass_time(100)
            more = [program for program in self.programs if program.more]
            if not more:
                break
            for program in more:
                program.ask()
        for program in self.programs:
            if not program.client.transport.open and not program.client.left:
                program.client.leave()
        await self.pass_time(100)
        self.world.check(*(program.client for program in self.programs))
        self.check_what_was_written()

    async def pass_time(self, seconds: float) -> None:
        await self.world.quiet()
        self.world.now += seconds
        self.world.backends.tick()
        await self.world.quiet()

    def draw(self, *choices: Any) -> Any:
        return self.data.draw(st.sampled_from(choices))

    async def event(self) -> None:
        kind = self.draw("ask", "ask", "turn", "turn", "deliver", "deliver", "deliver", "rare")
        if kind == "ask":
            more = [program for program in self.programs if program.more]
            if more:
                self.draw(*more).ask()
        elif kind == "turn":
            await self.world.turn()
        elif kind == "deliver":
            waiting = [one for one in self.world.everywhere() if one.out and one.transport.reading]
            if waiting:
                self.draw(*waiting).deliver(self.draw(1, 5, 30, None))
        else:
            await self.rare_event()

    async def rare_event(self) -> None:
        kind = self.draw("lose", "kill", "leave", "down", "up", "time", "slow", "fast")
        program = self.draw(*self.programs)
        conn = program.client.conn
        if kind == "lose" and self.world.everywhere():
            self.broken = True
            self.draw(*self.world.everywhere()).lose()
        elif kind == "kill" and conn.work is not None:
            program.killed = True
            conn.work.kill_query()
        elif kind == "leave" and not program.client.left:
            program.client.leave()
        elif kind in ("down", "up"):
            self.world.server(self.draw(*HOSTS)).down = kind == "down"
        elif kind == "time":
            self.world.now += self.draw(0.3, 6.0, 12.0)
            self.world.backends.tick()
        elif kind == "slow" and not program.client.left and not conn.writing_paused:
            conn.pause_writing()
        for one in self.programs:
            if one.client.conn.writing_paused and (kind == "fast" or self.data.draw(st.booleans())):
                one.client.conn.resume_writing()

    # -- what must be true
    # ------------------------------------------------------------------------------------------------------

    def check_what_was_written(self) -> None:
        committed = Counter(
            int(sql.split()[1]) for host in HOSTS for sql in self.world.server(host).committed
        )
        assert all(times == 1 for times in committed.values()), "written twice"
        for program in self.programs:
            self.check_program(program, set(committed))

    def check_program(self, program: Program, committed: set[int]) -> None:
        answers = program.client.answers()

        def good(statement: Statement) -> bool:
            known = statement.answer is not None and statement.answer < len(answers)
            return known and answers[statement.answer or 0].err is None

        open_since: list[Statement] | None = None
        for statement in program.statements:
            if statement.kind == "begin":
                open_since = [] if good(statement) else None
            elif statement.kind in ("commit", "rollback"):
                if open_since is not None:
                    self.check_transaction(open_since, statement, good, committed)
                open_since = None
            elif open_since is not None:
                open_since.append(statement)
            elif good(statement):
                assert set(statement.numbers) <= committed, "answered OK, but not there"
        if open_since:
            assert not committed & {number for one in open_since for number in one.numbers}, "never committed"

    def check_transaction(
        self, inside: list[Statement], end: Statement, good: Callable[[Statement], bool], committed: set[int]
    ) -> None:
        written = {number for one in inside for number in one.numbers}
        if end.kind == "rollback" or end.answer is None:
            assert not committed & written, "rolled back, or never committed"
        elif good(end) and all(map(good, inside)):
            assert written <= committed, "COMMIT was answered OK, but not all is there"
        elif good(end):
            for one in inside:
                if not good(one):
                    assert not committed & set(one.numbers), "an error, but part of it was committed"


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # of examples that hypothesis gives up
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_chaos(data: st.DataObject) -> None:
    async def run() -> None:
        await Chaos(data).run()

    asyncio.run(run())
