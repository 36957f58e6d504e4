"""The rows of an INSERT into a sharded table, as its plan knows them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rewriter.plan import Values
from rewriter.route.routing import Key
from rewriter.route.values import Value
from rewriter.splice import Template


@dataclass(frozen=True, slots=True)
class Hint:
    """Something in a row that names its shard, if it is there.

    `form`: "id" (the object's own ID), "key" (the routing column: the row must have it), "same" (an ID whose
    shard the row shares), "json" (such an ID at `path` in a JSON text), "shard" (number `shard`, a hint).
    `column`: of a "key" that the row must have.
    """

    form: Literal["id", "key", "same", "json", "shard"]
    key: Key
    value: Value | None = None
    path: tuple[str | int, ...] = ()
    shard: int = -1
    column: str = ""

    def is_null(self, values: Values) -> bool:
        """Whether its value is a parameter that is NULL."""
        value = self.value
        return value is not None and value.kind == "parameter" and values[value.index] == b"NULL"


class Spelling(NamedTuple):
    """A literal that must be spelt so, or it is an error of syntax: `literal` is its index."""

    literal: int
    pattern: re.Pattern[bytes]


@dataclass(frozen=True, slots=True)
class Row:
    """One row: what names its shard, in order of precedence, and its text. `single_row`: see the file of that
    name in writes/. `spellings`: how the literals of its values must be spelt; None when the
    values are not all known, so that a server has to resolve them (known_values.py).
    """

    hints: tuple[Hint, ...]
    template: Template
    single_row: bool = False
    spellings: tuple[Spelling, ...] | None = ()

    def is_known(self, values: Values) -> bool:
        """Whether the row has no error of syntax and no unknown name."""
        if self.spellings is None:
            return False
        return all(pattern.fullmatch(values[literal]) for literal, pattern in self.spellings)


class Strict(NamedTuple):
    """The column of a strict colocation, by whose ID a row is placed. `nullable`: it may have none."""

    column: str
    nullable: bool
