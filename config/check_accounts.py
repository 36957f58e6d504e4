"""Whether the accounts of `backends.accounts` fit each other and the users: one for each user, no two alike.

It reads the settings as they were written, so that these errors are listed along with all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from config.document import Path as Place

_Purpose = tuple[str, frozenset[str]]


def account_problems(value: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Places and messages."""
    backends = value.get("backends")
    accounts = backends.get("accounts") if isinstance(backends, Mapping) else None
    if not isinstance(backends, Mapping) or not isinstance(accounts, list) or not accounts:
        return
    names: set[str] = set()
    purposes: dict[_Purpose, str] = {}
    for index, account in enumerate(accounts):
        if not isinstance(account, Mapping):
            continue
        place: Place = ("backends", "accounts", index)
        name = account.get("user")
        if isinstance(name, str):
            if name == backends.get("user"):
                message = f"{name} is the proxy's own account, backends.user, which runs no client's text"
                yield (*place, "user"), message
            if name in names:
                yield (*place, "user"), f"there is an account {name} already"
            names.add(name)
        purpose = _purpose(account, None)
        if purpose in purposes:
            yield place, f"{purposes[purpose]} is the account for {_words(purpose)} already"
        elif purpose is not None:
            purposes[purpose] = str(name)
    yield from _users(value.get("users"), purposes)
    yield from _hosts(backends.get("hosts"), names)


def _users(users: object, purposes: Mapping[_Purpose, str]) -> Iterator[tuple[Place, str]]:
    for index, user in enumerate(users if isinstance(users, list) else ()):
        purpose = _purpose(user, "write") if isinstance(user, Mapping) else None
        if purpose is not None and purpose not in purposes:
            role, databases = purpose
            of = "" if "*" in databases else f", databases: [{', '.join(sorted(databases))}]"
            message = (
                f"backends.accounts has no account for {_words(purpose)}: add {{user: …, role: {role}{of}}}"
            )
            yield ("users", index), message


def _hosts(hosts: object, names: set[str]) -> Iterator[tuple[Place, str]]:
    for host, one in hosts.items() if isinstance(hosts, Mapping) else ():
        there = one.get("accounts") if isinstance(one, Mapping) else None
        for name in there if isinstance(there, Mapping) else ():
            if name not in names:
                place = ("backends", "hosts", host, "accounts", name)
                yield place, f"backends.accounts has no account {name}"


def _purpose(one: Mapping[str, Any], role: str | None) -> _Purpose | None:
    """Role and databases; None where they are not what they should be, which others report."""
    found, databases = one.get("role", role), one.get("databases", "*")
    if found not in ("read", "write", "admin"):
        return None
    if databases == "*":
        return found, frozenset("*")
    if not isinstance(databases, list | tuple) or not all(isinstance(name, str) for name in databases):
        return None
    return found, frozenset("*") if "*" in databases else frozenset(databases)


def _words(purpose: _Purpose) -> str:
    role, databases = purpose
    return f"the role {role}" + (
        "" if "*" in databases else f" and the databases {', '.join(sorted(databases))}"
    )
