"""Fences in the servers themselves: who is cut off from the topology cannot write past them either.

    close_host, open_host               a whole host: read_only, and super_read_only where there is that
    close_master                        one that has served, and what is prepared there
    close_databases, open_databases     some databases of a host that goes on serving the others, by a `Fence`
    end_connections                     of some users
    keep                                what a host is now, closed or open, over a restart, too

A host's fence stops all writes but those of its own replication. On MariaDB who has READ_ONLY ADMIN, which is
part of ALL PRIVILEGES, passes it: `passing` says which of the proxies' accounts do, and `close_host` takes it
away from them.

A database's is READ ONLY where there is that (MySQL): nobody passes it. Elsewhere (MariaDB) it is an entry of
the accounts' rights that has SELECT and nothing to change rows with: the entry for a database goes before
those with wildcards. It counts at once. Only rights on `*.*` go before it, which accounts that `create` has
made have none of; another gets the same rights on `%.*` instead, and its connections, which keep what they
had, are ended.

What was begun before the fence could still be committed: it is waited for, then its connections are ended.
When `close_…` returns nothing more is written. All are safe to repeat, and in no binary log. HostError;
Failed when what is under way does not end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from config.backends import Backends
from config.schema import quote
from config.topology import Host
from fleet import distributed
from fleet.core.errors import Failed, HostError
from fleet.core.hosts import Hosts
from fleet.grants import CHANGES, FENCE, PASSES, literal, quoted_account, scope_of
from fleet.replication import flavour, tables
from fleet.rights import Held, read_grants

PATIENCE: Final = 3.0
"""Seconds for what was begun before a fence to end by itself."""
_ENDING: Final = 10.0
"""Seconds for connections that were ended to be gone."""
_LOOK: Final = 0.05
_FRESH: Final = 0.15
"""Seconds without a question after which servers make innodb_trx anew."""
_FINISHING: Final = 1.0
"""Seconds for a COMMIT that is under way."""
_TRIES: Final = 3
_LOCK_WAIT: Final = 1205
_GONE: Final = 1094
_TOGETHER: Final = 200
"""Statements in one network write."""
_READS: Final = frozenset({"SELECT", "SHOW VIEW"})
_NONE: Final[frozenset[str]] = frozenset()
_SERVERS_OWN: Final = ("system user", "event_scheduler")


def proxy_users(backends: Backends, host: Host) -> list[str]:
    """Whom the proxies log in as."""
    own = backends.user_for(host)[0]
    return list(dict.fromkeys([own, *(one.user for one in backends.accounts)]))


# --- a whole host ------------------------------------------------------------------------------------


async def passing(hosts: Hosts, host: Host, users: Collection[str]) -> list[str]:
    """Those accounts of `users` that may write on a read_only host, as GRANT names them."""
    if not (await flavour(hosts, host)).passes_read_only:
        return []
    held = await _held(hosts, host, users)
    return [name for (user, name), rights in held.items() if rights.everywhere & PASSES]


async def close_host(hosts: Hosts, host: Host, users: Collection[str], patience: float = PATIENCE) -> None:
    """Nobody writes there any more. Transactions that have written and do not end in time are ended."""
    of = await flavour(hosts, host)
    passed = await passing(hosts, host, users)
    if passed:
        await _unlogged(hosts, host, [f"REVOKE READ_ONLY ADMIN ON *.* FROM {name}" for name in passed])
    word = "read_only" if of.passes_read_only else "super_read_only"
    async with hosts.connection(host) as conn:
        await hosts.rows(conn, host, "SET SESSION lock_wait_timeout = 1")
        sql = f"SET GLOBAL {word} = ON"
        await _insist(hosts, host, conn, [sql], patience)
        await hosts.rows(conn, host, "SET SESSION lock_wait_timeout = DEFAULT")
    if passed:
        await end_connections(hosts, host, users)


async def close_master(hosts: Hosts, host: Host, users: Collection[str], patience: float = PATIENCE) -> None:
    """`close_host` of one that has served, with all that distributed transactions have there: the fence holds
    back COMMIT, but not XA PREPARE, so who has written already is rolled back.

    What is prepared stays so without its connection, and the replica has it, too. But where it could be
    committed behind the fence it is waited for: for the proxies that are at it, and for what they have left,
    which they finish only where no fence is, the host is opened once more.
    """
    for left in reversed(range(_TRIES)):
        await close_host(hosts, host, users, patience)
        if not await distributed.used(hosts, host):
            return
        holds = (await flavour(hosts, host)).fence_holds_prepared
        await asyncio.sleep(_FRESH)
        kept = set() if holds else {one.thread for one in await distributed.prepared(hosts, host)}
        await _end(hosts, host, await _writers(hosts, host) - kept)
        if holds:
            return
        try:
            await distributed.finished(hosts, host, _FINISHING if left else 0.0)
            if not kept:
                return
            await asyncio.sleep(_FRESH)
            await _end(hosts, host, await _writers(hosts, host))  # whose number was that of a branch, too
            await distributed.finished(hosts, host, 0.0)
            return
        except Failed:
            if not left:
                raise
        await open_host(hosts, host)
        await distributed.finished(hosts, host)


async def _writers(hosts: Hosts, host: Host) -> set[int]:
    """The connections whose transactions have changed rows."""
    sql = "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_rows_modified > 0"
    return {int(id) for (id,) in await hosts.query(host, sql) if id}


async def open_host(hosts: Hosts, host: Host) -> None:
    """It takes writes."""
    of = await flavour(hosts, host)
    words = ["read_only"] if of.passes_read_only else ["super_read_only", "read_only"]
    await hosts.run(host, [f"SET GLOBAL {word} = OFF" for word in words])


async def keep(hosts: Hosts, host: Host) -> None:
    """What it is now, closed or open, it is after a restart, too: where a server can remember that, and lets
    the tools tell it.
    """
    if not (await flavour(hosts, host)).persists_variables:
        return
    words = ["super_read_only"] if await is_closed(hosts, host) else ["super_read_only", "read_only"]
    value = "ON" if len(words) == 1 else "OFF"
    try:
        await hosts.run(host, [f"SET PERSIST {word} = {value}" for word in words])
    except HostError as error:
        if error.lost:
            raise


async def is_closed(hosts: Hosts, host: Host) -> bool:
    """Whether the host is fenced off: by `super_read_only`, where there is that."""
    of = await flavour(hosts, host)
    word = "read_only" if of.passes_read_only else "super_read_only"
    return bool(int((await hosts.query(host, f"SELECT @@GLOBAL.{word}"))[0][0]))


# --- databases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fence:
    """How some databases of a host are closed and opened again. `held`: the rights of accounts there before,
    by user name and by account as GRANT names it; None where databases can be READ ONLY. The journal keeps
    it, since once closed the rights that were there before are not to be seen any more.
    """

    databases: tuple[str, ...]
    held: Mapping[tuple[str, str], Held] | None = None

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Fence:
        """What `document` gave."""
        names = tuple(map(str, document["databases"]))
        if document["held"] is None:
            return cls(names)
        return cls(names, {(user, account): _read_held(one) for user, account, one in document["held"]})

    def document(self) -> dict[str, Any]:
        """For the journal."""
        held = self.held
        listed = None if held is None else [[*name, _written_held(one)] for name, one in held.items()]
        return {"databases": list(self.databases), "held": listed}

    @property
    def ends(self) -> list[str]:
        """Whose connections keep rights that are taken away."""
        held = self.held or {}
        return list(dict.fromkeys(user for (user, _), one in held.items() if one.everywhere & CHANGES))

    def close(self) -> list[str]:
        """The statements that close the databases."""
        return self._statements({})[0]

    def open(self, now: Mapping[tuple[str, str], Held] | None = None) -> list[str]:
        """Those that open them, to be as before. `now`: the rights of the accounts as they are; without it
        what is open already may be closed for a moment.
        """
        return self._statements(now or {})[1]

    def _statements(self, now: Mapping[tuple[str, str], Held]) -> tuple[list[str], list[str]]:
        shut: list[str] = []
        opened: list[str] = []
        if self.held is None:
            shut, opened = (
                [f"ALTER DATABASE {quote(name)} READ ONLY = {value}" for name in self.databases]
                for value in (1, 0)
            )
        for name, rights in (self.held or {}).items():
            account = name[1]
            entries = [_entry(account, database, rights, now.get(name)) for database in self.databases]
            for closing, opening in (*entries, _everywhere(account, rights)):
                shut += closing
                opened += opening
        return shut, opened


async def fence_of(hosts: Hosts, host: Host, databases: Sequence[str], users: Collection[str]) -> Fence:
    """For databases that nobody has closed yet."""
    names = tuple(databases)
    if (await flavour(hosts, host)).read_only_databases:
        return Fence(names)
    held = await _held(hosts, host, users)
    return Fence(names, {name: _concerning(names, rights) for name, rights in held.items()})


def _concerning(databases: Collection[str], rights: Held) -> Held:
    """What of an account's rights counts for some databases."""
    entries = {rights.entry(name) for name in databases} | {"%"} | {literal(name) for name in databases}
    return Held(
        rights.everywhere,
        {name: own for name, own in rights.databases.items() if name in entries},
        {name: own for name, own in rights.tables.items() if name[0] in databases},
    )


