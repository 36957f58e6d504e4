"""`shardgate top` as it is run: on a terminal, in a pipe, and how it ends."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .test_top import answering, page

__all__ = ["page"]

HERE = Path(__file__).parents[2]


def command(url: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "proxy", "top", "--url", url, "--interval", "0.5", *more]


def heed() -> None:
    """In the child: shells let programs in the background ignore Ctrl-C, and so all that these start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def heed_terminal() -> None:
    heed()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def piped(url: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command(url), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=HERE, preexec_fn=heed
    ) as running:
        patience = threading.Timer(60, running.kill)  # for a program that says nothing
        patience.start()
        try:
            yield running
        finally:
            patience.cancel()
            running.kill()


class Terminal:
    """A program whose terminal is ours."""

    def __init__(self, url: str, kind: str = "xterm") -> None:
        self.ours, self.its = pty.openpty()
        self.before = termios.tcgetattr(self.its)
        self.process = subprocess.Popen(
            command(url), stdin=self.its, stdout=self.its, stderr=self.its, cwd=HERE, start_new_session=True,
            env={**os.environ, "TERM": kind}, preexec_fn=heed_terminal,
        )  # fmt: skip
        self.shown = b""

    def until(self, text: bytes) -> None:
        end = time.monotonic() + 30
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            if select.select([self.ours], [], [], 1)[0]:
                self.shown += os.read(self.ours, 1 << 16)

    def ended(self) -> int:
        end = time.monotonic() + 30
        while self.process.poll() is None:
            assert time.monotonic() < end, self.shown
            if select.select([self.ours], [], [], 0.1)[0]:
                self.shown += os.read(self.ours, 1 << 16)
        while select.select([self.ours], [], [], 0)[0]:
            self.shown += os.read(self.ours, 1 << 16)
        return self.process.returncode

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.its)


ENDS: dict[str, Callable[[Terminal], Any]] = {
    "q": lambda one: os.write(one.ours, b"q"),
    "Ctrl-C": lambda one: os.write(one.ours, b"\x03"),
    "SIGTERM": lambda one: one.process.terminate(),
    "SIGHUP": lambda one: one.process.send_signal(signal.SIGHUP),
}


@pytest.mark.parametrize("how", ENDS)
async def test_however_it_ends_the_terminal_is_as_it_was(page: str, how: str) -> None:
    def work() -> None:
        terminal = Terminal(page)
        try:
            terminal.until(b"q or Ctrl-C leaves")
            assert not termios.tcgetattr(terminal.its)[3] & termios.ECHO
            ENDS[how](terminal)
            assert terminal.ended() == 0
            assert termios.tcgetattr(terminal.its) == terminal.before
            assert b"Traceback" not in terminal.shown
            assert terminal.shown.rindex(b"\x1b[?1049l") > terminal.shown.rindex(
                b"leaves"
            )  # the other screen
            assert b"\x1b[?25h" in terminal.shown  # the cursor
        finally:
            terminal.close()

    await asyncio.to_thread(work)


async def test_a_terminal_that_can_only_print(page: str) -> None:
    def work() -> None:
        terminal = Terminal(page, "dumb")
        try:
            while terminal.shown.count(b"Hot shards") < 2:
                terminal.until(b"Hot shards")
                terminal.shown += os.read(terminal.ours, 1 << 16)
            assert b"\x1b" not in terminal.shown
        finally:
            terminal.close()

    await asyncio.to_thread(work)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_without_a_terminal_one_look_comes_below_the_other(page: str, number: signal.Signals) -> None:
    def work() -> None:
        with piped(page) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            looks, shown = 0, b""
            while looks < 2:
                line = running.stdout.readline()
                assert line, running.stderr.read()
                looks += line.startswith(b"Hot shards")
                shown += line
            running.send_signal(number)
            assert (running.wait(30), running.stderr.read()) == (0, b"")
            assert b"\x1b" not in shown

    await asyncio.to_thread(work)


async def test_who_reads_it_no_more_ends_it(page: str) -> None:
    def work() -> None:
        with piped(page) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            assert running.stdout.readline()
            running.stdout.close()
            assert (running.wait(30), running.stderr.read()) == (0, b"")

    await asyncio.to_thread(work)


async def test_an_output_without_such_characters(page: str) -> None:
    def work() -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        return subprocess.run(
            command(page, "--once"), env=environment, cwd=HERE, capture_output=True, check=False
        )

    done = await asyncio.to_thread(work)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    assert b"49 clients, 16 busy | 6 in a transaction" in done.stdout
    assert len({len(line) for line in done.stdout.splitlines()}) == 1


@pytest.mark.parametrize(
    "greeting",
    [
        b"K\0\0\0\n11.8.6-MariaDB\0\x04\0\0\0abcdefgh\0",
        b"\x17\0\0\0\xff\x10\x04Too many connections",
    ],
)
def test_a_mysql_port_is_named(greeting: bytes) -> None:
    with answering(lambda _: greeting) as url:
        done = subprocess.run(command(url, "--once"), cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is no status page: a MySQL server or proxy answers there" in done.stderr
    assert done.stderr.removesuffix("\n").isprintable()
    assert "\N{REPLACEMENT CHARACTER}" not in done.stderr
