"""The bench of silent clients: what it prints. It is not run here."""

from __future__ import annotations

import os

from rich.console import Console

from bench.idle import AIM, Idle, table


def test_the_table_tells_what_a_client_takes() -> None:
    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(table(Idle(clients=1024, rss_before=80.0, rss=100.0, cpu=0.25)))
    printed = console.export_text()
    assert "1,024" in printed
    assert "20.0" in printed  # KB: 20 MB over 1024
    assert "0.25" in printed
    assert str(AIM) in printed
