"""What `shardgate check --connect` finds out about the hosts: the accounts there, databases, tables. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from config import xa
from config.backends import Account
from config.flavour import flavour_of
from config.references import Name
from config.routing_columns import ServerColumn, column_problem, routing_columns
from config.schema import Schema
from config.settings import Settings
from config.topology import Host, Topology
from fleet.create import Physical, Plan, wanted
from fleet.faults import Definition, Fault, Found, grouped, of_databases, of_tables, pairs
from fleet.grants import Grant, Server, grants, grants_elsewhere, quoted_account
from fleet.references import differing, shown
from fleet.rights import Finding, compare, compare_public, of_public, read_grants


class Answer(Protocol):
    """What a host says to one account; `error` why it says nothing."""

    @property
    def error(self) -> str: ...
    @property
    def denied(self) -> bool:
        """The host is there, but does not let the account in."""

    @property
    def code(self) -> int:
        """The error's number then."""

    @property
    def version(self) -> str:
        """Of whom it lets in, and of whom it denies."""

    @property
    def account(self) -> str:
        """`user@host`, as CURRENT_USER() has it."""

    @property
    def grants(self) -> Sequence[str]:
        """SHOW GRANTS."""

    @property
    def databases(self) -> Sequence[str]:
        """SHOW DATABASES."""

    @property
    def patterns(self) -> bool:
        """Whether names in GRANT may have wildcards."""

    @property
    def rows(self) -> Mapping[Name, int | str]:
        """How many rows the reference tables have, or why that is not known."""

    @property
    def tables(self) -> Mapping[str, Collection[str]] | str:
        """The tables of each database that has some, or why that is not known."""

    @property
    def columns(self) -> Sequence[ServerColumn]:
        """The routing columns of the schema's tables, in all databases."""


@dataclass(frozen=True)
class Verdict:
    """One host: what is right in a line, and what is not."""

    host: Host
    summary: str
    findings: tuple[Finding, ...]


def hosts_of(topology: Topology) -> tuple[Host, ...]:
    """All hosts: a slave must be ready to be the master."""
    return tuple(dict.fromkeys((*topology.hosts, *topology.slaves)))


def verify(
    settings: Settings,
    schema: Schema,
    topology: Topology,
    answers: Mapping[tuple[Host, str], Answer],
    replication: Mapping[Host, Sequence[Finding]],
) -> list[Verdict]:
    """A verdict for each host of the topology. `answers`: by host and account, "" is the proxy's own.
    `replication`: what was found of that.
    """
    rows = references(topology, answers)
    lacking = missing(schema, topology, answers)
    return [
        _verdict(
            settings,
            schema,
            topology,
            host,
            answers,
            lacking.get(host, []),
            [
                *rows.get(host, []),
                *_misrouted(schema, topology, answers[host, ""]),
                *replication.get(host, ()),
                *_undecidable(settings, topology, answers, host),
            ],
        )
        for host in hosts_of(topology)
    ]


def _undecidable(
    settings: Settings, topology: Topology, answers: Mapping[tuple[Host, str], Answer], host: Host
) -> list[Finding]:
    """What a master lacks for distributed transactions."""
    own = answers[host, ""]
    if not settings.xa.enabled or host not in topology.hosts or own.error or isinstance(own.tables, str):
        return []
    if set(own.tables.get(xa.DATABASE, ())) >= xa.TABLES.keys():
        return []
    return [Finding(f"{xa.DATABASE} is missing or not whole; make it: shardgate fleet create")]


def routing_names(schema: Schema) -> frozenset[tuple[str, str]]:
    """The (table, column) of all columns that place rows."""
    tables = (table for database in schema.databases.values() for table in database.tables.values())
    return frozenset((table.name, name) for table in tables for name in routing_columns(table))


