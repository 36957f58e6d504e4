"""KILL QUERY that meets what the proxy asks or sets around a statement: it is done whole, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.fixtures import MakeRaw
from tests.integration.raw import Raw
from tests.support.demo import Demo

RUNS = 300


@contextmanager
def kills(killer: Raw, number: int) -> Iterator[None]:
    """KILL QUERY all the time."""
    over = threading.Event()

    def kill() -> None:
        while not over.is_set():
            killer.ask(f"KILL QUERY {number}")

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def asked(client: Raw, sql: str) -> list[tuple[bytes | None, ...]]:
    """The rows, when no KILL QUERY meets it."""
    while (reply := client.ask(sql)).code == 1317:
        pass
    return reply.rows


def test_a_killed_set_is_done_whole_or_not_at_all(raw: MakeRaw) -> None:
    client, killer = raw(database="legacy"), raw(database="legacy")
    number = int(client.ask("SELECT CONNECTION_ID()").value or 0)
    wrong, killed, held = [], 0, 0
    with kills(killer, number):
        for run in range(RUNS):
            sql = f"SET @own = 'o{run}', time_zone = '+0{run % 9}:30', group_concat_max_len = {1000 + run}"
            reply = client.ask(sql)
            rows = asked(client, "SELECT @own, @@time_zone, @@group_concat_max_len")
            if reply.code == 1317:
                killed += 1
            else:
                held = run
            expected = (f"o{held}".encode(), f"+0{held % 9}:30".encode(), b"%d" % (1000 + held))
            if rows != [expected] and (held or not killed):
                wrong.append((run, reply.code, rows, expected))
    assert wrong == []


def test_what_an_answered_statement_has_left_is_the_sessions(raw: MakeRaw, demo: Demo) -> None:
    """The proxy asks the server for it behind the reply: a KILL QUERY for the statement may come late."""
    client, killer = raw(database="legacy"), raw(database="legacy")
    number = int(client.ask("SELECT CONNECTION_ID()").value or 0)
    create = "CREATE TABLE legacy.killed_ids (id INT AUTO_INCREMENT PRIMARY KEY, n INT)"
    trigger = (
        "CREATE TRIGGER legacy.killing BEFORE INSERT ON legacy.killed_ids FOR EACH ROW SET @triggered = 1"
    )
    wrong = []
    with demo.direct() as server, server.cursor() as cursor:
        for sql in ("DROP TABLE IF EXISTS legacy.killed_ids", create, trigger):
            cursor.execute(sql)
        with kills(killer, number):
            for run in range(RUNS):
                reply = client.ask("INSERT INTO killed_ids (n) VALUES (0)")
                id = b"%d" % reply.insert_id
                if reply.kind == "ok" and asked(client, "SELECT LAST_INSERT_ID()") != [(id,)]:
                    wrong.append(("id", run))
                reply = client.ask(f"SELECT 'v{run}' INTO @kept")
                if reply.kind == "ok" and asked(client, "SELECT @kept") != [(b"v%d" % run,)]:
                    wrong.append(("variable", run))
        cursor.execute("DROP TABLE legacy.killed_ids")
    assert wrong == []
