"""What the rewriter decides: one small frozen variant for each way of running a statement.

A plan belongs to a statement's fingerprint and knows no literal. To run it, `values_of` of
proxy/session/values.py makes

    values = literals + tuple(slot(session, name) for name in plan.session_slots)

(the literals as `Rewriter.plan` gave them), and whoever runs it asks `plan.bind(values, topology, choose)`
for the bytes each host gets: a `Bound`. Binding does no I/O and may raise `BindError` only. The variants:

    Passthrough   tables that are not sharded: one host, which runs the client's statement
    AnyHost       no tables at all (SELECT 1, SELECT @@version): any host will do
    Physical      names physical databases (db03429.pins), or the session is in one
    ShardSelect   a SELECT on sharded tables: one shard, some, or all
    Gather        a SELECT over rows that are gathered first, run by a server
    ShardWrite    UPDATE or DELETE on a sharded table
    Everywhere    a write to reference tables, on every host
    Ddl           ALTER TABLE and the like, on every shard of a table
    Insert        INSERT or REPLACE into a sharded table, rows split by shard
    ReadThenWrite INSERT … SELECT, and changes of rows that a SELECT must find, over shards
    Reorder       CALL of the procedure of an orderable mapping table
    SystemViews   a query on information_schema that shows databases
    Builtin       the proxy itself answers (BEGIN, SET, USE, SHOW SHARDS, EXPLAIN ROUTE …): builtins.py
    LoadLocal     LOAD DATA LOCAL INFILE: a passthrough whose host asks the client for a file
    Opened        a text that is executed as another one, which all read alike
    SetStatement  SET STATEMENT … FOR a statement that is planned by itself
    MultiStatement  a text of more than one statement: cut it (split.py), and plan each when its turn comes
    Reject        not run: an error of the registry, with its arguments

Every variant has the attributes of `Plan`, and answers its questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeGuard

from config.topology import Host, Topology
from rewriter.bound import (
    Aggregate,
    BindError,
    Bound,
    HostStatement,
    Inserted,
    Merge,
    Notice,
    NotSupported,
    SortKey,
)
from rewriter.env import Env
from rewriter.plan import Access, AfterLoss, Choose, Execution, Plan, Reject, Unmasked, Values
from rewriter.route.binding import keyspace_of
from rewriter.route.column_metadata import ColumnMetadata
from rewriter.rows import Folded, RowsTemplate
from rewriter.splice import Template
from rewriter.sql.statements.effects import ConnectionState, Effects

from .builtins import Builtin
from .gather import Gather, Piece
from .inserting import Insert
from .limits import Limits
from .read_write import ReadThenWrite
from .reorder import Reorder
from .sharded import Sharded, ShardSelect, ShardWrite

__all__ = [
    "Access",
    "Aggregate",
    "AnyHost",
    "BindError",
    "Bound",
    "Builtin",
    "Choose",
    "Ddl",
    "Env",
    "Everywhere",
    "Gather",
    "HostStatement",
    "Insert",
    "Inserted",
    "LoadLocal",
    "Merge",
    "NotSupported",
    "Notice",
    "OneHost",
    "Opened",
    "Passthrough",
    "Physical",
    "Piece",
    "Plan",
    "ReadThenWrite",
    "Reject",
    "Reorder",
    "SetStatement",
    "Several",
    "ShardSelect",
    "ShardWrite",
    "Sharded",
    "SortKey",
    "SystemViews",
    "Template",
    "Values",
    "find_host",
    "is_one_host",
    "lock_host",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class OneHost(Plan):
    """What the plans that send the whole statement to one host have in common.

    `template` renders the statement. `unchanged`: that gives the client's very bytes, so the executor may
    send those and save the rendering. `database` is the current database that the backend connection must
    have; None when it does not matter. `unplaced`: the functions that are called without a database and
    that no database of the session's can have: `database` is one without functions then.
    `column_metadata`: of a SELECT's columns, where the server knows their
    database by another name. `at_any_host`: no table is concerned, so that any host may run it.
    """

    binds: ClassVar[bool] = True
    on_one_host: ClassVar[bool] = True
    without_functions: ClassVar[bool] = False
    executed_as: ClassVar[Execution] = Execution.RELAYED
    learns_columns: ClassVar[bool] = False
    unmasked: ClassVar[Unmasked] = Unmasked.WHOLE
    at_any_host: ClassVar[bool]
    captures: ClassVar[ConnectionState] = ConnectionState.ALL
    runs_code: ClassVar[bool] = True
    template: Template
    unchanged: bool = True
    database: str | None = None
    unplaced: tuple[str, ...] = ()
    column_metadata: ColumnMetadata | None = None

    @property
    def named_places(self) -> tuple[tuple[str, int | None], ...]:
        """Keyspace and shard of each physical database that the client names; shard None for an unsharded
        keyspace.
        """
        return ()

    @property
    def unplaced_calls(self) -> tuple[str, ...]:
        return self.unplaced

    @property
    def goes_unchanged(self) -> bool:
        """Whether the host gets the client's very bytes, which no value of the session completes."""
        return self.unchanged and not self.session_slots

    def with_column_metadata(self, column_metadata: ColumnMetadata) -> OneHost:
        """The plan with this metadata of its columns, if tables of logical databases show there."""
        del column_metadata
        return self

    def takes_rows(self, folded: Folded) -> bool:
        del folded
        effects = self.effects
        counts = effects is not None and (effects.pins or effects.unpins)  # they name literals by numbers
        return self.goes_unchanged and not counts

    def with_rows(self, folded: Folded) -> OneHost:
        effects = None if self.effects is None else self.effects.of_rows()
        return replace(self, template=RowsTemplate(folded), effects=effects)

    def host(self, topology: Topology) -> Host:
        """The host to send it to. Raises BindError when there is none, or more than one."""
        return lock_host(topology)

    def at_lock_host(self, topology: Topology) -> bool:
        try:
            return self.host(topology) == lock_host(topology)
        except BindError:
            return True  # it is refused when it is bound

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        del choose
        return Bound((HostStatement(self.host(topology), (), self.template.render(values)),))