def _misrouted(schema: Schema, topology: Topology, own: Answer) -> list[Finding]:
    """The routing columns of a host's shards under whose definitions rows would be left out."""
    tables = {
        (table.keyspace, table.name): table
        for database in schema.databases.values()
        for table in database.tables.values()
    }
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for column in own.columns:
        physical = topology.physical(column.database)
        table = tables.get((physical[0].name, column.table)) if physical is not None else None
        problem = None
        if table is not None:
            collations = (column.collation,) if column.collation else ()
            problem = column_problem(table, column.name, column.definition, collations)
        if problem is not None:
            key = (column.table, column.name, str(column), problem)
            found.setdefault(key, []).append(column.database)
    return [
        Finding(
            f"{_listed(databases)}: '{name}' of {table} is {shown}, by which statements do not find all rows."
            f" {problem}"
        )
        for (table, name, shown, problem), databases in found.items()
    ]


def _listed(databases: list[str]) -> str:
    names = sorted(databases)
    return f"{names[0]} … {names[-1]} ({len(names)} databases)" if len(names) > 1 else names[0]


def missing(
    schema: Schema, topology: Topology, answers: Mapping[tuple[Host, str], Answer]
) -> dict[Host, list[Finding]]:
    """The databases and tables that masters lack, and those of their masters that slaves lack."""
    findings: dict[Host, list[Finding]] = {
        host: [Finding(f"its tables cannot be listed: {answers[host, ''].tables}")]
        for host in hosts_of(topology)
        if not answers[host, ""].error and isinstance(answers[host, ""].tables, str)
    }
    plan, found = wanted(schema, topology), _found(topology, answers)
    masters = {host: having for host, having in found.items() if host in plan}
    for group in grouped(_missing(plan, topology, masters) + _not_replicated(plan, topology, found)):
        text = f"{group.names}: {group.fault.text}; {group.fault.remedy}"
        findings.setdefault(group.fault.host, []).append(Finding(text))
    return findings


def behind(schema: Schema, topology: Topology, answers: Mapping[tuple[Host, str], Answer]) -> bool:
    """Whether a slave lacks a database or a table that its master has: it may be behind by a moment."""
    return bool(_not_replicated(wanted(schema, topology), topology, _found(topology, answers)))


def _found(topology: Topology, answers: Mapping[tuple[Host, str], Answer]) -> dict[Host, Found]:
    """What there is on each host that can tell."""
    found = {}
    for host in hosts_of(topology):
        own = answers[host, ""]
        if not own.error and not isinstance(own.tables, str):
            names = {(database, table) for database, tables in own.tables.items() for table in tables}
            found[host] = Found(frozenset(own.databases), dict.fromkeys(names, Definition(())))
    return found


def _not_replicated(plan: Plan, topology: Topology, found: Mapping[Host, Found]) -> list[Fault]:
    faults: list[Fault] = []
    for slave, master in pairs(topology):
        if slave in found and master in found:
            there = _only(plan[master], found[master])
            faults += [
                replace(one, text=f"{one.text}, which {master} has", remedy="does it replicate all?")
                for one in _missing({slave: there}, topology, {slave: found[slave]})
            ]
    return faults


def _missing(plan: Plan, topology: Topology, found: Mapping[Host, Found]) -> list[Fault]:
    every = (*of_databases(plan, topology, found), *of_tables(plan, topology, found))
    return [one for one in every if one.kind == "missing"]


def _only(databases: Iterable[Physical], having: Found) -> list[Physical]:
    """What of them a host has."""
    return [
        Physical(one.name, tuple(table for table in one.tables if (one.name, table.name) in having.tables))
        for one in databases
        if one.name in having.databases
    ]


def references(topology: Topology, answers: Mapping[tuple[Host, str], Answer]) -> dict[Host, list[Finding]]:
    """The masters whose reference tables have other rows than those of others, by their numbers. A slave has
    what its master has.
    """
    found: dict[Host, list[Finding]] = {}
    counts: dict[Name, dict[Host, int]] = {}
    for host in topology.hosts:
        for name, rows in answers[host, ""].rows.items():
            if isinstance(rows, int):
                counts.setdefault(name, {})[host] = rows
            else:
                text = f"the rows of {shown(name)} cannot be counted: {rows}"
                found.setdefault(host, []).append(Finding(text))
    for name, of in counts.items():
        for host, text in differing(name, of).items():
            found.setdefault(host, []).append(Finding(text))
    return found


