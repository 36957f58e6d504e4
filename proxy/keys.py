"""The keys of the terminal that a program was called from, each when it is pressed."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from contextlib import suppress
from typing import Any, Self


class Keys:
    """While it is entered, keys need no Enter and are not shown; the terminal is as it was afterwards."""

    def __init__(self) -> None:
        self._file = -1
        self._before: list[Any] = []

    @property
    def heard(self) -> bool:
        """Whether there are any: standard input is a terminal, and this program the one that it is for."""
        return self._file >= 0

    def __enter__(self) -> Self:
        with suppress(OSError, ValueError, AttributeError, termios.error):
            file = sys.stdin.fileno()
            if os.tcgetpgrp(file) == os.getpgrp():  # else it would be stopped
                self._before = termios.tcgetattr(file)
                self._file = file
                tty.setcbreak(file)
        return self

    def __exit__(self, *_: object) -> None:
        if self.heard:
            # the terminal may be gone, or this run in the background by now: it would be stopped
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
            with suppress(termios.error):
                termios.tcsetattr(self._file, termios.TCSAFLUSH, self._before)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            self._file = -1

    def wait(self, seconds: float, key: bytes) -> bool:
        """For so long, or until this small letter is pressed or the terminal is gone: whether it is."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not self.heard:
                time.sleep(left)
            elif select.select([self._file], [], [], left)[0]:
                try:
                    pressed = os.read(self._file, 1024)
                except OSError:
                    return True
                if not pressed or key in pressed.lower():
                    return True
        return False
