"""Spans to templates, templates and values to SQL.

A `Template` is a statement with holes. Every hole names an index into a tuple of values: the literals
of the statement at hand, the session's values, and what binding computes (a shard's database, its K,
local ids). Rendering is one `%` of bytes, whatever the number of holes.

>>> Template((b"SELECT ", 1, b", 100% of ", 0)).render((b"a", b"b"))
b'SELECT b, 100% of a'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

Part = bytes | int
"""Text as it is, or the index of a value."""


class Template:
    """A statement with holes; immutable. `parts` are as given, with neighbouring texts joined."""

    __slots__ = ("_format", "_pick", "parts")

    def __init__(self, parts: Iterable[Part]) -> None:
        joined: list[Part] = []
        for part in parts:
            if isinstance(part, bytes) and joined and isinstance(joined[-1], bytes):
                joined[-1] += part
            else:
                joined.append(part)
        self.parts = tuple(joined)
        holes = [part for part in joined if isinstance(part, int)]
        texts = (b"%b" if isinstance(part, int) else part.replace(b"%", b"%%") for part in joined)
        self._format = b"".join(texts)
        # itemgetter of one index gives the value itself, of none is an error: both are handled here
        self._pick: Callable[[Any], Any] = itemgetter(*holes) if holes else _nothing

    def render(self, values: tuple[bytes, ...]) -> bytes:
        """The SQL. Raises IndexError when there are fewer values than the holes name."""
        return self._format % self._pick(values)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        parts = (f"<{part}>" if isinstance(part, int) else repr(part)[1:] for part in self.parts)
        return f"Template({' '.join(parts)})"


def _nothing(values: Any) -> tuple[()]:
    del values
    return ()
