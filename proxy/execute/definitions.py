"""The column definitions that the clients of a fan-out get."""

from __future__ import annotations

from proxy.wire.origins import Place, changed


class Definitions:
    """The column definitions that a plan's client must get, learnt once from one shard.

    They go with the definitions that the merged statements themselves have: when those change (ALTER TABLE,
    another character set), the memory is dropped and the next statement learns anew.
    """

    __slots__ = ("_place", "_shown", "_union", "known")

    def __init__(self, place: Place | None = None) -> None:
        """`place` gives columns other origins than their server tells."""
        self._place = place
        self.known = False
        self._shown: list[bytes] = []
        self._union: list[bytes] | None = None

    def learn(self, columns: list[bytes]) -> None:
        self.known = True
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
