"""Replication of whole servers by GTID, on both kinds of them.

    identity    by which a replica knows its source
    replica     what a host replicates, and how that goes
    position    what a host has committed
    wait_until  a host has applied a position
    checksums   of all tables of some databases
    start, stop, forget, follow

All raise HostError for what a server refuses. One source a host: who has several is refused.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiomysql import escape_string

from config.flavour import Flavour, flavour_of
from config.schema import quote
from config.topology import Host
from fleet.core.errors import Failed, HostError
from fleet.core.hosts import Hosts

LAG_SECONDS: Final = 60
_TOGETHER: Final = 20
"""Tables in one CHECKSUM TABLE."""
_DATABASES: Final = 200
"""Databases that are asked for in one network write."""
_SLICE: Final = 1
"""Seconds between two looks at a replica that is waited for."""


@dataclass(frozen=True)
class Replica:
    """What a host replicates. `source`: as it was told, another name of the host may be meant. `source_id`:
    see `identity`, "" while it was not reached yet. `lag`: seconds behind, None when that is not known.
    `filters`: what it leaves out; `encrypted`: over TLS.
    """

    source: Host
    source_id: str
    receives: bool
    applies: bool
    gtid: bool
    lag: int | None = None
    error: str = ""
    filters: str = ""
    encrypted: bool = False

    @property
    def problem(self) -> str:
        """Why it is not fit to follow its source to the end, or ""."""
        if self.error:
            return self.error
        if not self.receives or not self.applies:
            return f"its {'IO' if not self.receives else 'SQL'} thread does not run"
        if not self.gtid:
            return "it replicates by file and position, not by GTID"
        if self.filters:
            return f"it leaves something out: {self.filters}"
        if self.lag is not None and self.lag > LAG_SECONDS:
            return f"it is {self.lag} s behind"
        return ""


async def flavour(hosts: Hosts, host: Host) -> Flavour:
    """Which kind of server it is."""
    return flavour_of(str((await hosts.query(host, "SELECT VERSION()"))[0][0]))


async def identity(hosts: Hosts, host: Host) -> str:
    """server_uuid of MySQL, server_id of MariaDB."""
    words = await _words(hosts, host)
    return str((await hosts.query(host, f"SELECT @@GLOBAL.{words.identity}"))[0][0])


async def replica(hosts: Hosts, host: Host) -> Replica | None:
    """None when it replicates nothing."""
    words = await _words(hosts, host)
    rows = await hosts.records(host, words.status)
    if len(rows) > 1:
        raise HostError(host, f"replicates from {len(rows)} sources: only one can be followed")
    found = read_replica(rows[0]) if rows else None
    if found is None or _WORKERS not in found.error:
        return found
    asked = f"SELECT LAST_ERROR_MESSAGE FROM performance_schema.{_WORKERS} WHERE LAST_ERROR_NUMBER <> 0"
    errors = "; ".join(str(text) for (text,) in await hosts.query(host, asked))
    return dataclasses.replace(found, error=errors or found.error)


_WORKERS: Final = "replication_applier_status_by_worker"
"""Where the error itself is: SHOW REPLICA STATUS sends people there."""


def read_replica(row: Mapping[str, Any]) -> Replica:
    """A row of SHOW REPLICA STATUS, or of SHOW ALL SLAVES STATUS."""

    def of(*names: str) -> Any:
        return next((row[name] for name in names if row.get(name) is not None), None)

    lag = of("Seconds_Behind_Source", "Seconds_Behind_Master")
    number = of("Source_UUID", "Master_Server_Id")
    errors = [str(row[name]) for name in ("Last_IO_Error", "Last_SQL_Error") if row.get(name)]
    filters = [
        f"{name} = {value}"
        for name, value in row.items()
        if value
        and name.startswith("Replicate_")
        and name.split("_")[1] in ("Do", "Ignore", "Wild", "Rewrite")
    ]
    return Replica(
        f"{of('Source_Host', 'Master_Host')}:{of('Source_Port', 'Master_Port')}",
        "" if number in (None, 0) else str(number),
        receives=of("Replica_IO_Running", "Slave_IO_Running") == "Yes",
        applies=of("Replica_SQL_Running", "Slave_SQL_Running") == "Yes",
        gtid=str(of("Auto_Position", "Using_Gtid") or "0") not in ("0", "No"),
        lag=None if lag is None else int(lag),
        error="; ".join(errors),
        filters=", ".join(filters),
        encrypted=of("Source_SSL_Allowed", "Master_SSL_Allowed") == "Yes",
    )


_GTIDS: Final = re.compile(r"[0-9A-Za-z_:,\- ]*")


def gtids(host: Host, told: object) -> str:
    """GTIDs as `host` tells them, without line breaks. HostError when it tells something else: they go into
    statements for other hosts, which it has no say in.
    """
    text = str(told).replace("\n", "")
    if _GTIDS.fullmatch(text) is None:
        raise HostError(host, f"tells what are no GTIDs: {text[:80]!r}")
    return text


async def position(hosts: Hosts, host: Host) -> str:
    """All that the host has committed, for `wait_until`: a set of GTIDs. "" for nothing."""
    words = await _words(hosts, host)
    return gtids(host, (await hosts.query(host, f"SELECT @@GLOBAL.{words.position}"))[0][0])


async def wait_until(hosts: Hosts, host: Host, wanted: str, seconds: float) -> None:
    """A replica has applied `wanted`. Failed says why not, at once when replication has an error."""
    if not wanted:
        return
    words = await _words(hosts, host)
    deadline = time.monotonic() + seconds
    while True:
        left = max(0.0, min(_SLICE, deadline - time.monotonic()))
        asked = f"SELECT {words.wait}('{escape_string(wanted)}', {left:g})"
        if (await hosts.query(host, asked, left + 30))[0][0] == 0:
            return
        now = await replica(hosts, host)
        reason = "it replicates nothing" if now is None else now.error
        if now is not None and not reason and not (now.receives and now.applies):
            reason = now.problem
        if reason or time.monotonic() >= deadline:
            reason = reason or f"it is still behind after {seconds:g} s"
            raise Failed(f"{host}: has not applied all: {reason}")


async def start(hosts: Hosts, host: Host) -> None:
    """It goes on replicating, if it does not."""
    now = await replica(hosts, host)
    if now is not None and now.receives and now.applies:
        return
    await hosts.run(host, [f"START {(await flavour(hosts, host)).replica_word}"])


async def stop(hosts: Hosts, host: Host) -> None:
    """It replicates nothing until `start`, or until the server is started anew."""
    await hosts.run(host, [f"STOP {(await flavour(hosts, host)).replica_word}"])


async def forget(hosts: Hosts, host: Host) -> None:
    """It replicates nothing any more, and has forgotten from whom. What it has applied it still knows."""
    word = (await flavour(hosts, host)).replica_word
    await hosts.run(host, [f"STOP {word}", f"RESET {word} ALL"])


async def encrypts(hosts: Hosts, host: Host) -> bool:
    """Whether the tools' connections to it are encrypted."""
    return bool((await hosts.query(host, "SHOW SESSION STATUS LIKE 'Ssl_cipher'"))[0][1])


