"""What an account has, as SHOW GRANTS tells it, beside what it needs: what is missing, and what is too much.

Pure. Each `Finding` says what is wrong and the statement that mends it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from fleet.grants import (
    ALL,
    EVERYTHING,
    FENCE,
    PASSES,
    SYSTEM,
    Grant,
    is_wild,
    matches,
    most_specific,
    scope_of,
)

_NAME: Final = r"`(?:[^`]|``)*`"
_LINE: Final = re.compile(
    rf"(GRANT|REVOKE) (.+?) ON (PROCEDURE |FUNCTION |PACKAGE (?:BODY )?)?"
    rf"(\*|{_NAME})\.(\*|{_NAME}) (?:TO|FROM) (.+)\Z",
    re.DOTALL,
)
_TO_PUBLIC: Final = re.compile(r" TO PUBLIC(?: WITH GRANT OPTION)?\Z")
_PRIVILEGE: Final = re.compile(r"[^,(]+(?:\([^)]*\))?")
_WITH_OPTION: Final = re.compile(r" WITH\b.*\bGRANT OPTION\b")

#: What ALL PRIVILEGES has of what `grants` asks for by name; on one database likewise.
_OF_ALL: Final = frozenset(
    {"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "REFERENCES", "INDEX", "ALTER", "EVENT"}
    | {"CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE"}
    | {"ALTER ROUTINE", "TRIGGER"}
)
_OF_ALL_GLOBAL: Final = _OF_ALL | {"RELOAD", "PROCESS", "SHOW DATABASES", "CREATE USER"}
_NOTHING: Final[frozenset[str]] = frozenset()
_OPTION: Final = frozenset({"GRANT OPTION"})


@dataclass(frozen=True)
class Held:
    """The rights of an account. `databases`: by GRANT's name; `tables`: by database and table. `others`: what
    gives rights that are not looked into, as it was printed: roles, routines, PROXY.
    """

    everywhere: frozenset[str] = _NOTHING
    databases: dict[str, frozenset[str]] = field(default_factory=dict)
    tables: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    revoked: dict[str, frozenset[str]] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    def entry(self, database: str) -> str | None:
        """The name of the entry that counts for a database."""
        return most_specific(self.databases, database)

    def of(self, database: str) -> frozenset[str]:
        """The rights in a database."""
        entry = self.entry(database)
        own = _NOTHING if entry is None else self.databases[entry]
        return (self.everywhere - self.revoked.get(database, _NOTHING)) | own


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, and the statements that mend it."""

    text: str
    remedy: tuple[str, ...] = ()


def read_grants(lines: Iterable[str]) -> Held:
    """The lines of SHOW GRANTS, without those of PUBLIC, which MariaDB shows to everybody."""
    everywhere: set[str] = set()
    databases: dict[str, frozenset[str]] = {}
    tables: dict[tuple[str, str], frozenset[str]] = {}
    revoked: dict[str, frozenset[str]] = {}
    others: list[str] = []
    for line in lines:
        if _TO_PUBLIC.search(line):
            continue
        found = _LINE.match(line)
        if found is None or found[3]:
            if not line.startswith("SET DEFAULT ROLE"):
                others.append(line)
            continue
        privileges = {one.strip() for one in _PRIVILEGE.findall(found[2])} - {"USAGE", ""}
        if _WITH_OPTION.search(found[6]):
            privileges.add("GRANT OPTION")
        database, table = (_unquoted(one) for one in (found[4], found[5]))
        rights = frozenset(_expanded(privileges, everywhere=database == "*"))
        if found[1] == "REVOKE":
            revoked[database] = revoked.get(database, _NOTHING) | rights
        elif database == "*":
            everywhere |= rights
        elif table == "*":
            databases[database] = databases.get(database, _NOTHING) | rights
        else:
            tables[database, table] = tables.get((database, table), _NOTHING) | rights
    return Held(frozenset(everywhere), databases, tables, revoked, tuple(others))


def of_public(lines: Iterable[str]) -> list[str]:
    """The lines of SHOW GRANTS that say what everybody may do."""
    return [line for line in lines if _TO_PUBLIC.search(line)]


