"""Log lines leave the process by a thread of their own, so that a reader who stops reading (a hung log
shipper, a terminal after Ctrl-S) does not stop the event loop. What does not fit any longer is lost, and
counted.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from contextlib import suppress
from typing import Final

LIMIT: Final = 4 << 20
"""Bytes that may wait for the reader."""


class LogWriter:
    """Writes lines to the file descriptor `fd`, of which `limit` bytes may wait. Usable on both sides of a
    fork: each process has a thread of its own, and what the parent had waiting is the parent's.
    """

    def __init__(self, fd: int, limit: int = LIMIT) -> None:
        self.lost = 0
        """Lines that were not written, of this process."""
        self._fd = fd
        self._limit = limit
        self._untold = 0
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lines: deque[bytes] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._resting = False
        self.lost = self._untold = 0

    def put(self, line: str) -> None:
        """Write a line, soon."""
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        with self._changed:
            if self._waiting + len(data) > self._limit:
                self.lost += 1
                self._untold += 1
                return
            self._lines.append(data)
            self._waiting += len(data)
            self._resting = False
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def rest(self, seconds: float = 1.0) -> None:
        """Wait until all is written, but not for a reader who does not read; the thread ends then."""
        with self._changed:
            thread, self._resting = self._thread, True
            self._changed.notify_all()
        if thread is not None:
            thread.join(seconds)

    def take_untold(self) -> int:
        """Lines lost since this was asked last, once there is room again."""
        with self._changed:
            if not self._untold or self._waiting > self._limit // 2:
                return 0
            untold, self._untold = self._untold, 0
            return untold

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._resting)
                if not self._lines:
                    self._thread = None
                    return
                line = self._lines.popleft()
            self._write(line)
            with self._changed:
                self._waiting -= len(line)

    def _write(self, data: bytes) -> None:
        """A line in one write, so that those of several processes do not mix."""
        with suppress(OSError):  # nobody reads, or the disk is full: there is nobody to tell
            while data:
                data = data[os.write(self._fd, data) :]


class WriterHandler(logging.Handler):
    """Formats records in the thread that logs; the writer does the rest."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self.writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.writer.put(self.format(record))
        except Exception:
            self.handleError(record)
