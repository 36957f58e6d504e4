"""Random expressions over the columns of one table, of a wanted family.

Arithmetic stays far from the ends of its types: whether an overflow is met depends on which rows a server
looks at first, so it is no answer to compare. Texts of different collations are not mixed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.differential.catalog import MOMENTS, NUMBERS, ColumnModel, Family, TableModel, literal
from tests.differential.parts import Expr, leaf

T = TypeVar("T")


class Expressions:
    """Expressions on `table`, whose columns are written with `qualifier` (such as `p.`) in front."""

    def __init__(self, rng: random.Random, table: TableModel, *, mysql: bool, qualifier: str = "") -> None:
        self.rng = rng
        self.table = table
        self.mysql = mysql
        self.qualifier = qualifier

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, choices: Sequence[T]) -> T:
        return self.rng.choice(choices)

    # --- columns ---------------------------------------------------------------------------------

    def column(self, column: ColumnModel) -> Expr:
        """The column as a client may write it."""
        name = column.name
        if self.chance(0.06):
            name = name.upper()
        if self.chance(0.15):
            name = f"`{name}`"
        return leaf(self.qualifier + name, column.family)

    def some_column(self, *families: Family) -> Expr | None:
        """A column of one of these families, if there is one."""
        found = self.table.of(*families) if families else list(self.table.columns)
        return self.column(self.pick(found)) if found else None

    def constant(self, column: ColumnModel) -> Expr:
        """A literal that occurs in the column, or one near."""
        known = [one for one in column.values if one is not None]
        if not known:
            return leaf("0", column.family)
        value = self.pick(known)
        if isinstance(value, int) and not isinstance(value, bool) and self.chance(0.3):
            value += self.pick((-1, 1, 2))
        if isinstance(value, str) and column.family is Family.TEXT and self.chance(0.25):
            value = self.pick((value.upper(), value.lower(), value + " ", value[:2], "m"))
        return leaf(literal(value), column.family)

    def path(self, *families: Family) -> Expr | None:
        """A scalar in a JSON column, of one of these families."""
        found = [
            (column, one)
            for column in self.table.columns
            if column.family is Family.JSON
            for one in column.paths
            if one.family in families
        ]
        if not found:
            return None
        column, path = self.pick(found)
        inner = self.column(column)
        forms = [
            ("JSON_UNQUOTE(JSON_EXTRACT(", inner, f", '{path.path}'))"),
            ("JSON_VALUE(", inner, f", '{path.path}')"),
        ]
        if self.mysql:
            forms.append(("", inner, f"->>'{path.path}'"))
        text = Expr(self.pick(forms), Family.TEXT)
        if path.family is Family.INTEGER:
            return Expr(("CAST(", text, " AS SIGNED)"), Family.INTEGER)
        if path.family is Family.FLOAT:
            return Expr(("CAST(", text, " AS DECIMAL(20,4))"), Family.DECIMAL)
        return text

    # --- numbers ---------------------------------------------------------------------------------

    def number(self, depth: int) -> Expr:
        """A number that is safe to compute with."""
        if depth <= 0 or self.chance(0.3):
            return self._number_leaf()
        make: Callable[[int], Expr] = self.pick(
            (
                self._sum,
                self._sum,
                self._of_id,
                self._function,
                self._choice,
                self._length,
                self._part,
                self._flag,
            )
        )
        return make(depth - 1)

    def _number_leaf(self) -> Expr:
        if self.chance(0.25):
            return leaf(self.pick(("0", "1", "2", "7", "10", "2.5", "-3")), Family.INTEGER)
        choices = (
            lambda: self.some_column(Family.YEAR, Family.DECIMAL, Family.FLOAT),
            self._integer,
            lambda: self.path(Family.INTEGER, Family.FLOAT),
            self._wide,
        )
        for _ in range(4):
            found = self.pick(choices)()
            if found is not None:
                return found
        return leaf("3", Family.INTEGER)

    def _integer(self) -> Expr | None:
        """An integer column; an unsigned one may not be computed with below zero, so it is made signed."""
        inner = self.some_column(Family.INTEGER, Family.BIT)
        return None if inner is None else Expr(("CAST(", inner, " AS SIGNED)"), Family.INTEGER)

    def _wide(self) -> Expr | None:
        inner = self.some_column(Family.WIDE)
        return None if inner is None else Expr(("CAST(", inner, " AS DECIMAL(30,0))"), Family.DECIMAL)

    def _of_id(self, depth: int) -> Expr:
        """What stays in 64 bits whatever the ID is."""
        if self.table.routing != "id":
            return self._sum(depth)
        inner = self.column(self.table.column("id"))
        tail = self.pick((" % 10", " + 1", " DIV 1000", " & 1023", " >> 36", " MOD 7", " ^ 1"))
        return Expr(("(", inner, tail + ")"), Family.INTEGER)

    def _sum(self, depth: int) -> Expr:
        left, right = self.number(depth), self.number(depth)
        operator = self.pick((" + ", " - ", " * ", " / ", " % "))
        if operator == " * ":
            right = leaf(self.pick(("2", "0.5", "-1")), Family.INTEGER)
        elif operator in (" / ", " % "):
            right = leaf(self.pick(("3", "4", "-7")), Family.INTEGER)
        return Expr(("(", left, operator, right, ")"), Family.DECIMAL)

    def _function(self, depth: int) -> Expr:
        inner = self.number(depth)
        head, tail = self.pick(
            (("ABS(", ")"), ("SIGN(", ")"), ("FLOOR(", ")"), ("CEILING(", ")"), ("ROUND(", ", 1)"), ("-", ""))
        )
        if head == "-":
            return Expr(("(- ", inner, ")"), Family.DECIMAL)
        return Expr((head, inner, tail), Family.DECIMAL)

    def _choice(self, depth: int) -> Expr:
        one, two = self.number(depth), self.number(depth)
        match self.pick(("if", "ifnull", "case", "coalesce", "nullif", "greatest")):
            case "if":
                return Expr(("IF(", self.condition(depth), ", ", one, ", ", two, ")"), Family.DECIMAL)
            case "ifnull":
                return Expr(("IFNULL(", one, ", ", two, ")"), Family.DECIMAL)
            case "case":
                parts = ("CASE WHEN ", self.condition(depth), " THEN ", one, " ELSE ", two, " END")
                return Expr(parts, Family.DECIMAL)
            case "coalesce":
                return Expr(("COALESCE(", one, ", ", two, ", 0)"), Family.DECIMAL)
            case "nullif":
                return Expr(("NULLIF(", one, ", ", two, ")"), Family.DECIMAL)
            case _:
                return Expr(("GREATEST(", one, ", ", two, ")"), Family.DECIMAL)

    def _length(self, depth: int) -> Expr:
        inner = self.text(depth)
        return Expr((self.pick(("LENGTH(", "CHAR_LENGTH(", "CRC32(", "ASCII(")), inner, ")"), Family.INTEGER)

    def _part(self, depth: int) -> Expr:
        moment = self.some_column(*MOMENTS)
        if moment is None:
            return self._function(depth)
        return Expr((self.pick(("YEAR(", "DAYOFMONTH(", "TO_DAYS(", "HOUR(")), moment, ")"), Family.INTEGER)

    def _flag(self, depth: int) -> Expr:
        return Expr(("(", self.condition(depth), ")"), Family.INTEGER)

    # --- texts and the rest ----------------------------------------------------------------------

    def text(self, depth: int) -> Expr:
        """A text, of whatever collation."""
        base = self.path(Family.TEXT) if self.chance(0.3) else None
        base = base or self.some_column(Family.TEXT) or self.path(Family.TEXT)
        if base is None:
            number = self.number(min(depth, 1))
            return Expr(("CONCAT(", number, ", '')"), Family.TEXT)
        if depth <= 0 or self.chance(0.4):
            return base
        head, tail = self.pick(
            (
                ("UPPER(", ")"),
                ("LOWER(", ")"),
                ("LEFT(", ", 3)"),
                ("SUBSTRING(", " FROM 2)"),
                ("REVERSE(", ")"),
                ("TRIM(", ")"),
                ("CONCAT(", ", '-x')"),
                ("CONCAT('é', ", ")"),
                ("REPLACE(", ", 'a', 'o')"),
                ("HEX(", ")"),
                ("IFNULL(", ", 'none')"),
                ("COALESCE(", ", '')"),
                ("RPAD(", ", 6, '.')"),
                ("TO_BASE64(", ")"),
                ("", " COLLATE utf8mb4_bin"),
            )
        )
        return Expr((head, base, tail), Family.TEXT)

    def moment(self) -> Expr | None:
        """A date or a date with time."""
        base = self.some_column(*MOMENTS)
        if base is None or self.chance(0.5):
            return base
        head, tail, family = self.pick(
            (
                ("DATE(", ")", Family.DATE),
                ("DATE_ADD(", ", INTERVAL -1 DAY)", Family.DATETIME),
                ("LAST_DAY(", ")", Family.DATE),
                ("CAST(", " AS DATETIME(6))", Family.DATETIME),
                ("DATE_FORMAT(", ", '%Y-%m')", Family.TEXT),
            )
        )
        return Expr((head, base, tail), family)

    def plain(self) -> Expr:
        """A column, or a scalar in a document."""
        if self.chance(0.25):
            found = self.path(Family.TEXT, Family.INTEGER, Family.FLOAT)
            if found is not None:
                return found
        return self.column(self.pick(self.table.columns))

    def anything(self, depth: int = 2) -> Expr:
        """An expression of any family."""
        match self.pick(("plain", "plain", "number", "text", "moment", "condition")):
            case "number":
                return self.number(depth)
            case "text":
                return self.text(depth)
            case "moment":
                return self.moment() or self.plain()
            case "condition":
                return self.condition(1)
            case _:
                return self.plain()

    # --- conditions ------------------------------------------------------------------------------

    def condition(self, depth: int) -> Expr:
        """A condition, in parentheses where it needs them."""
        if depth <= 0 or self.chance(0.5):
            return self._comparison(depth)
        if self.chance(0.2):
            return Expr((self.pick(("NOT (", "(NOT ")), self.condition(depth - 1), ")"), Family.BOOLEAN)
        operator = self.pick((" AND ", " OR ", " AND ", " OR ", " XOR ", " && "))
        parts = ("(", self.condition(depth - 1), operator, self.condition(depth - 1), ")")
        return Expr(parts, Family.BOOLEAN)

    def _comparison(self, depth: int) -> Expr:
        column = self.pick(self.table.columns)
        match self.pick(("value", "value", "value", "null", "in", "between", "like", "number", "moment")):
            case "null":
                tail = self.pick((" IS NULL", " IS NOT NULL", " <=> NULL"))
                return Expr((self.plain(), tail), Family.BOOLEAN)
            case "in" if column.family is not Family.JSON:
                return self._in(column)
            case "between" if column.family in (*NUMBERS, Family.WIDE, Family.DATE, Family.DATETIME):
                low, high = self.constant(column), self.constant(column)
                parts = ("(", self.column(column), " BETWEEN ", low, " AND ", high, ")")
                return Expr(parts, Family.BOOLEAN)
            case "like":
                pattern = self.pick(("'a%'", "'%e'", "'_pp%'", "'%\\_%'", "''"))
                operator = self.pick((" LIKE ", " NOT LIKE "))
                return Expr((self.text(min(depth, 1)), operator + pattern), Family.BOOLEAN)
            case "number":
                operator = self.pick((" > ", " <= ", " = ", " <> "))
                return Expr((self.number(depth), operator, self.number(0)), Family.BOOLEAN)
            case "moment" if (moment := self.some_column(*MOMENTS)) is not None:
                day = self.pick(("'2012-02-23'", "'2012-02-24 00:00:00'", "DATE '2012-02-29'"))
                return Expr((moment, self.pick((" > ", " <= ", " = ")) + day), Family.BOOLEAN)
        if column.family in (Family.JSON, Family.BIT):
            return Expr((self.column(column), " IS NOT NULL"), Family.BOOLEAN)
        operator = self.pick((" = ", " <> ", " < ", " >= ", " <=> ", " != "))
        return Expr((self.column(column), operator, self.constant(column)), Family.BOOLEAN)

    def _in(self, column: ColumnModel) -> Expr:
        values = [self.constant(column) for _ in range(self.rng.randrange(1, 5))]
        parts: list[str | Expr] = [self.column(column), self.pick((" IN (", " NOT IN ("))]
        for index, value in enumerate(values):
            parts += [", ", value] if index else [value]
        if self.chance(0.1):
            parts.append(", NULL")
        return Expr((*parts, ")"), Family.BOOLEAN)