def _verdict(
    settings: Settings,
    schema: Schema,
    topology: Topology,
    host: Host,
    answers: Mapping[tuple[Host, str], Answer],
    lacking: Sequence[Finding],
    further: Sequence[Finding],
) -> Verdict:
    """`lacking`: databases and tables, as far as the proxy's own account can see."""
    backends = settings.backends
    own = answers[host, ""]
    if own.error and not own.denied:
        text = f"cannot be reached: {own.error}. {_UNREACHED}"
        return Verdict(host, "", (Finding(text),))
    there = [one for (at, _), one in answers.items() if at == host and not one.error]
    server = _server(there or [own])
    found: list[Finding] = []
    every: list[Sequence[Grant]] = []
    blind = False
    accounts: list[Account | None] = [None, *backends.accounts]
    for account in accounts if backends.accounts else [None]:
        name = "" if account is None else account.user
        user = backends.user_for(host, name)[0]
        answer = answers[host, name]
        distributed = settings.xa.enabled
        wanted = (
            grants(schema, topology, host, account, server, distributed=distributed)
            if backends.accounts
            else []
        )
        every.append(wanted)
        if answer.error:
            found.append(_not_in(user, answer, [one.sql(quoted_account(user)) for one in wanted]))
        elif backends.accounts:
            shown = quoted_account(*answer.account.rsplit("@", 1))
            others = compare(
                wanted,
                read_grants(answer.grants),
                {name for one in there for name in one.databases},
                shown,
                lambda name: topology.physical(name) is not None,
                partial(grants_elsewhere, schema, topology, account, server),
            )
            found += [Finding(f"{user} {one.text}", one.remedy) for one in others]
            blind = blind or (account is None and bool(others))
    if backends.accounts:
        public = dict.fromkeys(line for one in there for line in of_public(one.grants))
        found += compare_public(every, list(public))
    found += [*(() if blind else lacking), *further]
    version = there[0].version.removeprefix(_FOR_REPLICATION) if there else ""
    return Verdict(host, f"{version}, {len(backends.accounts) + 1} accounts", tuple(found))


def _server(there: Sequence[Answer]) -> Server:
    flavour = flavour_of(" ".join(one.version for one in there))
    names = tuple(sorted({name for one in there for name in one.databases}))
    return Server(flavour, all(one.patterns for one in there), names)


_FOR_REPLICATION: Final = "5.5.5-"
"""What MariaDB puts before its version when it greets, for old replicas."""
_UNREACHED: Final = (
    "Is this its address and port, does the server run, and does it listen there (bind_address)?"
)
_LOCKED: Final = frozenset({3118, 3955, 4151})
_BLOCKED: Final = 4150
_EXPIRED: Final = frozenset({1820, 1862})
_SEEN_AS: Final = re.compile(r"'[^']*'@'([^']*)'")


def _not_in(user: str, answer: Answer, statements: Sequence[str]) -> Finding:
    """An account that the host does not let in. Missing and of another password look alike: what is printed
    mends either.
    """
    account, text = quoted_account(user), f"{user} cannot log in: {answer.error}"
    password = f"ALTER USER {account} IDENTIFIED BY '…'"
    if answer.code in _LOCKED:
        return Finding(text, (f"ALTER USER {account} ACCOUNT UNLOCK",))
    if answer.code == _BLOCKED:
        return Finding(
            f"{text}. Too many log-ins with a wrong password (max_password_errors)", ("FLUSH PRIVILEGES",)
        )
    if answer.code in _EXPIRED:
        return Finding(f"{text}. Its password has expired", (password,))
    text += ". The account is not there (`shardgate fleet create` makes it), or its password is another one"
    seen = _SEEN_AS.search(answer.error)
    if seen is not None and seen[1] != "%":
        text += (
            f". If both are right, an account for {seen[1]!r} goes before it, such as the anonymous one that "
            f"mariadb-install-db makes: DROP USER ''@'{seen[1]}'"
        )
    create = f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '…'"
    return Finding(text, (create, password, *statements))
