"""A slave that replicates from a master: row-based, by GTID, read-only. Both run with `binlog=True`."""

from __future__ import annotations

from pymysql.converters import escape_string

from demo.programs import Flavour, ServerError
from demo.servers import LocalServer, create_account

USER = "replication"
CATCH_UP_SECONDS = 60


def prepare_master(master: LocalServer, password: str) -> None:
    """Create the account that slaves read with; it is not in the binary log, so slaves do not have it."""
    with master.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        create_account(cursor, USER, password, "REPLICATION SLAVE")


def start_slave(slave: LocalServer, master: LocalServer, password: str) -> None:
    """Let `slave`, which must hold no data of its own, replicate everything from `master`."""
    source = (master.host, master.port, USER, escape_string(password))
    with slave.connect() as connection, connection.cursor() as cursor:
        if slave.program.flavour is Flavour.MYSQL:
            cursor.execute(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{}', SOURCE_PORT={}, SOURCE_USER='{}',"
                " SOURCE_PASSWORD='{}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1,"
                " SOURCE_CONNECT_RETRY=1".format(*source)
            )
            cursor.execute("START REPLICA")
            cursor.execute("SET GLOBAL super_read_only = ON")
        else:
            cursor.execute(
                "CHANGE MASTER TO MASTER_HOST='{}', MASTER_PORT={}, MASTER_USER='{}',"
                " MASTER_PASSWORD='{}', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1".format(*source)
            )
            cursor.execute("START SLAVE")
            cursor.execute("SET GLOBAL read_only = ON")


def wait_for_slave(slave: LocalServer, master: LocalServer, seconds: int = CATCH_UP_SECONDS) -> None:
    """Wait until `slave` has applied all that `master` has committed now. ServerError says why it has not."""
    mysql = slave.program.flavour is Flavour.MYSQL
    with master.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@global.gtid_executed" if mysql else "SELECT @@global.gtid_binlog_pos")
        row = cursor.fetchone()
    position = row[0] if row else ""
    if not position:
        return
    wait = "WAIT_FOR_EXECUTED_GTID_SET" if mysql else "MASTER_GTID_WAIT"
    with slave.connect(read_timeout=seconds + 10) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {wait}(%s, %s)", (position, seconds))
        row = cursor.fetchone()
        if row and row[0] == 0:
            return
        cursor.execute("SHOW REPLICA STATUS" if mysql else "SHOW SLAVE STATUS")
        status = dict(
            zip((one[0] for one in cursor.description or ()), cursor.fetchone() or (), strict=False)
        )
    errors = [str(status[name]) for name in ("Last_IO_Error", "Last_SQL_Error") if status.get(name)]
    reason = " ".join(errors) or "it is slow"
    raise ServerError(f"{slave.name} has not caught up with {master.name} in {seconds} s: {reason}")
