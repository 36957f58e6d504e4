"""What the rewriter decides: one small frozen variant for each way of running a statement.

A plan belongs to a statement's shape and knows no literal. To run it, the executor makes

    values = literals + tuple(sql_literal(session.value(name)) for name in plan.session_slots)

(the literals as `Rewriter.plan` gave them) and asks `plan.bind(values, topology, choose)` for the very
bytes each host gets: a `Bound`. Binding does no I/O and may raise `BindError` only. The variants:

    Passthrough   tables that are not sharded: one host, which runs the client's statement
    AnyHost       no tables at all (SELECT 1, SELECT @@version): any host will do
    Physical      names physical databases (db03429.pins), or the session is in one
    ShardSelect   a SELECT on sharded tables: one shard, some, or all
    ShardWrite    UPDATE or DELETE on a sharded table
    Insert        INSERT or REPLACE into a sharded table, rows split by shard
    Builtin       the proxy itself answers (BEGIN, SET, USE, SHOW SHARDS, EXPLAIN ROUTE …)
    Reject        not run: an error of the registry, with its arguments

Every variant has the attributes of `Plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, NamedTuple

from config.topology import Host, Topology

from .env import Env as Env
from .splice import Template

Values = tuple[bytes, ...]
"""The literals of one statement, raw, followed by the values of the plan's session slots."""

Choose = Callable[[Sequence[int]], int]
"""Picks one of some shards (random among the open ones for a new object; tests pass a fixed choice)."""


class Access(IntEnum):
    """What a statement does to data, for the user's role; each includes the ones before it."""

    NONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


class BindError(Exception):
    """The statement's values rule it out: `name` is an entry of the error registry."""

    def __init__(self, name: str, **arguments: str) -> None:
        super().__init__(name, arguments)
        self.name = name
        self.arguments = arguments


class Notice(NamedTuple):
    """A warning for SHOW WARNINGS: `name` is an entry of the error registry."""

    name: str
    arguments: Mapping[str, str]


class HostStatement(NamedTuple):
    """One statement for one host. `shards` are those it touches, ascending; () when not sharded."""

    host: Host
    shards: tuple[int, ...]
    sql: bytes


class SortKey(NamedTuple):
    """One key of a merge.

    `column` is the index in the wire row of the column that holds the key; `weight` is the index of a
    hidden WEIGHT_STRING column, to be compared byte by byte instead when the key's column arrives as
    text (a NULL weight goes with a NULL key). Negative indexes count from the row's end, as in Python.
    Weights are not padded: for a PAD SPACE collation the shorter one must be taken as going on with the
    weight of a space. NULLs come first ascending and last descending.
    """

    column: int
    descending: bool
    weight: int | None


class Aggregate(NamedTuple):
    """One column of an aggregated row and how partial values combine: "count", "sum", "min" or "max".

    `weight`: as in `SortKey`, for min and max of text.
    """

    column: int
    function: str
    weight: int | None


class Merge(NamedTuple):
    """How rows of several statements become one result.

    With `aggregates`, every row read is a partial one and they are combined into one; else rows are
    merged by `order` (streams that are each in this order; () for any order). Then `offset` rows are
    skipped, at most `limit` are given (None: all), and the `hidden` last columns are cut off.
    """

    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    hidden: int = 0
    aggregates: tuple[Aggregate, ...] = ()


class Inserted(NamedTuple):
    """What one statement of an INSERT adds, for composing last_insert_id.

    `base`: add it to the last_insert_id that the server reports (when not 0); None when the server's
    number is to be reported as it is (no composed ID, or the client gave the `id`). `rows`: how many
    rows of the client's statement are in it. `first`: the index of its first row in the client's order.
    """

    shard: int
    base: int | None
    rows: int
    first: int


