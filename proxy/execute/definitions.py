"""The column definitions that the clients of a fan-out get."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.wire.constants import MAX_PAYLOAD, ColumnFlag
from proxy.wire.origins import Place, changed
from proxy.wire.packets import frame
from proxy.wire.resultset import decode_column, decode_row, encode_row
from proxy.wire.rows import split_rows


def _zero_filled(definitions: list[bytes]) -> dict[int, int]:
    """The ZEROFILL columns among these definitions, with the digits that they show."""
    columns = map(decode_column, definitions)
    return {index: one.length for index, one in enumerate(columns) if one.flags & ColumnFlag.ZEROFILL}


def fill_zeros(rows: bytes, seq: int, width: int, digits: Mapping[int, int]) -> bytes:
    """A block of rows of `width` columns, numbered from `seq`, with the zeros that UNION has lost."""
    filled = []
    for payload in split_rows(rows):
        values = decode_row(payload, width)
        for index, length in digits.items():
            value = values[index]
            values[index] = None if value is None else value.rjust(length, b"0")
        filled.append(frame(encode_row(values), seq & 0xFF))
        seq += 1 + len(payload) // MAX_PAYLOAD
    return b"".join(filled)


class Definitions:
    """The column definitions that a plan's client must get, learnt once from one shard.

    They go with the definitions that the merged statements themselves have: when those change (ALTER TABLE,
    another character set), the memory is dropped and the next statement learns anew. `zeros`: its ZEROFILL
    columns, with the digits that they show.
    """

    __slots__ = ("_place", "_shown", "_union", "known", "zeros")

    def __init__(self, place: Place | None = None) -> None:
        """`place` gives columns other origins than their server tells."""
        self._place = place
        self.known = False
        self.zeros: dict[int, int] = {}
        self._shown: list[bytes] = []
        self._union: list[bytes] | None = None

    def learn(self, columns: list[bytes]) -> None:
        self.known = True
        self.zeros = _zero_filled(columns)
        self._shown = columns if self._place is None else changed(columns, self._place)
        self._union = None

    def of_shard(self, columns: list[bytes]) -> list[bytes]:
        """What to show for a result whose visible columns are those of one shard."""
        return columns if self._place is None else changed(columns, self._place)

    def of(self, union: list[bytes], hidden: int) -> list[bytes]:
        """What to show for a result whose visible columns are `union`."""
        if not self.known:
            return union
        shown = self._shown[: len(self._shown) - hidden] if len(self._shown) > len(union) else self._shown
        if self._union is None:
            self._union = union
        if union != self._union or len(shown) != len(union):
            self.known = False
            return union
        return shown