def compare_public(every: Sequence[Sequence[Grant]], lines: Sequence[str]) -> list[Finding]:
    """What PUBLIC has that some account must not have. `every`: what each account needs; `lines`: those
    `of_public`. An account has these rights beside its own, and so do its fences not hold.
    """
    held = read_grants(f"{_TO_PUBLIC.sub('', line)} TO `PUBLIC`" for line in lines)
    accounts = [wanted for wanted in every if not _administers(wanted)]
    found = [
        f"PUBLIC, and so every account, has more than this can look into: {line}" for line in held.others
    ]
    findings = [Finding(text) for text in found]

    def excess(rights: frozenset[str], scope: str) -> None:
        text = f"PUBLIC, and so every account, has {_shown(rights)} on {scope}"
        findings.append(Finding(text, (f"REVOKE ALL PRIVILEGES ON {scope} FROM PUBLIC",)))

    if held.everywhere:
        excess(held.everywhere, "*.*")
    for entry, rights in held.databases.items():
        if is_wild(entry) or any(rights - _allowed(_patterns(wanted), entry) for wanted in accounts):
            excess(rights, scope_of(entry))
    for (database, table), rights in held.tables.items():
        if any(rights - _allowed(_patterns(wanted), database) for wanted in accounts):
            excess(rights, scope_of(database, table))
    return findings


def _unquoted(name: str) -> str:
    return name if name == "*" else name[1:-1].replace("``", "`")


def _expanded(privileges: Iterable[str], *, everywhere: bool) -> set[str]:
    rights = set(privileges)
    if ALL & rights:
        rights |= _OF_ALL_GLOBAL | PASSES if everywhere else _OF_ALL  # who prints it so is MariaDB
    return rights


def compare(
    wanted: Sequence[Grant],
    held: Held,
    existing: Iterable[str],
    account: str,
    belongs: Callable[[str], bool],
    elsewhere: Callable[[], Sequence[Grant]],
) -> list[Finding]:
    """What is wrong with an account. `existing`: the databases of the host; `belongs`: whether one is of the
    topology's keyspaces; `elsewhere`: what the account needs on other hosts, and so may have here.
    """
    names = [name for name in existing if name != "information_schema"]
    known = {one.database for one in wanted}
    others = (
        [] if held.databases.keys() <= known else [one for one in elsewhere() if one.database not in known]
    )
    return [
        *missing(wanted, held, account),
        *_too_much(wanted, others, held, account),
        *_foreign([*wanted, *others], held, names, account, belongs),
    ]


def missing(wanted: Sequence[Grant], held: Held, account: str) -> Iterator[Finding]:
    """The rights that an account lacks."""
    revokes = [one for one in wanted if one.revoke]
    taken = frozenset().union(*(one.privileges for one in revokes))
    for grant in wanted:
        if grant.revoke or (grant.privileges == FENCE and grant.database in _SYSTEM_NAMES):
            continue
        lacks = _lacks(grant, held) - (_NOTHING if grant.database else taken)
        if lacks:
            shown = ", ".join(sorted(lacks))
            again = Grant(frozenset(lacks), grant.database, grant.table)
            # an entry that is made anew must have all that the account shall have there
            full = grant if grant.database and grant.database not in held.databases else again
            remedy = [(grant if ALL & grant.privileges else full).sql(account)]
            if ALL & grant.privileges and not grant.database:
                remedy += [one.sql(account) for one in revokes]
            yield Finding(f"lacks {shown} on {grant.scope}", tuple(remedy))


def _lacks(grant: Grant, held: Held) -> frozenset[str]:
    needed = grant.privileges
    if ALL & needed:
        needed = _OF_ALL if grant.database else _OF_ALL_GLOBAL
    if grant.option:
        needed |= {"GRANT OPTION"}
    if not grant.database:
        return needed - held.everywhere
    if grant.table:
        own = held.tables.get((grant.database, grant.table), _NOTHING)
        return needed - own - held.of(grant.database)
    lacks = needed - held.everywhere - held.databases.get(grant.database, _NOTHING)
    if lacks and grant.covers:  # entries for single databases are as good
        lacks = frozenset().union(*(needed - held.of(name) for name in grant.covers))
    return lacks


_SYSTEM_NAMES: Final = frozenset({*SYSTEM, *(name.replace("_", "\\_") for name in SYSTEM)})


