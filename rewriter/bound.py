"""What binding a plan gives: the bytes for each host, and what to make of the answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from config.topology import Host

_DUPLICATE: Final = 1062
_ENTRY: Final = re.compile(r"(Duplicate entry ')(\d+)(' for key '(?:[^']*\.)?PRIMARY')")


class BindError(Exception):
    """The statement's values rule it out: `name` is an entry of the error registry."""

    def __init__(self, name: str, **arguments: str) -> None:
        super().__init__(name, arguments)
        self.name = name
        self.arguments = arguments


class NotSupported(BindError):
    """With these values the plan cannot do it; another way may be able to."""

    def __init__(self, *, what: str, reason: str, alternative: str) -> None:
        super().__init__("not_supported_yet", what=what, reason=reason, alternative=alternative)


class Notice(NamedTuple):
    """A warning for SHOW WARNINGS: `name` is an entry of the error registry."""

    name: str
    arguments: Mapping[str, str]


class HostStatement(NamedTuple):
    """One statement for one host. `shards` are those it touches, ascending; () when not sharded."""

    host: Host
    shards: tuple[int, ...]
    sql: bytes


class SortKey(NamedTuple):
    """One key of a merge.

    `column` is the index in the wire row of the column that holds the key; `weight` is the index of a
    hidden WEIGHT_STRING column, to be compared byte by byte instead when the key's column arrives as
    text (a NULL weight goes with a NULL key). Negative indexes count from the row's end, as in Python.
    Weights are not padded: for a PAD SPACE collation the shorter one must be taken as going on with the
    weight of a space. `collation` is the index of a hidden column with the name of the key's collation (the
    wire has that of character_set_results). NULLs come first ascending and last descending.
    """

    column: int
    descending: bool
    weight: int | None
    collation: int | None = None


class Aggregate(NamedTuple):
    """One column of an aggregated row and how partial values combine: "count", "sum", "min" or "max".

    `weight` and `collation`: as in `SortKey`, for min and max of text.
    """

    column: int
    function: str
    weight: int | None
    collation: int | None = None


class Merge(NamedTuple):
    """How rows of several statements become one result.

    With `aggregates`, every row read is a partial one and they are combined into one; else rows are
    merged by `order` (streams that are each in this order; () for any order). Then `offset` rows are
    skipped, at most `limit` are given (None: all), and the `hidden` last columns are cut off.
    """

    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    hidden: int = 0
    aggregates: tuple[Aggregate, ...] = ()


class Inserted(NamedTuple):
    """What one statement of an INSERT adds, for composing last_insert_id.

    `id_offset`: add it to the last_insert_id that the server reports (when not 0); None when the server's
    number is to be reported as it is (a table without composed IDs). `rows`: how many rows of the client's
    statement are in it. `first` and `last`: the indexes of its first and last row in the client's order.
    `generated`: the server made a local id for some row; when not, the OK packet has the client's own ID and
    LAST_INSERT_ID() keeps its value, as with one MySQL. `numbers`: the indexes of its rows in the client's
    order. `ignore`: it says IGNORE. `asks`: LAST_INSERT_ID(expression) is in it, so that only the server
    knows what LAST_INSERT_ID() is behind it. `given`: the (local) id that the client gave
    for its last row; 0: none.
    """

    shard: int
    id_offset: int | None
    rows: int
    first: int
    last: int
    generated: bool = True
    numbers: tuple[int, ...] = ()
    ignore: bool = False
    asks: bool = False
    given: int = 0

    def told(self, code: int, message: str) -> str:
        """A server's message with the composed ID in the place of the local one."""
        return message if self.id_offset is None else composed_message(code, message, self.id_offset)


def composed_message(code: int, message: str, id_offset: int) -> str:
    """A server's message about a row of an object table, with the composed ID instead of the local one."""
    if code != _DUPLICATE:
        return message
    return _ENTRY.sub(lambda found: f"{found[1]}{int(found[2]) + id_offset}{found[3]}", message)


@dataclass(frozen=True, slots=True)
class PerShard:
    """Another way of running the same: `make` gives it."""

    make: Callable[[], Bound] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """A statement that is seldom asked for: `make` gives it."""

    make: Callable[[], HostStatement] = field(compare=False, repr=False)


class Bound(NamedTuple):
    """A plan with its values: what to send where, and what to make of the answers.

    One statement and no merge: the reply passes through as bytes. No statement at all (a write that can
    match nothing): an OK packet with 0 rows. `reference`, when set, is a statement whose column
    definitions the client must get instead of those of `statements`; or, with no statements, one that a
    server is asked about (PREPARE) and that would find nothing; or, with `inserted`, one that a server must
    be able to prepare before the `statements` are sent. `warnings` are for SHOW WARNINGS.
    `inserted` goes with `statements`, one for one, for INSERT and REPLACE; else (). `scatter`: it runs
    on all shards because nothing narrows it, so the user's scatter policy applies. Statements for one
    host stand in the order to run them in; different hosts run in parallel. `per_shard` gives the same
    without any UNION: a statement for each shard.
    """

    statements: tuple[HostStatement, ...]
    merge: Merge | None = None
    reference: HostStatement | Reference | None = None
    warnings: tuple[Notice, ...] = ()
    inserted: tuple[Inserted, ...] = ()
    scatter: bool = False
    per_shard: PerShard | None = None

    def refers_to(self) -> HostStatement | None:
        """The `reference`, made if it is not."""
        return self.reference.make() if isinstance(self.reference, Reference) else self.reference
