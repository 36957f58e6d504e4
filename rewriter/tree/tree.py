"""The tree of one statement: its clauses by their places, and its conditions as terms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from rewriter.env import Env
from rewriter.text.facts import Block, Span
from rewriter.text.spans import unwrapped
from rewriter.text.tokens import HINT, Source

from .dialect import GateParser, Node
from .lexemes import translated
from .terms import NOWHERE, Joined, Term

_HOMES: Final = (exp.Select, exp.Update, exp.Delete)
_BINARY: Final[dict[type[Node], str]] = {
    exp.EQ: "=", exp.NullSafeEQ: "<=>", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.Xor: "xor", exp.Add: "+", exp.Sub: "-",
}  # fmt: skip
_STRICT: Final = (
    *(exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift),
    *(exp.Like, exp.RegexpLike),
)
_INTEGERS: Final = (exp.DType.BIGINT, exp.DType.UBIGINT)


class Tree:
    """Raises on what sqlglot cannot read: any of its errors, Opaque, Untranslated, RecursionError."""

    def __init__(self, source: Source, env: Env) -> None:
        lexemes = translated(source)
        parser = GateParser(env)
        self._source = source
        self.root = parser.one(lexemes.tokens)
        self._at: dict[tuple[int, int], Node] = {}
        self._spans: dict[int, tuple[int, int]] = {}
        self._tables: dict[int, Node] = {}
        self._kept = parser.marks  # an id is a node's as long as it lives
        firsts, ends = lexemes.first, lexemes.end
        for node, first, end in parser.marks:
            if end > first:
                span = (firsts[first], ends[end - 1])
                self._at[span] = node
                self._spans[id(node)] = span
                if type(node) is exp.Table:
                    self._tables[span[0]] = node

    # clauses

    def agrees(self, block: Block) -> bool:
        """Whether the block has the same tables here, and its WHERE, HAVING and ONs the same ends."""
        home = self.home(block)
        if home is None:
            return False
        for name, span in (("where", block.where), ("having", block.having)):
            clause = home.args.get(name)
            mine = None if clause is None else self._bare(clause.this)
            if mine != (None if span is None else self._inside(span)):
                return False
        tables: list[int] = []
        ons: list[Span | None] = []
        self._joined(home, tables, ons)
        named = [ref.span.first for ref in block.tables if ref.form == "table"]
        spans = [self._inside(one.span) for one in block.conditions]
        return (
            sorted(tables) == sorted(named) and None not in ons and sorted(filter(None, ons)) == sorted(spans)
        )

    def home(self, block: Block) -> Node | None:
        """The SELECT, UPDATE or DELETE that the block is."""
        for ref in block.tables:
            inner = ref.query.terms[0] if ref.query is not None else None
            if ref.form == "table":
                node = self._tables.get(ref.span.first)
            else:
                node = self.home(inner) if isinstance(inner, Block) else None
            if node is not None or ref.form == "table":
                return None if node is None else node.find_ancestor(*_HOMES)
        for one in block.projections:  # no tables: what the block shows says where it is
            node = self._at.get(self._inside(one.span))
            if node is not None:
                return node.find_ancestor(*_HOMES)
        return None

    def joins(self, block: Block) -> list[Joined] | None:
        """The joins of a FROM clause without parentheses, in their order; None for another."""
        home = self.home(block)
        if home is None:
            return None
        found = []
        for join in self._flat(home):
            on = join.args.get("on")
            span = None if on is None else self._bare(on)
            plain = isinstance(join.this, exp.Table | exp.Subquery) and not join.this.args.get("joins")
            plain = plain and not join.args.get("using") and not join.args.get("method")
            found.append(Joined(join.args.get("side") or "", span, plain and (on is None) == (span is None)))
        return found

    def _flat(self, home: Node) -> list[Node]:
        from_ = home.args.get("from_")
        first = home.this if isinstance(home, exp.Update | exp.Delete) else from_ and from_.this
        inner = first.args.get("joins") if isinstance(first, exp.Table | exp.Subquery) else None
        return [*(inner or ()), *(home.args.get("joins") or ())]

    def _joined(self, home: Node, tables: list[int], ons: list[Span | None]) -> None:
        """The tables of a FROM clause, by their first tokens, and its ON conditions."""
        from_ = home.args.get("from_")
        pending = [from_.this] if from_ is not None else []
        if isinstance(home, exp.Update | exp.Delete):
            pending += home.args.get("using") or [home.this]
        pending += home.args.get("joins") or ()
        while pending:
            node = pending.pop()
            if isinstance(node, exp.Join):
                if node.args.get("on") is not None:
                    ons.append(self._bare(node.args["on"]))
                pending.append(node.this)
                continue
            if not isinstance(node, Node):
                continue
            if isinstance(node, exp.Table):
                tables.append(self._spans.get(id(node), NOWHERE)[0])
            elif isinstance(node, exp.Subquery | exp.Paren) and not isinstance(node.this, exp.Query):
                pending.append(node.this)
            pending += node.args.get("joins") or ()

    def _bare(self, node: Node) -> Span | None:
        """The place of a node, without parentheses around it."""
        span = self._spans.get(id(node))
        return None if span is None else unwrapped(self._source, Span(*span))

    def _inside(self, span: Span) -> Span:
        """A place of the first reader's, without parentheses and hints around it."""
        tokens = self._source.tokens
        while span.first < span.end and tokens[span.end - 1].kind == HINT:
            span = Span(span.first, span.end - 1)
        while span.first < span.end and tokens[span.first].kind == HINT:
            span = Span(span.first + 1, span.end)
        return unwrapped(self._source, span)

    # conditions

    def condition(self, span: Span, block: Block) -> Term | None:
        """The condition at `span`, if all of WHERE or an ON of the block is true only where it is."""
        node = found = self._at.get(self._inside(span))
        if node is None or found is None:
            return None
        while isinstance(node.parent, exp.And | exp.Paren):
            node = node.parent
        over = node.parent
        if not isinstance(over, exp.Where) and not (isinstance(over, exp.Join) and node.arg_key == "on"):
            return None
        home = over.find_ancestor(*_HOMES)
        return self.term(found) if home is not None and home is self.home(block) else None

    def expression(self, span: Span) -> Term | None:
        """What stands at `span`, wherever that is."""
        node = self._at.get(self._inside(span))
        return None if node is None else self.term(node)

    def windows(self, block: Block) -> Iterator[list[Span | None]]:
        """Of each window function of the block, and each window that it names, the places of what it is
        partitioned by.
        """
        home = self.home(block)
        if home is None:
            return
        for window in home.find_all(exp.Window):
            if window.find_ancestor(*_HOMES) is home:
                yield [self._bare(one) for one in window.args.get("partition_by") or ()]

    def groups(self, block: Block) -> list[Span | None] | None:
        """The places of what the block groups by; None when it has more than a list there."""
        home = self.home(block)
        group = None if home is None else home.args.get("group")
        if group is None:
            return []
        if {name for name, value in group.args.items() if value} - {"expressions"}:
            return None
        return [self._bare(one) for one in group.expressions]

    def term(self, node: Node) -> Term:
        """A node as a term. Raises RecursionError."""
        while isinstance(node, exp.Paren):
            node = node.this
        found = self._spans.get(id(node))
        span = NOWHERE if found is None else Span(*found)
        kind = _BINARY.get(type(node))
        if kind is not None:
            return Term(kind, span, (self.term(node.this), self.term(node.expression)))
        if isinstance(node, exp.Column):
            return Term("column", span)
        if isinstance(node, exp.Literal):
            return Term("other" if node.is_string else "number", span)
        if isinstance(node, exp.And | exp.Or):
            return Term(type(node).__name__.lower(), span, tuple(self._flattened(node)))
        return self._other(node)._replace(span=span)

    def _flattened(self, node: Node) -> Iterator[Term]:
        """The operands of a chain of ANDs, or of ORs, from left to right."""
        kind, pending = type(node), [node]
        while pending:
            one = pending.pop()
            while isinstance(one, exp.Paren):
                one = one.this
            if type(one) is kind:
                pending += [one.args["expression"], one.this]
            else:
                yield self.term(one)

    def _other(self, node: Node) -> Term:
        """Any other term, without its place."""
        term = self.term
        match node:
            case exp.Null():
                return Term("null")
            case exp.Boolean():
                return Term("true" if node.this else "false")
            case exp.Not():
                return Term("not", parts=(term(node.this),))
            case exp.Neg():
                return Term("negative", parts=(term(node.this),))
            case exp.Tuple():
                return Term("tuple", parts=tuple(map(term, node.expressions)))
            case exp.In() if node.expressions and not (node.args.get("query") or node.args.get("field")):
                return Term("in", parts=(term(node.this), *map(term, node.expressions)))
            case exp.Between():
                return Term(
                    "between", parts=(term(node.this), term(node.args["low"]), term(node.args["high"]))
                )
            case exp.Is():
                what = term(node.expression).kind
                return Term("is " + what, parts=(term(node.this),))
            case exp.Coalesce():
                return Term("coalesce", parts=(term(node.this), *map(term, node.expressions)))
            case exp.Cast() if node.to.this in _INTEGERS and type(node) is exp.Cast:
                return Term("integer", parts=(term(node.this),))
            case exp.If() if node.args.get("false") is not None:
                return Term(
                    "case", parts=(term(node.this), term(node.args["true"]), term(node.args["false"]))
                )
            case exp.Case():
                return self._case(node)
            case _ if isinstance(node, _STRICT):
                return Term("strict", parts=(term(node.this), term(node.expression)))
            case exp.Subquery() if isinstance(node.this, exp.Select):
                args = {name for name, value in node.this.args.items() if value}
                if args == {"expressions"} and len(node.this.expressions) == 1:
                    return Term("select", parts=(term(node.this.expressions[0]),))
        return Term("other")

    def _case(self, node: exp.Case) -> Term:
        parts: list[Term] = []
        whole = None if node.this is None else self.term(node.this)
        for one in node.args["ifs"]:
            when = self.term(one.this)
            parts.append(when if whole is None else Term("=", NOWHERE, (whole, when)))
            parts.append(self.term(one.args["true"]))
        default = node.args.get("default")
        parts.append(Term("null") if default is None else self.term(default))
        return Term("case", parts=tuple(parts))
