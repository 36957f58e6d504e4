"""How the proxy connects to the hosts of the topology, and as whom."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from config.credentials import Credentials, Role, database_names
from config.fields import Count, Flag, HostAddress, Positive
from config.tls import BackendTls, BackendTlsField
from config.units import Duration, at_least


class Account(Credentials):
    """An account of the servers, under which the statements of the proxy's users with this role and these
    databases run. It has just the rights that they need (`fleet.grants`).
    """

    user: Annotated[str, Field(min_length=1, max_length=80)]
    role: Role
    databases: Annotated[tuple[str, ...], BeforeValidator(database_names)] = ("*",)

    @property
    def purpose(self) -> tuple[Role, frozenset[str]]:
        """Whom it serves: users of whom this is the same."""
        return purpose_of(self.role, self.databases)


def purpose_of(role: Role, databases: tuple[str, ...]) -> tuple[Role, frozenset[str]]:
    """What decides the account of a user."""
    return role, frozenset(("*",) if "*" in databases else databases)


class HostOverrides(Credentials):
    """What differs for one host. `accounts`: passwords of accounts there, by user name."""

    user: str | None = None
    accounts: dict[str, Credentials] = Field(default_factory=dict)
    max_connections: Positive | None = None
    tls: BackendTlsField = None


class Backends(Credentials):
    """How the proxy connects to the hosts of the topology. `user` is its own account: with `accounts` it runs
    no client's text, without any it runs everything.
    """

    user: Annotated[str, Field(min_length=1)]
    accounts: tuple[Account, ...] = ()
    hosts: dict[HostAddress, HostOverrides] = Field(default_factory=dict)
    max_connections: Positive = 100
    queue_length: Count = 1000
    queue_timeout: Annotated[Duration, at_least(0.01)] = 5.0
    user_share: Annotated[float, Field(gt=0, le=1, strict=True)] = 0.8
    connect_timeout: Annotated[Duration, at_least(0.01)] = 3.0
    idle_timeout: Annotated[Duration, at_least(0.1)] = 300.0
    health_interval: Annotated[Duration, at_least(0.1)] = 5.0
    hang_timeout: Annotated[Duration, at_least(0.1, or_zero=True)] = 10.0
    comment: Flag = False
    tls: BackendTlsField = None

    def account_for(self, role: Role, databases: tuple[str, ...]) -> Account | None:
        """The account for the statements of users with this role and these databases."""
        wanted = purpose_of(role, databases)
        return next((one for one in self.accounts if one.purpose == wanted), None)

    def user_for(self, host: str, account: str = "") -> tuple[str, str]:
        """User name and password for `host`, of the proxy's own account or of one of `accounts`."""
        own = self.hosts.get(host)
        if account:
            there = own.accounts.get(account) if own else None
            usual = next((one.secret for one in self.accounts if one.user == account), None)
            return account, (there.secret if there and there.secret is not None else usual) or ""
        user = own.user if own and own.user else self.user
        password = own.secret if own and own.secret is not None else self.secret
        return user, password or ""

    def tls_for(self, host: str) -> BackendTls | None:
        """How to encrypt connections to `host`, None for not at all: as a Unix socket's, which stay here."""
        own = self.hosts.get(host)
        found = own.tls if own and own.tls is not None else self.tls
        return None if found is None or found.mode == "off" or host.startswith("unix:") else found

    def max_connections_for(self, host: str) -> int:
        """The most connections to `host`, per worker process."""
        own = self.hosts.get(host)
        return own.max_connections if own and own.max_connections else self.max_connections
