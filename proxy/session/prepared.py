"""A session's prepared statements, by the numbers that the client knows them by. Values only.

A statement keeps what it was prepared under: its database, sql_mode and character set are then part of its
meaning, whatever the session sets later. The plan is kept with the rewriter's generation that it was made in.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol

from config.flavour import Flavour
from proxy.backends.settings import Settings
from rewriter.env import Env
from rewriter.plan import Plan, Values
from rewriter.planner import Parameters
from rewriter.plans import OneHost, ShardSelect

if TYPE_CHECKING:
    from proxy.backends.connection import BackendConnection
    from proxy.wire.binary import Heading


def weight(sql: bytes) -> int:
    """About how many bytes a prepared statement takes: its text, literals and plan."""
    return 3 * len(sql) + 2000


@dataclass(frozen=True, eq=False)
class Repeat:
    """What an EXECUTE of integers has found out, and holds for the next one as long as the rewriter's
    generation, the session's settings and the user are these. `head`: the packet from its flags to the first
    value, `begin` and `size`: where that is, and the whole packet's size. `values`: reads them.
    """

    plan: ShardSelect
    generation: object
    env: Env
    user: object
    head: bytes
    begin: int
    size: int
    values: Struct


@dataclass(frozen=True, eq=False)
class HostRepeat:
    """What an EXECUTE that went whole to one host has found out, and holds for the next one as long as the
    rewriter's generation, the topology, the session's settings and the user are these, and nothing of the
    statement's has changed. `head`: the packet from its flags to the first value, which is at `begin`;
    `head_sent`: the same as the server gets it. `sql`, `database` and `key`: as which it is prepared.
    `integers`: of an INSERT, where leading parameters are in a packet (`integer_places`).
    """

    plan: OneHost
    generation: object
    env: Env
    user: object
    head: bytes
    begin: int
    settings: Settings
    topology: object
    host: str
    sql: bytes
    database: str | None
    key: tuple[bytes, str | None, Settings, object]
    head_sent: bytes
    reading: tuple[bytes, Env]
    integers: tuple[tuple[int, int, bool], ...]


@dataclass(frozen=True, eq=False)
class BuiltinRepeat:
    """An EXECUTE without parameters of a statement that the proxy answers with OK or an error. It holds for
    the next one as long as the rewriter's generation, the session's settings and the user are these. `head`:
    the packet from its flags on, `begin`: its size.
    """

    plan: Plan
    generation: object
    env: Env
    user: object
    head: bytes
    begin: int


class RunsOnHost(Protocol):
    """Runs such an EXECUTE; False when it is none."""

    def run(self, statement: Statement, repeat: HostRepeat, packet: bytes) -> bool: ...


@dataclass(eq=False)
class Statement:
    """One prepared statement. `id` is the client's number, 0 until it is told.

    `places`: where the `?` stand, of a statement that no server prepares. `parameters`: how many `?` it
    has. `types`: what the client said of them last, two bytes each. `sent`: what came by
    COM_STMT_SEND_LONG_DATA since the last EXECUTE, and `problem` what was wrong with it. `cursor` is the
    connection that holds its open cursor, `number` the server's number of the statement there. `exact`: its
    result columns, as `Env.exact`; "" when the text of all of them says everything. It was `learnt` in this
    generation of the rewriter. `by_types`: it depends on the types of the parameters, and is that of
    `exact_types`. `derived`: the types that MySQL gives its parameters, if they matter.
    `ahead`: a plan that was made off the loop for the next run, behind its generation and the key of the
    settings that it was read with. `heading`: of its last result, where rows are made binary. `repeat`: what
    the next EXECUTE need not find out again, until another way has executed it. `text_warnings`: how many
    warnings PREPARE gave, which a server does not give again with each EXECUTE.
    """

    sql: bytes
    env: Env
    settings: Settings
    plan: Plan
    literals: Values
    generation: object
    id: int = 0
    parameters: int = 0
    places: Parameters | None = None
    types: bytes = b""
    private: bool = False  # its parameters have had several types: it is shared with nobody on a server
    exact: str = ""
    learnt: object = None
    by_types: bool = False
    exact_types: bytes = b""
    derived: tuple[int, ...] = ()
    sent: dict[int, bytearray] = field(default_factory=dict)
    sent_bytes: int = 0
    problem: str = ""
    cursor: BackendConnection | None = None
    number: int = 0
    ahead: tuple[object, bytes, Plan, Values] | None = None
    heading: Heading | None = None
    repeat: Repeat | HostRepeat | BuiltinRepeat | None = None
    text_warnings: int = 0

    @property
    def reading(self) -> Env:
        """What its plan is made for."""
        return replace(self.env, exact=self.exact) if self.exact else self.env

    def take_sent(self, statements: Statements) -> dict[int, bytes]:
        """The long data, which is then gone. `statements`: those it is one of."""
        if not (self.sent or self.problem):
            return {}
        sent = {number: bytes(data) for number, data in self.sent.items()}
        self.forget_sent(statements)
        return sent

    def forget_sent(self, statements: Statements) -> None:
        """Forget the long data, and what was wrong with it."""
        statements.sent -= self.sent_bytes
        self.sent.clear()
        self.sent_bytes = 0
        self.problem = ""


_LATEST: Final = 0xFFFFFFFF


class Statements:
    """The statements of a session. `values` are the parameters of the one that is executed as text."""

    __slots__ = ("_base", "_env", "_last", "by_id", "kept", "latest", "on_host", "sent", "values")

    def __init__(self) -> None:
        self.by_id: dict[int, Statement] = {}
        self.values: Values = ()
        self.latest: Statement | None = None  # what was prepared last, if it could be
        self.on_host: RunsOnHost | None = None  # made for the first that needs it
        self.kept = 0  # bytes of the statements
        self.sent = 0  # bytes of their parameters that were sent ahead
        self._last = 0
        self._base: Env | None = None
        self._env: Env | None = None

    def env(self, base: Env) -> Env:
        """The session's settings for reading the text of a prepared statement."""
        if self._env is None or self._base is not base:
            self._base, self._env = base, replace(base, parameters=True)
        return self._env

    def add(self, statement: Statement) -> None:
        """Give the statement its number."""
        for _ in range(1 << 16):
            self._last = self._last % 0x7FFFFFFF + 1
            if self._last not in self.by_id:
                break
        statement.id = self._last
        self.by_id[statement.id] = statement
        self.kept += weight(statement.sql)
        self.latest = statement

    def remove(self, number: int) -> Statement | None:
        """Forget a statement."""
        statement = self.by_id.pop(number, None)
        if statement is not None:
            self.kept -= weight(statement.sql)
            self.sent -= statement.sent_bytes
        return statement

    def named(self, number: int, flavour: Flavour) -> Statement | None:
        """The statement of a command. MariaDB's clients send EXECUTE right behind PREPARE, before they know
        the number: they call it -1.
        """
        if number == _LATEST and flavour.latest_statement:
            return self.latest
        return self.by_id.get(number)

    def clear(self) -> None:
        """Forget all: their cursors' connections are about to be reset."""
        self.by_id.clear()
        self.kept = self.sent = 0
        self.latest = None
        self.values = ()
