"""Settings that can be used, but hardly as they are meant: a limit that another makes meaningless, a name
that nothing has.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Final

from config.reserved import SERVERS
from config.schema import Schema
from config.settings import Settings
from config.topology import Topology
from config.units import duration_text, size_text

_SOME: Final = 5


def doubts(
    settings: Settings, schema: Schema | None = None, topology: Topology | None = None
) -> Iterator[tuple[str, str]]:
    """Names of settings and what to know of them. A default that is never reached is none's mistake.

    `schema` and `topology` as far as they are known: without them nothing is said of names.
    """
    limits, backends = settings.limits, settings.backends
    for larger, smaller in (("user_variables", "session_memory"), ("session_memory", "client_memory")):
        value, most = getattr(limits, larger), getattr(limits, smaller)
        if larger in limits.model_fields_set and value > most:
            text = f"{size_text(value)} is never reached: limits.{smaller} ends it at {size_text(most)}"
            yield f"limits.{larger}", text
    hang, connect = backends.hang_timeout, backends.connect_timeout
    if 0 < hang < connect:
        yield (
            "backends.connect_timeout",
            f"a host that hangs is waited for as long as {duration_text(connect)} when it is connected to,"
            f" though after {duration_text(hang)} (backends.hang_timeout) it is taken to hang",
        )
    if settings.xa.enabled and settings.xa.resolve_after > settings.xa.keep:
        # no rows are lost by it: a decision is kept while a branch that needs it is prepared
        late, keep = duration_text(settings.xa.resolve_after), duration_text(settings.xa.keep)
        yield (
            "xa.resolve_after",
            f"what a proxy that is gone has left prepared keeps its rows locked for {late} before it is"
            f" finished; its decision is kept as long, though xa.keep is {keep}",
        )
    if topology is not None:
        yield from _unknown_hosts(settings, topology)
    if schema is not None and topology is not None:
        yield from _unknown_databases(settings, schema, topology)


def _unknown_hosts(settings: Settings, topology: Topology) -> Iterator[tuple[str, str]]:
    """What is said of hosts that nobody connects to: a mistake, or for a topology that comes later."""
    known = dict.fromkeys((*topology.hosts, *topology.slaves))
    named = [(f"backends.hosts.{host}", host) for host in settings.backends.hosts]
    named += [(f"fleet.hosts.{host}", host) for host in (settings.fleet.hosts if settings.fleet else ())]
    for place, host in named:
        if host not in known:
            text = "the topology has no such host: what is said of it here is of no use"
            yield place, text + _meant(host, known)


def _unknown_databases(settings: Settings, schema: Schema, topology: Topology) -> Iterator[tuple[str, str]]:
    """The databases of users and accounts that neither document has. The default host may have them, now or
    when it is asked; where there is none, they are errors (`load.check`).
    """
    if topology.default is None:
        return
    whole = [one.database for one in topology.keyspaces.values() if one.database]
    known = dict.fromkeys((*schema.databases, *whole, *sorted(SERVERS)))
    users, accounts = settings.users, settings.backends.accounts
    of_users = {name for one in users for name in one.databases}
    lists = [(f"users[{index}]", one.databases) for index, one in enumerate(users)]
    for index, account in enumerate(accounts):  # whose names are mostly those of users, and told of there
        own = tuple(name for name in account.databases if name not in of_users)
        lists.append((f"backends.accounts[{index}]", own))
    for place, names in lists:
        for name in names:
            if name == "*" or name in known or topology.physical(name) is not None:
                continue
            text = (
                f"neither the schema nor the topology has a database {name!r}: unless the default host,"
                f" {topology.default}, has it, it lets nobody into anything"
            )
            yield f"{place}.databases", text + _meant(name, known)


def _meant(name: str, known: Iterable[str]) -> str:
    """The name that is nearest, whatever its case; without one, some that there are."""
    folded = {one.casefold().strip(): one for one in reversed(list(known))}
    near = difflib.get_close_matches(name.casefold().strip(), folded, 1, 0.5)
    if near:
        return f"; did you mean {folded[near[0]]!r}?"
    others = [one for one in known if one not in SERVERS]
    more = ", …" if len(others) > _SOME else ""
    return f"; there are {', '.join(others[:_SOME])}{more}" if others else ""
