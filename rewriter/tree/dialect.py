"""MySQL's grammar of queries and changes of rows, where sqlglot's differs, and nodes that know their tokens.

sqlglot's `IS`, `<`, `=` and `BETWEEN` bind in an order of its own; MySQL's comparisons all bind alike, from
left to right. The loops here say so, and each marks the nodes that it makes; other nodes are not looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar, Final

from sqlglot import exp, parser
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import ErrorLevel
from sqlglot.parsers.mysql import MySQLParser
from sqlglot.tokenizer_core import Token, TokenType

from rewriter.env import Env

T = TokenType
Node = exp.Expr

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it tells of what it does not know; nobody asked

_COMPARISONS: Final = {**parser.Parser.EQUALITY, **parser.Parser.COMPARISON}
_CLAUSES: Final = (
    *(T.WHERE, T.GROUP_BY, T.HAVING, T.WINDOW, T.ORDER_BY, T.LIMIT, T.OFFSET, T.FETCH, T.FOR, T.LOCK),
)
_SUMS: Final = {T.PLUS: exp.Add, T.DASH: exp.Sub}
_PRODUCTS: Final = {T.STAR: exp.Mul, T.SLASH: exp.Div, T.DIV: exp.IntDiv, T.MOD: exp.Mod}
_OPTIONS: Final = frozenset({"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE"})


class Opaque(Exception):
    """A statement that sqlglot takes as a whole, without looking into it."""


class GateParser(MySQLParser):
    """Reads one statement. `marks`: nodes with their first token and the one behind their last; of several
    for the same tokens the last is the outermost.
    """

    RANGE_PARSERS: ClassVar[dict[Any, Any]] = {
        kind: one
        for kind, one in MySQLParser.RANGE_PARSERS.items()
        if kind in (T.BETWEEN, T.IN, T.LIKE, T.RLIKE, T.MEMBER_OF)
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[Any, Any]] = {
        word: MySQLParser.NO_PAREN_FUNCTION_PARSERS[word] for word in ("CASE", "IF")
    }
    OPERATION_MODIFIERS: ClassVar[set[str]] = {
        *MySQLParser.OPERATION_MODIFIERS, "SQL_CACHE", "ALL", "DISTINCT", "DISTINCTROW",
    }  # fmt: skip
    QUERY_MODIFIER_PARSERS: ClassVar[dict[Any, Any]] = {
        kind: one for kind, one in MySQLParser.QUERY_MODIFIER_PARSERS.items() if kind in _CLAUSES
    } | {T.INTO: lambda self: ("into", self._parse_into())}
    QUERY_MODIFIER_TOKENS: ClassVar[set[Any]] = set(QUERY_MODIFIER_PARSERS)
    STATEMENT_PARSERS: ClassVar[dict[Any, Any]] = {
        T.UPDATE: MySQLParser.STATEMENT_PARSERS[T.UPDATE],
        T.DELETE: MySQLParser.STATEMENT_PARSERS[T.DELETE],
    }

    def __init__(self, env: Env) -> None:
        super().__init__(dialect=_DIALECT, error_level=ErrorLevel.IMMEDIATE)
        self.env = env
        self.marks: list[tuple[Node, int, int]] = []

    def one(self, tokens: list[Token], sql: str) -> Node:
        """The tree. Raises sqlglot's errors, Opaque and RecursionError."""
        trees = self.parse(tokens, sql)
        if len(trees) != 1 or not isinstance(trees[0], exp.Query | exp.DML):
            raise Opaque
        return trees[0]

    def _is_marked(self, node: Node) -> bool:
        last = self.marks[-1] if self.marks else None
        return last is not None and last[0] is node and last[2] == self._index

    def _mark(self, node: Node, first: int) -> Node:
        self.marks.append((node, first, self._index))
        return node

    # conditions, from loose to tight

    def _parse_disjunction(self) -> Node | None:
        first, this = self._index, self._parse_xor()
        while self._match(T.OR) or (not self.env.pipes_as_concat and self._match(T.DPIPE)):
            this = self._mark(exp.Or(this=this, expression=self._operand(self._parse_xor)), first)
        return this

    def _parse_xor(self) -> Node | None:
        first, this = self._index, self._parse_conjunction()
        while self._match(T.XOR):
            this = self._mark(exp.Xor(this=this, expression=self._operand(self._parse_conjunction)), first)
        return this

    def _parse_conjunction(self) -> Node | None:
        first, this = self._index, self._parse_equality()
        while self._match(T.AND) or self._match(T.DAMP):
            this = self._mark(exp.And(this=this, expression=self._operand(self._parse_equality)), first)
        return this

    def _operand(self, method: Callable[[], Node | None]) -> Node:
        found = method()
        if found is None:
            self.raise_error("an operand is missing")
            raise Opaque
        return found

    def _parse_not(self) -> Node:
        first = self._index - 1
        tight = self._prev.text == "!" or self.env.high_not_precedence
        inner = self._operand(self._parse_unary if tight else self._parse_equality)
        return self._mark(exp.Not(this=inner), first)

    def _parse_equality(self, parse_is: bool = True) -> Node | None:
        first, this = self._index, self._parse_range()
        while True:
            if self._match_set(_COMPARISONS):
                kind = _COMPARISONS[self._prev.token_type]
                this = self._mark(kind(this=this, expression=self._compared()), first)
            elif self._match(T.IS):
                this = self._mark(self._is(this), first)
            else:
                return this

    def _compared(self) -> Node:
        if self._curr.token_type is not T.ALL and self._curr.text.upper() not in ("ANY", "SOME"):
            return self._operand(self._parse_range)
        if self._next.token_type is not T.L_PAREN:
            return self._operand(self._parse_range)
        some = exp.All if self._curr.token_type is T.ALL else exp.Any
        self._advance()
        return some(this=self._parse_wrapped(self._parse_select))

    def _is(self, this: Node | None) -> Node:
        negated = self._match(T.NOT)
        what: Node | None = None
        if self._match(T.NULL) or self._match_text_seq("UNKNOWN"):
            what = exp.Null()
        elif self._match_set((T.TRUE, T.FALSE)):
            what = exp.Boolean(this=self._prev.token_type is T.TRUE)
        if what is None:
            self.raise_error("IS what?")
        found = exp.Is(this=this, expression=what)
        return exp.Not(this=found) if negated else found

    def _parse_comparison(self, this: Node | None = None) -> Node | None:
        return self._parse_equality()

    def _is_predicate_ahead(self) -> bool:
        return self._curr.token_type is T.IS

    def _parse_range(self, this: Node | None = None, parse_is: bool = False) -> Node | None:
        if this is not None:
            return super()._parse_range(this, parse_is)
        first, operand = self._index, self._parse_bitwise()
        ranges = self._curr.token_type in self.RANGE_PARSERS or self._curr.token_type is T.NOT
        if not ranges and self._curr.text.upper() != "SOUNDS":
            return operand
        found = super()._parse_range(operand, parse_is)
        return found if found is None or found is operand else self._mark(found, first)

    def _parse_between(self, this: Node | None) -> exp.Between:
        low = self._operand(self._parse_bitwise)
        if not self._match(T.AND):
            self.raise_error("AND is missing")
        return exp.Between(this=this, low=low, high=self._operand(self._parse_range))

    def _negate_range(self, this: Node | None = None) -> Node | None:
        return exp.Not(this=this)

    # operands

    def _parse_bitwise(self) -> Node | None:
        first, this = self._index, self._parse_term()
        while True:
            if self._match_set((T.PIPE, T.AMP)):
                kind: type[Node] = exp.BitwiseOr
            elif self._match_pair(T.LT, T.LT) or self._match_pair(T.GT, T.GT):
                kind = exp.BitwiseLeftShift
            else:
                return this
            this = self._mark(kind(this=this, expression=self._operand(self._parse_term)), first)

    def _parse_term(self, parse_mod: bool = True) -> Node | None:
        first, this = self._index, self._parse_factor(parse_mod)
        while self._match_set(_SUMS):
            kind = _SUMS[self._prev.token_type]
            this = self._mark(kind(this=this, expression=self._operand(self._parse_factor)), first)
        return this

    def _parse_factor(self, parse_mod: bool = True) -> Node | None:
        first, this = self._index, self._parse_exponent()
        while self._match_set(_PRODUCTS):
            kind = _PRODUCTS[self._prev.token_type]
            this = self._mark(kind(this=this, expression=self._operand(self._parse_exponent)), first)
        return this

    def _parse_exponent(self) -> Node | None:
        first, this = self._index, self._parse_concat()
        while self._match(T.CARET):
            this = self._mark(exp.BitwiseXor(this=this, expression=self._operand(self._parse_concat)), first)
        return this

    def _parse_concat(self) -> Node | None:
        first, this = self._index, self._parse_unary()
        while self.env.pipes_as_concat and self._match(T.DPIPE):
            this = self._mark(exp.DPipe(this=this, expression=self._operand(self._parse_unary)), first)
        return this

    def _parse_unary(self) -> Node | None:
        first, kind = self._index, self._curr.token_type
        this: Node | None
        if kind is T.PLUS:
            self._advance()
            this = self._mark(exp.Paren(this=self._operand(self._parse_unary)), first)
        elif kind is T.DASH:
            self._advance()
            this = self._mark(exp.Neg(this=self._operand(self._parse_unary)), first)
        else:
            this = super()._parse_unary()
        while self._match(T.COLLATE):
            if self._parse_var(any_token=True) is None and self._parse_string() is None:
                self.raise_error("COLLATE what?")
            this = self._mark(exp.Collate(this=this), first)
        return this

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> Node | None:
        first = self._index
        found = super()._parse_type(parse_interval, fallback_to_identifier)
        if found is not None and not self._is_marked(found):
            self.marks.append((found, first, self._index))
        return found

    def _parse_atom(self) -> Node | None:
        first = self._index
        found = super()._parse_atom()
        if found is not None:
            self.marks.append((found, first, self._index))
        return found

    # tables and clauses

    def _parse_table_parts(self, *args: Any, **more: Any) -> exp.Table | exp.Dot | None:
        first = self._index
        found = super()._parse_table_parts(*args, **more)
        if found is not None:
            self.marks.append((found, first, self._index))
        return found

    def _parse_into(self) -> exp.Into | None:
        if not self._match(T.INTO):
            return None
        if self._match_texts(("OUTFILE", "DUMPFILE")):
            raise Opaque
        return exp.Into(expressions=self._parse_csv(self._into_name))

    def _into_name(self) -> Node | None:
        return self._parse_var(any_token=True) if self._match(T.PARAMETER) else self._parse_id_var()

    def _options(self) -> None:
        while self._curr.text.upper() in _OPTIONS and self._next.token_type is not T.DOT:
            self._advance()

    def _parse_update(self) -> exp.Update:
        self._options()
        return super()._parse_update()

    def _parse_update_assignment(self) -> Node | None:
        this = self._parse_column()
        if not self._match(T.EQ) and not self._match(T.COLON_EQ):
            self.raise_error("= is missing")
        default = self._match(T.DEFAULT) and self._curr.token_type is not T.L_PAREN
        value = exp.Var(this="DEFAULT") if default else self._operand(self._parse_disjunction)
        return exp.PropertyEQ(this=this, expression=value)

    def _parse_delete(self) -> exp.Delete:
        self._options()
        return super()._parse_delete()


_DIALECT: Final = MySQL()
