"""MySQL's grammar of queries and changes of rows, where sqlglot's differs, and nodes that know their tokens.

sqlglot's `IS`, `<`, `=` and `BETWEEN` bind in an order of its own; MySQL's comparisons all bind alike, from
left to right. The loops here say so, and each marks the nodes that it makes; other nodes are not looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, NoReturn, TypeVar

from sqlglot import exp, parser
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parser import SENTINEL_NONE
from sqlglot.parsers.mysql import MySQLParser
from sqlglot.tokenizer_core import Token, TokenType

from rewriter.env import Env

T = TokenType
Node = exp.Expr
_N = TypeVar("_N", bound=exp.Expr)

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it tells of what it does not know; nobody asked

_COMPARISONS: Final = {**parser.Parser.EQUALITY, **parser.Parser.COMPARISON}
_CLAUSES: Final = (
    *(T.WHERE, T.GROUP_BY, T.HAVING, T.WINDOW, T.ORDER_BY, T.LIMIT, T.OFFSET, T.FETCH, T.FOR, T.LOCK),
)
_SUMS: Final = {T.PLUS: exp.Add, T.DASH: exp.Sub}
_PRODUCTS: Final = {T.STAR: exp.Mul, T.SLASH: exp.Div, T.DIV: exp.IntDiv, T.MOD: exp.Mod}
_OR, _XOR, _AND, _COMPARING = 1, 2, 3, 4
_CONNECTIVES: Final[dict[int, type[Node]]] = {_OR: exp.Or, _XOR: exp.Xor, _AND: exp.And}
_LEVELS: Final = {
    T.OR: _OR,
    T.DPIPE: _OR,
    T.XOR: _XOR,
    T.AND: _AND,
    T.DAMP: _AND,
    T.IS: _COMPARING,
    **dict.fromkeys(_COMPARISONS, _COMPARING),
}
"""How tight the operators of conditions bind."""
_RANGES: Final = frozenset({T.BETWEEN, T.IN, T.LIKE, T.RLIKE, T.MEMBER_OF, T.NOT})
_NAMES: Final = frozenset({T.VAR, T.IDENTIFIER})
_OPERANDS: Final = _NAMES | {T.NUMBER, T.STRING}
"""What no query begins with."""
_FIRST: Final = _OPERANDS | {T.STAR, T.L_PAREN}
"""What a select list often begins with."""
_END: Final = T.SENTINEL
_CLOSING: Final = frozenset({T.R_PAREN, _END})
_NO_ALIAS: Final = frozenset({T.COMMA, T.R_PAREN, T.FROM, _END})
_JOINS: Final = frozenset(
    {T.COMMA, T.JOIN, *MySQLParser.JOIN_METHODS, *MySQLParser.JOIN_SIDES, *MySQLParser.JOIN_KINDS}
)
_BEHIND_TABLES: Final = frozenset(
    {
        *(_END, T.COMMA, T.R_PAREN, T.JOIN, T.INNER, T.LEFT, T.RIGHT, T.CROSS, T.STRAIGHT_JOIN, T.ON),
        *(T.SET, T.WHERE, T.GROUP_BY, T.HAVING, T.ORDER_BY, T.LIMIT, T.UNION),
    }
)
"""What cannot go on with a table."""
_PADDING: Final = (SENTINEL_NONE,) * 4
_BEHIND_OPERANDS: Final = frozenset(
    {
        _END,
        *(*_COMPARISONS, T.AND, T.DAMP, T.OR, T.XOR, T.IS, T.NOT, T.IN, T.BETWEEN, T.LIKE, T.RLIKE),
        *(T.COMMA, T.R_PAREN, T.FROM, T.WHERE, T.GROUP_BY, T.HAVING, T.ORDER_BY, T.LIMIT, T.ASC, T.DESC),
    }
)
"""What cannot go on with an operand."""
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

    def one(self, tokens: list[Token]) -> Node:
        """The tree. Raises sqlglot's errors, Opaque and RecursionError."""
        self._tokens, self._tokens_size = tokens, len(tokens)
        self._padded = [*tokens, *_PADDING]
        self._advance(0)
        tree = self._parse_statement()
        if self._index < self._tokens_size:
            self.raise_error("something is left")
        if not isinstance(tree, exp.Query | exp.DML):
            raise Opaque
        return tree

    # what is done for every token and node, without comments and places in the text, which nobody asks for

    def _advance(self, times: int = 1) -> None:
        self._index = index = self._index + times
        padded = self._padded
        self._prev, self._curr, self._next = padded[index - 1], padded[index], padded[index + 1]

    def _match(self, token_type: TokenType, advance: bool = True, expression: Node | None = None) -> bool:
        if self._curr.token_type is not token_type:
            return False
        if advance:
            self._advance()
        return True

    def expression(self, instance: _N, token: Token | None = None, comments: list[str] | None = None) -> _N:
        args = instance.args
        for name in instance.required_args:
            value = args.get(name)
            if value is None or (isinstance(value, list) and not value):
                self.raise_error("something is missing")
        return instance

    def raise_error(self, message: str, token: Token = SENTINEL_NONE) -> NoReturn:
        raise ParseError(message)

    def _is_marked(self, node: Node) -> bool:
        last = self.marks[-1] if self.marks else None
        return last is not None and last[0] is node and last[2] == self._index

    def _mark(self, node: Node, first: int) -> Node:
        self.marks.append((node, first, self._index))
        return node

    def _parse_statement(self) -> Node | None:
        if self._curr.token_type is T.SELECT:  # no expression begins so, which the long way tries first
            found: Node | None = self._parse_query_modifiers(self._parse_select())
            return found
        return super()._parse_statement()

    def _parse_select(self, *args: Any, **more: Any) -> Node | None:
        if self._curr.token_type in _OPERANDS:
            return None
        found: Node | None = super()._parse_select(*args, **more)
        return found

    def _parse_select_query(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
    ) -> Node | None:
        first = self._next
        plain = self._curr.token_type is T.SELECT and first.token_type in _FIRST
        if not plain or first.text.upper() in self.OPERATION_MODIFIERS:
            return super()._parse_select_query(nested, table, parse_subquery_alias, parse_set_operation)
        self._advance()
        found = exp.Select(expressions=self._parse_expressions())
        into = self._parse_into()
        if into is not None:
            found.set("into", into)
        tables = self._parse_from()
        if tables is not None:
            found.set("from_", tables)
        whole: Node = self._parse_query_modifiers(found)
        return self._parse_set_operations(whole) if parse_set_operation else whole

    def _parse_query_modifiers(self, this: Any) -> Any:
        return this if self._curr.token_type in _CLOSING else super()._parse_query_modifiers(this)

    # conditions, from loose to tight

    def _parse_disjunction(self) -> Node | None:
        return self._condition(_OR)

    def _parse_conjunction(self) -> Node | None:
        return self._condition(_AND)

    def _parse_equality(self, parse_is: bool = True) -> Node | None:
        return self._condition(_COMPARING)

    def _condition(self, least: int) -> Node | None:
        """Operands joined by operators that bind as `least` says, or tighter, each from left to right."""
        first, this = self._index, self._parse_range()
        while True:
            kind = self._curr.token_type
            level = _LEVELS.get(kind, 0)
            if level < least or (kind is T.DPIPE and self.env.pipes_as_concat):
                return this
            self._advance()
            if level < _COMPARING:
                right = self._condition(level + 1)
                if right is None:
                    self.raise_error("an operand is missing")
                this = self._mark(_CONNECTIVES[level](this=this, expression=right), first)
            elif kind is T.IS:
                this = self._mark(self._is(this), first)
            else:
                this = self._mark(_COMPARISONS[kind](this=this, expression=self._compared()), first)

    def _operand(self, method: Callable[[], Node | None]) -> Node:
        found = method()
        if found is None:
            self.raise_error("an operand is missing")
        return found

    def _parse_not(self) -> Node:
        first = self._index - 1
        tight = self._prev.text == "!" or self.env.high_not_precedence
        inner = self._operand(self._parse_unary if tight else self._parse_equality)
        return self._mark(exp.Not(this=inner), first)

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
        kind = self._curr.token_type
        if kind not in _RANGES and not (kind is T.VAR and self._curr.text.upper() == "SOUNDS"):
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

    def _simple(self) -> Node | None:
        """An operand that is a number, a string or the name of a column, and nothing else: most are. The long
        way finds the same through twelve methods.
        """
        first, token = self._index, self._curr
        kind = token.token_type
        if kind is T.NUMBER or kind is T.STRING:
            if not self._is_behind(first + 1):
                return None
            self._advance()
            return self._mark(exp.Literal(this=token.text, is_string=kind is T.STRING), first)
        if kind is T.STAR and self._is_behind(first + 1):
            self._advance()
            return self._mark(exp.Star(), first)
        if kind not in _NAMES or token.text.upper() in self.NO_PAREN_FUNCTION_PARSERS:
            return None
        if self._is_behind(first + 1):
            self._advance()
            return self._mark(exp.Column(this=token.text), first)
        if self._next.token_type is not T.DOT:
            return None
        name = self._padded[first + 2]
        if name.token_type not in _NAMES or not self._is_behind(first + 3):
            return None
        self._advance(3)
        return self._mark(exp.Column(this=name.text, table=token.text), first)

    def _is_behind(self, index: int) -> bool:
        """Whether the token there, or the end, cannot go on with an operand. (`<<` is two tokens.)"""
        kind = self._padded[index].token_type
        if kind is T.LT or kind is T.GT:
            return self._padded[index + 1].token_type is not kind
        return kind in _BEHIND_OPERANDS

    def _parse_bitwise(self) -> Node | None:
        simple = self._simple()
        if simple is not None:
            return simple
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
        first, simple = self._index, self._simple()
        if simple is not None:
            return simple
        found = super()._parse_atom()
        if found is not None:
            self.marks.append((found, first, self._index))
        return found

    def _parse_window(self, this: Node | None, alias: bool = False) -> Node | None:
        if not alias and self._curr.token_type in _BEHIND_OPERANDS:
            return this
        return super()._parse_window(this, alias)

    # tables and clauses

    def _parse_alias(self, this: Node | None, explicit: bool = False) -> Node | None:
        return this if self._curr.token_type in _NO_ALIAS else super()._parse_alias(this, explicit)

    def _parse_ordered(self, parse_method: Callable[[], Node | None] | None = None) -> exp.Ordered | None:
        this = (parse_method or self._parse_disjunction)()
        if this is None:
            return None
        if not self._match(T.ASC):
            self._match(T.DESC)
        return exp.Ordered(this=this)

    def _parse_set_operations(self, this: Node | None) -> Node | None:
        if self._curr.token_type not in self.SET_OPERATIONS and not isinstance(this, exp.SetOperation):
            return this
        return super()._parse_set_operations(this)

    def _parse_joins(self, alias_tokens: Any = None) -> Iterator[exp.Join]:
        return super()._parse_joins(alias_tokens) if self._curr.token_type in _JOINS else iter(())

    def _parse_lateral(self) -> exp.Lateral | None:
        return super()._parse_lateral() if self._curr.token_type is T.LATERAL else None

    def _parse_table(self, *args: Any, joins: bool = False, **more: Any) -> Node | None:
        found = self._simple_table() or super()._parse_table(*args, **more)
        if joins and found is not None:
            for join in self._parse_joins(more.get("alias_tokens")):
                found.append("joins", join)
        return found

    def _simple_table(self) -> Node | None:
        """A table by its name, perhaps with a database before it and an alias behind it: most are no more."""
        tokens, first = self._padded, self._index
        end = first + 1 if tokens[first].token_type in _NAMES else first
        if end > first and tokens[end].token_type is T.DOT:
            end = end + 2 if tokens[end + 1].token_type in _NAMES else first
        at = end + (tokens[end].token_type is T.ALIAS)
        behind = at + 1 if tokens[at].token_type in _NAMES else end
        if end == first or tokens[behind].token_type not in _BEHIND_TABLES:
            return None
        found = exp.Table(this=tokens[end - 1].text)  # the alias is the first reader's business
        self.marks.append((found, first, end))
        self._advance(behind - first)
        return found

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
        this = self._simple() or self._parse_column()
        if not self._match(T.EQ) and not self._match(T.COLON_EQ):
            self.raise_error("= is missing")
        default = self._match(T.DEFAULT) and self._curr.token_type is not T.L_PAREN
        value = exp.Var(this="DEFAULT") if default else self._operand(self._parse_disjunction)
        return exp.PropertyEQ(this=this, expression=value)

    def _parse_delete(self) -> exp.Delete:
        self._options()
        return super()._parse_delete()


_DIALECT: Final = MySQL()
