"""SHOW PROCESSLIST tells what a server says of a statement that waits there."""

from __future__ import annotations

import threading

from pymysql.cursors import Cursor

from tests.integration.fixtures import Connect, make_id
from tests.support.demo import Demo
from tests.support.servers import Connection, LocalServer

LISTS = ("SHOW FULL PROCESSLIST", "SELECT * FROM information_schema.processlist")
ON_THE_LAST_SHARD = make_id(63, 1, 1)
ALTERING = "ALTER TABLE legacy.of_states COMMENT 'other'"


def states(watcher: Cursor, sql: str) -> list[list[str]]:
    """The states of the session that runs the statement, once a server tells that it waits."""
    found: list[list[str]] = []
    for _ in range(500):
        found = []
        for question in LISTS:
            watcher.execute(question)
            found.append([row[6] for row in watcher.fetchall() if row[7] == sql])
        if all(one and one[0].startswith("Waiting") for one in found):
            break
        watcher.execute("DO SLEEP(0.01)")
    return found


def test_a_statement_that_waits_on_another_host_says_so(connect: Connect, demo: Demo) -> None:
    """The host of a shard is asked, too."""
    update = f"UPDATE pins SET data = data WHERE id = {ON_THE_LAST_SHARD}"
    locking = "LOCK TABLES db00063.pins WRITE"
    with connect() as connection, connect() as other, demo.direct(1) as host:
        watcher, holder = other.cursor(), host.cursor()
        holder.execute(locking)
        waiting = threading.Thread(target=connection.cursor().execute, args=(update,))
        waiting.start()
        try:
            found = states(watcher, update)
        finally:
            holder.execute("UNLOCK TABLES")
            waiting.join()
    assert all("lock" in one[0] for one in found), found


def waits(connection: Connection, watcher: Cursor, holder: Cursor) -> list[list[str]]:
    """The states of a statement that waits for the lock on a table's definition."""
    holder.execute("CREATE TABLE legacy.of_states (id INT PRIMARY KEY)")
    holder.execute("BEGIN")
    holder.execute("SELECT * FROM legacy.of_states")
    waiting = threading.Thread(target=connection.cursor().execute, args=(ALTERING,))
    waiting.start()
    try:
        return states(watcher, ALTERING)
    finally:
        holder.execute("COMMIT")
        waiting.join()
        holder.execute("DROP TABLE legacy.of_states")


def test_a_statement_that_waits_for_a_lock_says_so(connect: Connect, plain: LocalServer) -> None:
    through = [connect(database="legacy") for _ in range(3)]
    direct = [plain.connect() for _ in range(3)]
    found, expected = (waits(one, two.cursor(), three.cursor()) for one, two, three in (through, direct))
    assert found == expected
    assert "lock" in found[0][0]
    for connection in direct:
        connection.close()
