"""What each of the servers' accounts may do: which GRANTs it needs on a host. Pure.

    own     the proxy's own account: looks at definitions, counts the IDs of timed tables; no client's text
    read    SELECT in the databases of its users
    write   rows, too, stored routines, temporary tables
    admin   everything but what would pass a fence

Names of shards are granted by pattern, so that thousands of them need one GRANT: `db\\_____`… Which entry of
several counts is the servers' rule: of those that match a database the most specific one, and no other. So
each entry has all rights that the account shall have there, and `mysql`, `sys` and `performance_schema` are
fenced off an entry for `%` by ones of their own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from config import xa
from config.backends import Account
from config.credentials import Role
from config.flavour import Flavour
from config.schema import Kind, Schema, Table, quote
from config.topology import Host, Keyspace, Topology

SCRATCH: Final = "shardgate_scratch"
"""Where the proxy gathers rows, on the default host (`rewriter.gather`)."""
SYSTEM: Final = ("mysql", "performance_schema", "sys")
"""Databases of the servers' own, that no account of a non-admin gets into, unless its users list them."""

FENCE: Final = frozenset({"LOCK TABLES"})
"""The right that keeps an entry for `%` away from a database: alone it allows nothing."""
_LOOK: Final = frozenset({"SELECT", "SHOW VIEW", "TRIGGER"})
_READS_SYSTEM: Final = frozenset({"SELECT"})
"""In the servers' own databases: a user who can write there can take every privilege."""
_COUNT: Final = frozenset({"INSERT", "UPDATE"})
_READ: Final = frozenset({"SELECT", "SHOW VIEW", "LOCK TABLES"})
_WRITE: Final = _READ | {"INSERT", "UPDATE", "DELETE", "EXECUTE", "CREATE TEMPORARY TABLES"}
_DECIDE: Final = frozenset({"SELECT", "INSERT"})
_GATHER: Final = frozenset({"SELECT", "INSERT", "CREATE", "DROP", "CREATE TEMPORARY TABLES"})
PASSES: Final = frozenset({"READ_ONLY ADMIN"})
CHANGES: Final = frozenset(
    {"INSERT", "UPDATE", "DELETE", "DELETE HISTORY", "CREATE", "DROP", "ALTER", "INDEX", "TRIGGER", "EVENT"}
    | {"REFERENCES", "CREATE VIEW", "CREATE ROUTINE", "ALTER ROUTINE", "EXECUTE", "CREATE TEMPORARY TABLES"}
)
"""What an account may not have where it must not write. EXECUTE: a routine has its owner's rights."""
ALL: Final = frozenset({"ALL PRIVILEGES"})

EVERYTHING: Final = "%"
_WILD: Final = re.compile(r"(?<!\\)[%_]")


@dataclass(frozen=True)
class Server:
    """What the grants depend on, of a host. `patterns`: whether names in GRANT may have wildcards (MySQL's
    `partial_revokes` takes them away); without, `databases` are those there are now.
    """

    flavour: Flavour
    patterns: bool = True
    databases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grant:
    """One GRANT or REVOKE. `database` is as GRANT has it, with `\\_` for a literal `_`; "" for all. `covers`:
    the databases that it is meant for, empty for those there may be.
    """

    privileges: frozenset[str]
    database: str = ""
    table: str = ""
    covers: tuple[str, ...] = ()
    option: bool = False
    revoke: bool = False

    @property
    def scope(self) -> str:
        """`*.*`, `` `db\\_x`.* `` or `` `db`.`t` ``."""
        return scope_of(self.database, self.table)

    def sql(self, account: str) -> str:
        """The statement; `account` as in `'shardgate_read'@'%'`."""
        privileges = ", ".join(sorted(self.privileges))
        if self.revoke:
            return f"REVOKE {privileges} ON {self.scope} FROM {account}"
        option = " WITH GRANT OPTION" if self.option else ""
        return f"GRANT {privileges} ON {self.scope} TO {account}{option}"


def scope_of(database: str, table: str = "") -> str:
    """What stands behind ON. `database` as GRANT has it, or "" for all."""
    return f"{quote(database)}.{quote(table) if table else '*'}" if database else "*.*"


def literal(name: str) -> str:
    """A database's name as GRANT has it."""
    return re.sub(r"([\\%_])", r"\\\1", name)


def matches(pattern: str, name: str) -> bool:
    """Whether GRANT's name for a database is meant for `name`."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    text = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(text, name, re.DOTALL) is not None


def is_wild(pattern: str) -> bool:
    """Whether there are wildcards in GRANT's name for a database."""
    return _WILD.search(pattern) is not None


def most_specific(patterns: Iterable[str], name: str) -> str | None:
    """The entry that counts for a database: the servers take the one with most characters before its first
    wildcard.
    """
    found = [pattern for pattern in patterns if matches(pattern, name)]
    return max(found, key=_before_wild, default=None)


