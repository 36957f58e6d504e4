"""The servers' accounts that the settings name: made on all hosts, with the rights that `grants` says.

An account that exists keeps its password; rights are added, none is taken away. `shardgate check --connect`
tells what is too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from config.backends import Account, Backends
from config.flavour import flavour_of
from config.schema import Schema
from config.topology import Host, Topology
from fleet.core.hosts import Hosts
from fleet.core.steps import Step
from fleet.grants import Server, grants, quoted_account
from fleet.rights import missing, read_grants

HIDDEN = "…"
"""In place of a password that is shown to people."""


@dataclass(frozen=True)
class Wanted:
    """One account on one host: None is the proxy's own."""

    account: Account | None
    user: str
    password: str = field(repr=False)
    distributed: bool = False
    """It takes part in distributed transactions."""


def accounts_on(backends: Backends, host: Host, *, distributed: bool = False) -> list[Wanted]:
    """The accounts that `host` should have: the proxy's own first. None without `backends.accounts`: then one
    account is the operator's to make. `distributed`: as `xa.enabled` of the settings.
    """
    if not backends.accounts:
        return []
    others = [Wanted(one, *backends.user_for(host, one.user), distributed) for one in backends.accounts]
    return [Wanted(None, *backends.user_for(host), distributed), *others]


@dataclass(frozen=True)
class Accounts:
    """The accounts that a host has, by user and where from; `grants`: SHOW GRANTS of those asked for."""

    server: Server
    existing: frozenset[tuple[str, str]] = frozenset()
    grants: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def anonymous(self, client: str) -> list[str]:
        """Those for any user name that go before accounts for `client`, for clients from some hosts."""
        return sorted(
            quoted_account("", of) for user, of in self.existing if not user and client == "%" and of != "%"
        )


async def look(hosts: Hosts, host: Host, users: Iterable[str], client: str = "%") -> Accounts:
    """What `host` has of the accounts of `users`. HostError."""
    version = str((await hosts.query(host, "SELECT VERSION()"))[0][0])
    flavour = flavour_of(version)
    server = Server(flavour)
    always = flavour.underscores_in_grants
    if not always and int((await hosts.query(host, "SELECT @@GLOBAL.partial_revokes"))[0][0]):
        names = tuple(str(name) for (name,) in await hosts.query(host, "SHOW DATABASES"))
        server = Server(flavour, patterns=False, databases=names)
    rows = await hosts.query(host, "SELECT User, Host FROM mysql.user WHERE Host <> ''")  # '': roles, PUBLIC
    existing = frozenset((str(user), str(of)) for user, of in rows)
    grants: dict[str, Sequence[str]] = {}
    async with hosts.connection(host) as conn:
        await hosts.rows(conn, host, "SET SESSION sql_mode = ''")  # ANSI_QUOTES changes how grants are shown
        for user in users:
            if (user, client) in existing:
                shown = await hosts.rows(conn, host, f"SHOW GRANTS FOR {quoted_account(user, client)}")
                grants[user] = [str(line) for (line,) in shown]
    return Accounts(server, existing, grants)


def steps(
    wanted: Iterable[Wanted],
    schema: Schema,
    topology: Topology,
    host: Host,
    actual: Accounts,
    *,
    client: str = "%",
    databases: Iterable[str] = (),
    stage: int = 0,
) -> list[Step]:
    """What makes accounts on `host`, one step each, and gives them the rights that they lack. `databases`:
    those that there will be by then.
    """
    server = actual.server
    if not server.patterns:
        names = dict.fromkeys((*server.databases, *databases))
        server = replace(server, databases=tuple(names))
    made = []
    for one in wanted:
        name = quoted_account(one.user, client)
        new = (one.user, client) not in actual.existing
        rights = grants(schema, topology, host, one.account, server, distributed=one.distributed)
        sql = [grant.sql(name) for grant in rights]
        if not new:
            found = missing(rights, read_grants(actual.grants[one.user]), name)
            sql = [statement for finding in found for statement in finding.remedy]
            if not sql:
                continue
        create = f"CREATE USER IF NOT EXISTS {name} IDENTIFIED BY "
        made.append(
            Step(
                f"account\t{host}\t{name}",
                f"make the account {name}" if new else f"give {name} the rights that it lacks",
                host,
                (create + text_literal(one.password), *sql) if new else tuple(sql),
                (create + f"'{HIDDEN}'", *sql) if new else tuple(sql),
                stage=stage,
            )
        )
    return made


async def make_accounts(
    hosts: Hosts, host: Host, wanted: Sequence[Wanted], schema: Schema, topology: Topology
) -> None:
    """Make accounts on `host`, without a journal. HostError when it refuses."""
    actual = await look(hosts, host, [one.user for one in wanted])
    for step in steps(wanted, schema, topology, host, actual):
        await hosts.run(host, step.statements)


def text_literal(value: str) -> str:
    """A text literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
