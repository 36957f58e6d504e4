"""The column definitions that the clients of a fan-out get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary, ref

from proxy.engine.column_metadata import place_of
from proxy.wire.column_metadata import Place, changed
from proxy.wire.constants import MAX_PAYLOAD, ColumnFlag, ColumnType
from proxy.wire.packets import frame
from proxy.wire.resultset import Column, decode_column, decode_row, encode_row, header_packets
from proxy.wire.rows import split_rows
from proxy.wire.wide import ASCII, DECIMALS, Form
from rewriter.plans import Plan, ShardSelect, Values

if TYPE_CHECKING:
    from config.topology import Topology
    from proxy.session.state import Session


def _zero_filled(definitions: list[bytes]) -> dict[int, int]:
    """The ZEROFILL columns among these definitions, with the digits that they show."""
    columns = map(decode_column, definitions)
    return {index: one.length for index, one in enumerate(columns) if one.flags & ColumnFlag.ZEROFILL}


def _fixed(column: Column) -> bool:
    """Whether this is a computed DOUBLE with a certain number of decimals: in a UNION MariaDB makes a column
    of as many digits as it expects, and `ROUND(x, 2)` or `text + 1` may give more.
    """
    floating = column.type in (ColumnType.FLOAT, ColumnType.DOUBLE)
    return floating and column.decimals < _ANY_NUMBER and not column.org_name


_ANY_NUMBER: Final = 31
"""The `decimals` of a DOUBLE with as many as it needs."""


_DECIMAL: Final = ColumnType.NEWDECIMAL


def fill_zeros(rows: bytes, seq: int, width: int, digits: Mapping[int, int], form: Form = ASCII) -> bytes:
    """A block of rows of `width` columns, numbered from `seq`, with the values that UNION has changed as one
    SELECT gives them. `digits`: those of ZEROFILL columns, and 0 for computed decimal numbers.
    """
    filled = []
    for payload in split_rows(rows):
        values = decode_row(payload, width)
        for index, length in digits.items():
            value = values[index]
            if value is not None:
                number = form.read(value).rjust(length, b"0")
                values[index] = form.stored(number) if length else form.computed(number, _DECIMAL)
        filled.append(frame(encode_row(values), seq & 0xFF))
        seq += 1 + len(payload) // MAX_PAYLOAD
    return b"".join(filled)


class Opened(NamedTuple):
    """What a client's result of these `columns`, as a server tells them, began with: `head`, and the number
    of its `first` row. The same list, of the same kind, begins alike the next time. `read`: the columns,
    decoded.
    """

    columns: list[bytes]
    union: bool
    status: int
    extended: bool
    seq: int
    head: bytes
    first: int
    read: list[Column]


class Definitions:
    """The column definitions that a plan's client must get, learnt once from one shard.

    They go with the definitions that the merged statements themselves have: when those change (ALTER TABLE,
    another character set), the memory is dropped and the next statement learns anew.
    """

    __slots__ = (
        "_columns",
        "_exact",
        "_head",
        "_place",
        "_shown",
        "_union",
        "_zeros",
        "begins",
        "cut",
        "known",
        "opened",
        "read",
    )

    def __init__(self, place: Place | None = None, *, exact: bool = False) -> None:
        """`place` gives columns other origins than their server tells. `exact`: those of one shard are others
        than the client's, too (`Env.exact`).
        """
        self._place = place
        self._exact = exact
        self.known = False
        #: Whether a UNION of MariaDB's would cut some values.
        self.cut = False
        self._zeros: dict[int, int] = {}
        self._shown: list[bytes] = []
        self._union: list[bytes] | None = None
        #: What a server's result began with, up to its rows, and the definitions that are in it.
        self.begins = b""
        self.read: list[bytes] = []
        self._columns: list[Column] = []  # the same, decoded
        #: What a client's result began with, and the number of its first row; before them, for what it was.
        self._head: tuple[tuple[object, ...], bytes, int] = ((), b"", 0)
        #: The last one that was not cut, and all of whose columns a client sees.
        self.opened: Opened | None = None

    def remember(self, begins: bytes, read: list[bytes]) -> None:
        """A server's result began so, with these definitions: most likely the next one does, too."""
        if len(begins) <= _MOST_REMEMBERED:
            self.begins, self.read, self._columns = begins, read, []

    def columns(self, definitions: list[bytes]) -> list[Column]:
        """These definitions, decoded."""
        if definitions is not self.read:
            return [decode_column(payload) for payload in definitions]
        if not self._columns:
            self._columns = [decode_column(payload) for payload in definitions]
        return self._columns

    def head(
        self, columns: list[bytes], hidden: int, status: int, seq: int, *, union: bool, extended: bool
    ) -> tuple[bytes, int]:
        """What a client's result begins with, as packets numbered from `seq`, and the number of its first
        row. `columns`: the servers' definitions, the last ones of which are `hidden`; else as `of`.
        """
        kind = union, status, extended, seq
        opened = None if hidden or not self.known else self.opened
        if opened is not None and opened.columns is columns and opened[1:5] == kind:
            return opened.head, opened.first
        shown = self.of(columns[: len(columns) - hidden], hidden, union=union)
        asked = (shown, status, seq, extended)
        if self._head[0] != asked:
            self._head = (asked, *header_packets(shown, status, seq, extended=extended))
        if columns is self.read and self.known and not hidden:
            self.opened = Opened(columns, *kind, *self._head[1:], self.columns(columns))
        return self._head[1:]

    def learn(self, columns: list[bytes]) -> None:
        self.known = True
        self._zeros = _zero_filled(columns)
        self.cut = any(_fixed(decode_column(one)) for one in columns)
        self._shown = columns if self._place is None else changed(columns, self._place)
        self._union = self.opened = None

    def zeros_of(self, *, union: bool, form: Form = ASCII) -> dict[int, int]:
        """The columns whose values UNION has changed, as `fill_zeros` takes them."""
        if not union and not self._exact:
            return {}
        if not form.codec or form.all_numbers:
            return self._zeros
        shown = map(decode_column, self._shown)
        computed = (index for index, one in enumerate(shown) if one.type in DECIMALS and not one.org_name)
        return dict.fromkeys(computed, 0) | self._zeros

    def of(self, columns: list[bytes], hidden: int, *, union: bool) -> list[bytes]:
        """What to show for a result whose visible columns are `columns`, of a `union` or of one SELECT."""
        if not union and not self._exact:
            return columns if self._place is None else changed(columns, self._place)
        if not self.known:
            return columns
        shown = self._shown[: len(self._shown) - hidden] if len(self._shown) > len(columns) else self._shown
        if union and self._union is None:
            self._union = columns
        if (union and columns != self._union) or len(shown) != len(columns):
            self.known = False
            return columns
        return shown


