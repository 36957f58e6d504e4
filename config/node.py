"""Walking a document: typed getters that note problems instead of raising them.

root = Node.root(parse(text, "topology.yaml"))
version = root.need("version")
number = version and version.integer(1)     # None when it is missing or no number: noted
root.document.raise_problems()
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from config.document import Document, Path


@dataclass(frozen=True)
class Node:
    """One value of a document on the way through it.

    The typed getters give the value, or None after noting a problem. An optional field that is
    absent or null is no problem: ask with `get`.
    """

    document: Document
    path: Path
    value: object

    @classmethod
    def root(cls, document: Document) -> Node:
        """The whole document."""
        return cls(document, (), document.value)

    def refuse(self, message: str) -> None:
        """Note a problem here."""
        self.document.refuse(self.path, message)

    def child(self, key: str | int, value: object) -> Node:
        """The value under `key`."""
        return Node(self.document, (*self.path, key), value)

    def get(self, name: str) -> Node | None:
        """The field `name`, or None when it is absent or null, or this is not a mapping."""
        value = self.value.get(name) if isinstance(self.value, Mapping) else None
        return None if value is None else self.child(name, value)

    def need(self, name: str) -> Node | None:
        """The field `name`; when it is absent or null that is a problem."""
        found = self.get(name)
        if found is None and isinstance(self.value, Mapping):
            self.refuse(f"field {name!r} is missing")
        return found

    def mapping(self, known: Iterable[str]) -> bool:
        """Whether this is a mapping; its fields beyond `known` are problems."""
        names = list(known)
        if not isinstance(self.value, Mapping):
            self.refuse(f"must be a mapping with the fields {', '.join(names)}, not {describe(self.value)}")
            return False
        for name in self.value:
            if name not in names:
                self.child(name, None).refuse(unknown(str(name), names))
        return True

    def items(self, what: str) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping whose keys are names; `what` says of what, in messages."""
        if not isinstance(self.value, Mapping):
            self.refuse(f"must be a mapping of {what}, not {describe(self.value)}")
            return
        for name, value in self.value.items():
            yield str(name), self.child(str(name), value)

    def ordered(self, what: str) -> Iterator[tuple[str, Node]]:
        """Entries whose order counts: those of a mapping, or of a list of mappings with one entry each.

        The second form is for tools that write the keys of a mapping in an order of their own.
        """
        if not isinstance(self.value, list):
            yield from self.items(what)
            return
        seen: set[str] = set()
        for element in self.elements(what):
            if not isinstance(element.value, Mapping) or len(element.value) != 1:
                element.refuse(f"must be a mapping with one entry, not {describe(element.value)}")
                continue
            for name, node in element.items(what):
                if name in seen:
                    node.refuse("is given twice")
                else:
                    seen.add(name)
                    yield name, node

    def elements(self, what: str) -> Iterator[Node]:
        """The elements of a list; `what` says of what, in messages."""
        if not isinstance(self.value, list):
            self.refuse(f"must be a list of {what}, not {describe(self.value)}")
            return
        for index, value in enumerate(self.value):
            yield self.child(index, value)

    def text(self) -> str | None:
        """A text that is not empty."""
        if isinstance(self.value, str) and self.value:
            return self.value
        self.refuse(f"must be a text, not {describe(self.value)}")
        return None

    def integer(self, low: int, high: int | None = None) -> int | None:
        """A whole number of `low` to `high`, both included."""
        value = self.value
        if isinstance(value, int) and not isinstance(value, bool):
            if value >= low and (high is None or value <= high):
                return value
            self.refuse(f"is {value}: must be {low} " + ("or more" if high is None else f"to {high}"))
        else:
            self.refuse(f"must be a whole number, not {describe(value)}")
        return None

    def boolean(self) -> bool | None:
        """true or false."""
        if isinstance(self.value, bool):
            return self.value
        self.refuse(f"must be true or false, not {describe(self.value)}")
        return None

    def choice(self, options: Iterable[str]) -> str | None:
        """One of `options`."""
        names = list(options)
        if isinstance(self.value, str) and self.value in names:
            return self.value
        self.refuse(f"must be one of {', '.join(names)}, not {describe(self.value)}")
        return None


def unknown(name: str, known: Iterable[str]) -> str:
    """The message for a field that does not exist, with the likeliest one that does."""
    near = difflib.get_close_matches(name, list(known), 1)
    return "unknown field" + (f": did you mean {near[0]!r}?" if near else "")


def describe(value: object) -> str:
    """`value` for a message, cut to a readable length."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {value[:40]!r}" if value else "an empty text"
        case int() | float():
            return f"the number {str(value)[:40]}"
        case Mapping():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return f"a {type(value).__name__}"