def _before_wild(pattern: str) -> int:
    wild = _WILD.search(pattern)
    return 1 << 16 if wild is None else wild.start()


def quoted_account(user: str, client: str = "%") -> str:
    """`'user'@'host'`, for GRANT and CREATE USER."""
    return "@".join("'" + text.replace("\\", "\\\\").replace("'", "''") + "'" for text in (user, client))


# -- what an account needs
# ------------------------------------------------------------------------------------------------


def grants(
    schema: Schema,
    topology: Topology,
    host: Host,
    account: Account | None,
    server: Server,
    *,
    distributed: bool = False,
) -> list[Grant]:
    """What `account`, or the proxy's own when it is None, needs on `host`, in the order to be run.
    `distributed`: for distributed transactions, too.
    """
    more = _distributed(account, server) if distributed else []
    if account is None:
        return _own(schema, topology, host, server) + more
    return _of_users(schema, topology, host, account, server) + more


def _distributed(account: Account | None, server: Server) -> list[Grant]:
    """The proxy's own account reads, makes impossible and deletes decisions, and finishes branches; those
    that write decide.
    """
    name = literal_if(server, xa.DATABASE)
    if account is None:
        found = [Grant(_LOOK | _DECIDE | {"DELETE"}, name, covers=(xa.DATABASE,))]
        return found if server.flavour.recovers_freely else [*found, Grant(frozenset({"XA_RECOVER_ADMIN"}))]
    if account.role is Role.READ or (account.role is Role.ADMIN and "*" in account.databases):
        return []
    return [Grant(_DECIDE, name, covers=(xa.DATABASE,))]


def _of_users(
    schema: Schema, topology: Topology, host: Host, account: Account, server: Server
) -> list[Grant]:
    everywhere = "*" in account.databases
    if account.role is Role.ADMIN and everywhere:
        return _administrator(server)
    rights = {Role.READ: _READ, Role.WRITE: _WRITE, Role.ADMIN: ALL}[account.role]
    found: list[Grant] = []
    if everywhere and host in _defaults(topology):
        found += _any(rights, server)
    else:
        wanted = None if everywhere else frozenset(account.databases)
        found += _named(schema, topology, host, wanted, rights, server)
    if host in _scratch_hosts(topology):
        found.append(Grant(_GATHER, literal_if(server, SCRATCH), covers=(SCRATCH,)))
    return found


def grants_elsewhere(
    schema: Schema, topology: Topology, account: Account | None, server: Server
) -> list[Grant]:
    """What `account` needs in the databases of keyspaces, on whichever host. One that has replicated from
    another has these, and may get the databases by a split.
    """
    hosts = (*topology.hosts, *topology.slaves)
    every = (one for host in hosts for one in grants(schema, topology, host, account, server))
    found = {(one.database, one.table): one for one in every if one.database not in ("", EVERYTHING)}
    return list(found.values())


def literal_if(server: Server, name: str) -> str:
    """A name as GRANT has it on this server: without wildcards nothing is escaped."""
    return literal(name) if server.patterns else name


def _administrator(server: Server) -> list[Grant]:
    """All, but what passes a fence. On MySQL nobody passes one. On MariaDB it is the right to write on a
    server that is `read_only`; and what changes databases comes by an entry for all of them, which goes
    behind the entry that fences off a single one (`fence`): rights on `*.*` would go before it. SELECT, too:
    who has it on `*.*` is told by information_schema that it is all he may do.
    """
    everything = Grant(ALL, option=True)
    if not server.flavour.passes_read_only:
        return [everything]
    taken = PASSES | CHANGES | {"SELECT"}
    return [Grant(ALL, EVERYTHING, option=True), everything, Grant(taken, revoke=True)]


def _own(schema: Schema, topology: Topology, host: Host, server: Server) -> list[Grant]:
    found = _any(_LOOK, server)
    if server.flavour.routines_in_proc:
        found.append(Grant(frozenset({"SELECT"}), "mysql", "proc"))  # the bodies of routines
    else:
        found.append(Grant(frozenset({"SHOW_ROUTINE"})))
    timed = {
        table.keyspace
        for database in schema.databases.values()
        for table in database.tables.values()
        if table.kind is Kind.TIMED
    }
    for name in sorted(timed):
        keyspace = topology.keyspaces.get(name)
        if keyspace is not None:
            found += _keyspace(keyspace, host, _LOOK | _COUNT, server)
    return found


def _any(rights: frozenset[str], server: Server) -> list[Grant]:
    """In every database that is there or will be, but for the servers' own."""
    if not server.patterns:
        names = [
            name
            for name in server.databases
            if name not in (*SYSTEM, "information_schema", SCRATCH, xa.DATABASE)
        ]
        return [Grant(rights, name, covers=(name,)) for name in names]
    return [Grant(rights, EVERYTHING), *(Grant(FENCE, literal(name), covers=(name,)) for name in SYSTEM)]


