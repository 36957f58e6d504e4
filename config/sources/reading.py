"""Large topologies are read in a process of their own (`config/apart.py`), so that nobody waits meanwhile."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

from config import pickling
from config.apart import Found, Task
from config.document import ConfigError, Problem
from config.layout import Layout
from config.load import load_topology
from config.read_topology import read_reduced
from config.topology import Topology

LARGE: Final = 1 << 16
"""Bytes of a document that is read in another process: some milliseconds in this one."""

log = logging.getLogger("shardgate.topology")

_ROOT: Final = Path(__file__).parents[2]


class Reading:
    """Reads the documents of one source, in its thread. The last one is remembered: it is judged again and
    again, by another schema or after another topology.
    """

    def __init__(self, name: str, layouts: Mapping[str, Layout]) -> None:
        self._name = name
        self._layouts = layouts
        self._last: tuple[bytes, Topology] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def topology(self, text: bytes, *, at_once: bool) -> Topology:
        """What is in a document. `at_once`: in this process, since nobody is served yet. Raises
        ConfigError.
        """
        if self._last is not None and self._last[0] == text:
            return self._last[1]
        found = None if at_once or len(text) < LARGE else self._read_apart(text)
        if found is None:
            found = load_topology(text, name=self._name, layouts=self._layouts)
        self._last = text, found
        return found

    def stop(self) -> None:
        """Wait for no document any longer. For any thread."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def _read_apart(self, text: bytes) -> Topology | None:
        """None: there is no such process, or it was lost."""
        found = self._ask(Task(text, self._name))
        if found is not None and found.reduced is not None:
            made = read_reduced(found.reduced, self._layouts)
            if made is not None:
                return made
        if found is not None and not found.problems:
            found = self._ask(Task(text, self._name, dict(self._layouts)))
        if found is not None and found.problems:
            raise ConfigError(found.problems)
        return None if found is None else found.topology

    def _ask(self, task: Task) -> Found | None:
        try:
            with _readable(*task.parts()) as given:
                argv = [sys.executable, "-m", "config.apart"]
                self._process = subprocess.Popen(argv, stdin=given, stdout=subprocess.PIPE, cwd=_ROOT)
            if self._stopped:
                self._process.kill()
            with self._process as process:
                assert process.stdout is not None
                answer = process.stdout.read()
        except OSError as error:
            log.warning("%s is read in the process that serves: %s", self._name, error.strerror)
            return None
        finally:
            self._process = None
        if self._stopped:
            raise ConfigError([Problem("", "the proxy is stopping", self._name)])
        try:
            made: Found = pickling.loads(answer)
        except (EOFError, pickle.UnpicklingError):
            status = process.returncode
            log.warning("%s is read in the process that serves: the other ended with %s", self._name, status)
            return None
        return made


def _readable(*parts: bytes) -> BinaryIO:
    """A file without a name, to be read from its beginning. Raises OSError."""
    file = os.fdopen(os.memfd_create("shardgate topology"), "w+b", buffering=0)
    try:
        for part in parts:
            left = memoryview(part)
            while left:
                left = left[file.write(left) :]
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file