def _too_much(
    wanted: Sequence[Grant], elsewhere: Sequence[Grant], held: Held, account: str
) -> Iterator[Finding]:
    """Rights on all databases, or on some, that the account must not have."""
    if _administers(wanted):
        passing = (
            held.everywhere & PASSES & frozenset().union(*(one.privileges for one in wanted if one.revoke))
        )
        if passing:
            shown = ", ".join(sorted(passing))
            text = f"has {shown}, and so writes on servers that are read_only"
            yield Finding(text, (f"REVOKE {shown} ON *.* FROM {account}",))
        return
    allowed = frozenset().union(*(one.privileges for one in wanted if not one.database))
    excess = held.everywhere - allowed
    if excess:
        shown = _shown(excess)
        remedy = _revoke(excess, "*.*", account)
        if _is_all(excess):  # MySQL takes what single databases have away with it
            remedy += tuple(one.sql(account) for one in wanted)
        yield Finding(f"has {shown} on all databases", remedy)
    for line in held.others:
        yield Finding(f"has more than this can look into: {line}")
    patterns = _patterns([*wanted, *elsewhere])
    for entry, rights in held.databases.items():
        excess = rights - _allowed(patterns, entry)
        if excess and entry not in _SYSTEM_NAMES:
            scope = scope_of(entry)
            yield Finding(f"has {_shown(excess)} on {scope}", _revoke(excess, scope, account))
    for name in SYSTEM:
        counts = held.entry(name)
        meant = frozenset().union(*(one.privileges for one in wanted if name in one.covers))
        excess = (_NOTHING if counts is None else held.databases[counts]) - FENCE - meant
        if excess:
            yield Finding(f"gets into {name}", _out(name, held, excess, account))
    tables = {(one.database, one.table): one.privileges for one in (*wanted, *elsewhere) if one.table}
    for (database, table), rights in held.tables.items():
        excess = rights - tables.get((database, table), patterns.get(database, _NOTHING))
        if excess:
            scope = scope_of(database, table)
            yield Finding(f"has {_shown(excess)} on {scope}", _revoke(excess, scope, account))


def _allowed(patterns: dict[str, frozenset[str]], entry: str) -> frozenset[str]:
    """What an entry may have: as the entry of that name should, or the one that would count for its name."""
    if entry in patterns:
        return _all_of(patterns[entry])
    if is_wild(entry):
        return _NOTHING
    plain = re.sub(r"\\(.)", r"\1", entry)
    counts = most_specific(patterns, plain)
    return _NOTHING if counts is None else _all_of(patterns[counts]) | FENCE


def _patterns(wanted: Sequence[Grant]) -> dict[str, frozenset[str]]:
    """What an account shall have in databases, by GRANT's names."""
    return {one.database: one.privileges for one in wanted if one.database and not one.table}


def _administers(wanted: Sequence[Grant]) -> bool:
    return any(ALL & one.privileges and not one.database for one in wanted)


def _all_of(privileges: frozenset[str]) -> frozenset[str]:
    return privileges | _OF_ALL if ALL & privileges else privileges


def _out(name: str, held: Held, excess: frozenset[str], account: str) -> tuple[str, ...]:
    """The statements that keep an account away from a database that an entry with wildcards matches."""
    entry = held.entry(name) or name
    if is_wild(entry):
        return (Grant(FENCE, name.replace("_", "\\_")).sql(account),)
    return (*_revoke(excess, scope_of(entry), account), Grant(FENCE, name.replace("_", "\\_")).sql(account))


def _foreign(
    wanted: Sequence[Grant],
    held: Held,
    names: Sequence[str],
    account: str,
    belongs: Callable[[str], bool],
) -> Iterator[Finding]:
    """Databases that the pattern for shards matches, but that are no shards."""
    meant = {name for one in wanted for name in one.covers}
    for grant in wanted:
        if grant.database == EVERYTHING or not is_wild(grant.database):
            continue
        for name in names:
            foreign = name not in meant and not belongs(name) and name not in SYSTEM
            if foreign and matches(grant.database, name) and held.of(name) - held.everywhere - FENCE:
                text = f"gets into {name}: the pattern for shards, {grant.scope}, matches it"
                fence = Grant(FENCE, re.sub(r"([\\%_])", r"\\\1", name)).sql(account)
                yield Finding(f"{text}. Rename that database, or keep the account away from it", (fence,))


def _shown(rights: frozenset[str]) -> str:
    if not _is_all(rights):
        return ", ".join(sorted(rights))
    return "ALL PRIVILEGES" + (" and GRANT OPTION" if rights >= _OPTION else "")


def _is_all(rights: frozenset[str]) -> bool:
    """Whether it is best told as all: MySQL lists them one by one."""
    return rights >= ALL or rights >= _OF_ALL_GLOBAL


def _revoke(rights: frozenset[str], scope: str, account: str) -> tuple[str, ...]:
    """What takes them away."""
    others = rights - _OPTION
    shown = "ALL PRIVILEGES" if _is_all(rights) else ", ".join(sorted(others))
    statements = [f"REVOKE {shown} ON {scope} FROM {account}"] if others else []
    if rights >= _OPTION:
        statements.append(f"REVOKE GRANT OPTION ON {scope} FROM {account}")
    return tuple(statements)