def _named(
    schema: Schema,
    topology: Topology,
    host: Host,
    wanted: frozenset[str] | None,
    rights: frozenset[str],
    server: Server,
) -> list[Grant]:
    """In the logical databases `wanted`, or in all that the schema names."""
    names = list(schema.databases) if wanted is None else sorted(wanted)
    keyspaces: dict[str, list[Table]] = {}
    found: list[Grant] = []
    for name in names:
        database = schema.databases.get(name)
        if database is None or database.keyspace is not None:
            if host in _homes(topology, database.keyspace if database else None):
                given = _READS_SYSTEM if name.lower() in SYSTEM else rights
                found.append(Grant(given, literal_if(server, name), covers=(name,)))
            continue
        for table in database.tables.values():
            keyspaces.setdefault(table.keyspace, []).append(table)
        if database.others is not None:  # which no other database has tables in
            keyspaces.setdefault(database.others, [])
    for name, tables in keyspaces.items():
        keyspace = topology.keyspaces.get(name)
        if keyspace is None:
            continue
        everywhere = _has_reference(schema, name)
        home = keyspace.sharded or host in (keyspace.master, keyspace.slave)
        mine = [table.name for table in tables if home or table.kind is Kind.REFERENCE]
        if _others(schema, name, names) and rights != ALL:
            found += _tables(keyspace, host, mine, rights, server, topology, everywhere=everywhere)
        else:
            found += _keyspace(keyspace, host, rights, server, topology if everywhere else None)
    return found


def _others(schema: Schema, keyspace: str, names: Collection[str]) -> bool:
    """Whether tables of other logical databases lie in the same physical ones."""
    return any(
        table.keyspace == keyspace
        for database in schema.databases.values()
        if database.name not in names
        for table in database.tables.values()
    )


def _has_reference(schema: Schema, keyspace: str) -> bool:
    return any(
        table.kind is Kind.REFERENCE and table.keyspace == keyspace
        for database in schema.databases.values()
        for table in database.tables.values()
    )


def _keyspace(
    keyspace: Keyspace,
    host: Host,
    rights: frozenset[str],
    server: Server,
    everywhere: Topology | None = None,
) -> list[Grant]:
    """In the databases of a keyspace that `host` has, as master or slave. `everywhere`: an unsharded one has
    reference tables, so each host has it.
    """
    names = _databases(keyspace, host, everywhere)
    if not keyspace.sharded or not server.patterns:
        return [Grant(rights, literal_if(server, name), covers=(name,)) for name in names]
    patterns: dict[str, list[str]] = {}
    for name in names:
        patterns.setdefault(_pattern(keyspace, name), []).append(name)
    return [Grant(rights, pattern, covers=tuple(of)) for pattern, of in patterns.items()]


def _databases(keyspace: Keyspace, host: Host, everywhere: Topology | None) -> list[str]:
    if not keyspace.sharded:
        hosts = {keyspace.master, keyspace.slave}
        if everywhere is not None:
            hosts |= {*everywhere.hosts, *everywhere.slaves}
        return [keyspace.database] if host in hosts else []
    return [
        keyspace.database_of(shard).decode()
        for one in keyspace.ranges
        if host in (one.master, one.slave)
        for shard in range(one.first, one.last + 1)
    ]


def _pattern(keyspace: Keyspace, name: str) -> str:
    """A shard's database with `_` for each digit of its number."""
    before, after = re.split(r"\{[^}]*\}", keyspace.pattern, maxsplit=1)
    digits = len(name) - len(before) - len(after)
    return literal(before) + "_" * digits + literal(after)


def _tables(
    keyspace: Keyspace,
    host: Host,
    tables: Iterable[str],
    rights: frozenset[str],
    server: Server,
    topology: Topology,
    *,
    everywhere: bool,
) -> list[Grant]:
    """In single tables, where others' lie beside them. GRANT knows no pattern for these."""
    of_table = rights & {"SELECT", "INSERT", "UPDATE", "DELETE", "SHOW VIEW"}
    of_database = rights & {"LOCK TABLES", "CREATE TEMPORARY TABLES"}
    found = _keyspace(keyspace, host, of_database, server, topology if everywhere else None)
    for name in _databases(keyspace, host, topology if everywhere else None):
        found += [Grant(of_table, name, table, covers=(name,)) for table in sorted(set(tables))]
    return found


def _homes(topology: Topology, keyspace: str | None) -> tuple[Host | None, ...]:
    """Master and slave of a database that passes through."""
    if keyspace is None:
        return topology.default, topology.default_slave
    found = topology.keyspaces.get(keyspace)
    return (found.master, found.slave) if found is not None else ()


def _defaults(topology: Topology) -> tuple[Host | None, ...]:
    return topology.default, topology.default_slave


def _scratch_hosts(topology: Topology) -> tuple[Host | None, ...]:
    """Without a default host rows are gathered on the first of the topology, which each may come to be."""
    return _defaults(topology) if topology.default else (*topology.hosts, *topology.slaves)
