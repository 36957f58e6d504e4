"""One statement of a case."""

from __future__ import annotations

from dataclasses import dataclass

from tests.differential.anyschema.tree import Form, Node

ID = "\0id\0"
UNORDERED = Form()


@dataclass(frozen=True)
class Step:
    """One statement. `twin`: what the plain server gets, ID standing for the insert id that the proxy gave."""

    tree: Node
    kind: str
    form: Form = UNORDERED
    twin: str | None = None
    tables: frozenset[str] = frozenset()

    @property
    def sql(self) -> str:
        return self.tree.sql
