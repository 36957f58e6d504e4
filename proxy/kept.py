"""What the workers have counted, where it outlives them: counters must not fall when one dies.

A worker puts its own into its place every few seconds, and before it tells others of it: nothing that was
told is taken back. Who takes its place counts on from there, and while there is nobody the other workers
tell what is there.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .shared import Shared


@dataclass(frozen=True, slots=True)
class Past:
    """What a worker is told of the time before it: when the proxy `started`, in seconds since 1970, and how
    many workers have been `replaced`.
    """

    started: float
    replaced: int = 0


class Kept:
    """A place for each of `count` workers. One is lines of JSON: what each is, who puts it there says."""

    def __init__(self, count: int) -> None:
        self._places = [Shared("kept") for _ in range(count)]

    def put(self, number: int, *lines: bytes) -> None:
        """What is in the worker's place from now on. Nobody goes without an answer for want of memory."""
        place = self._places[number]
        with suppress(OSError):
            place.replace(place.number, b"\n".join(lines))

    def version(self, number: int) -> int:
        """What has been put there is numbered."""
        return self._places[number].number

    def get(self, number: int) -> list[Any]:
        """What is there; nothing when the worker has never put anything there, or it cannot be read: a worker
        must be able to begin.
        """
        place = self._places[number]
        try:
            return [json.loads(line) for line in place.read()[1].split(b"\n")] if place.number else []
        except OSError:
            return []
