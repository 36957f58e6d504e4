"""Statements as trees, of which parts can be taken away while a difference is being made small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Node:
    """A piece of SQL: texts and inner nodes, in the order in which they are written.

    `role` says what may become of it: "expr" any expression inside or a NULL, "clause" nothing, "list" fewer
    of its parts (joined by `separator`), "fixed" stays. `order` and `loose`: see `Form`.
    """

    parts: tuple[str | Node, ...]
    role: str = "fixed"
    separator: str = ""
    order: tuple[int, ...] | None = None
    loose: bool = False

    @property
    def sql(self) -> str:
        """The text; parts of a list that have become empty take their separator with them."""
        texts = [one if isinstance(one, str) else one.sql for one in self.parts]
        return self.separator.join(texts)

    def nodes(self) -> Iterator[Node]:
        """This one and all inside."""
        yield self
        for one in self.parts:
            if isinstance(one, Node):
                yield from one.nodes()

    def smaller(self) -> Iterator[Node]:
        """Simpler trees, the largest steps first."""
        if self.role == "clause" and self.parts:
            yield replace(self, parts=())
        if self.role == "expr":
            yield from self._inner()
        if self.role == "list" and len(self.parts) > 1:
            half = len(self.parts) // 2
            if half > 1:
                yield replace(self, parts=self.parts[:half])
                yield replace(self, parts=self.parts[half:])
            for index in range(len(self.parts)):
                yield replace(self, parts=self.parts[:index] + self.parts[index + 1 :])
        for index, one in enumerate(self.parts):
            if isinstance(one, Node):
                for simpler in one.smaller():
                    yield replace(self, parts=(*self.parts[:index], simpler, *self.parts[index + 1 :]))

    def _inner(self) -> Iterator[Node]:
        """The expressions directly inside."""
        for one in self.parts:
            if isinstance(one, Node):
                if one.role == "expr":
                    yield one
                else:
                    yield from one._inner()


def expr(*parts: str | Node) -> Node:
    """An expression."""
    return Node(parts, "expr")


def clause(*parts: str | Node) -> Node:
    """What a statement may do without."""
    return Node(parts, "clause")


def items(parts: list[str | Node] | list[Node] | list[str], separator: str = ", ") -> Node:
    """A list that may become shorter."""
    return Node(tuple(parts), "list", separator)


def fixed(*parts: str | Node) -> Node:
    """What stays."""
    return Node(parts)


@dataclass(frozen=True)
class Form:
    """How the rows of a statement can be compared.

    `order`: the columns that are in order, () all of them (the order is total); None: there is no order.
    `loose`: which one of several equal texts is shown is not certain. `counted`: only the number of rows is.
    """

    order: tuple[int, ...] | None = None
    loose: bool = False
    counted: bool = False


def form_of(tree: Node, *, counted: bool = False) -> Form:
    """The form that the marks in a tree give."""
    found = list(tree.nodes())
    order = next((one.order for one in found if one.order is not None and one.parts), None)
    return Form(order, any(one.loose for one in found), counted)