class Bound(NamedTuple):
    """A plan with its values: what to send where, and what to make of the answers.

    One statement and no merge: the reply passes through as bytes. No statement at all (a write that can
    match nothing): an OK packet with 0 rows. `reference`, when set, is a statement whose column
    definitions the client must get instead of those of `statements`. `warnings` are for SHOW WARNINGS.
    `inserted` goes with `statements`, one for one, for INSERT and REPLACE; else (). `scatter`: it runs
    on all shards because nothing narrows it, so the user's scatter policy applies. Statements for one
    host stand in the order to run them in; different hosts run in parallel.
    """

    statements: tuple[HostStatement, ...]
    merge: Merge | None = None
    reference: HostStatement | None = None
    warnings: tuple[Notice, ...] = ()
    inserted: tuple[Inserted, ...] = ()
    scatter: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """What all plans have.

    `access`: what the user must be allowed. `session_slots`: names of the values that only the session
    knows, in the order in which they follow the literals: function calls as `LAST_INSERT_ID()`,
    `DATABASE()`, `CONNECTION_ID()`, `USER()`, `CURRENT_USER()`, `FOUND_ROWS()`, `ROW_COUNT()`; user
    variables as `@name` (lower case); system variables as `@@last_insert_id`. Values are SQL literals;
    a session that is tied to a backend connection may give `@name` itself for a user variable.
    `databases`: the logical (or physical, or unknown) databases that the statement names or implies,
    for the user's list of allowed ones. `tie`: afterwards the session must stay on the backend
    connection the statement ran on (temporary table, GET_LOCK, LOCK TABLES, user variable assigned in
    a statement, PREPARE). `implicit_commit`: the server commits an open transaction before it (DDL).
    """

    kind: ClassVar[str]
    access: Access = Access.READ
    session_slots: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    tie: bool = False
    implicit_commit: bool = False

    @property
    def scatter(self) -> bool:
        """Whether every binding runs on all shards; `Bound.scatter` tells of one binding."""
        return False

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        """The statements for the hosts. Raises BindError; also for plans that have none (Builtin, Reject)."""
        del values, topology, choose
        raise BindError("internal", reason=f"a plan of kind {self.kind} has nothing to send")


@dataclass(frozen=True, kw_only=True, eq=False)
class OneHost(Plan):
    """What the plans that send the whole statement to one host have in common.

    `template` renders the statement. `unchanged`: that gives the client's very bytes, so the executor may
    send those and save the rendering. `database` is the current database that the backend connection must
    have; None when it does not matter.
    """

    template: Template
    unchanged: bool = True
    database: str | None = None

    def host(self, topology: Topology) -> Host:
        """The host to send it to. Raises BindError when there is none, or more than one."""
        return _one_host(topology, ())

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        return Bound((HostStatement(self.host(topology), (), self.template.render(values)),))


@dataclass(frozen=True, kw_only=True, eq=False)
class Passthrough(OneHost):
    """Tables that are not sharded: their host runs the statement.

    `keyspaces` are the unsharded keyspaces of its tables, whose masters must be one host at the time of
    binding; () means the default host.
    """

    kind: ClassVar[str] = "passthrough"
    keyspaces: tuple[str, ...] = ()

    def host(self, topology: Topology) -> Host:
        return _one_host(topology, [(name, None) for name in self.keyspaces])


@dataclass(frozen=True, kw_only=True, eq=False)
class Physical(OneHost):
    """Physical databases are named, or the session is in one: the statement goes there as written.

    `locations` are (keyspace, shard) pairs, shard None for an unsharded keyspace; all must be on one host
    at the time of binding.
    """

    kind: ClassVar[str] = "physical"
    locations: tuple[tuple[str, int | None], ...]

    def host(self, topology: Topology) -> Host:
        return _one_host(topology, self.locations)


@dataclass(frozen=True, kw_only=True, eq=False)
class AnyHost(OneHost):
    """No table is concerned: any host may run it, best one that the session already uses.

    `host` gives the default host, or else the first.
    """

    kind: ClassVar[str] = "any_host"

    def host(self, topology: Topology) -> Host:
        host = topology.default or next(iter(topology.hosts), None)
        if host is None:
            raise BindError("internal", reason="the topology has no hosts")
        return host


