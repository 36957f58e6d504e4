"""Spans to templates, templates and values to SQL.

A `Template` is a statement with holes. Every hole names an index into a tuple of values: the literals
of the statement at hand, the session's values, and what binding computes (a shard's database, its K,
local ids). Rendering is one `%` of bytes, whatever the number of holes.

>>> Template((b"SELECT ", 1, b", 100% of ", 0)).render((b"a", b"b"))
b'SELECT b, 100% of a'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, Final

_BEYOND_NAMES: Final = re.compile(rb"[\xf0-\xf4][\x80-\xbf]{3}")
"""Characters that no name may have; servers show them so in the names they make themselves."""

MAX_LABEL: Final = 255
"""Longer names of result columns are refused as aliases; so many bytes are kept."""


@dataclass(frozen=True, slots=True)
class Label:
    """A result column's name, made from the text that the client wrote for it: an alias in backticks."""

    parts: tuple[bytes | int, ...]

    def render(self, values: Sequence[Any]) -> bytes:
        """The quoted name. The values of its parts are bytes."""
        text = b"".join(values[part] if isinstance(part, int) else part for part in self.parts)
        if len(text) > MAX_LABEL:  # what is cut may end with a space, and does so for a server
            text = text[:MAX_LABEL].decode("utf-8", "ignore").encode()
        if not text.isascii():
            text = _BEYOND_NAMES.sub(b"?", text)
        return b"`" + text.replace(b"`", b"``") + b"`"


Part = bytes | int | Label
"""Text as it is, the index of a value, or a name made of such."""


class Template:
    """A statement with holes; immutable. `parts` are as given, with neighbouring texts joined. `integers`
    are the holes for which `render` is given a number. It is `text % pick(values)`.
    """

    __slots__ = ("parts", "pick", "text")

    def __init__(self, parts: Iterable[Part], integers: Sequence[int] = ()) -> None:
        joined: list[Part] = []
        for part in parts:
            last = joined[-1] if joined else None
            if isinstance(part, bytes) and isinstance(last, bytes):
                joined[-1] = last + part
            else:
                joined.append(part)
        self.parts = tuple(joined)
        texts = (
            part.replace(b"%", b"%%") if isinstance(part, bytes) else b"%d" if part in integers else b"%b"
            for part in joined
        )
        self.text = b"".join(texts)
        self.pick: Callable[[Any], Any] = _picker([part for part in joined if not isinstance(part, bytes)])

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle: made again from its parts. The picker is a function."""
        return _restored, (type(self), self.parts, self.text, self._state())

    def _state(self) -> tuple[object, ...]:
        """What a subclass has besides."""
        return ()

    def _restore(self, state: tuple[Any, ...]) -> None:
        """The opposite of `_state`."""

    def render(self, values: Sequence[bytes | int]) -> bytes:
        """The SQL. Raises IndexError when there are fewer values than the holes name."""
        return self.text % self.pick(values)  # type: ignore[no-any-return]

    def size_of_many(self, values: tuple[bytes, ...], columns: Sequence[Sequence[bytes]]) -> int:
        """About how many bytes `render_many` gives."""
        known = len(values)
        fixed = varying = 0
        for part in self.parts:
            if isinstance(part, bytes):
                fixed += len(part)
            elif isinstance(part, int) and part < known:
                fixed += len(values[part])
            elif isinstance(part, int):
                varying += sum(map(len, columns[part - known]))
        return fixed * len(columns[0]) + varying

    def render_many(
        self, values: tuple[bytes, ...], columns: Sequence[Sequence[bytes]], between: bytes
    ) -> bytes:
        """The SQL once for each row of `columns`, which go on behind `values`, joined by `between`.

        As `between.join(render((*values, *row)) for row in zip(*columns))`, in one formatting.
        """
        rows = len(columns[0])
        known = len(values)
        parts = []
        taken: list[Sequence[bytes]] = []
        for part in self.parts:
            if isinstance(part, Label):
                part = part.render(values)
            elif isinstance(part, int) and part < known:
                part = values[part]
            if isinstance(part, bytes):
                parts.append(part.replace(b"%", b"%%"))
            else:
                parts.append(b"%b")
                taken.append(columns[part - known])
        text = between.replace(b"%", b"%%").join([b"".join(parts)] * rows)
        return text % tuple(chain.from_iterable(zip(*taken, strict=True)))

    def __repr__(self) -> str:
        parts = (repr(part)[1:] if isinstance(part, bytes) else f"<{part}>" for part in self.parts)
        return f"Template({' '.join(parts)})"


def _restored(kind: type[Template], parts: tuple[Part, ...], text: bytes, state: tuple[Any, ...]) -> Template:
    made = kind.__new__(kind)
    made.parts, made.text = parts, text
    made.pick = _picker([part for part in parts if not isinstance(part, bytes)])
    made._restore(state)
    return made


def _picker(holes: list[int | Label]) -> Callable[[Any], Any]:
    """Picks the values for the holes: a tuple, or the value itself for a single hole."""
    labels = [hole for hole in holes if isinstance(hole, Label)]
    if labels:
        return lambda values: tuple(
            [hole.render(values) if isinstance(hole, Label) else values[hole] for hole in holes]
        )
    return itemgetter(*holes) if holes else _nothing


def _nothing(values: Any) -> tuple[()]:
    del values
    return ()
