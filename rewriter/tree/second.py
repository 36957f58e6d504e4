"""The second reader at work on one statement: its tree when it is asked for, and where the two differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rewriter.env import Env
from rewriter.sql.statements.table import form_of
from rewriter.text.facts import Block, Span
from rewriter.text.tokens import Source

from .start import load
from .terms import Term

if TYPE_CHECKING:
    from .tree import Tree

MAX_TOKENS: Final = 4000
"""Statements of more tokens are not read a second time: it takes some 10 µs a token."""


class SecondReader:
    """`differences`: what the two readers read otherwise, in words without literals, each once."""

    def __init__(self, source: Source, env: Env) -> None:
        self._source = source
        self._env = env
        self._tree: Tree | None = None
        self._asked = False
        self._alike: dict[Block, bool] = {}
        self._conditions: dict[tuple[Span, Block], Term | None] = {}
        self.differences: dict[str, None] = {}

    @property
    def tree(self) -> Tree | None:
        """The statement's tree; None when there is none: the first reader is alone then."""
        if not self._asked:
            self._asked = True
            self._tree = self._made()
        return self._tree

    def _made(self) -> Tree | None:
        source = self._source
        if len(source.tokens) > MAX_TOKENS or not form_of(source).filters:
            return None
        read = load().read
        if read is None:
            return None
        try:
            return read(source, self._env)
        except Exception:  # whatever it cannot read, or finds too deep
            return None

    def alike(self, block: Block) -> bool:
        """Whether the block's tables and clauses are the same to both; also when there is no tree."""
        tree = self.tree
        if tree is None:
            return True
        found = self._alike.get(block)
        if found is None:
            try:
                found = tree.agrees(block)
            except Exception:  # sqlglot takes texts that are no SQL, and gives trees without limbs
                found = False
            self._alike[block] = found
        return found

    def agreed(self, block: Block) -> bool:
        """The same where something is narrowed by it: a difference is remembered."""
        if self.alike(block):
            return True
        self.differ("the clauses of a query block")
        return False

    def condition(self, span: Span, block: Block) -> Term | None:
        """What a condition of the block is; None when there is no tree, or it has none there."""
        tree = self.tree
        if tree is not None and (span, block) not in self._conditions:
            try:
                found = tree.condition(span, block)
            except Exception:
                found = None
            self._conditions[span, block] = found
        return self._conditions.get((span, block))

    def expression(self, span: Span) -> Term | None:
        """What an expression is, wherever it stands; None as for a condition."""
        tree = self.tree
        try:
            return None if tree is None else tree.expression(span)
        except Exception:
            return None

    def differ(self, what: str) -> None:
        """Remember that the readers do not agree on something."""
        self.differences[what] = None
