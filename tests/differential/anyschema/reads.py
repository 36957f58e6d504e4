"""Random SELECTs over the tables of a world."""

from __future__ import annotations

from collections.abc import Callable

from config.schema import Kind
from tests.differential.anyschema.sources import Source, Sources
from tests.differential.anyschema.terms import Ref
from tests.differential.anyschema.tree import Node, clause, expr, fixed, items

RESULTS = ("x", "`y`", "'z'", "n1", "`a b`", "Total", "`é`", "id", "name")
AGGREGATES = (
    "COUNT(*)", "COUNT({a})", "COUNT(DISTINCT {n})", "COUNT(DISTINCT {t})", "COUNT(DISTINCT {n}, {t})", "SUM({n})",
    "SUM(DISTINCT {n})", "AVG({n})", "AVG(DISTINCT {n})", "MIN({n})", "MAX({n})", "MIN({t})", "MAX({t})", "MIN({d})",
    "MAX({d})", "BIT_AND({n})", "BIT_OR({n})", "BIT_XOR({n})", "STDDEV({n})", "VAR_SAMP({n})", "STD({n})", "VARIANCE({n})",
    "COUNT(*) + 1", "SUM({n}) / COUNT(*)",
    "MAX({n}) - MIN({n})", "IFNULL(SUM({n}), 0)", "SUM({b})", "COUNT({b} OR NULL)", "SUM(CASE WHEN {b} THEN {n} ELSE 0 END)",
    "MIN({n}) + {c}", "CONCAT(MIN({t}), COUNT(*))", "COUNT(DISTINCT {d})", "MAX({e})", "MIN({x})", "SUM({t})", "AVG({t})", "MIN(DISTINCT {n})",
)  # fmt: skip
LOOSE = (
    "MIN({t})",
    "MAX({t})",
    "CONCAT(MIN({t}), COUNT(*))",
    "MIN({d})",
    "MAX({e})",
)