def _written_held(rights: Held) -> dict[str, Any]:
    tables = [[*name, sorted(own)] for name, own in rights.tables.items()]
    databases = {name: sorted(own) for name, own in rights.databases.items()}
    return {"everywhere": sorted(rights.everywhere), "databases": databases, "tables": tables}


def _read_held(document: Mapping[str, Any]) -> Held:
    databases = {str(name): frozenset(own) for name, own in document["databases"].items()}
    tables = {(str(database), str(name)): frozenset(own) for database, name, own in document["tables"]}
    return Held(frozenset(document["everywhere"]), databases, tables)


def _everywhere(account: str, rights: Held) -> tuple[list[str], list[str]]:
    """What takes away from one account the rights to change all databases, and gives it them for each."""
    changes = _listed(rights.everywhere & CHANGES)
    if not changes:
        return [], []
    all_rights = rights.everywhere & (CHANGES | _READS | FENCE)
    instead = f"GRANT {_listed(all_rights)} ON `%`.* TO {account}"
    opened = [f"GRANT {changes} ON *.* TO {account}"]
    lacked = _listed(all_rights - rights.databases.get("%", _NONE))
    if lacked:
        opened += [instead, f"REVOKE {lacked} ON `%`.* FROM {account}"]
    return [instead, f"REVOKE {changes} ON *.* FROM {account}"], opened


