"""KILL QUERY of a SET with several assignments: all of them hold, or none."""

from __future__ import annotations

import threading

from tests.integration.fixtures import MakeRaw

RUNS = 300


def test_a_killed_set_is_done_whole_or_not_at_all(raw: MakeRaw) -> None:
    client, killer = raw(database="legacy"), raw(database="legacy")
    number = int(client.ask("SELECT CONNECTION_ID()").value or 0)
    over = threading.Event()

    def kill() -> None:
        while not over.is_set():
            killer.ask(f"KILL QUERY {number}")

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        wrong, killed, held = [], 0, 0
        for run in range(RUNS):
            sql = f"SET @own = 'o{run}', time_zone = '+0{run % 9}:30', group_concat_max_len = {1000 + run}"
            reply = client.ask(sql)
            shown = client.ask("SELECT @own, @@time_zone, @@group_concat_max_len")
            while shown.code == 1317:
                shown = client.ask("SELECT @own, @@time_zone, @@group_concat_max_len")
            if reply.code == 1317:
                killed += 1
            else:
                held = run
            expected = (f"o{held}".encode(), f"+0{held % 9}:30".encode(), b"%d" % (1000 + held))
            if shown.rows != [expected] and (held or not killed):
                wrong.append((run, reply.code, shown.kind, shown.code, shown.message, shown.rows, expected))
    finally:
        over.set()
        thread.join()
    assert wrong == []
