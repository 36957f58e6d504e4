"""Tokens to facts: the tables of a FROM clause and how they are joined."""

from __future__ import annotations

from typing import Final

from .facts import Block, Condition, Span, TableRef
from .reader import CLAUSES, Reader
from .tokens import NAME

_JOINS: Final = frozenset({"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "STRAIGHT_JOIN"})
_BEHIND: Final = {"ON", "USING", "USE", "FORCE", "IGNORE", "PARTITION", "SET", "VALUES", "SELECT"}
_NO_ALIAS: Final = CLAUSES | _JOINS | _BEHIND


class TableReader(Reader):
    """Reads table references."""

    def table_name(self) -> TableRef:
        """A table's name, qualified or not."""
        first = self.at
        database, name = None, self.name()
        if self.take_op("."):
            database, name = name, self.name()
        return TableRef("table", Span(first, self.at), name, database)

    def tables(self, block: Block) -> None:
        """A list of table references with their joins, added to `block`."""
        self._join_list(block)
        if block.odd_joins:
            block.conditions = [Condition(one.span, frozenset()) for one in block.conditions]

    def _join_list(self, block: Block) -> frozenset[int]:
        """Tables joined by commas and JOINs, up to a clause or a closing parenthesis: their indexes."""
        joined = self._factor(block)
        left, right, natural, kind = frozenset[int](), joined, False, ""
        nullable = frozenset[int]()
        near = joined  # those behind the last comma, which a RIGHT JOIN has on its left
        filled = frozenset[int]()  # those to which the join at hand, and none within, gives rows of NULLs
        while self.at < self.end and not self.at_clause():
            if self.take_op(","):
                left, right, kind = joined, self._factor(block), ","
                nullable = frozenset(block.nullable)
                joined = left | right
                near, filled = right, frozenset()
            elif self.source.is_word(self.at, "ON") and kind:
                self.at += 1
                span = self.filled(self.expression(block, self._after_on))
                narrows = {"LEFT": right, "RIGHT": left}.get(kind, joined)
                block.conditions.append(Condition(span, narrows, narrows - nullable))
                block.outer_on |= dict.fromkeys(filled, span)
                filled = frozenset()
                block.odd_joins = block.odd_joins or kind == ","
                kind = ","
            elif self.source.is_word(self.at, "USING") and kind:
                self.at += 1
                self._using(block)
            else:
                kind, natural = self._join_words()
                if natural:
                    block.shared_columns.append("*")
                left, right = joined, self._factor(block)
                joined = left | right
                nullable = frozenset(block.nullable)
                block.nullable |= {"LEFT": right, "RIGHT": left}.get(kind, frozenset())
                filled = {"LEFT": right, "RIGHT": near}.get(kind, frozenset()) - block.outer_on.keys()
                block.outer_on |= dict.fromkeys(filled, None)
                near |= right
        return joined

    def _after_on(self) -> bool:
        source = self.source
        if source.is_op(self.at, ",") or self.at_clause() or source.is_word(self.at, "ON", "USING"):
            return True
        if self.word() not in _JOINS or source.is_op(self.at - 1, "."):
            return False
        return not source.is_op(self.at + 1, "(") or self.word() in ("JOIN", "STRAIGHT_JOIN")

    def _join_words(self) -> tuple[str, bool]:
        """Step over the words of a join: LEFT, RIGHT or JOIN, and whether it is NATURAL."""
        natural = self.take("NATURAL")
        side = self.word()
        if side in ("LEFT", "RIGHT"):
            self.at += 1
            self.take("OUTER")
            self.need("JOIN")
            return side, natural
        if not self.take("STRAIGHT_JOIN"):
            self.take("INNER", "CROSS")
            self.need("JOIN")
        return "JOIN", natural

    def _using(self, block: Block) -> None:
        if not self.source.is_op(self.at, "("):
            raise self.unreadable("(")
        close = self.source.closing[self.at]
        names = self.source.tokens[self.at + 1 : close : 2]
        block.shared_columns += [one.name.upper() for one in names]
        self.at = close + 1

    def _factor(self, block: Block) -> frozenset[int]:
        """One table, derived table, or parenthesized list of joins: the indexes of its tables."""
        source, first = self.source, self.at
        lateral = source.is_op(self.at + 1, "(") and self.take("LATERAL")
        if source.is_op(self.at, "(") and self.at < self.end:
            # where a table is expected VALUES (…) is no function: MariaDB's rows without ROW
            rows = source.is_word(self.at + 1, "VALUES") and source.is_op(self.at + 2, "(")
            if not rows and not self.opens_query(self.at):
                return self._nested_joins(block)
            query = self.inside(block if lateral else block.outer)
            table = TableRef("derived", Span(first, self.at), query=query)
        elif source.is_name(self.at) and source.is_op(self.at + 1, "("):
            self.at += 1
            self.parenthesized(block)
            table = TableRef("odd", Span(first, self.at))
        else:
            table = self.table_name()
        block.tables.append(table)
        self.after_table(table)
        return frozenset({len(block.tables) - 1})

    def _nested_joins(self, block: Block) -> frozenset[int]:
        close = self.source.closing[self.at]
        before, self.end = self.end, close
        self.at += 1
        joined = self._join_list(block)
        if self.at != close:
            raise self.unreadable(")")
        self.end = before
        self.at = close + 1
        return joined

    def after_table(self, table: TableRef) -> None:
        """Step over PARTITION (…), the alias and index hints behind a table."""
        source = self.source
        if source.is_word(self.at, "PARTITION") and source.is_op(self.at + 1, "("):
            self.at = source.closing[self.at + 1] + 1
        if self.take("AS") or (self.at < self.end and source.is_name(self.at) and self._may_be_alias()):
            table.alias = self.name()
        if table.form == "derived" and source.is_op(self.at, "(") and self.at < self.end:
            table.renamed = True
            self.at = source.closing[self.at] + 1
        while self.word() in ("USE", "FORCE", "IGNORE") and source.is_word(self.at + 1, "INDEX", "KEY"):
            self.at += 2
            if self.take("FOR") and not self.take("JOIN"):
                self.need("ORDER", "GROUP")
                self.need("BY")
            if not source.is_op(self.at, "("):
                raise self.unreadable("(")
            self.at = source.closing[self.at] + 1
            if source.is_word(self.at + 1, "USE", "FORCE", "IGNORE") and source.is_word(
                self.at + 2, "INDEX", "KEY"
            ):
                self.take_op(",")  # MariaDB takes hints with commas between them; else another table follows

    def _may_be_alias(self) -> bool:
        if self.source.at(self.at).kind == NAME or self.word() not in _NO_ALIAS:
            return True
        return self.word() in ("WINDOW", "OFFSET") and not self.at_clause()
