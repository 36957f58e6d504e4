"""What `shardgate check --connect` finds out about the hosts and the accounts there. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from config.backends import Account
from config.schema import Schema
from config.settings import Settings
from config.topology import Host, Topology
from fleet.grants import Server, grants, quoted_account
from fleet.rights import Finding, compare, read_grants


class Answer(Protocol):
    """What a host says to one account; `error` why it says nothing."""

    @property
    def error(self) -> str: ...
    @property
    def denied(self) -> bool:
        """The host is there, but does not let the account in."""

    @property
    def version(self) -> str: ...
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
    settings: Settings, schema: Schema, topology: Topology, answers: Mapping[tuple[Host, str], Answer]
) -> list[Verdict]:
    """A verdict for each host of the topology. `answers`: by host and account, "" is the proxy's own."""
    return [_verdict(settings, schema, topology, host, answers) for host in hosts_of(topology)]


def _verdict(
    settings: Settings,
    schema: Schema,
    topology: Topology,
    host: Host,
    answers: Mapping[tuple[Host, str], Answer],
) -> Verdict:
    backends = settings.backends
    own = answers[host, ""]
    if own.error and not own.denied:
        return Verdict(host, "", (Finding(f"cannot be reached: {own.error}"),))
    there = [one for (at, _), one in answers.items() if at == host and not one.error]
    server = _server(there)
    found: list[Finding] = []
    accounts: list[Account | None] = [None, *backends.accounts]
    for account in accounts if backends.accounts else [None]:
        name = "" if account is None else account.user
        user = backends.user_for(host, name)[0]
        answer = answers[host, name]
        wanted = grants(schema, topology, host, account, server) if backends.accounts else []
        if answer.error:
            found.append(_not_in(user, answer.error, [one.sql(quoted_account(user)) for one in wanted]))
        elif backends.accounts:
            shown = quoted_account(*answer.account.rsplit("@", 1))
            others = compare(
                wanted,
                read_grants(answer.grants),
                {name for one in there for name in one.databases},
                shown,
                lambda name: topology.physical(name) is not None,
            )
            found += [Finding(f"{user} {one.text}", one.remedy) for one in others]
    version = there[0].version if there else ""
    return Verdict(host, f"{version}, {len(backends.accounts) + 1} accounts", tuple(found))


def _server(there: Sequence[Answer]) -> Server:
    mariadb = any("mariadb" in one.version.lower() for one in there)
    names = tuple(sorted({name for one in there for name in one.databases}))
    return Server(mariadb, all(one.patterns for one in there), names)


def _not_in(user: str, error: str, statements: Sequence[str]) -> Finding:
    """An account that the host does not let in: missing, or with another password."""
    account = quoted_account(user)
    create = f"CREATE USER {account} IDENTIFIED BY '…'"
    text = f"{user} cannot log in: {error}. If the account is there, its password is another one"
    return Finding(text, (create, *statements))
