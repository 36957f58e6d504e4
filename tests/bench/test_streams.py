"""The bench of many rows: its statements, and what it prints. It is not run here."""

from __future__ import annotations

import os

from rich.console import Console

from bench.streams import AIM, READS, Read, filling, peak, table


def test_rows_are_made_in_the_server() -> None:
    sql = filling(7, 2500)
    assert sql.startswith("INSERT INTO db00007.users (local_id, data) SELECT n + 1")
    assert sql.endswith("WHERE n < 2500")
    assert sql.count("UNION ALL SELECT 9") == 4  # as many digits as the number has


def test_the_table_has_every_read() -> None:
    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(table({name: Read(10, 2.0, 0.5, 1.0, 70.0, 80.0) for name in READS}))
    printed = console.export_text()
    assert all(name in printed for name in READS)
    assert str(AIM) in printed


def test_the_peak_is_that_of_all_processes() -> None:
    alone = peak((os.getpid(),))
    assert 1 < alone < peak((os.getpid(), os.getpid()))
