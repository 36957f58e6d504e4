"""The plan of what one host cannot answer: rows gathered from the shards, and the statement run over them.

Each reference to a table becomes a *piece*: an ordinary SELECT of that table's rows, narrowed as far as the
statement itself narrows them. The rows of a piece go into a temporary table of a scratch host. The *rest* is
the client's own text with these tables' names in the place of the references; a real MySQL runs it, so that
types, collations and functions are its own. `pieces.py` makes these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from config.topology import Host, Topology
from rewriter.bound import BindError
from rewriter.plan import Execution, Plan, Values
from rewriter.route.binding import MAX_ROWS, limit_number
from rewriter.route.binding import host as host_of
from rewriter.route.values import Value
from rewriter.splice import Template
from rewriter.sql.statements.effects import ConnectionState
from rewriter.text.written import encoded

from .join import Join

SCRATCH: Final = b"shardgate_scratch"
"""The database of the temporary tables."""


FIRST: Final = b"sg_0"
"""The column of the least ID of a group's rows."""


class Link(NamedTuple):
    """A piece of which only rows matter whose `column` is among the values of another's.

    `source` is the index of that other piece, which is gathered before; `values` its column, lower case.
    `column` is this piece's routing column as SQL. `bounded`: the other piece is no scatter, so that reading
    by its values is never more than what the statement names.
    """

    source: int
    values: str
    column: bytes
    bounded: bool


class Home(NamedTuple):
    """Where a table's definition is: in a shard's database, or in that of an unsharded keyspace.

    `keyspace` "" is the default host. `shard` None: any one, of a sharded keyspace. `database` is the
    physical name, None for the keyspace's own.
    """

    keyspace: str
    shard: int | None
    database: bytes | None
    table: str

    def place(self, topology: Topology) -> tuple[Host, bytes]:
        """The host, and the table's qualified name there. Raises BindError."""
        name = b"." + quoted(self.table)
        if not self.keyspace:
            if topology.default is None or self.database is None:
                raise BindError("unknown_database", database="of the default host")
            return topology.default, quoted(self.database) + name
        keyspace = topology.keyspaces.get(self.keyspace)
        if keyspace is None:
            raise BindError("unknown_database", database=self.keyspace)
        shard = self.shard
        if shard is None and keyspace.sharded:
            shard = next(iter(keyspace.all_shards), None)
            if shard is None:
                raise BindError("no_open_shard", keyspace=keyspace.name)
        if shard is not None:
            return host_of(keyspace, shard), quoted(keyspace.database_of(shard)) + name
        if keyspace.master is None:
            raise BindError("unknown_database", database=self.keyspace)
        return keyspace.master, quoted(self.database or keyspace.database_of(None)) + name


def quoted(name: str | bytes) -> bytes:
    """A name in backticks."""
    text = encoded(name) if isinstance(name, str) else name
    return b"`" + text.replace(b"`", b"``") + b"`"