class JoinDefinitions:
    """The column definitions that a join's client gets: `shown`, while the second read's own are among those
    that were `seen` with them.
    """

    __slots__ = ("seen", "shown")

    def __init__(self, shown: list[bytes]) -> None:
        self.shown = shown
        self.seen: list[list[bytes]] = []


_MOST_REMEMBERED: Final = 1 << 13
"""Bytes before the rows that are kept."""

MOST_DEFINITIONS: Final = 16
"""So many of one plan are kept, by what else they depend on."""


class PlansDefinitions:
    """The `Definitions` of each plan, for as long as there is the plan."""

    __slots__ = ("_joined", "_kept")

    def __init__(self) -> None:
        # as a `WeakKeyDictionary`, which takes a call for each look
        self._kept: dict[ref[Plan], dict[tuple[object, ...], Definitions]] = {}
        self._joined: WeakKeyDictionary[Plan, dict[tuple[object, ...], JoinDefinitions]] = WeakKeyDictionary()

    def of_join(self, plan: Plan) -> dict[tuple[object, ...], JoinDefinitions]:
        """The column definitions of a join's result, by what else they depend on."""
        return self._joined.setdefault(plan, {})

    def of(self, plan: ShardSelect, session: Session, values: Values, topology: Topology) -> Definitions:
        """Those of a plan: one for each state of settings and for the values that the select list shows, with
        and without extended metadata.
        """
        kept = self._kept.get(ref(plan))
        if kept is None:
            kept = self._kept[ref(plan, self._kept.pop)] = {}
        merging = plan.merging
        shown = () if merging is None else tuple([values[index] for index in merging.values])
        key = session.settings.system, session.extended, shown
        found = kept.get(key)
        if found is None:
            if len(kept) >= MOST_DEFINITIONS:
                kept.clear()
            place = None if plan.column_metadata is None else place_of(plan.column_metadata, topology)
            found = kept[key] = Definitions(place, exact=plan.exact)
        return found
