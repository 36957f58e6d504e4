"""A slave that replicates from a master: row-based, by GTID, read-only. Both run with `binlog=True`.

All raise HostError for what a server refuses.
"""

from __future__ import annotations

from aiomysql import escape_string

from demo.programs import Flavour, ServerError
from demo.servers import LocalServer, account, hosts_of

USER = "replication"
CATCH_UP_SECONDS = 60


async def prepare_master(master: LocalServer, password: str) -> None:
    """Create the account that slaves read with; it is not in the binary log, so slaves do not have it."""
    async with hosts_of([master], logged=False) as hosts:
        await hosts.run(master.address, account(USER, password, "REPLICATION SLAVE"))


async def start_slave(slave: LocalServer, master: LocalServer, password: str) -> None:
    """Let `slave`, which must hold no data of its own, replicate everything from `master`."""
    source = (master.host, master.port, USER, escape_string(password))
    if slave.program.flavour is Flavour.MYSQL:
        statements = [
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{}', SOURCE_PORT={}, SOURCE_USER='{}',"
            " SOURCE_PASSWORD='{}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1,"
            " SOURCE_CONNECT_RETRY=1".format(*source),
            "START REPLICA",
            "SET GLOBAL super_read_only = ON",
        ]
    else:
        statements = [
            "CHANGE MASTER TO MASTER_HOST='{}', MASTER_PORT={}, MASTER_USER='{}',"
            " MASTER_PASSWORD='{}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1".format(*source),
            "START SLAVE",
            "SET GLOBAL read_only = ON",
        ]
    async with hosts_of([slave]) as hosts:
        await hosts.run(slave.address, statements)


async def wait_for_slave(slave: LocalServer, master: LocalServer, seconds: int = CATCH_UP_SECONDS) -> None:
    """Wait until `slave` has applied all that `master` has committed now. ServerError says why it has not."""
    mysql = slave.program.flavour is Flavour.MYSQL
    async with hosts_of([slave, master]) as hosts:
        name = "gtid_executed" if mysql else "gtid_binlog_pos"
        ((position,),) = await hosts.query(master.address, f"SELECT @@global.{name}")
        if not position:
            return
        wait = "WAIT_FOR_EXECUTED_GTID_SET" if mysql else "MASTER_GTID_WAIT"
        asked = f"SELECT {wait}('{escape_string(position)}', {seconds})"
        if await hosts.query(slave.address, asked, seconds + 10) == [(0,)]:
            return
        (status,) = await hosts.records(
            slave.address, "SHOW REPLICA STATUS" if mysql else "SHOW SLAVE STATUS"
        ) or [{}]
    errors = [str(status[name]) for name in ("Last_IO_Error", "Last_SQL_Error") if status.get(name)]
    reason = " ".join(errors) or "it is slow"
    raise ServerError(f"{slave.name} has not caught up with {master.name} in {seconds} s: {reason}")
