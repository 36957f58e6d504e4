"""The lines of a log, in bounded memory: of a line that is too long only the beginning is kept."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, cast

MAX_LINE: Final = 1 << 20
"""Bytes of a line that are kept."""

PEEK: Final = 1 << 16
"""Bytes at a file's beginning by which its format is found."""

_GZIP: Final = b"\x1f\x8b"


class Lines:
    """The lines of a file, `-` being stdin; what is compressed with gzip is opened. `cut`: the line that was
    given last was longer than what was given. `size`: bytes of lines so far. Raises OSError and EOFError.
    """

    def __init__(self, path: Path) -> None:
        raw: IO[bytes] = sys.stdin.buffer if str(path) == "-" else path.open("rb")
        buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, raw))
        self._file: IO[bytes] = buffered
        if buffered.peek(2).startswith(_GZIP):
            self._file = cast(IO[bytes], gzip.GzipFile(fileobj=buffered))
        self._own = raw is not sys.stdin.buffer
        self._seen: list[bytes] = []
        self.cut = False
        self.size = 0

    def beginning(self) -> bytes:
        """The first bytes, which are given as lines nevertheless."""
        if not self._seen:
            self._seen = [self._file.read(PEEK)]
        return self._seen[0]

    def __iter__(self) -> Iterator[bytes]:
        begin = self._seen.pop() if self._seen else b""
        head, newline, rest = begin.rpartition(b"\n")
        if newline:
            for line in head.split(b"\n"):
                self.size += len(line) + 1
                yield line
        while True:
            line = rest + self._file.readline(MAX_LINE - len(rest))
            rest = b""
            if not line:
                return
            self.cut = False
            self.size += len(line)
            if not line.endswith(b"\n") and len(line) >= MAX_LINE:
                line = line[:-2] + self._passed(line[-2:])
            yield line.removesuffix(b"\n").removesuffix(b"\r")

    def _passed(self, end: bytes) -> bytes:
        """Pass over the rest of a long line; its last bytes."""
        self.cut = True
        while end and not end.endswith(b"\n"):
            more = self._file.readline(MAX_LINE)
            if not more:
                break
            self.size += len(more)
            end = (end + more)[-3:]
        return end

    def close(self) -> None:
        """The file is not read any further."""
        if self._own:
            self._file.close()