class Reads(Sources):
    """SELECTs."""

    # --- whole statements ------------------------------------------------------------------------

    def statement(self) -> tuple[str, Node]:
        """A kind and a statement."""
        forms: dict[str, Callable[[], Node]] = {
            "rows": self.rows, "join": self.joined, "aggregate": self.aggregate, "group": self.group,
            "subquery": self.subquery, "set": self.union, "cte": self.cte, "window": self.window, "using": self.using,
            "derived": self.over_derived, "distinct": self.distinct, "ids": self.by_id,
        }  # fmt: skip
        kind = self.rng.choice(
            ("rows",) * 4 + ("ids",) * 2 + ("join",) * 3 + ("group",) * 2 + ("subquery",) * 2 + tuple(forms)
        )
        return kind, forms[kind]()

    def shown(self, source: Source, *, star: float = 0.3) -> tuple[Node, list[str]]:
        """A select list, and the sort keys that its columns are (by position, "" for none)."""
        if self.chance(star):
            if source.tables and self.chance(0.4):
                qualifier, _model = self.rng.choice(source.tables)
                return fixed(qualifier + ".*"), []
            return fixed("*"), []
        terms = self.terms(source)
        parts: list[Node] = []
        for _ in range(self.rng.choice((1, 2, 2, 3, 5))):
            node = (
                expr(self.rng.choice(source.refs).sql)
                if self.chance(0.6)
                else terms.make("a", self.rng.choice((1, 1, 2)))
            )
            if self.chance(0.25):
                node = fixed(node, self.rng.choice((" AS ", " ")) + self.rng.choice(RESULTS))
            parts.append(node)
        return items(parts), []

    def order(self, source: Source, *, limit: float = 0.4) -> Node:
        """An ORDER BY that is total, with LIMIT or without."""
        if not source.total or not self.chance(0.6):
            return clause()
        keys: list[str | Node] = []
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            ref = self.rng.choice(source.refs)
            key: Node = expr(ref.sql) if self.chance(0.7) else self.terms(source).make("a", 1)
            keys.append(fixed(key, self.rng.choice(("", " ASC", " DESC", " desc"))))
        more = fixed(items(keys), ", ") if keys else clause()
        direction = self.rng.choice(("", " DESC"))
        total = ", ".join(one + direction for one in source.total)
        parts: list[str | Node] = [
            self.rng.choice((" ORDER BY ", " order by ")),
            more,
            total,
        ]
        if self.chance(limit):
            count, skip = (
                self.rng.choice((0, 1, 2, 5, 10, 1000, 18446744073709551615)),
                self.rng.choice((0, 1, 3, 100)),
            )
            parts.append(
                clause(
                    self.rng.choice(
                        (f" LIMIT {count}", f" LIMIT {skip}, {count}", f" LIMIT {count} OFFSET {skip}")
                    )
                )
            )
        return Node(tuple(parts), "clause", order=())

    def head(self) -> str:
        return self.rng.choice(
            ("SELECT ",) * 12
            + (
                "select ",
                "SELECT ALL ",
                "SELECT /* c */ ",
                "SELECT SQL_NO_CACHE ",
                "SELECT /*+ x */ ",
                "(SELECT ",
                "SELECT HIGH_PRIORITY ",
                "SELECT SQL_SMALL_RESULT ",
                "SELECT\n",
                "/* x */ SELECT ",
                "SELECT /*!40001 SQL_NO_CACHE */ ",
                "SELECT STRAIGHT_JOIN ",
            )
        )

    def simple(self, source: Source, where: Node) -> Node:
        shown, _ = self.shown(source)
        head = self.head()
        tail = ")" if head.startswith("(") else ""
        return fixed(
            head,
            shown,
            " FROM ",
            source.node,
            where,
            self.order(source),
            tail,
            self.rng.choice(("",) * 8 + (";", " -- end", " /* e */", " # e")),
        )

    def rows(self) -> Node:
        source = self.table(self.model())
        return self.simple(source, self.where(source))

    def by_id(self) -> Node:
        source = self.table(self.model())
        return self.simple(source, self.narrow(source))

    def joined(self) -> Node:
        self._pending = ""
        source = self.join(self.rng.choice((1, 1, 1, 2, 2, 3)))
        where = self.where(source, 0.8)
        if self._pending:
            where = fixed(" WHERE ", self._pending, clause(" AND ", self.condition(source)))
        return self.simple(source, where)

    def aggregates(self, source: Source, count: int) -> Node:
        terms = self.terms(source)
        found: list[Node] = []
        for _ in range(count):
            form = self.rng.choice(AGGREGATES).replace("{c}", "1")
            node = terms.fill(form, self.rng.choice((0, 0, 1)))
            found.append(Node(node.parts, "fixed", loose=form in LOOSE))
        return items(found)

    def aggregate(self) -> Node:
        self._pending = ""
        source = self.join(1) if self.chance(0.2) else self.table(self.model())
        where = fixed(" WHERE ", self._pending) if self._pending else self.where(source)
        having = clause(" HAVING ", self.aggregates(source, 1), " > 0") if self.chance(0.1) else clause()
        return fixed(
            "SELECT ",
            self.aggregates(source, self.rng.choice((1, 1, 2, 3))),
            " FROM ",
            source.node,
            where,
            having,
        )

    def group(self) -> Node:
        self._pending = ""
        source = self.join(self.rng.choice((1, 2))) if self.chance(0.35) else self.table(self.model())
        where = fixed(" WHERE ", self._pending) if self._pending else self.where(source, 0.6)
        terms = self.terms(source)
        keys: list[Node] = []
        texts = False
        for _ in range(self.rng.choice((1, 1, 2))):
            if self.chance(0.75):
                ref = self.rng.choice(source.refs)
                texts |= ref.column.family in "tejxb"
                keys.append(expr(ref.sql))
            else:
                keys.append(terms.make(self.rng.choice("nbdt"), 1))
                texts = True
        shown: list[str | Node] = []
        for key in keys:
            shown += [key, ", "] if self.chance(0.9) else []
        aggregates = self.aggregates(source, self.rng.choice((1, 1, 2, 3)))
        by: list[str | Node] = list(keys)
        if self.chance(0.1) and shown:
            by = ["1", *keys[1:]]
        having = (
            clause(
                " HAVING ",
                self.rng.choice(("COUNT(*) > 1", "COUNT(*) < 5", "MAX(1) = 1", "SUM(1) BETWEEN 1 AND 3")),
            )
            if self.chance(0.25)
            else clause()
        )
        rollup = clause(" WITH ROLLUP") if self.chance(0.08) else clause()
        order = clause()
        if self.chance(0.25) and len(shown) == 2 * len(keys) and not rollup.parts:
            order = Node(
                (" ORDER BY ", ", ".join(str(one + 1) for one in range(len(keys)))),
                "clause",
                order=tuple(range(len(keys))),
            )
        node = fixed(
            "SELECT ",
            *shown,
            aggregates,
            " FROM ",
            source.node,
            where,
            " GROUP BY ",
            fixed(*_joined(by)),
            rollup,
            having,
            order,
        )
        return Node(node.parts, "fixed", loose=texts)

    def distinct(self) -> Node:
        source = self.table(self.model())
        shown, _ = self.shown(source, star=0.05)
        head = self.rng.choice(("SELECT DISTINCT ", "SELECT DISTINCTROW ", "select distinct "))
        return Node((head, shown, " FROM ", source.node, self.where(source)), loose=True)

    def subquery(self) -> Node:
        """A subquery in a condition or in the select list."""
        outer = self.table(self.model(), alias=True)
        inner = self.table(self.partner(outer), alias=True)
        link = self.link(outer, inner)
        conditions: list[str | Node] = [self.condition(inner, 1) for _ in range(self.rng.choice((0, 0, 1)))]
        correlated = [link, *conditions]
        self.rng.shuffle(correlated)
        plain = clause(" WHERE ", items(conditions, " AND ")) if conditions else clause()
        tied = fixed(" WHERE ", items(correlated, " AND "))
        left, right = self.ends(outer, inner)
        form = self.rng.choice(
            ("in", "in", "exists", "exists", "any", "all", "scalar", "shown", "row", "from", "lateral")
        )
        negated = self.rng.choice(("", "", "NOT "))
        where = tied if self.chance(0.2) else plain
        match form:
            case "exists":
                test = expr(
                    f"{negated}EXISTS (SELECT ",
                    self.rng.choice(("1", "*", right)),
                    " FROM ",
                    inner.node,
                    tied,
                    ")",
                )
            case "any":
                operator = self.rng.choice(
                    ("= ANY", "= SOME", "> ANY", "<> ANY", "<= ALL", "<> ALL", ">= ALL")
                )
                test = expr(f"{left} {operator} (SELECT {right} FROM ", inner.node, where, ")")
            case "scalar":
                function = self.rng.choice(("COUNT(*)", f"MAX({right})", f"MIN({right})"))
                test = expr(
                    f"{self.rng.choice(('1', left))} {self.rng.choice(('<', '=', '>='))} (SELECT {function} FROM ",
                    inner.node,
                    tied if self.chance(0.6) else plain,
                    ")",
                )
            case "shown":
                terms = self.terms(inner)
                value = terms.fill(self.rng.choice(("COUNT(*)", "MAX({n})", "SUM({n})", "COUNT({a})")), 0)
                shown = fixed("(SELECT ", value, " FROM ", inner.node, tied, ")")
                return fixed(
                    "SELECT ",
                    items([one.sql for one in outer.refs[:3]]),
                    ", ",
                    shown,
                    " FROM ",
                    outer.node,
                    self.where(outer, 0.5),
                    self.order(outer),
                )
            case "row":
                test = expr(f"({left}, 1) {negated}IN (SELECT {right}, 1 FROM ", inner.node, where, ")")
            case "from" | "lateral" if form == "lateral" and self.mysql:
                return self._lateral(outer, inner, left, tied)
            case _:
                test = expr(f"{left} {negated}IN (SELECT {right} FROM ", inner.node, where, ")")
        outer_conditions: list[str | Node] = [
            test,
            *(self.condition(outer, 1) for _ in range(self.rng.choice((0, 0, 1)))),
        ]
        self.rng.shuffle(outer_conditions)
        joint = self.rng.choice((" AND ",) * 6 + (" OR ",))
        whole = fixed(" WHERE ", items(outer_conditions, joint))
        return self.simple(outer, whole)

    def _lateral(self, outer: Source, inner: Source, left: str, tied: Node) -> Node:
        join, on = self.rng.choice(((",", ""), (" JOIN", " ON TRUE"), (" LEFT JOIN", " ON TRUE")))
        return fixed(
            f"SELECT {left}, v.n FROM ",
            outer.node,
            f"{join} LATERAL (SELECT COUNT(*) AS n FROM ",
            inner.node,
            tied,
            f") v{on}",
        )

    def ends(self, left: Source, right: Source) -> tuple[str, str]:
        """Two columns that can be compared."""
        text = self.link(left, right)
        for operator in (" <=> ", " = ", "="):
            one, found, two = text.partition(operator)
            if found:
                owner = {ref.sql for ref in left.refs}
                return (one, two) if one in owner else (two, one)
        return left.refs[0].sql, right.refs[0].sql

    def union(self) -> Node:
        count = self.rng.choice((2, 2, 2, 3))
        width = self.rng.choice((1, 2))
        parts: list[str | Node] = []
        for index in range(count):
            source = self.table(self.model())
            terms = self.terms(source)
            shown: list[str | Node] = [
                expr(self.rng.choice(source.refs).sql) if self.chance(0.7) else terms.make("a", 1)
                for _ in range(width)
            ]
            body = fixed("SELECT ", *_joined(shown), " FROM ", source.node, self.where(source))
            if index:
                parts.append(
                    self.rng.choice(
                        (
                            " UNION ",
                            " UNION ALL ",
                            " UNION ALL ",
                            " UNION DISTINCT ",
                            " INTERSECT ",
                            " EXCEPT ",
                        )
                    )
                )
            parts.append(fixed("(", body, ")") if self.chance(0.3) else body)
        order = clause()
        if self.chance(0.3):
            order = Node((" ORDER BY 1",), "clause", order=(0,))
        return Node((*parts, order), loose=True)

    def cte(self) -> Node:
        inner = self.derived()
        _, _, rest = inner.node.sql.partition("(")
        body = rest.rpartition(")")[0]
        refs = [Ref(f"c.d{index}", one.column, one.model) for index, one in enumerate(inner.refs)]
        source = Source(fixed("c"), refs)
        if self.chance(0.4):
            other = self.table(self.partner(source), alias=True)
            source = Source(
                fixed(
                    "c",
                    self.rng.choice((" JOIN ", " LEFT JOIN ")),
                    other.node,
                    " ON ",
                    self.link(source, other),
                ),
                refs + other.refs,
                None,
                other.tables,
            )
        elif self.chance(0.3):
            source = Source(fixed("c JOIN c AS c2 ON c.d0 = c2.d0"), refs)
        recursive = ""
        if self.chance(0.3):
            recursive = ", r AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM r WHERE k < 3)"
            if not source.total:
                source = Source(fixed(source.node, " CROSS JOIN r"), [*source.refs], None, source.tables)
        shown, _ = self.shown(source)
        node = fixed(
            f"WITH {'RECURSIVE ' if recursive else ''}c AS ({body}){recursive} SELECT ",
            shown,
            " FROM ",
            source.node,
            self.where(source, 0.5),
        )
        return Node(node.parts, loose=any(one.loose for one in inner.node.nodes()))

    def over_derived(self) -> Node:
        source = self.derived()
        if self.chance(0.4):
            shown: Node = self.aggregates(source, 2)
        else:
            shown, _ = self.shown(source)
        return Node(
            ("SELECT ", shown, " FROM ", source.node, self.where(source, 0.5)),
            loose=any(one.loose for one in source.node.nodes()),
        )

    def window(self) -> Node:
        model = self.model()
        source = self.table(model)
        if not source.total:
            return self.rows()
        terms = self.terms(source)
        total = ", ".join(source.total)
        part = (
            clause("PARTITION BY ", expr(self.rng.choice(source.refs).sql), " ")
            if self.chance(0.5)
            else clause()
        )
        function = terms.fill(self.rng.choice((
            "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "SUM({n})", "COUNT(*)", "LAG({n})", "LEAD({n}, 2)", "FIRST_VALUE({n})",
            "NTILE(3)", "AVG({n})", "MAX({n})", "PERCENT_RANK()", "CUME_DIST()", "LAST_VALUE({t})", "NTH_VALUE({n}, 2)",
        )), 0)  # fmt: skip
        frame = (
            clause(
                self.rng.choice(
                    (" ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", " ROWS UNBOUNDED PRECEDING", "")
                )
            )
            if "AVG" in function.sql or "SUM" in function.sql
            else clause()
        )
        over = fixed(" OVER (", part, f"ORDER BY {total}{self.rng.choice(('', ' DESC'))}", frame, ")")
        if self.chance(0.15):
            over = fixed(" OVER w")
            return fixed(
                "SELECT ",
                total,
                ", ",
                function,
                over,
                " FROM ",
                source.node,
                self.where(source),
                f" WINDOW w AS (ORDER BY {total})",
            )
        if len(source.total) > 1 and " DESC" in over.sql:
            over = fixed(" OVER (", part, f"ORDER BY {total}", frame, ")")
        return fixed("SELECT ", total, ", ", function, over, " FROM ", source.node, self.where(source))

    def using(self) -> Node:
        """NATURAL joins and USING, of tables that share a name."""
        left = self.model()
        others = [one for one in self.world.models.values() if one is not left]
        self.rng.shuffle(others)
        for right in others:
            shared = [
                one.name
                for one in left.columns
                if any(
                    one.name.lower() == other.name.lower()
                    and one.family == other.family
                    and one.family != "j"
                    for other in right.columns
                )
            ]
            if not shared:
                continue
            chosen = self.rng.sample(shared, self.rng.choice((1, len(shared))))
            kind = self.rng.choice((" JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " INNER JOIN "))
            names = ", ".join(f"`{one}`" for one in chosen)
            tail = f" USING ({names})"
            if self.chance(0.25):
                kind, tail = self.rng.choice((" NATURAL JOIN ", " NATURAL LEFT JOIN ")), ""
            shown = self.rng.choice(("*", "*", f"`{chosen[0]}`", "COUNT(*)", f"`{left.name}`.*"))
            source = self.table(left, alias=False)
            where = (
                clause(
                    " WHERE ",
                    self.keys.condition(left, lambda column: f"`{left.name}`.`{column.name}`") or "1",
                )
                if self.chance(0.5)
                else clause()
            )
            return fixed("SELECT ", shown, " FROM ", source.node, kind, self.table_name(right), tail, where)
        return self.rows()


def _joined(parts: list[str | Node]) -> list[str | Node]:
    found: list[str | Node] = []
    for one in parts:
        found += [", ", one] if found else [one]
    return found


__all__ = ["Kind", "Reads"]