def _entry(account: str, database: str, rights: Held, now: Held | None) -> tuple[list[str], list[str]]:
    """What closes one database for one account, and what opens it. Each may be run when it was before. `now`:
    the account's rights as they are, where they are known.
    """
    shut: list[str] = []
    opened: list[str] = []
    for (of, table), own in rights.tables.items():
        # of columns, too: UPDATE (`n`)
        if of == database and (changes := {one for one in own if one.partition(" (")[0] in CHANGES}):
            scope = scope_of(of, table)
            shut += [f"GRANT SELECT ON {scope} TO {account}"] if "SELECT" in own else []
            shut.append(f"REVOKE {_listed(changes)} ON {scope} FROM {account}")
            opened.append(f"GRANT {_listed(changes)} ON {scope} TO {account}")
    if not rights.of(database) & CHANGES:
        return shut, opened
    name = literal(database)
    scope = scope_of(name)
    keeps = (rights.of(database) & _READS) | FENCE
    kept = _listed(keeps)
    own = rights.databases.get(name, _NONE)
    shut.append(f"GRANT {kept} ON {scope} TO {account}")
    if own & CHANGES:
        shut.append(f"REVOKE {_listed(own & CHANGES)} ON {scope} FROM {account}")
    if own:
        opened.append(f"GRANT {_listed(own & (CHANGES | _READS | FENCE))} ON {scope} TO {account}")
    # an account that has no entry of its own is not shut out: to make one would do that
    if keeps - own and (own or now is None or name in now.databases):
        added = _listed(keeps - own)
        opened += [f"GRANT {added} ON {scope} TO {account}", f"REVOKE {added} ON {scope} FROM {account}"]
    return shut, opened


def _listed(rights: Iterable[str]) -> str:
    return ", ".join(sorted(rights))


async def close_databases(hosts: Hosts, host: Host, fence: Fence, patience: float = PATIENCE) -> None:
    """Nobody writes there any more. Transactions that were open before and do not end in time are ended."""
    of = await flavour(hosts, host)
    async with hosts.connection(host) as conn:
        await hosts.rows(conn, host, "SET SESSION lock_wait_timeout = 1")
        if of.read_only_databases:
            await hosts.rows(conn, host, "SET SESSION sql_log_bin = 0")
            await _insist(hosts, host, conn, fence.close(), patience)
            await hosts.rows(conn, host, "SET SESSION sql_log_bin = 1")
        else:
            locks = await _locks(hosts, host, fence.databases)
            await _insist(hosts, host, conn, locks, patience)  # whoever has begun shall end without an error
            await hosts.rows(conn, host, "UNLOCK TABLES")
            await _unlogged(hosts, host, fence.close())
            if fence.ends:
                await end_connections(hosts, host, fence.ends)
            await _leave(hosts, host, frozenset(fence.databases))
            await _insist(hosts, host, conn, locks, patience)
            await hosts.rows(conn, host, "UNLOCK TABLES")
        await hosts.rows(conn, host, "SET SESSION lock_wait_timeout = DEFAULT")
    if await distributed.used(hosts, host):
        await distributed.finished(hosts, host)


async def open_databases(hosts: Hosts, host: Host, fence: Fence) -> None:
    """As before. What is open stays so all the time: there may be transactions."""
    now = None if fence.held is None else await _held(hosts, host, {user for user, _ in fence.held})
    await _unlogged(hosts, host, fence.open(now))