def _one_host(topology: Topology, locations: Sequence[tuple[str, int | None]]) -> Host:
    """The one host of all `locations`; the default host when there are none."""
    hosts = {topology.keyspaces[name].host_of(shard) for name, shard in locations} or {topology.default}
    if len(hosts) > 1:
        reason = f"its tables are on different hosts ({', '.join(sorted(map(str, hosts)))})"
        advice = "Read the tables one by one."
        raise BindError("not_supported_yet", what="this statement", reason=reason, alternative=advice)
    host = hosts.pop()
    if host is None:
        places = " ".join(f"{name}/{shard}" for name, shard in locations)
        raise BindError("unknown_database", database=places)
    return host


@dataclass(frozen=True, kw_only=True, eq=False)
class Sharded(Plan):
    """What plans on sharded tables have in common: their `keyspace`, and `tables` as `database.table`."""

    keyspace: str
    tables: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardSelect(Sharded):
    """A SELECT on sharded tables: on one shard as the client wrote it, on several by UNION ALL and merge."""

    kind: ClassVar[str] = "select"


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardWrite(Sharded):
    """UPDATE or DELETE on a sharded table: one statement a shard."""

    kind: ClassVar[str] = "write"
    access: Access = Access.WRITE


@dataclass(frozen=True, kw_only=True, eq=False)
class Insert(Sharded):
    """INSERT or REPLACE into a sharded table: one statement a shard, `Bound.inserted` says what each adds."""

    kind: ClassVar[str] = "insert"
    access: Access = Access.WRITE


Argument = str | int | bool | None | Template


@dataclass(frozen=True, kw_only=True, eq=False)
class Assignment:
    """One part of SET. `scope` tells how to read `name`:

    "user" (@name, lower case), "session", "global", "persist", "persist_only" (system variables, lower
    case; a bare name or LOCAL is "session"), "next" (`SET @@x` and `SET TRANSACTION` without SESSION
    where it means the next transaction only: `transaction_isolation`, `transaction_read_only`), "names"
    (value: the character set; `collate` the collation), "charset" (SET CHARACTER SET).
    `value` renders the right side as SQL, unquoted for names; None is DEFAULT. `constant`: the right side
    is one literal or one bare word, so that no server is needed to evaluate it.
    """

    scope: str
    name: str
    value: Template | None
    collate: Template | None = None
    constant: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class Builtin(Plan):
    """The proxy answers by itself. `name` and what is in `arguments`:

    begin                 sql: Template (the statement as for a backend, e.g. START TRANSACTION READ ONLY)
    commit, rollback      chain: bool, release: bool
    savepoint, rollback_to, release_savepoint   name: str
    set                   `assignments`
    use                   database: str
    kill                  id: Template, query: bool
    explain_route         offset: int (the inner statement is the rest of the text from this byte)
    show_shards, show_topology, show_pools, show_proxy_status, show_proxy_queries, show_proxy_sessions
                          like: Template | None
    show_warnings, show_errors   count: bool; offset, limit: Template | None
    show_databases        like, where: Template | None
    show_tables           database: str; full: bool; like, where: Template | None
    show_table_status     database: str; like, where: Template | None
    show_columns          database, table: str; full, extended: bool; like, where: Template | None
    show_index            database, table: str; where: Template | None
    show_create_table     database, table: str
    show_create_database  database: str
    empty                 nothing (only comments, or nothing at all)

    A Template renders, with the values, the argument's SQL text: a quoted string (`like`), a number, an
    expression (`where`). Names are without quotes.
    """

    kind: ClassVar[str] = "builtin"
    access: Access = Access.NONE
    name: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    assignments: tuple[Assignment, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Reject(Plan):
    """Not run. `error` is an entry of the error registry, `arguments` fill its text.

    `probe`: the rewriter could not read the statement, so that the server may well refuse it too: have a
    server PREPARE the client's bytes, and if that fails with 1064 give this error instead.
    """

    kind: ClassVar[str] = "reject"
    access: Access = Access.NONE
    error: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    probe: bool = False
