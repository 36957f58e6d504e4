"""Ctrl-C, wherever it comes: one plain line, and what it says is true. (Promote and split: tests/faults.)"""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from config.load import load_settings
from fleet.core.hosts import Hosts, connector
from fleet.core.interrupt import to_end
from tests.fleet.killed import Killer
from tests.fleet.world import World
from tests.support.servers import LocalServer
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def world(tmp_path: Path, servers: list[LocalServer]) -> Iterator[World]:
    made = World(tmp_path, servers)
    yield made
    made.clear()


def test_while_the_program_is_imported() -> None:
    code = (
        "import builtins, proxy.__main__ as program\n"
        "real = builtins.__import__\n"
        "def imported(name, *rest):\n"
        "    if name.startswith('fleet'): raise KeyboardInterrupt\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = imported\n"
        "program.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "shardgate: interrupted\n")


def test_no_import_swallows_it() -> None:
    """Libraries import within callbacks whose exceptions are ignored; then the command would go on."""
    code = (
        "import builtins, contextlib, signal, sys, proxy.__main__ as program\n"
        "real = builtins.__import__\n"
        "def imported(name, *rest):\n"
        "    if name.startswith('fleet'):\n"
        "        with contextlib.suppress(KeyboardInterrupt): signal.raise_signal(signal.SIGINT)\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = imported\n"
        "sys.argv = ['shardgate', 'id', '1']\n"
        "program.main()"
    )
    command = ["env", "--default-signal=INT", sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "shardgate: interrupted\n")


def test_ctrl_c_when_all_is_done_changes_no_exit_status() -> None:
    """While the interpreter ends, which takes a while: a script would take what was done for not begun."""
    code = (
        "import atexit, os, signal, sys\n"
        "from proxy.__main__ import main\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['shardgate', 'id', '1']\n"
        "main()"
    )
    done = subprocess.run(
        ["env", "--default-signal=INT", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_before_and_between_steps(world: World, tmp_path: Path) -> None:
    """Nothing is said to be unfinished that was not begun; what was begun is finished by the same command."""
    log, before = tmp_path / "log", world.state()
    create = ["fleet", "create", "--config", str(world.settings), "--yes"]
    killer = Killer()
    for at in (2, 4, 5):  # with the lock, with the operation in the journal, with its steps
        log.write_text("")
        assert killer.run(create, log, at, signal.SIGINT) == 1
        assert log.read_text() == "shardgate: interrupted: nothing was changed\n", at
        assert world.state() == before
    assert "unfinished" not in world.run("status")[1]
    log.write_text("")
    assert killer.run(create, log, 12, signal.SIGINT) == 1
    assert "shardgate: interrupted\nshardgate: operation" in log.read_text(), log.read_text()
    assert "run the same command again, which goes on where it was" in log.read_text()
    assert "failed" in world.run("status")[1]
    assert killer.run(create, log) == 0, log.read_text()
    assert world.run("create", "--yes")[0] == 0
    assert world.run("verify")[0] == 0


def test_at_the_prompt(world: World) -> None:
    before = world.state()
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "proxy", "fleet", "create", "--config", str(world.settings)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=end, stdout=end, stderr=end, start_new_session=True, close_fds=True
    )
    os.close(end)
    printed = b""
    while b"Go on?" not in printed:
        printed += os.read(terminal, 4096)
    status = None
    while status is None:  # what comes while the line is being set up is seen with the next key only
        os.kill(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            status = process.wait(10)
    assert status == 2
    printed = os.read(terminal, 4096)
    os.close(terminal)
    assert printed.decode().strip() == "shardgate: interrupted: nothing was changed"
    assert world.state() == before


def test_what_is_under_way_has_ended(world: World) -> None:
    """A thread is waited for; a statement on a host is ended there, and does nothing later on."""
    started, done = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        done.wait(60)

    async def run() -> None:
        task = asyncio.gather(to_end(work))
        await asyncio.to_thread(started.wait, 60)
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()
        done.set()
        with pytest.raises(asyncio.CancelledError):
            await task

        server = world.servers[0]
        login = ("root", server.password)
        async with Hosts(connector(settings.backends, lambda host: login)) as hosts:
            asked = asyncio.gather(hosts.query(server.address, "SELECT SLEEP(100)"))
            await asyncio.to_thread(wait_until, sleeps, "the statement")
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            assert sleeps()
            await hosts.end_cut_off(30)
            assert not sleeps()

    def sleeps() -> bool:
        return any("SLEEP(100)" in str(row[7]) for row in world.execute(0, "SHOW FULL PROCESSLIST"))

    settings = load_settings(world.settings)
    asyncio.run(run())