class Top(NamedTuple):
    """The first rows of a piece on each shard: `order` renders ORDER BY, `rows` and `offset` are LIMIT's."""

    order: Template
    rows: Value
    offset: Value | None

    def sql(self, values: Values) -> bytes:
        """ORDER BY and LIMIT; b"" for what is no number, which the rest says."""
        try:
            rows = limit_number(self.rows, values)
            rows += 0 if self.offset is None else limit_number(self.offset, values)
        except BindError:
            return b""
        return self.order.render(values) + b" LIMIT %d" % min(rows, MAX_ROWS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """What the shards make of a piece's rows: groups, see partial.py.

    `select` renders the select list: `keys` columns to group by, then partial aggregates. With `first` there
    is FIRST too, the least ID of a group, so that groups are looked at in the order of their rows. All this
    holds only when those named in `decimals` are DECIMAL and those in `integers` are integers: sums of other
    numbers depend on the order of rows. And the table must have no columns that are called as in `absent`.
    """

    select: Template
    keys: int
    decimals: frozenset[str] = frozenset()
    integers: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    first: bool = False

    def over(self, values: Values, source: bytes) -> bytes:
        """The SELECT of the groups of `source`, which is FROM and WHERE."""
        text = b"SELECT " + self.select.render(values)
        text += (b", MIN(id) AS " + FIRST if self.first else b"") + source
        if self.keys:
            text += b" GROUP BY " + b", ".join(b"%d" % number for number in range(1, self.keys + 1))
        return text


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """The rows of one reference to a table.

    `label` names it for people. `source` renders FROM and WHERE of its SELECT; `filtered`: there is a WHERE.
    `wanted` are the columns that the statement may name, lower case, None for all; `shown` says so in SQL, as
    far as the schema knows the columns. `is_object`: it has a virtual `id`. `routing`: the columns, lower
    case, that equal rows of one shard share: a unique key with one of them is unique over all shards; None:
    every key is (the table is not sharded). `bounded`: it is no scatter. `real`: the statement opens the
    table more than once, which a temporary one does not allow. `groups`: each shard gives groups of the rows
    instead; `named` is the reference's name in `source`. `top`: each shard gives its first rows only. `lock`
    is what a locking read of it ends in. `in_order`: the answer may depend on the order in which a server
    looks at the rows, so that the copy must have that of the primary key, too.
    `database` is the table's, as clients know it. `hint` stands behind the SELECT.
    """

    label: str
    home: Home
    source: Template
    filtered: bool = False
    wanted: frozenset[str] | None = None
    shown: bytes = b"*"
    is_object: bool = False
    routing: frozenset[str] | None = None
    link: Link | None = None
    bounded: bool = True
    real: bool = False
    groups: Groups | None = None
    named: bytes = b""
    lock: bytes = b""
    in_order: bool = False
    database: bytes = b""
    top: Top | None = None
    hint: bytes = b""

    @property
    def each_shard(self) -> bool:
        """Whether the SELECT is one for each shard by itself, see `Env.each_shard`."""
        return self.groups is not None or self.top is not None

    def sql(self, values: Values, columns: bytes, ids: bytes | None = None) -> bytes:
        """The SELECT of `columns`; with `ids`, of the rows that the link's values lead to."""
        source = self.source.render(values)
        if ids is not None and self.link is not None:
            source += (b" AND " if self.filtered else b" WHERE ") + self.link.column + b" IN (" + ids + b")"
        if self.groups is None:
            first = b"" if self.top is None else self.top.sql(values)
            return self._select + columns + source + first + (b" " + self.lock if self.lock else b"")
        return self._select + columns + b" FROM (" + self.groups.over(values, source) + b") AS sg"

    @property
    def _select(self) -> bytes:
        return b"SELECT " + self.hint + (b" " if self.hint else b"")

    def typed(self, values: Values, table: bytes) -> bytes:
        """The SELECT that gives the types of the groups' columns, over an empty copy of the table."""
        assert self.groups is not None
        return self.groups.over(values, b" FROM " + table + b" AS " + self.named) + b" LIMIT 0"


@dataclass(frozen=True, kw_only=True, eq=False)
class Gather(Plan):
    """A SELECT over rows that are gathered first. `pieces` stand in the order to gather them in.

    `rest` has a hole for the name of each piece's table, in their order, behind the plan's values.

    With `full` some pieces are groups that the shards make, and `full` is the same statement over all rows,
    with the same pieces: its rest, over no rows, has the column definitions and the errors of the statement;
    and when the groups do not combine exactly after all, it is what is run. `join` is how two reads give the
    same without a scratch host, if what they find is as expected.
    """

    kind: ClassVar[str] = "gather"
    title: ClassVar[str] = "rows gathered from shards, then run by one server"
    binds: ClassVar[bool] = False
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = True
    executed_as: ClassVar[Execution] = Execution.WITH_VALUES
    learns_columns: ClassVar[bool] = True
    lists_columns: ClassVar[bool] = True
    narrowed: ClassVar[bool] = True
    captures: ClassVar[ConnectionState] = ConnectionState.VARIABLES
    pieces: tuple[Piece, ...]
    rest: Template
    full: Gather | None = None
    join: Join | None = None

    @property
    def in_words(self) -> str:
        if self.join is not None:
            return "rows of one table, then those of another that they name, joined by the proxy"
        return self.title if self.full is None else "groups made by the shards, combined by one server"

    @property
    def is_expensive(self) -> bool:
        return True

    @property
    def sharded_tables(self) -> tuple[str, ...]:
        pieces = [piece for piece in self.pieces if piece.routing]
        names = [f"{piece.database.decode('utf-8', 'replace')}.{piece.home.table}" for piece in pieces]
        return tuple(dict.fromkeys(names))

    def rest_sql(self, values: Values, names: tuple[bytes, ...]) -> bytes:
        """The statement over the tables with these (quoted) names in the scratch database."""
        return self.rest.render(values + names)
