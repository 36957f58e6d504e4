"""How the 64 bits of an ID are cut into fields: layouts, as data.

A `Layout` names its fields from bit 63 down to bit 0. Two are built in; a third one is an entry
under `layouts` in the settings or in the topology, not new code:

    pinterest   reserved 2 | shard 16 | type 10 | local 36
    instagram   time 41 (milliseconds since the epoch) | shard 13 | sequence 10

Two families exist. A *local* layout has `local`, the row's own number in its table, in the lowest
bits, so that the server composes an ID by one addition (`local_id + K`, see `Layout.base`). A *timed*
layout has `time` and `sequence`, and its IDs sort by time. Both have `shard`; `reserved` bits are zero.

>>> PINTEREST.decompose(241294492511762325)
{'reserved': 0, 'shard': 3429, 'type': 1, 'local': 7075733}
>>> PINTEREST.compose(shard=3429, type=1, local=7075733)
241294492511762325
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

ID_BITS: Final = 64
ID_MAX: Final = (1 << ID_BITS) - 1

FIELD_NAMES: Final = ("reserved", "shard", "type", "local", "time", "sequence")


@dataclass(frozen=True, slots=True)
class Field:
    """One run of bits: its name (one of `FIELD_NAMES`) and its width in bits."""

    name: str
    bits: int


@dataclass(frozen=True)
class Layout:
    """One way to cut an ID. Compared and hashed by value.

    `fields` run from bit 63 down and sum to 64 bits; `epoch_ms` (milliseconds since 1970) is set
    exactly when there is a `time` field. Raises ValueError, listing every problem, when they do not
    make a layout.

    The `*_shift` and `*_mask` attributes are precomputed: `id >> shift & mask` is the field. Absent
    fields have mask 0.
    """

    name: str
    fields: tuple[Field, ...]
    epoch_ms: int | None = None

    shard_shift: int = field(init=False, repr=False, compare=False)
    shard_mask: int = field(init=False, repr=False, compare=False)
    type_shift: int = field(init=False, repr=False, compare=False)
    type_mask: int = field(init=False, repr=False, compare=False)
    local_shift: int = field(init=False, repr=False, compare=False)
    local_mask: int = field(init=False, repr=False, compare=False)
    time_shift: int = field(init=False, repr=False, compare=False)
    time_mask: int = field(init=False, repr=False, compare=False)
    sequence_shift: int = field(init=False, repr=False, compare=False)
    sequence_mask: int = field(init=False, repr=False, compare=False)
    reserved_bits: int = field(init=False, repr=False, compare=False)
    """The reserved bits in place: a valid ID has `id & reserved_bits == 0`."""
    has_type: bool = field(init=False, repr=False, compare=False)
    has_local: bool = field(init=False, repr=False, compare=False)
    has_time: bool = field(init=False, repr=False, compare=False)
    _places: Mapping[str, tuple[int, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        problems = layout_problems(self.fields, self.epoch_ms)
        if problems:
            raise ValueError(f"layout {self.name}: " + "; ".join(problems))
        places: dict[str, tuple[int, int]] = {}
        shift = ID_BITS
        for one in self.fields:
            shift -= one.bits
            places[one.name] = (shift, (1 << one.bits) - 1)
        put = object.__setattr__
        for name in ("shard", "type", "local", "time", "sequence"):
            field_shift, mask = places.get(name, (0, 0))
            put(self, f"{name}_shift", field_shift)
            put(self, f"{name}_mask", mask)
        reserved_shift, reserved_mask = places.get("reserved", (0, 0))
        put(self, "reserved_bits", reserved_mask << reserved_shift)
        put(self, "has_type", "type" in places)
        put(self, "has_local", "local" in places)
        put(self, "has_time", "time" in places)
        put(self, "_places", MappingProxyType(places))

    @property
    def max_shard(self) -> int:
        """The highest shard number that the shard field can hold."""
        return self.shard_mask

    def compose(self, **fields: int) -> int:
        """The ID made of `fields`, one value for each field; `reserved` may be left out (0).

        `time` is the raw field: milliseconds since the layout's epoch. Raises ValueError naming
        the field that is unknown, missing or out of range.
        """
        places = self._places
        for name in fields:
            if name not in places:
                known = ", ".join(places)
                raise ValueError(f"layout {self.name} has no field {name!r}: its fields are {known}")
        result = 0
        for name, (shift, mask) in places.items():
            value = fields.get(name)
            if value is None:
                if name != "reserved":
                    raise ValueError(f"field {name!r} of layout {self.name} is missing")
                continue
            limit = 0 if name == "reserved" else mask
            if not 0 <= value <= limit:
                raise ValueError(f"field {name!r} of layout {self.name} is {value}: must be 0 to {limit}")
            result |= value << shift
        return result

    def decompose(self, id: int) -> dict[str, int]:
        """Every field of `id`, in the order of the layout; `time` is the raw field.

        Raises ValueError when the ID is negative, has more than 64 bits, or has reserved bits set.
        """
        if not 0 <= id <= ID_MAX:
            raise ValueError(f"{id} is not a 64-bit ID: must be 0 to {ID_MAX}")
        if id & self.reserved_bits:
            raise ValueError(f"{id} is not an ID of layout {self.name}: its reserved bits are not 0")
        return {name: id >> shift & mask for name, (shift, mask) in self._places.items()}

    def shard_of(self, id: int) -> int | None:
        """The shard field, or None when `id` is negative, has more than 64 bits, or reserved bits set."""
        if 0 <= id <= ID_MAX and not id & self.reserved_bits:
            return id >> self.shard_shift & self.shard_mask
        return None

    def base(self, shard: int, type_: int = 0) -> int:
        """The K of an object table on one shard: ID = local id + K. Arguments are not range-checked."""
        return shard << self.shard_shift | type_ << self.type_shift

    def time_ms(self, id: int) -> int | None:
        """When `id` was made, in milliseconds since 1970; None when the layout has no `time` field."""
        if self.epoch_ms is None:
            return None
        return (id >> self.time_shift & self.time_mask) + self.epoch_ms


def layout_problems(fields: Sequence[Field], epoch_ms: int | None) -> list[str]:
    """What keeps `fields` and `epoch_ms` from being a layout; empty when nothing does."""
    problems = []
    names = [one.name for one in fields]
    for name in dict.fromkeys(names):
        if name not in FIELD_NAMES:
            problems.append(f"unknown field {name!r}: must be one of {', '.join(FIELD_NAMES)}")
        elif names.count(name) > 1:
            problems.append(f"field {name!r} is given {names.count(name)} times")
    problems += [
        f"field {one.name!r} has {one.bits} bits: must be 1 to 63"
        for one in fields
        if not 1 <= one.bits <= 63
    ]
    total = sum(one.bits for one in fields)
    if total != ID_BITS:
        problems.append(f"the fields have {total} bits: must sum to {ID_BITS}")
    if "shard" not in names:
        problems.append("field 'shard' is missing")
    if "local" in names:
        extra = [name for name in ("time", "sequence") if name in names]
        if extra:
            problems.append(f"field 'local' cannot stand beside {' and '.join(map(repr, extra))}")
        if names[-1] != "local":
            problems.append("field 'local' must be the last one (the lowest bits)")
    else:
        missing = [name for name in ("time", "sequence") if name not in names]
        if missing:
            choice = "a layout has either 'local', or 'time' and 'sequence'"
            problems.append(f"field {missing[0]!r} is missing: {choice}")
        if "type" in names:
            problems.append("field 'type' needs a field 'local'")
        if "time" in names and next(name for name in names if name != "reserved") != "time":
            problems.append("field 'time' must be the first one but for 'reserved': IDs sort by time")
    if ("time" in names) != (epoch_ms is not None):
        problems.append("epoch_ms is needed with a field 'time', and only then")
    elif epoch_ms is not None and epoch_ms < 0:
        problems.append(f"epoch_ms is {epoch_ms}: must not be negative")
    return problems


INSTAGRAM_EPOCH_MS: Final = 1314220021721

PINTEREST: Final = Layout(
    "pinterest", (Field("reserved", 2), Field("shard", 16), Field("type", 10), Field("local", 36))
)
INSTAGRAM: Final = Layout(
    "instagram", (Field("time", 41), Field("shard", 13), Field("sequence", 10)), INSTAGRAM_EPOCH_MS
)

BUILTIN: Final[Mapping[str, Layout]] = MappingProxyType({one.name: one for one in (PINTEREST, INSTAGRAM)})
