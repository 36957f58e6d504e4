"""What promoting asks of servers, beside `replication` and `fence`."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Final

from config.flavour import flavour_of
from config.topology import Host
from fleet import fence, replication
from fleet.altering import COPIES
from fleet.core.errors import HostError
from fleet.core.hosts import Hosts
from fleet.grants import SCRATCH
from fleet.promote import ALIKE, Server, Tables, ahead

USER: Final = "shardgate_replication"
"""The account that slaves read with when a promotion has made it."""
_SYSTEM: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
_NOT_LOGGED: Final = frozenset({SCRATCH, COPIES})
"""What is in no binary log, and made wherever it is wanted."""
_SERVERS_OWN: Final = ("system user", "event_scheduler")
_GONE: Final = 1094
_LOOK_SECONDS: Final = 0.05
_COUNTED_SECONDS: Final = 3.0
CACHED_SECONDS: Final = 0.11
"""The servers keep information_schema.INNODB_TRX for so long."""


async def look(hosts: Hosts, host: Host) -> Server:
    """HostError when it cannot be asked."""
    text = str((await hosts.query(host, "SELECT VERSION()"))[0][0])
    flavour = flavour_of(text)
    positions = flavour.gtid_positions
    logging = "@@log_slave_updates" if positions else "@@log_replica_updates AND @@gtid_mode = 'ON'"
    settings = ", ".join(f"@@GLOBAL.{name}" for name in ALIKE)
    asked = f"SELECT @@server_id, @@log_bin AND {logging}, {settings}"
    ((number, logs, *values),) = await hosts.query(host, asked)
    numbers = text.partition("-")[0].split(".")
    version = tuple(int(one) for one in numbers if one.isdecimal())
    alike = dict(zip(ALIKE, map(str, values), strict=True))
    return Server(host, flavour, version, int(number), bool(logs), alike)


async def tables(hosts: Hosts, host: Host) -> Tables:
    """All databases that slaves must have, and their tables."""
    found: dict[str, set[str]] = {
        str(name): set()
        for (name,) in await hosts.query(host, "SELECT schema_name FROM information_schema.schemata")
        if name not in _SYSTEM | _NOT_LOGGED
    }
    for database, table in await hosts.query(
        host, "SELECT table_schema, table_name FROM information_schema.tables"
    ):
        if database in found:
            found[database].add(str(table))
    return {name: frozenset(names) for name, names in found.items()}


async def only_on(hosts: Hosts, server: Server, other: Host) -> str:
    """The GTIDs of what `server` has and `other`, which runs the same program, has not; "" for none. What the
    first commits while this looks counts as there on both.

    A master sends a transaction from its binary log before it counts it as executed, so a slave may for a
    moment have what its master does not name yet: `other` is asked again before that is believed.
    """
    positions = server.flavour.gtid_positions
    variables = ["gtid_binlog_state", "gtid_current_pos"] if positions else ["gtid_executed"]
    mine = await _gtids(hosts, server.host, variables[0])
    deadline = time.monotonic() + _COUNTED_SECONDS
    while True:
        theirs = [await _gtids(hosts, other, one) for one in variables]
        if positions:
            extra = ", ".join(ahead(mine, *theirs))
        else:
            subtract = f"SELECT GTID_SUBTRACT('{mine}', '{theirs[0]}')"
            extra = str((await hosts.query(server.host, subtract))[0][0]).replace("\n", "")
        if not extra or time.monotonic() > deadline:
            return extra
        await asyncio.sleep(_LOOK_SECONDS)


async def _gtids(hosts: Hosts, host: Host, variable: str) -> str:
    found = (await hosts.query(host, f"SELECT @@GLOBAL.{variable}"))[0][0]
    return replication.gtids(host, found)


async def transactions_end(hosts: Hosts, host: Host, seconds: float) -> bool:
    """Wait until no transaction is open there; whether that came within the time."""
    deadline = time.monotonic() + seconds
    await asyncio.sleep(CACHED_SECONDS)
    open_ones = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id <> 0"
    while (await hosts.query(host, open_ones))[0][0]:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
    return True


async def end_transactions(hosts: Hosts, host: Host) -> None:
    """End clients' connections that keep rows locked: on a slave, what is replicated would wait for them."""
    locking = (
        "SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX "
        "WHERE trx_rows_locked > 0 OR trx_rows_modified > 0"
    )
    ids = {int(one) for (one,) in await hosts.query(host, locking)}
    for number, user, *_ in await hosts.query(host, "SHOW PROCESSLIST") if ids else ():
        if number in ids and user not in _SERVERS_OWN:
            try:
                await hosts.query(host, f"KILL {number}")
            except HostError as error:
                if error.code != _GONE:
                    raise


async def unnamed_slaves(hosts: Hosts, host: Host, known: Sequence[Host]) -> list[int]:
    """The server_id of each slave of `host` that is not one of `known`."""
    named = [int((await hosts.query(one, "SELECT @@server_id"))[0][0]) for one in known]
    positions = (await replication.flavour(hosts, host)).gtid_positions
    rows = await hosts.query(host, "SHOW SLAVE HOSTS" if positions else "SHOW REPLICAS")
    return sorted(int(row[0]) for row in rows if int(row[0]) not in named)


async def replication_account(hosts: Hosts, master: Host) -> tuple[str, str]:
    """An account for slaves of `master`, with a password of its own each time: user name and password. What
    slaves it has must be told of it.
    """
    password = f"{secrets.token_urlsafe(18)}aA1-"  # of all kinds, where that is asked for
    statements = [
        f"CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{password}'",
        f"ALTER USER '{USER}'@'%' IDENTIFIED BY '{password}'",
        f"GRANT REPLICATION SLAVE ON *.* TO '{USER}'@'%'",
    ]
    await hosts.run(master, statements)
    return USER, password


async def follow(
    hosts: Hosts, host: Host, master: Host, user: str, password: str, *, encrypted: bool = False
) -> None:
    """It replicates from `master`, from what it has on: also what it has written itself as a master. It takes
    no writes after a restart either, where that can be told.
    """
    if (await replication.flavour(hosts, host)).gtid_positions:
        await hosts.run(host, ["STOP SLAVE", "SET GLOBAL gtid_slave_pos = @@GLOBAL.gtid_current_pos"])
    await replication.follow(hosts, host, master, user, password, encrypted=encrypted)
    await fence.keep(hosts, host)