@dataclass(frozen=True, kw_only=True, eq=False)
class Passthrough(OneHost):
    """Tables that are not sharded: their host runs the statement.

    `keyspaces` are the unsharded keyspaces of its tables, whose masters must be one host at the time of
    binding; "" stands for the default host.
    """

    kind: ClassVar[str] = "passthrough"
    title: ClassVar[str] = "passed through to one host"
    at_any_host: ClassVar[bool] = False
    keyspaces: tuple[str, ...]

    def with_column_metadata(self, column_metadata: ColumnMetadata) -> OneHost:
        return replace(self, column_metadata=column_metadata)

    def host(self, topology: Topology) -> Host:
        if len(self.keyspaces) == 1:
            return find_host(topology, self.keyspaces[0], None)
        return _one_host(topology, [(name, None) for name in self.keyspaces])


@dataclass(frozen=True, kw_only=True, eq=False)
class Physical(OneHost):
    """Physical databases are named, or the session is in one: the statement goes there as written.

    `locations` are (keyspace, shard) pairs, shard None for an unsharded keyspace; all must be on one host
    at the time of binding.
    """

    kind: ClassVar[str] = "physical"
    title: ClassVar[str] = "physical database, as written"
    at_any_host: ClassVar[bool] = False
    names_physical: ClassVar[bool] = True
    locations: tuple[tuple[str, int | None], ...]

    @property
    def named_places(self) -> tuple[tuple[str, int | None], ...]:
        return self.locations

    def host(self, topology: Topology) -> Host:
        if len(self.locations) == 1:
            return find_host(topology, *self.locations[0])
        return _one_host(topology, self.locations)


