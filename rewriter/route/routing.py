"""From constants to shards: keys, comparisons, and the routes made of them.

All of this is part of a plan and is run at every binding. A `Comparison` is one `column op constants`;
placing it says for each of its constants the shard it belongs to. A `Route` combines comparisons into the
set of shards that may hold a matching row, or None for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from config.layout import ID_MAX, Layout
from config.topology import Keyspace
from rewriter.text.literals import HUGE, NotPlain, plain_integer, quoted_integer, unquote

from .id_lists import Bits
from .values import Value

Placed = dict[int, list[bytes]]
"""For each shard, the constants that belong to it as they are written there."""

_LARGEST: Final = (1 << 63) - 1

NEVER: Final = b"-1"
"""A local id that no row has: local ids are unsigned."""

_STRING: Final = {
    True: re.compile(rb"'(?:[^'\\]++|\\.|'')*'", re.DOTALL),
    False: re.compile(rb"'(?:[^']++|'')*'"),
}


@dataclass(frozen=True, slots=True)
class Key:
    """How the values of one routing column tell their shard.

    `rule`: "id" (the shard is in the ID, of any type), "object" (in the ID, of this `type`; stored is the
    local id), "hash" (of a key), "modulo" (a number, modulo the shards of a timed table's keyspace).
    `text` is the encoding to UTF-8 that a text key needs: "" for none, "binary" for bytes as they are.
    `longest`: so many characters, or bytes, the column of a text key holds; `bounds`: of the numbers that an
    integer one holds.
    For "id" and "object", a number may be one of the column's when `number & mask == expected`.
    """

    rule: str
    layout: Layout | None = None
    type: int = 0
    text: str = ""
    backslashes: bool = True
    longest: int = field(default=0, compare=False)
    bounds: tuple[int, int] | None = field(default=None, compare=False)
    mask: int = field(init=False, compare=False, repr=False)
    expected: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        layout, free, expected = self.layout, 0, 0
        if layout is not None and self.rule == "id":
            free = ((1 << 64) - 1) & ~layout.reserved_bits
        elif layout is not None and self.rule == "object":
            free = layout.shard_mask << layout.shard_shift | layout.local_mask << layout.local_shift
            expected = layout.base(0, self.type)
        object.__setattr__(self, "mask", ~free)  # all bits above the 64th are set in it, too
        object.__setattr__(self, "expected", expected)

    @property
    def local(self) -> bool:
        """Whether what is stored is the local id."""
        return self.rule == "object"

    def bits(self, layout: Layout, stored_mask: int) -> Bits:
        """What its numbers are looked at by: those of an "id" or "object" of that layout."""
        whole = self.mask & ID_MAX
        return Bits(whole, self.expected, layout.shard_shift, layout.shard_mask, stored_mask)

    def shard_of_integer(self, number: int, keyspace: Keyspace) -> int | None:
        """The shard of one integer; None when it matches nothing."""
        layout = self.layout
        if self.rule in ("object", "id"):
            if layout is None or number & self.mask != self.expected:
                return None
            return number >> layout.shard_shift & layout.shard_mask
        if abs(number) >= HUGE or (number < 0 and self.rule == "modulo"):
            return None
        if self.rule == "hash":
            return keyspace.shard_of_key(number)
        return number % (keyspace.shards or len(keyspace.all_shards) or 1)

    def shard_of_text(self, text: bytes, keyspace: Keyspace) -> int:
        """The shard of a text key. Raises NotPlain when its bytes in UTF-8 cannot be told."""
        if not text.isascii() and self.text not in ("utf-8", "binary"):
            try:
                text = text.decode(self.text).encode()
            except (UnicodeDecodeError, LookupError):
                raise NotPlain from None
        return keyspace.shard_of_key(text)

    def shard_of_value(self, value: Value, values: tuple[bytes, ...], keyspace: Keyspace) -> int:
        """The shard of a text key that is one constant. Raises NotPlain."""
        text = value.text(values, self.backslashes)
        return keyspace.shard_of_key(text) if value.is_bytes else self.shard_of_text(text, keyspace)

    def places_as(self, other: Key) -> bool:
        """Whether equal values of a column of this kind and of the other are on one shard."""
        ids = ("id", "object")
        if self.rule in ids and other.rule in ids:
            return True
        return self.rule == other.rule and self.text == other.text

    @property
    def takes_text(self) -> bool:
        """Whether the routing column holds text or bytes."""
        return self.text != ""


def split_strings(raw: bytes, backslashes: bool) -> list[bytes]:
    """The quoted strings of a list that was lifted whole (without its first quote)."""
    return _STRING[backslashes].findall(b"'" + raw)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A routing column compared with constants by =, <=>, IN, or a negation of these.

    `values` are the constants, one by one; or the literal with index `list_index` is a whole list, of
    `list_kind` "integer" or "string". `rewritten`: what stands there is replaced by what `write`
    gives, local ids for an object table, else the shard's own part of the list. `several`: of many constants
    a shard gets no single one, which would make other columns depend on it, for MySQL's ONLY_FULL_GROUP_BY.
    """

    key: Key
    values: tuple[Value, ...] = ()
    list_index: int = -1
    list_kind: str = ""
    rewritten: bool = True
    several: bool = False

    def place(self, values: tuple[bytes, ...], keyspace: Keyspace) -> Placed:
        """The constants by shard. Raises NotPlain."""
        placed: Placed = {}
        if self.list_index >= 0:
            self._place_list(values[self.list_index], keyspace, placed)
        for value in self.values:
            self._place_value(value, values, keyspace, placed)
        return placed

    def size(self, values: tuple[bytes, ...]) -> int:
        """How many constants there are."""
        if self.list_index < 0:
            return len(self.values)
        raw = values[self.list_index]
        if self.list_kind == "string":
            return len(split_strings(raw, self.key.backslashes))
        return raw.count(b",") + 1

    def _place_list(self, raw: bytes, keyspace: Keyspace, placed: Placed) -> None:
        key = self.key
        strings = self.list_kind == "string"
        if key.takes_text:
            if not strings:
                raise NotPlain
            for quoted in split_strings(raw, key.backslashes):
                text = unquote(quoted[1:], key.backslashes)
                placed.setdefault(key.shard_of_text(text, keyspace), []).append(quoted)
            return
        if not strings and key.local and key.layout is not None:
            self._place_ids(raw, key.layout, placed)
            return
        elements = split_strings(raw, key.backslashes) if strings else raw.split(b",")
        for element in elements:
            integer = quoted_integer(element[1:]) if strings else plain_integer(element.strip())
            shard = key.shard_of_integer(integer, keyspace)
            if shard is not None:
                placed.setdefault(shard, []).append(self._stored(integer))

    def _place_ids(self, raw: bytes, layout: Layout, placed: Placed) -> None:
        """A list of an object table's IDs: the common case, in few steps."""
        # all but the local id first: that is a small number, and the same for many IDs
        width, local_mask = layout.local_mask.bit_length(), layout.local_mask
        mask, expected = self.key.mask >> width, self.key.expected >> width
        shift, shard_mask = layout.shard_shift - width, layout.shard_mask
        elements = raw.split(b",")
        long = len(max(elements, key=len)) > 60
        numbers = [plain_integer(one.strip()) for one in elements] if long else map(int, elements)
        for number in numbers:
            place = number >> width
            if place & mask == expected:
                shard = place >> shift & shard_mask
                if shard in placed:
                    placed[shard].append(b"%d" % (number & local_mask))
                else:
                    placed[shard] = [b"%d" % (number & local_mask)]

    def _place_value(
        self, value: Value, values: tuple[bytes, ...], keyspace: Keyspace, placed: Placed
    ) -> None:
        if self.key.takes_text:
            placed.setdefault(self.key.shard_of_value(value, values, keyspace), [])
            return
        integer = value.integer(values)
        shard = self.key.shard_of_integer(integer, keyspace)
        if shard is not None:
            placed.setdefault(shard, []).append(self._stored(integer))

    def _stored(self, integer: int) -> bytes:
        layout = self.key.layout
        if self.key.local and layout is not None:
            return b"%d" % (integer & layout.local_mask)
        return b"%d" % integer

    def write(self, placed: Placed, shards: Sequence[int], values: tuple[bytes, ...]) -> list[bytes]:
        """What stands in the place of the constants on each shard."""
        whole = NEVER
        if self.list_index >= 0 and not self.key.local:  # a shard with none of the list gets all of it
            whole = values[self.list_index]
            whole = b"'" + whole if self.list_kind == "string" else whole
        if self.several and self.size(values) > 1:
            placed = {shard: mine * 2 if len(mine) == 1 else mine for shard, mine in placed.items()}
            whole = b", ".join((whole, whole)) if whole == NEVER else whole
        return [b", ".join(placed[shard]) if shard in placed else whole for shard in shards]

    def probe(self, values: tuple[bytes, ...]) -> bytes:
        """The constants for a server that only prepares the statement: parameters as in `values`."""
        if self.list_index >= 0:
            return b"'" + values[self.list_index] if self.list_kind == "string" else values[self.list_index]
        return b", ".join(values[one.index] if one.kind == "parameter" else b"1" for one in self.values)

    @property
    def may_fail(self) -> bool:
        """Whether `place` may raise NotPlain."""
        if self.key.takes_text and self.key.text not in ("utf-8", "binary"):
            return True
        if self.key.takes_text:
            return any(value.kind in ("slot", "parameter") for value in self.values)
        return self.list_kind == "string" or any(value.may_fail for value in self.values)

    def integers(self, values: tuple[bytes, ...]) -> list[int]:
        """All constants that are integers, for a message. Raises NotPlain."""
        if self.list_index >= 0:
            raw = values[self.list_index]
            return [int(digits) for digits in re.findall(rb"-?[0-9]{1,59}", raw)]
        return [value.integer(values) for value in self.values]


@dataclass(frozen=True, slots=True)
class Route:
    """Which shards may hold a row that a condition is true for.

    `kind`: "all", "none" (nothing can match), "in" (comparison `index`), "between" (`index` into the plan's
    ranges), "shards" (a fixed set: a hint), "and", "or" (of `parts`).
    """

    kind: str
    index: int = -1
    fixed: frozenset[int] = frozenset()
    parts: tuple[Route, ...] = ()

    def shards(self, placed: list[Placed], between: list[set[int] | None]) -> set[int] | None:
        """The shards; None for all."""
        if self.kind == "in":
            return set(placed[self.index])
        if self.kind == "between":
            return between[self.index]
        if self.kind in ("shards", "none"):
            return set(self.fixed)
        if self.kind == "all":
            return None
        found = [part.shards(placed, between) for part in self.parts]
        if self.kind == "or":
            union: set[int] = set()
            for one in found:
                if one is None:
                    return None
                union |= one
            return union
        narrow = [one for one in found if one is not None]
        return set.intersection(*narrow) if narrow else None

    def indexes(self, kind: str) -> Iterator[int]:
        """The comparisons ("in") or ranges ("between") that it is made of."""
        if self.kind == kind:
            yield self.index
        for part in self.parts:
            yield from part.indexes(kind)

    @property
    def unbounded(self) -> bool:
        """Whether this is all shards whatever the values."""
        if self.kind == "or":
            return any(part.unbounded for part in self.parts)
        if self.kind == "and":
            return all(part.unbounded for part in self.parts)
        return self.kind == "all"

    def covers(self, other: Route) -> bool:
        """Whether all shards of `other` are among these, whatever the values. False when that is not seen."""
        if self.kind == "all" or other.kind == "none" or self == other:
            return True
        if other.kind == "or":
            return all(self.covers(part) for part in other.parts)
        if self.kind == "and":
            return all(part.covers(other) for part in self.parts)
        if other.kind == "and" and any(self.covers(part) for part in other.parts):
            return True
        return self.kind == "or" and any(part.covers(other) for part in self.parts)


ALL: Final = Route("all")
NONE: Final = Route("none")


def both(parts: list[Route]) -> Route:
    """The rows for which every part is true."""
    narrow = [part for part in parts if not part.unbounded]
    if not narrow:
        return ALL
    return narrow[0] if len(narrow) == 1 else Route("and", parts=tuple(narrow))


def either(parts: list[Route]) -> Route:
    """The rows for which some part is true."""
    if not parts or any(part.unbounded for part in parts):
        return ALL
    some = [part for part in parts if part.kind != "none"]
    if not some:
        return NONE
    return some[0] if len(some) == 1 else Route("or", parts=tuple(some))


@dataclass(frozen=True, slots=True)
class Offset:
    """A constant that an object table's `id` is ordered against: on a shard, the constant minus K.

    `role`: "alone" (id < constant, and the like), or "low" or "high" of a BETWEEN, whose high end is `other`;
    or "whole", a string that is compared with the whole ID: its number.
    """

    type: int
    role: str
    value: Value
    other: Value

    def write(self, shard: int, values: tuple[bytes, ...], layout: Layout) -> bytes:
        """What `local_id` is compared with on one shard. Raises NotPlain."""
        if self.role == "whole":
            return b"%d" % self.value.integer(values)
        base = layout.base(shard, self.type)
        number = self.value.integer(values) - base
        if self.role == "alone":
            return b"%d" % min(max(number, -1), _LARGEST)
        high = number if self.role == "high" else self.other.integer(values) - base
        if high < 0:
            return b"0" if self.role == "high" else b"1"  # an empty range
        return b"%d" % min(max(number, 0), _LARGEST)


@dataclass(frozen=True, slots=True)
class Between:
    """`column BETWEEN low AND high`, for IDs whose shard bits stand above all others."""

    key: Key
    low: Value
    high: Value

    def shards(self, values: tuple[bytes, ...], keyspace: Keyspace) -> set[int] | None:
        """The one shard of the range (none when it is empty), or None for several. Raises NotPlain."""
        layout = self.key.layout
        low, high = self.low.integer(values), self.high.integer(values)
        if low > high or high < 0:
            return set()
        if layout is None or low < 0 or high >> 64:
            return None
        if low >> layout.shard_shift != high >> layout.shard_shift:
            return None
        shard = layout.shard_of(low)
        return set() if shard is None else {shard}
