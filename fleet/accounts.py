"""The servers' accounts that the settings name: made on all hosts, with the rights that `grants` says.

An account that exists keeps its password; rights are added, none is taken away. `shardgate check --connect`
tells what is too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pymysql

from config.backends import Account, Backends
from config.schema import Schema
from config.topology import Host, Topology
from fleet.create import MOST_CONNECTIONS, Connect, Connection
from fleet.grants import Server, grants, quoted_account

HIDDEN = "…"
"""In place of a password that is shown to people."""


@dataclass(frozen=True)
class Wanted:
    """One account on one host: None is the proxy's own."""

    account: Account | None
    user: str
    password: str = field(repr=False)

    def statements(
        self, schema: Schema, topology: Topology, host: Host, server: Server, client: str = "%"
    ) -> Iterator[tuple[str, str]]:
        """What makes it, each with what may be shown of it. `client`: from where it may log in."""
        name = quoted_account(self.user, client)
        create = f"CREATE USER IF NOT EXISTS {name} IDENTIFIED BY "
        yield create + _text(self.password), create + f"'{HIDDEN}'"
        for grant in grants(schema, topology, host, self.account, server):
            sql = grant.sql(name)
            yield sql, sql


def accounts_on(backends: Backends, host: Host) -> list[Wanted]:
    """The accounts that `host` should have: the proxy's own first. None without `backends.accounts`: then one
    account is the operator's to make.
    """
    if not backends.accounts:
        return []
    others = [Wanted(one, *backends.user_for(host, one.user)) for one in backends.accounts]
    return [Wanted(None, *backends.user_for(host)), *others]


def server_of(connection: Connection) -> Server:
    """What grants depend on, asked over a connection that sees all databases."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        mariadb = "mariadb" in str(_first(cursor)).lower()
        if mariadb:
            return Server(True)
        cursor.execute("SELECT @@GLOBAL.partial_revokes")
        if not int(_first(cursor)):
            return Server(False)
        cursor.execute("SHOW DATABASES")
        return Server(False, patterns=False, databases=tuple(row[0] for row in cursor.fetchall()))


def make_accounts(
    connection: Connection,
    wanted: Iterable[Wanted],
    schema: Schema,
    topology: Topology,
    host: Host,
    *,
    client: str = "%",
    dry_run: bool = False,
) -> list[str]:
    """Make accounts on the host behind `connection`; the statements as they may be shown. `dry_run`: and run
    none. pymysql.MySQLError when the host refuses.
    """
    server = server_of(connection)
    run: list[str] = []
    with connection.cursor() as cursor:
        for one in wanted:
            for sql, shown in one.statements(schema, topology, host, server, client):
                if not dry_run:
                    cursor.execute(sql)
                run.append(shown)
    return run


@dataclass(frozen=True)
class Made:
    """What became of one host's accounts; `problem` is empty when all is well."""

    host: Host
    accounts: int
    found: int = 0
    """How many of them were there before."""
    anonymous: tuple[str, ...] = ()
    """Accounts for any user name that go before them, for clients from some hosts."""
    problem: str = ""
    statements: tuple[str, ...] = ()
    """What would be run, of a dry run."""


def make_everywhere(
    backends: Backends,
    schema: Schema,
    topology: Topology,
    hosts: Sequence[Host],
    connect: Connect,
    *,
    client: str = "%",
    dry_run: bool = False,
) -> list[Made]:
    """Make the accounts on `hosts`, in parallel; a host's failure does not stop the others."""

    def make(host: Host) -> Made:
        wanted = accounts_on(backends, host)
        try:
            with connect(host, 0) as connection:
                before = _existing(connection)
                run = make_accounts(
                    connection, wanted, schema, topology, host, client=client, dry_run=dry_run
                )
        except pymysql.MySQLError as error:
            return Made(host, 0, problem=str(error.args[-1]) if error.args else str(error))
        found = sum((one.user, client) in before for one in wanted)
        anonymous = [
            quoted_account("", of) for user, of in before if not user and client == "%" and of != "%"
        ]
        statements = tuple(run) if dry_run else ()
        return Made(host, len(wanted), found, tuple(sorted(anonymous)), statements=statements)

    with ThreadPoolExecutor(min(MOST_CONNECTIONS, max(1, len(hosts))), thread_name_prefix="accounts") as pool:
        return list(pool.map(make, hosts))


def _existing(connection: Connection) -> set[tuple[str, str]]:
    """The accounts of a host, by user and host; none where that may not be read. What has no host is a role,
    or MariaDB's PUBLIC.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT User, Host FROM mysql.user WHERE Host <> ''")
            return {(str(user), str(host)) for user, host in cursor.fetchall()}
    except pymysql.MySQLError:
        return set()


def _text(value: str) -> str:
    """A text literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _first(cursor: pymysql.cursors.Cursor) -> str:
    row = cursor.fetchone()
    return str(row[0]) if row else ""
