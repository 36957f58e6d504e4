"""ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR TABLE: the plan, and the statement for each table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from config.topology import Topology
from rewriter.bound import Bound, HostStatement
from rewriter.plan import Choose, Execution, Values
from rewriter.route.binding import keyspace_of
from rewriter.splice import Template

from . import Ddl, find_host

NO_TABLE: Final = "shardgate_no_such_table"
"""The name that is sent for a table that the schema does not name: no server has it."""

Where = Literal["shards", "hosts", "host"]


@dataclass(frozen=True, slots=True)
class MaintainedTable:
    """One of the statement's tables: the client's `database` and `name`. `written`: the name that is
    sent to the one host, where the proxy must find it in the answer.

    `unknown`: the schema does not name it, and NO_TABLE is sent.

    `template` renders the statement for it alone, with a hole for the shard's database when `where` is
    "shards". With "host" it runs on the host of `keyspace` and `shard` ("": the default host).
    """

    database: str
    name: str
    template: Template
    where: Where
    keyspace: str = ""
    shard: int | None = None
    written: str = ""
    unknown: bool = False

    @property
    def sharded_keyspace(self) -> str:
        """The keyspace on whose shards it is; "" for other tables."""
        return self.keyspace if self.where == "shards" else ""

    @property
    def place(self) -> str:
        """`database.name`, as servers write it in their answers."""
        return f"{self.database}.{self.name}"


@dataclass(frozen=True, kw_only=True, eq=False)
class TableMaintenance(Ddl):
    """A statement that looks after tables, of which at least one is in a sharded database. Servers answer
    with rows for each table, and so does this: table after table. `keyspace`: that of all sharded tables,
    "" when they are in several.
    """

    kind: ClassVar[str] = "table_maintenance"
    title: ClassVar[str] = "maintenance of tables, one after another"
    binds: ClassVar[bool] = True
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = False
    executed_as: ClassVar[Execution] = Execution.AS_TEXT
    learns_columns: ClassVar[bool] = False
    changes_definitions: ClassVar[bool] = False
    maintained: tuple[MaintainedTable, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(one.place for one in self.maintained)

    @property
    def has_unknown(self) -> bool:
        """Whether the schema does not name one of the tables: its name may be none."""
        return any(one.unknown for one in self.maintained)

    @property
    def sharded_tables(self) -> tuple[str, ...]:
        return tuple(one.place for one in self.maintained if one.where == "shards")

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        del choose
        return Bound(tuple(one for part in self.for_each(values, topology) for one in part))

    def for_each(self, values: Values, topology: Topology) -> list[tuple[HostStatement, ...]]:
        """The statements for each table. Raises BindError."""
        return [_statements(one, values, topology) for one in self.maintained]


def _statements(table: MaintainedTable, values: Values, topology: Topology) -> tuple[HostStatement, ...]:
    if table.where == "shards":
        places = keyspace_of(topology, table.keyspace).places
        return tuple(
            HostStatement(host, (shard,), table.template.render((*values, database)))
            for shard, (host, database) in sorted(places.items())
        )
    sql = table.template.render(values)
    if table.where == "hosts":
        return tuple(HostStatement(host, (), sql) for host in topology.hosts)
    return (HostStatement(find_host(topology, table.keyspace, table.shard), (), sql),)
