"""Random expressions over the columns in scope, of any type mixed with any other."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tests.differential.anyschema import columns
from tests.differential.anyschema.places import Column, Model
from tests.differential.anyschema.tree import Node, expr, items
from tests.differential.catalog import literal

T = TypeVar("T")

RESERVED = frozenset(
    [
        "order",
        "desc",
        "key",
        "group",
        "select",
        "left",
        "values",
        "index",
        "match",
        "from",
        "to",
        "rank",
        "rows",
        "row",
        "interval",
        "limit",
        "sum",
        "count",
        "user",
        "mode",
        "shard",
        "year",
        "date",
        "status",
        "1st",
        "t",
        "1",
        "system",
        "lateral",
    ]
)

NUMBERS = (
    "({n} + {n})", "({n} - {n})", "({n} * {n})", "({n} / {n})", "({n} % 7)", "({n} DIV 3)", "(- {n})", "ABS({n})",
    "SIGN({n})", "FLOOR({n})", "CEILING({n})", "ROUND({n})", "ROUND({n}, 1)", "TRUNCATE({n}, 1)", "MOD({n}, 5)",
    "({n} & 255)", "({n} | 1)", "({n} ^ {n})", "({n} >> 2)", "(~ {n})", "IF({b}, {n}, {n})", "IFNULL({n}, {n})",
    "NULLIF({n}, {n})", "COALESCE({n}, {n}, 0)", "GREATEST({n}, {n})", "LEAST({n}, {n})", "LENGTH({t})",
    "CHAR_LENGTH({t})", "ASCII({t})", "CRC32({t})", "LOCATE('a', {t})", "INSTR({t}, 'e')", "FIELD({t}, 'a', 'b')",
    "STRCMP({t}, {t})", "YEAR({d})", "MONTH({d})", "DAYOFWEEK({d})", "HOUR({d})", "TO_DAYS({d})", "MICROSECOND({d})",
    "DATEDIFF({d}, {d})", "EXTRACT(DAY FROM {d})", "CASE WHEN {b} THEN {n} ELSE {n} END", "CASE {n} WHEN 1 THEN 2 WHEN 2 THEN 3 END",
    "CAST({a} AS SIGNED)", "CAST({n} AS DECIMAL(20,4))", "({b})", "BIT_COUNT({n})", "INTERVAL({n}, 1, 5)",
    "({t} + 0)", "CAST({t} AS UNSIGNED)", "JSON_LENGTH({j})", "CONVERT({n}, CHAR) + 1", "FIND_IN_SET({t}, 'a,b,c')",
    "SQRT(ABS({n}))", "POW({n}, 2)", "LENGTH({x})", "ISNULL({a})", "TIMESTAMPDIFF(DAY, {d}, {d})", "WEEK({d})",
    "({n} MOD 3)", "INET_ATON('10.0.0.1') + {n}", "CONV({n}, 10, 16) + 0", "ELT(2, {n}, {n})",
)  # fmt: skip
TEXTS = (
    "CONCAT({t}, {t})", "CONCAT_WS(',', {t}, {n})", "UPPER({t})", "LOWER({t})", "LEFT({t}, 3)", "RIGHT({t}, 2)",
    "SUBSTRING({t}, 2, 3)", "SUBSTRING({t} FROM 2 FOR 2)", "TRIM({t})", "TRIM(LEADING 'a' FROM {t})", "LTRIM({t})",
    "REPLACE({t}, 'a', 'o')", "REVERSE({t})", "REPEAT({t}, 2)", "LPAD({t}, 5, '.')", "HEX({x})", "HEX({t})",
    "IF({b}, {t}, {t})", "IFNULL({t}, 'none')", "COALESCE({t}, '')", "NULLIF({t}, 'a')", "CAST({n} AS CHAR)",
    "CASE WHEN {b} THEN {t} END", "DATE_FORMAT({d}, '%Y-%m')", "ELT(1, {t}, 'z')", "MD5({t})", "QUOTE({t})",
    "SUBSTRING_INDEX({t}, 'a', 1)", "INSERT({t}, 1, 1, 'Q')", "({t} COLLATE utf8mb4_bin)", "CONVERT({t} USING utf8mb4)",
    "JSON_UNQUOTE(JSON_EXTRACT({j}, '$.name'))", "JSON_EXTRACT({j}, '$.a')", "JSON_TYPE({j})", "JSON_VALUE({j}, '$.a')",
    "CONCAT({n}, '')", "FORMAT({n}, 2)", "DAYNAME({d})", "SOUNDEX({t})", "CONCAT('é', {t})", "GREATEST({t}, 'm')",
    "MAKE_SET(3, {t}, 'b')", "CHAR(65, 66)", "SPACE(2)", "BIN({n})", "TO_BASE64({x})", "_utf8mb4'x'", "N'n'",
    "JSON_KEYS({j})", "JSON_QUOTE({t})", "WEIGHT_STRING({t})", "CAST({t} AS CHAR(2))", "TIME_FORMAT({d}, '%H')",
)  # fmt: skip
DATES = (
    "DATE({d})", "DATE_ADD({d}, INTERVAL 1 DAY)", "({d} + INTERVAL 1 HOUR)", "DATE_SUB({d}, INTERVAL {n} SECOND)",
    "LAST_DAY({d})", "CAST({d} AS DATETIME(6))", "CAST({t} AS DATE)", "IFNULL({d}, '2000-01-01')", "TIMESTAMP({d})",
    "STR_TO_DATE({t}, '%Y-%m-%d')", "FROM_DAYS(730000)", "MAKEDATE(2012, 40)", "DATE '2012-02-23'", "GREATEST({d}, {d})",
    "TIMESTAMP '2012-02-23 10:11:12'", "TIME({d})", "FROM_UNIXTIME(1330000000)", "CURRENT_DATE", "NOW()", "{d}",
    "SEC_TO_TIME({n})", "ADDTIME({d}, '01:00:00')", "CONVERT_TZ({d}, '+00:00', '+02:00')", "COALESCE({d}, {d})",
)  # fmt: skip
BINARIES = ("CAST({t} AS BINARY)", "UNHEX(HEX({x}))", "CONCAT({x}, {x})", "x'41'", "0x61", "b'1000001'", "X'6142'",
            "UNHEX(MD5({t}))", "SUBSTRING({x}, 1, 1)", "{x}")  # fmt: skip
DOCUMENTS = ("JSON_EXTRACT({j}, '$.b')", "JSON_ARRAY({n}, {t})", "JSON_OBJECT('k', {t}, 'n', {n})", "{j}",
             "JSON_SET({j}, '$.z', {n})", "JSON_REMOVE({j}, '$.a')", "JSON_MERGE_PATCH({j}, '{{}}')")  # fmt: skip
CONDITIONS = (
    "({a} = {a})", "({n} > {n})", "({t} < {t})", "({t} = {t})", "({n} <=> {n})", "({a} IS NULL)", "({a} IS NOT NULL)",
    "(NOT {b})", "(! {b})", "({b} AND {b})", "({b} OR {b})", "({b} XOR {b})", "({b} && {b})", "({t} LIKE '%a%')",
    "({t} NOT LIKE 'a_p%')", "({t} LIKE {t})", "({t} LIKE 'a|%%' ESCAPE '|')", "({t} REGEXP '^[a-z]+$')",
    "({t} RLIKE 'a.*e')", "({t} NOT REGEXP 'z')", "({n} BETWEEN {n} AND {n})", "({t} NOT BETWEEN 'a' AND 'm')",
    "({d} BETWEEN '2012-01-01' AND '2012-12-31')", "({n} IN ({n}, {n}))", "({t} IN ('a', 'apple', {t}))",
    "({n} NOT IN (1, 2, NULL))", "({a} IN (1, 'a', 2.5))", "(({n}, {t}) = ({n}, {t}))", "(({n}, {n}) IN ((1, 2), (2, 3)))",
    "(({n}, {t}) < (5, 'm'))", "({b} IS TRUE)", "({b} IS NOT FALSE)", "({b} IS UNKNOWN)", "({d} > '2012-02-23')",
    "({d} = {d})", "({d} <> DATE '2012-02-23')", "CASE WHEN {b} THEN {b} ELSE {b} END", "IF({b}, {b}, {b})", "({n})",
    "EXISTS (SELECT 1)", "({n} = 1 = 1)", "({n} < {n} < 3)", "(1)", "({t})", "({x} = {x})", "({e} = 'new')", "({e} > 1)",
    "FIND_IN_SET('a', {t})", "JSON_CONTAINS_PATH({j}, 'one', '$.a')", "({t} SOUNDS LIKE 'apple')", "(COALESCE({b}, TRUE))",
    "(NOT {n} = {n})", "({n} != {n})", "({n} >= {t})", "({d} = {t})", "({d} > {n})", "({j} IS NULL)", "ISNULL({n})",
    "({n} IN (SELECT 1 UNION SELECT 2))", "({n} = ANY (SELECT 1))", "(ROW({n}, 1) = ROW(1, {n}))", "(BINARY {t} = 'a')",
    "(JSON_VALUE({j}, '$.n') = '1')", "(JSON_EXTRACT({j}, '$.n') = 1)", "({t} = 0)", "({t} COLLATE utf8mb4_bin = 'a')",
)  # fmt: skip
FORMS = {"n": NUMBERS, "t": TEXTS, "d": DATES, "b": CONDITIONS, "x": BINARIES, "j": DOCUMENTS}
ONLY_MYSQL = re.compile(r"WEIGHT_STRING|LATERAL")
LOOSE_WORDS = ("RAND", "UUID")


@dataclass(frozen=True)
class Ref:
    """A column as it is written in a statement."""

    sql: str
    column: Column
    model: Model | None = None


def named(name: str, rng: random.Random) -> str:
    """An identifier, quoted where it must be and sometimes where it need not."""
    if name.lower() in RESERVED or name[0].isdigit() or rng.random() < 0.2:
        return f"`{name}`"
    return name


class Terms:
    """Expressions over `refs`. `ansi`: double quotes hold names."""

    def __init__(self, rng: random.Random, refs: Sequence[Ref], *, mysql: bool, ansi: bool = False) -> None:
        self.rng = rng
        self.refs = list(refs)
        self.mysql = mysql
        self.ansi = ansi

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, choices: Sequence[T]) -> T:
        return self.rng.choice(choices)

    def of(self, families: str) -> list[Ref]:
        return [one for one in self.refs if one.column.family in families]

    def make(self, family: str, depth: int) -> Node:
        """An expression of a family: n, t, d, b (condition), x, j, e, or a (any)."""
        if family == "a":
            family = self.pick("nnttdbx" + ("j" if self.of("j") else ""))
        if depth <= 0 or (family != "b" and self.chance(0.35)):
            return self.leaf(family)
        if family == "b" and self.chance(0.45):
            return self.comparison()
        form = self.pick(FORMS.get(family, (f"{{{family}}}",)))
        return self.fill(form, depth - 1)

    def fill(self, form: str, depth: int) -> Node:
        """An expression of this form, with others in it."""
        parts: list[str | Node] = []
        for index, text in enumerate(re.split(r"\{([a-z])\}", form)):
            if index % 2:
                parts.append(self.make(text, depth))
            elif text:
                parts.append(text.replace("{{", "{").replace("}}", "}"))
        return expr(*parts)

    def leaf(self, family: str) -> Node:
        """A column or a constant."""
        wanted = {"n": "nfb", "t": "tte", "d": "d", "x": "xx", "j": "j", "e": "e", "b": "n"}[family]
        found = self.of(wanted)
        if found and self.chance(0.8):
            return expr(self.pick(found).sql)
        if family in "b":
            return self.comparison()
        return expr(self.constant(family))

    def constant(self, family: str) -> str:
        match family:
            case "n":
                return self.pick(
                    (
                        "0",
                        "1",
                        "2",
                        "10",
                        "-3",
                        "2.5",
                        "1e2",
                        "'7'",
                        "NULL",
                        "TRUE",
                        "18446744073709551615",
                        "0x10",
                    )
                )
            case "t" | "e":
                value = self.pick(columns.WORDS)
                return literal(value) if "\\" not in value and "\0" not in value else "'a'"
            case "d":
                return self.pick(
                    ("'2012-02-23'", "DATE '2012-02-29'", "'2012-02-23 10:11:12'", "TIME '10:11:12'", "NULL")
                )
            case "x":
                return self.pick(("x'61'", "0xff", "_binary'a'", "''"))
            case _:
                return self.pick(("'{\"a\": 1}'", "'[1]'", "JSON_OBJECT('a', 1)"))

    def comparison(self) -> Node:
        """A column with a value that it may hold."""
        if not self.refs:
            return expr("(", self.constant("n"), " = 1)")
        ref = self.pick(self.refs)
        left = expr(ref.sql)
        form = self.pick(("value",) * 6 + ("in", "in", "null", "between", "flip"))
        if form == "null":
            return expr("(", left, self.pick((" IS NULL", " IS NOT NULL", " <=> NULL")), ")")
        if form == "in":
            values = items([self.near(ref.column) for _ in range(self.rng.randrange(1, 5))])
            return expr("(", left, self.pick((" IN (", " NOT IN (", " in(")), values, "))")
        if form == "between":
            return expr("(", left, " BETWEEN ", self.near(ref.column), " AND ", self.near(ref.column), ")")
        operator = self.pick((" = ", " = ", "=", " <> ", " < ", " >= ", " <=> ", " != ", " > ", "<="))
        if form == "flip":
            return expr("(", self.near(ref.column), operator, left, ")")
        return expr("(", left, operator, self.near(ref.column), ")")

    def near(self, column: Column) -> str:
        """A literal that occurs in the column, or is near to one that does."""
        values = list(column.type.values) or [0]
        if column.refers or column.family in "j":
            return self.constant("n")
        value = self.pick(values)
        if isinstance(value, str) and ("\\" in value or "\0" in value):
            value = "a"
        if self.chance(0.07):
            return "NULL"
        if isinstance(value, int):
            if self.chance(0.2):
                value += self.pick((-1, 1, 2))
            return f"'{value}'" if self.chance(0.1) else str(value)
        if isinstance(value, str) and self.chance(0.2):
            value = self.pick((value.upper(), value.lower(), value + " ", value[:2], "m"))
        return literal(value)