async def follow(
    hosts: Hosts, host: Host, source: Host, user: str, password: str, *, encrypted: bool = False
) -> None:
    """It replicates from `source`, from the position on that it has. `encrypted`, or when the tools'
    connections to the source are: over TLS; verified, where the settings name the file for that.
    """
    name, _, port = source.rpartition(":")
    values = (name.strip("[]"), int(port), escape_string(user), escape_string(password))
    words = await _words(hosts, host)
    change = words.follow.format(*values)
    tls = hosts.tls_for(source)
    if tls is not None and tls.replication_ca is not None:
        named = 1 if tls.verify == "full" else 0  # without it: that the authority has signed it
        change += words.tls + words.verified.format(escape_string(tls.replication_ca), named)
    elif encrypted or await encrypts(hosts, source):
        change += words.tls
    word = (await flavour(hosts, host)).replica_word
    await hosts.run(host, [f"STOP {word}", change, f"START {word}"])


# --- the same rows -----------------------------------------------------------------------------------

Checksums = Mapping[tuple[str, str], int | None]
"""By database and table. None: the table cannot be read."""


async def checksums(hosts: Hosts, host: Host, databases: Iterable[str]) -> Checksums:
    """Of every table of the databases: reads each row. Equal on two hosts when nobody writes."""
    names = sorted(await tables(hosts, host, databases))
    chunks = [names[at : at + _TOGETHER] for at in range(0, len(names), _TOGETHER)]

    async def ask(chunk: Sequence[tuple[str, str]]) -> list[Any]:
        listed = ", ".join(f"{quote(database)}.{quote(table)}" for database, table in chunk)
        return [row[1] for row in await hosts.query(host, f"CHECKSUM TABLE {listed}", None)]

    found = await asyncio.gather(*(ask(chunk) for chunk in chunks))
    return dict(zip(names, (one for chunk in found for one in chunk), strict=True))


async def tables(hosts: Hosts, host: Host, databases: Iterable[str]) -> set[tuple[str, str]]:
    """The tables of the databases, without views. (information_schema would look at all others, too.)"""
    names = sorted(databases)
    found: set[tuple[str, str]] = set()
    for at in range(0, len(names), _DATABASES):
        some = names[at : at + _DATABASES]
        answers = await hosts.many(host, [f"SHOW FULL TABLES FROM {quote(name)}" for name in some])
        for database, rows in zip(some, answers, strict=True):
            found |= {(database, str(table)) for table, kind in rows if kind == "BASE TABLE"}
    return found


def differing(one: Checksums, other: Checksums) -> list[tuple[str, str]]:
    """The tables that are not the same on both, or not on both."""
    return sorted(
        name for name in one.keys() | other.keys() if name not in one or one[name] != other.get(name, -1)
    )


# --- the words of each kind --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Words:
    identity: str
    status: str
    position: str
    wait: str
    follow: str
    tls: str
    verified: str


_WORDS: Final = {
    "REPLICA": _Words(
        "server_uuid",
        "SHOW REPLICA STATUS",
        "gtid_executed",
        "WAIT_FOR_EXECUTED_GTID_SET",
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{}', SOURCE_PORT={}, SOURCE_USER='{}', "
        "SOURCE_PASSWORD='{}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
        ", SOURCE_SSL=1",
        ", SOURCE_SSL_CA='{}', SOURCE_SSL_VERIFY_SERVER_CERT={}",
    ),
    "SLAVE": _Words(
        "server_id",
        "SHOW ALL SLAVES STATUS",
        "gtid_binlog_pos",
        "MASTER_GTID_WAIT",
        "CHANGE MASTER TO MASTER_HOST='{}', MASTER_PORT={}, MASTER_USER='{}', MASTER_PASSWORD='{}', "
        "MASTER_USE_GTID=slave_pos",
        ", MASTER_SSL=1",
        ", MASTER_SSL_CA='{}', MASTER_SSL_VERIFY_SERVER_CERT={}",
    ),
}


async def _words(hosts: Hosts, host: Host) -> _Words:
    return _WORDS[(await flavour(hosts, host)).replica_word]