@dataclass(frozen=True, kw_only=True, eq=False)
class AnyHost(OneHost):
    """No table is concerned: any host may run it, best one that the session already uses.

    `host` gives the default host, or else the first.
    """

    kind: ClassVar[str] = "any_host"
    title: ClassVar[str] = "no sharded table: any host"
    at_any_host: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemViews(Passthrough):
    """A query on views of information_schema: `views` are their names in upper case. The derived tables for
    them (views.py) are the template's values behind the session's. `limits`: what is known of the rows of
    each. `only_views`: it reads nothing else. `writes`: it is an INSERT of their rows. `reads`: names in
    upper case, among them those of the columns that it reads; None: it may read each column.
    """

    kind: ClassVar[str] = "system_views"
    title: ClassVar[str] = "query on information_schema, with the logical databases"
    executed_as: ClassVar[Execution] = Execution.WITH_VALUES
    filters_views: ClassVar[bool] = True
    views: tuple[str, ...]
    limits: tuple[Limits, ...] = ()
    only_views: bool = False
    writes: bool = False
    reads: frozenset[str] | None = None

    def host(self, topology: Topology) -> Host:
        if self.keyspaces == ("",) and topology.default is None:
            return topology.hosts[0]
        return super().host(topology)

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        """The query on the server's own views (what EXPLAIN ROUTE shows)."""
        del choose
        names = tuple(f"SELECT * FROM information_schema.{view}".encode() for view in self.views)
        return Bound((HostStatement(self.host(topology), (), self.template.render(values + names)),))


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadLocal(Plan):
    """LOAD DATA LOCAL INFILE and its like: `statement` says where it runs. There the server will ask the
    client for the file.
    """

    kind: ClassVar[str] = "load_local"
    title: ClassVar[str] = "a file of the client's, to one host"
    binds: ClassVar[bool] = True
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = False
    executed_as: ClassVar[Execution] = Execution.AS_TEXT
    learns_columns: ClassVar[bool] = False
    unmasked: ClassVar[Unmasked] = Unmasked.WHOLE
    captures: ClassVar[ConnectionState] = ConnectionState.ALL
    runs_code: ClassVar[bool] = True
    statement: OneHost

    @property
    def runs_at(self) -> OneHost:
        return self.statement

    def at_lock_host(self, topology: Topology) -> bool:
        return self.statement.at_lock_host(topology)

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        return self.statement.bind(values, topology, choose)


@dataclass(frozen=True, kw_only=True, eq=False)
class Opened(Plan):
    """A text that servers might read in another way than the proxy: `text` stands for it, with its executable
    comments opened and odd white space made plain. It is executed in its place.
    """

    kind: ClassVar[str] = "opened"
    title: ClassVar[str] = "another text in its place"
    binds: ClassVar[bool] = False
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = False
    executed_as: ClassVar[Execution] = Execution.AS_TEXT
    learns_columns: ClassVar[bool] = False
    unmasked: ClassVar[Unmasked] = Unmasked.WHOLE
    after_loss: ClassVar[AfterLoss] = AfterLoss.RUNS
    captures: ClassVar[ConnectionState] = ConnectionState.ALL  # its text is planned by itself
    access: Access = Access.NONE
    text: bytes

    @property
    def sanitized(self) -> bytes | None:
        return self.text


@dataclass(frozen=True, kw_only=True, eq=False)
class SetStatement(Plan):
    """MariaDB's SET STATEMENT `assignments` FOR `inner`: the inner statement is planned by itself, and the
    `variables` are settings of the session while it runs.
    """

    kind: ClassVar[str] = "set_statement"
    title: ClassVar[str] = "another statement, under settings of its own"
    binds: ClassVar[bool] = False
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = False
    executed_as: ClassVar[Execution] = Execution.WITH_VALUES
    learns_columns: ClassVar[bool] = False
    after_loss: ClassVar[AfterLoss] = AfterLoss.RUNS
    filters_views: ClassVar[bool] = True
    captures: ClassVar[ConnectionState] = ConnectionState.ALL  # the assignments leave nothing
    access: Access = Access.NONE
    variables: tuple[str, ...]
    assignments: Template
    inner: Template

    def inner_text(self, literals: Values) -> bytes | None:
        return self.inner.render(literals)


@dataclass(frozen=True, kw_only=True, eq=False)
class MultiStatement(Plan):
    """A text of more than one statement, for clients that may send such (MULTI_STATEMENTS); to others it is
    a syntax error of the server's, unless `comments`: only comments stand behind the first.
    """

    kind: ClassVar[str] = "several"
    title: ClassVar[str] = "several statements, each planned when its turn comes"
    binds: ClassVar[bool] = False
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = False
    executed_as: ClassVar[Execution] = Execution.AS_TEXT
    learns_columns: ClassVar[bool] = False
    unmasked: ClassVar[Unmasked] = Unmasked.WHOLE
    after_loss: ClassVar[AfterLoss] = AfterLoss.RUNS
    in_parts: ClassVar[bool] = True
    captures: ClassVar[ConnectionState] = ConnectionState.ALL  # each statement is planned by itself
    access: Access = Access.NONE
    comments: bool = False

    @property
    def only_first(self) -> bool:
        return self.comments

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        del values, topology, choose
        raise BindError("syntax_error", reason="You have an error in your SQL syntax: several statements")


