"""Who does not read the log stops nobody."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from proxy.log_writer import LogWriter
from tests.support.waiting import wait_until

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def read_lines(fd: int, count: int) -> list[bytes]:
    found = b""
    while found.count(b"\n") < count:
        found += os.read(fd, 1 << 16)
    return found.splitlines()


def test_lines_are_written_in_order(pipe: Pipe) -> None:
    reading, writing = pipe
    writer = LogWriter(writing)
    for number in range(1000):
        writer.put(f"line {number}")
    assert read_lines(reading, 1000) == [b"line %d" % number for number in range(1000)]
    writer.rest()
    writer.put("after a rest")
    writer.rest()
    assert os.read(reading, 100) == b"after a rest\n"


def test_what_does_not_fit_is_counted(pipe: Pipe) -> None:
    reading, writing = pipe
    writer = LogWriter(writing, limit=200_000)
    for _ in range(300):  # a pipe has room for 64 KB
        writer.put("x" * 999)
    written = 300 - writer.lost
    assert 200 <= written <= 270
    writer.rest(0.05)  # it does not wait for ever
    assert len(read_lines(reading, written)) == written
    wait_until(lambda: writer.take_untold() == writer.lost, "there is room again")
    assert writer.take_untold() == 0
    writer.put("later")
    assert read_lines(reading, 1) == [b"later"]


def test_a_reader_that_is_gone() -> None:
    ends = os.pipe()
    os.close(ends[0])
    writer = LogWriter(ends[1])
    writer.put("nobody hears it")
    writer.rest()
    os.close(ends[1])


def test_a_forked_process_has_its_own(pipe: Pipe) -> None:
    reading, writing = pipe
    writer = LogWriter(writing)
    writer.put("parent")
    writer.rest()
    pid = os.fork()
    if not pid:
        writer.put("child")
        writer.rest()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert read_lines(reading, 2) == [b"parent", b"child"]
