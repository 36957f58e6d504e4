"""Random conditions on routing columns: what decides which shards a statement goes to.

IDs are real ones, missing ones, of the wrong type, with reserved bits, negative
or too large; written as numbers, sums, quoted, hexadecimal; alone, in lists with duplicates, on either side,
nested.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from config.schema import Kind
from tests.differential.catalog import Catalog, Family, TableModel, literal
from tests.differential.parts import Expr, leaf

SHARD_SHIFT, TYPE_SHIFT, LOCAL_BITS = 46, 36, 36


@dataclass(frozen=True)
class Routed:
    """A condition and what it does: "few" (at most one shard), "list", "scatter".

    `odd`: an ID in it can match nothing, so that there may be a warning.
    """

    condition: Expr | None
    reach: str
    odd: bool = False


class Routes:
    """Conditions on the routing column of one table."""

    def __init__(
        self, rng: random.Random, catalog: Catalog, table: TableModel, *, qualifier: str = ""
    ) -> None:
        self.rng = rng
        self.catalog = catalog
        self.table = table
        self.column = qualifier + table.routing
        self.numeric = table.column(table.routing).family is Family.WIDE
        self._odd = False

    # --- keys ------------------------------------------------------------------------------------

    def key(self) -> object:
        """A value that occurs."""
        return self.rng.choice(self.table.keys)

    def number(self) -> int:
        """An ID, most often one that exists."""
        rng, known = self.rng, self.rng.choice(self.table.keys)
        assert isinstance(known, int)
        if self.table.kind is Kind.HASHED or rng.random() < 0.8:
            return known
        if rng.random() < 0.4:
            self._odd |= self.table.kind is Kind.TIMED  # whose shard is in the lower bits
            near = known + rng.choice((1, 2, 1000))  # the right shard and type, but no such row, most likely
            return known if self._of_no_shard(near) else near
        self._odd = True
        mistakes: Sequence[Callable[[], int]] = (
            lambda: known ^ 1 << TYPE_SHIFT,
            lambda: known | 1 << 62,
            lambda: known | 1 << 63,
            lambda: -known,
            lambda: known + (1 << 64),
            lambda: 0,
            lambda: -1,
            lambda: (1 << 64) - 1,
            lambda: 10**30,
        )
        wrong = rng.choice(mistakes)()
        return known if self._of_no_shard(wrong) else wrong

    def _of_no_shard(self, number: int) -> bool:
        """Whether it is an ID of a shard that there is not, which the proxy refuses, and one server does not
        know of.
        """
        shift, mask = (10, 0x1FFF) if self.table.kind is Kind.TIMED else (SHARD_SHIFT, 0xFFFF)
        bits = 64 if self.table.kind is Kind.TIMED else 62
        return 0 <= number < 1 << bits and number >> shift & mask not in self.catalog.shards

    def written(self, number: int) -> str:
        """The number as SQL; in a few ways."""
        form = self.rng.random()
        if form < 0.75 or number < 0 or number >> 63:
            return str(number)
        if self.table.kind is Kind.TIMED and number not in self.table.keys:
            # beside a row's ID: in a list that has numbers, too, a MySQL server compares texts as DOUBLE and
            # finds the neighbour when it scans, and exactly when it takes the key
            return str(number)
        if form < 0.83:
            return f"'{number}'"
        if form < 0.88:
            return hex(number)
        if form < 0.91:
            return f"({number - 5} + 5)"
        if form < 0.94:
            return f"{number} + 0"
        if form < 0.96:
            return f"- -{number}"
        return f"({number})"

    def constant(self) -> str:
        """A key as SQL."""
        if self.numeric:
            return self.written(self.number())
        key = self.key()
        if self.rng.random() < 0.2:
            if isinstance(key, str):
                return literal(self.rng.choice((key.upper(), key + " ", "nobody@x.org", "ä" + key)))
            return "x'00ff'"
        if isinstance(key, bytes) and key.isascii() and b"\0" not in key and self.rng.random() < 0.5:
            return literal(key.decode())
        return literal(key)  # type: ignore[arg-type]

    def same_shard(self, count: int) -> list[int]:
        """IDs of one shard."""
        first = self.rng.choice(self.table.keys)
        found = [one for one in self.table.keys if one >> SHARD_SHIFT == first >> SHARD_SHIFT]
        return [self.rng.choice(found) for _ in range(count)]

    # --- conditions ------------------------------------------------------------------------------

    def point(self) -> Routed:
        """One key."""
        self._odd = False
        constant = self.constant()
        forms = (
            f"{self.column} = {constant}",
            f"{self.column} = {constant}",
            f"{self.column} = {constant}",
            f"{self.column}={constant}",
            f"({self.column} = {constant})",
            f"{constant} = {self.column}",
            f"{self.column} <=> {constant}",
            f"{self.column} IN ({constant})",
        )
        return Routed(leaf(self.rng.choice(forms), Family.BOOLEAN), "few", self._odd)

    def some(self) -> Routed:
        """A list of keys, in one of several forms."""
        self._odd = False
        count = self.rng.choice((2, 2, 3, 5, 8, 20))
        if self.numeric and self.table.kind is not Kind.HASHED and self.rng.random() < 0.2:
            constants = [str(one) for one in self.same_shard(count)]
        elif self.rng.random() < 0.7:
            constants = [self.plain() for _ in range(count)]
        else:
            constants = [self.constant() for _ in range(count)]
        if self.rng.random() < 0.3:
            constants.append(constants[0])
        separator = self.rng.choice((", ", ",", " , "))
        form = self.rng.random()
        if form < 0.75:
            text = f"{self.column} IN ({separator.join(constants)})"
        elif form < 0.9:
            text = "(" + " OR ".join(f"{self.column} = {one}" for one in constants) + ")"
        else:
            half = len(constants) // 2
            parts = [constants[:half] or constants[:1], constants[half:]]
            text = "(" + " OR ".join(f"{self.column} IN ({', '.join(part)})" for part in parts) + ")"
        return Routed(leaf(text, Family.BOOLEAN), "list", self._odd)

    def plain(self) -> str:
        """A key, all of a list alike."""
        return str(self.number()) if self.numeric else self.constant()

    def overlap(self) -> Routed:
        """Two lists of which both must hold."""
        one, two = self.some(), self.some()
        assert one.condition is not None
        assert two.condition is not None
        parts = ("(", one.condition, " AND ", two.condition, ")")
        return Routed(Expr(parts, Family.BOOLEAN), "list", one.odd or two.odd)

    def between(self) -> Routed:
        """A range of IDs; within one shard, or over some."""
        if not self.numeric or self.table.kind is Kind.HASHED:
            return self.some()
        low, high = sorted(self.same_shard(2))
        if self.rng.random() < 0.3:
            low, high = sorted((low, self.number() % (1 << 62)))
        text = f"({self.column} BETWEEN {low} AND {high})"
        if self.rng.random() < 0.2:
            text = f"({self.column} >= {low} AND {self.column} <= {high})"
        return Routed(leaf(text, Family.BOOLEAN), "scatter", True)

    def wide(self) -> Routed:
        """What does not narrow, though the routing column is in it."""
        if self.rng.random() < 0.4:
            return Routed(None, "scatter")
        constant, column = self.constant(), self.column
        forms = [
            f"({column} = {constant} OR 1 = 1)",
            f"{column} <> {constant}",
            f"NOT ({column} = {constant})",
            f"NOT {column} IN ({constant}, {self.constant()})",
            f"{column} NOT IN ({constant}, {self.constant()})",
            f"({column} = {constant}) IN (0, 1)",
            f"{column} > {constant}",
            f"({column} = {constant} OR {column} IS NULL)",
            f"({column} = {constant} XOR 1)",
            f"{column} IN ({constant}, NULL)",
            f"IF({column} = {constant}, 1, 0) = 0",
            f"({column} = {constant} IS TRUE)",
            f"{column} IS NOT NULL",
        ]
        if self.numeric:
            forms += [f"{column} + 0 = {constant}", f"{column} % 2 = 1", f"{column} = {constant}.0"]
        return Routed(leaf(self.rng.choice(forms), Family.BOOLEAN), "scatter", True)

    def any(self) -> Routed:
        """Any of these, the common ones more often."""
        makers = (
            self.point,
            self.point,
            self.some,
            self.some,
            self.some,
            self.overlap,
            self.between,
            self.wide,
        )
        return self.rng.choice(makers)()
