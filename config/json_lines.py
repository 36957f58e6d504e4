"""The lines of a JSON text's values, found when they are asked for.

A document of 65,536 ranges takes YAML's parser, which tells all lines, many seconds. Here the values on the
way to a path are stepped over, each list and mapping once.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import Final

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_scan: Final = json.JSONDecoder().raw_decode

Path = tuple[str | int, ...]


class JsonLines:
    """`text` is JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._breaks: list[int] | None = None
        self._inside: dict[Path, dict[str | int, tuple[int, int]]] = {}

    def get(self, path: Path) -> int | None:
        """The line (from 1) of the key, or in a list of the value, that `path` ends with; None when there is
        none.
        """
        if not path:
            return self._line(self._skip(0))
        found = self._places(path[:-1]).get(path[-1])
        return None if found is None else self._line(found[0])

    def _line(self, at: int) -> int:
        if self._breaks is None:
            self._breaks = [found.start() for found in re.finditer("\n", self._text)]
        return bisect_left(self._breaks, at) + 1

    def _skip(self, at: int) -> int:
        """Behind white space."""
        found = _SPACE.match(self._text, at)
        assert found is not None
        return found.end()

    def _places(self, path: Path) -> dict[str | int, tuple[int, int]]:
        """Where what is in the value at `path` begins: key and value, or twice the value."""
        known = self._inside.get(path)
        if known is None:
            outer = self._places(path[:-1]).get(path[-1]) if path else (0, self._skip(0))
            known = self._inside[path] = {} if outer is None else self._read(outer[1])
        return known

    def _read(self, at: int) -> dict[str | int, tuple[int, int]]:
        text, skip = self._text, self._skip
        end = {"{": "}", "[": "]"}.get(text[at])
        found: dict[str | int, tuple[int, int]] = {}
        if end is None:
            return found
        at = skip(at + 1)
        while text[at] != end:
            begin = at
            key: str | int = len(found)
            if end == "}":
                key, at = _scan(text, at)
                at = skip(skip(at) + 1)  # the colon
            found[key] = begin, at
            at = skip(_scan(text, at)[1])
            if text[at] == ",":
                at = skip(at + 1)
        return found