@dataclass(frozen=True, kw_only=True, eq=False)
class Everywhere(Plan):
    """A write that every host runs alike."""

    kind: ClassVar[str] = "everywhere"
    title: ClassVar[str] = "write to every host"
    binds: ClassVar[bool] = True
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = True
    executed_as: ClassVar[Execution] = Execution.WITH_VALUES
    learns_columns: ClassVar[bool] = False
    access: Access = Access.WRITE
    verb: str
    template: Template

    def leaving(self, effects: Effects) -> Everywhere:
        kept = effects.of_one_shard()
        return self if kept is None else replace(self, effects=kept)

    def to_prepare(self, values: Values, topology: Topology) -> HostStatement | None:
        return self.bind(values, topology, _first).statements[0]

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        """One statement for each master, in the order of their names."""
        del choose
        sql = self.template.render(values)
        return Bound(tuple(HostStatement(host, (), sql) for host in sorted(topology.hosts)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Ddl(Plan):
    """A definition of one of the schema's tables, for all its shards; keyspace "" is for all hosts.

    Behind the literals and session values the template has a hole for the shard's database.
    """

    kind: ClassVar[str] = "ddl"
    title: ClassVar[str] = "definition for every shard"
    binds: ClassVar[bool] = True
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = False
    executed_as: ClassVar[Execution] = Execution.AS_TEXT
    learns_columns: ClassVar[bool] = False
    changes_definitions: ClassVar[bool] = True
    """Whether the proxy looks at the tables again behind it."""
    access: Access = Access.ADMIN
    implicit_commit: bool = True
    verb: str
    keyspace: str
    table: str
    template: Template

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables, as `database.table`."""
        return (self.table,)

    @property
    def sharded_keyspace(self) -> str:
        return self.keyspace

    @property
    def sharded_tables(self) -> tuple[str, ...]:
        return (self.table,) if self.keyspace else ()

    def to_prepare(self, values: Values, topology: Topology) -> HostStatement | None:
        return self.bind(values, topology, _first).statements[0]

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        del choose
        if not self.keyspace:
            sql = self.template.render(values)
            return Bound(tuple(HostStatement(host, (), sql) for host in topology.hosts))
        places = keyspace_of(topology, self.keyspace).places
        return Bound(
            tuple(
                HostStatement(host, (shard,), self.template.render((*values, database)))
                for shard, (host, database) in sorted(places.items())
            )
        )


def is_one_host(plan: Plan) -> TypeGuard[OneHost]:
    """Whether one host runs the whole statement."""
    return plan.on_one_host


def _first(shards: Sequence[int]) -> int:
    return shards[0]


def lock_host(topology: Topology) -> Host:
    """The host of statements without tables, and so of all named locks: the default host, or else the first.
    Raises BindError when there is none.
    """
    host = topology.default or next(iter(topology.hosts), None)
    if host is None:
        raise BindError("internal", reason="the topology has no hosts")
    return host


def _one_host(topology: Topology, locations: Sequence[tuple[str, int | None]]) -> Host:
    """The one host of all `locations`; keyspace "" is the default host."""
    hosts = {find_host(topology, keyspace, shard) for keyspace, shard in locations}
    if len(hosts) > 1:
        reason = f"its tables are on different hosts ({', '.join(sorted(hosts))})"
        advice = "Read the tables one by one."
        raise NotSupported(what="this statement", reason=reason, alternative=advice)
    return hosts.pop()


def find_host(topology: Topology, keyspace: str, shard: int | None) -> Host:
    """The master of a shard or of an unsharded keyspace; of "" the default host. Raises BindError."""
    if not keyspace:
        host = topology.default
    else:
        known = topology.keyspaces.get(keyspace)
        host = None if known is None else known.host_of(shard)
    if host is None:
        name = keyspace if shard is None else f"{keyspace}/{shard}"
        raise BindError("unknown_database", database=name or "of the default host")
    return host