async def _locks(hosts: Hosts, host: Host, databases: Iterable[str]) -> list[str]:
    """What gets through only when no transaction has written there: one statement a database."""
    found: dict[str, list[str]] = {}
    for database, table in sorted(await tables(hosts, host, databases)):
        found.setdefault(database, []).append(f"{quote(database)}.{quote(table)} READ")
    return [f"LOCK TABLES {', '.join(names)}" for names in found.values()]


async def _leave(hosts: Hosts, host: Host, databases: Collection[str]) -> None:
    """End the connections that are in one of the databases: in it they keep the rights that they had."""
    inside = {one.id for one in await _connections(hosts, host) if one.database in databases}
    await _end(hosts, host, inside)


async def databases_in_use(hosts: Hosts, host: Host) -> set[str]:
    """Those that a connection is in, and those whose tables a statement has open."""
    inside = {one.database for one in await _connections(hosts, host) if one.database}
    rows = await hosts.query(host, "SHOW OPEN TABLES WHERE In_use > 0")
    return inside | {str(row[0]) for row in rows}


# --- connections -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Connection:
    id: int
    user: str
    database: str | None


async def _connections(hosts: Hosts, host: Host) -> list[_Connection]:
    """Those of clients."""
    rows = await hosts.query(host, "SHOW PROCESSLIST")
    return [
        _Connection(int(row[0]), str(row[1]), row[3])
        for row in rows
        if row[1] not in _SERVERS_OWN and not str(row[4]).startswith(("Binlog Dump", "Slave", "Daemon"))
    ]


async def end_connections(hosts: Hosts, host: Host, users: Collection[str]) -> None:
    """All that these users have there now; they may come again."""
    await _end(hosts, host, {one.id for one in await _connections(hosts, host) if one.user in users})


async def _end(hosts: Hosts, host: Host, ids: Collection[int]) -> None:
    """Until they are gone: what they were at is undone by then."""
    for one in ids:
        try:
            await hosts.query(host, f"KILL {one}")
        except HostError as error:
            if error.code != _GONE:
                raise
    deadline = time.monotonic() + _ENDING
    while left := {one.id for one in await _connections(hosts, host)} & set(ids):
        if time.monotonic() > deadline:
            raise Failed(f"{host}: connections {sorted(left)} do not end within {_ENDING:g} s")
        await asyncio.sleep(_LOOK)


async def _old_transactions(hosts: Hosts, host: Host, own: int, seconds: float) -> list[int]:
    """The connections whose transactions have been open for so long. (trx_started is the system's time.)"""
    age = "TIMESTAMPDIFF(SECOND, trx_started, NOW())"
    async with hosts.connection(host) as conn:
        await hosts.rows(conn, host, "SET SESSION time_zone = 'SYSTEM'")
        rows = await hosts.rows(
            conn, host, f"SELECT trx_mysql_thread_id, {age} FROM information_schema.innodb_trx"
        )
    return [int(id) for id, old in rows if id and int(id) != own and old >= seconds]


async def _insist(hosts: Hosts, host: Host, conn: Any, statements: Iterable[str], patience: float) -> None:
    """Run statements that wait for transactions. Those that are open for `patience` seconds are ended when
    these have waited for so long.
    """
    patient = time.monotonic() + patience
    for sql in statements:
        while True:
            try:
                await hosts.rows(conn, host, sql)
                break
            except HostError as error:
                if error.code != _LOCK_WAIT or time.monotonic() > patient + _ENDING:
                    raise
            if time.monotonic() >= patient:
                await _end(hosts, host, await _old_transactions(hosts, host, conn.thread_id(), patience))


def unlogged(statements: Sequence[str]) -> list[str]:
    """Statements that no replica is to repeat."""
    return ["SET SESSION sql_log_bin = 0", *statements, "SET SESSION sql_log_bin = 1"]


async def _unlogged(hosts: Hosts, host: Host, statements: Sequence[str]) -> None:
    for at in range(0, len(statements), _TOGETHER):
        await hosts.run(host, unlogged(statements[at : at + _TOGETHER]))


async def _held(hosts: Hosts, host: Host, users: Collection[str]) -> dict[tuple[str, str], Held]:
    """The rights of all accounts of these users."""
    found: dict[tuple[str, str], Held] = {}
    async with hosts.connection(host) as conn:
        await hosts.rows(conn, host, "SET SESSION sql_mode = ''")  # ANSI_QUOTES changes how grants are shown
        rows = await hosts.rows(conn, host, "SELECT User, Host FROM mysql.user WHERE Host <> ''")
        for user, client in rows:
            if user in users:
                account = quoted_account(str(user), str(client))
                shown = await hosts.rows(conn, host, f"SHOW GRANTS FOR {account}")
                found[str(user), account] = read_grants(str(line) for (line,) in shown)
    return found
