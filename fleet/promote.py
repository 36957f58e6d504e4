"""What a change of masters is, as data: the topology's documents on the way, and what forbids it. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from config.address import parse_address
from config.flavour import Flavour
from config.hosts import same_name
from config.topology import Host, State, Topology
from fleet.document import Document

#: What clients would notice if it were otherwise on the new master.
ALIKE: Final = ("sql_mode", "lower_case_table_names", "time_zone", "collation_server")


# --- documents -------------------------------------------------------------------------------------


def frozen(document: Document, host: Host) -> Document:
    """The next version, with the shards of `host` frozen. What is not sharded has no state: there, writes
    wait when the master refuses them.
    """
    made = _next(document)
    for one in _pairs(made):
        if _is(one["master"], host) and "range" in one and one.get("state", State.SERVING) == State.SERVING:
            one["state"] = str(State.FROZEN)
    return made


def serving(document: Document, host: Host) -> Document:
    """The next version, with the frozen shards of `host` serving again."""
    made = _next(document)
    for one in _pairs(made):
        if _is(one["master"], host) and one.get("state") == State.FROZEN:
            del one["state"]
    return made


def promoted(document: Document, old: Host, new: Host, slave: Host | None) -> Document:
    """The next version, with `new` the master of all that `old` was. Where `new` was the slave, or there was
    none, `slave` is it then.
    """
    made = _next(document)
    for one in _pairs(made):
        if not _is(one["master"], old):
            continue
        one["master"] = new
        if one.get("slave") is None or _is(one["slave"], new):
            one.pop("slave", None)
            if slave is not None:
                one["slave"] = slave
        if one.get("state") == State.FROZEN:
            del one["state"]
    return made


def with_slave(document: Document, master: Host, slave: Host) -> Document:
    """The next version, with a slave where `master` has none."""
    made = _next(document)
    for one in _pairs(made):
        if _is(one["master"], master) and one.get("slave") is None:
            one["slave"] = slave
    return made


def _next(document: Document) -> Document:
    made = copy.deepcopy(document)
    made["version"] = int(document["version"]) + 1
    return made


def _pairs(document: Document) -> Iterator[dict[str, Any]]:
    """Every mapping with a master."""
    listed = [document.get("default")]
    for keyspace in document["keyspaces"].values():
        ranges = keyspace.get("ranges", [])
        listed += [keyspace, *(ranges.values() if isinstance(ranges, dict) else ranges)]
    yield from (one for one in listed if isinstance(one, dict) and one.get("master"))


def _is(text: str, host: Host) -> bool:
    return same_name(str(parse_address(text))) == same_name(host)


def pairs_of(topology: Topology) -> list[tuple[Host, Host | None, State]]:
    """Every master with its slave, and the state of what it has."""
    listed = [(topology.default, topology.default_slave, State.SERVING)]
    for keyspace in topology.keyspaces.values():
        listed.append((keyspace.master, keyspace.slave, State.SERVING))
        listed += [(one.master, one.slave, one.state) for one in keyspace.ranges]
    return [(master, slave, state) for master, slave, state in listed if master]


def slaves_of(topology: Topology, host: Host) -> list[Host]:
    """The slaves of a master."""
    return list(dict.fromkeys(slave for master, slave, _ in pairs_of(topology) if master == host and slave))


def is_frozen(topology: Topology, host: Host) -> bool:
    """Whether some of a master's shards are frozen."""
    return any(master == host and state is State.FROZEN for master, _, state in pairs_of(topology))


# --- servers ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Server:
    """What a server says of itself. `logs`: what it replicates is in its binary log, too, by GTID."""

    host: Host
    flavour: Flavour
    version: tuple[int, ...]
    server_id: int
    logs: bool
    settings: Mapping[str, str] = field(default_factory=dict)


def server_problems(old: Server, new: Server) -> Iterator[str]:
    """Why `new` cannot take the place of `old`."""
    if old.flavour is not new.flavour:
        yield f"it is {new.flavour.name}, {old.host} is {old.flavour.name}"
        return
    if new.version[:2] < old.version[:2]:
        versions = [".".join(map(str, one.version)) for one in (new, old)]
        yield f"its version, {versions[0]}, is older than {versions[1]} of {old.host}"
    if not new.logs:
        wanted = "log_slave_updates" if old.flavour.gtid_positions else "gtid_mode, log_replica_updates"
        yield f"it has no binary log of what it replicates, by GTID: set log_bin, {wanted}"
    if new.server_id == old.server_id:
        yield f"its server_id is that of {old.host}, {new.server_id}"
    for name in ALIKE:
        if new.settings.get(name) != old.settings.get(name):
            was, now = (one.settings.get(name) or "''" for one in (old, new))
            yield f"its {name} is {now}, on {old.host} it is {was}"


Tables = Mapping[str, frozenset[str]]
"""The tables of each database."""
_SHOWN: Final = 5


def table_problems(old: Tables, new: Tables) -> Iterator[str]:
    """What the new master lacks."""
    databases = sorted(old.keys() - new.keys())
    if databases:
        yield f"it lacks the databases {_some(databases)}"
    lacking = [
        f"{database}.{table}"
        for database in sorted(old.keys() & new.keys())
        for table in sorted(old[database] - new[database])
    ]
    if lacking:
        yield f"it lacks the tables {_some(lacking)}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


# --- MariaDB's positions ---------------------------------------------------------------------------


def read_position(text: str) -> dict[int, tuple[int, int]]:
    """MariaDB's `0-1-100,1-2-5`: server and number of the last of each domain."""
    parts = (one.split("-") for one in _listed(text))
    return {int(domain): (int(number), int(server)) for domain, server, number in parts}


def ahead(state: str, other: str, position: str) -> list[str]:
    """What a server has that another has not, both of MariaDB: `state` and `other` are their
    `gtid_binlog_state`, the last of each server in each domain; `position` the last that the other has of
    each domain. Numbers rise within a domain, so where the other knows nothing of a server, the position
    tells.
    """
    held = {tuple(text.split("-")[:2]): int(text.split("-")[2]) for text in _listed(other)}
    reached = {domain: number for domain, (number, _) in read_position(position).items()}
    found = []
    for text in _listed(state):
        domain, server, number = text.split("-")
        last = held.get((domain, server), reached.get(int(domain), 0))
        if int(number) > last:
            first = f"{domain}-{server}-{last + 1}" if (domain, server) in held else text
            found.append(first if first == text else f"{first} to {number}")
    return found


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def beyond(one: str, other: str) -> list[str]:
    """The last of each domain that position `one` has and `other` has not reached, both of MariaDB."""
    held = read_position(other)
    return [
        f"{domain}-{server}-{number}"
        for domain, (number, server) in read_position(one).items()
        if number > held.get(domain, (0, 0))[0]
    ]


def latest(one: str, other: str) -> str:
    """The greater of two positions of MariaDB, domain by domain."""
    first, second = read_position(one), read_position(other)
    most = {
        domain: max(first.get(domain, (0, 0)), second.get(domain, (0, 0)))
        for domain in first.keys() | second.keys()
    }
    return ",".join(f"{domain}-{server}-{number}" for domain, (number, server) in sorted(most.items()))
