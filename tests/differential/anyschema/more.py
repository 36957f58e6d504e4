"""SELECTs of set forms that chance alone makes too seldom, and those that take several statements."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from config.schema import Kind
from tests.differential.anyschema.further import FURTHER
from tests.differential.anyschema.places import AnyWorld, Model
from tests.differential.anyschema.reads import Reads
from tests.differential.anyschema.steps import Step
from tests.differential.anyschema.tree import Form, Node, clause, fixed, form_of

ORDERED = Form(order=())
LOOSE = Form(loose=True)


class More:
    """Cases of one or several statements."""

    def __init__(self, rng: random.Random, world: AnyWorld, *, mysql: bool) -> None:
        self.rng = rng
        self.world = world
        self.mysql = mysql
        self.reads = Reads(rng, world, mysql=mysql)

    def steps(self) -> list[Step]:
        """The statements of a case."""
        forms: list[Callable[[], list[Step]]] = [
            self.variables, self.calc, self.top, self.nested, self.limited_union, self.having, self.ansi, self.rank,
            self.json_table, self.values, self.self_join, self.derived_groups, self.distinct_top, self.chain, self.scalar,
            self.recursive, self.ifs, self.spaces, self.cross, self.lock, self.mixed_star, self.in_on, self.full_group,
        ]  # fmt: skip
        forms += [partial(one, self) for one in FURTHER]
        return self.rng.choice(forms)()

    # --- parts -----------------------------------------------------------------------------------

    def model(self, *kinds: Kind) -> Model:
        found = [one for one in self.world.models.values() if not kinds or one.kind in kinds]
        return self.rng.choice(found or list(self.world.models.values()))

    def q(self, model: Model) -> str:
        return f"`{model.name}`"

    def key(self, model: Model) -> str:
        """The column that routes, or else the first."""
        return f"`{model.routing or model.columns[0].name}`"

    def number(self, model: Model) -> str:
        """A column whose equal values look the same."""
        found = [one for one in model.columns if one.family == "n"]
        return f"`{self.rng.choice(found).name}`" if found else self.key(model)

    def value(self, model: Model) -> str:
        column = next(one for one in model.columns if f"`{one.name}`" == self.key(model))
        return self.reads.keys.value(model, column)

    def total(self, model: Model, alias: str = "") -> str:
        front = alias + "." if alias else ""
        return ", ".join(f"{front}`{one}`" for one in model.total)

    def where(self, model: Model, alias: str = "") -> Node:
        own = alias or self.q(model)
        found = self.reads.keys.condition(model, lambda column: f"{own}.`{column.name}`")
        return clause(" WHERE ", found) if found is not None and self.rng.random() < 0.6 else clause()

    def pair(self) -> tuple[Model, str, Model, str]:
        """Two tables and columns that hold the same IDs."""
        for _ in range(50):
            left, right = self.model(), self.model()
            both = [
                (one.name, two.name)
                for one in left.columns for two in right.columns
                if one.refers and one.refers == two.refers and (left is not right or one is not two)
            ]  # fmt: skip
            if both:
                one, two = self.rng.choice(both)
                return left, f"`{one}`", right, f"`{two}`"
        model = self.model()
        return model, self.key(model), model, self.key(model)

    def step(self, kind: str, form: Form | None, *parts: str | Node) -> Step:
        tree = fixed(*parts)
        return Step(tree, kind, form or form_of(tree))

    # --- cases -----------------------------------------------------------------------------------

    def variables(self) -> list[Step]:
        model = self.model()
        value = self.value(model)
        found = [
            Step(
                fixed(
                    f"SET @a = {value}, @b := {self.rng.choice(('1', chr(39) + 'apple' + chr(39), 'NULL', '2.5'))}"
                ),
                "set",
            )
        ]
        texts = (
            f"SELECT * FROM {self.q(model)} WHERE {self.key(model)} = @a",
            f"SELECT * FROM {self.q(model)} WHERE {self.key(model)} IN (@a, {self.value(model)})",
            f"SELECT @b, {self.number(model)} FROM {self.q(model)} WHERE {self.key(model)} = @a OR {self.number(model)} = @b",
            f"SELECT COUNT(*), @a FROM {self.q(model)} WHERE {self.key(model)} <=> @a",
        )
        return [
            *found,
            self.step("variables", None, self.rng.choice(texts)),
            self.step("variables", None, "SELECT @a, @b"),
        ]

    def calc(self) -> list[Step]:
        model = self.model()
        if not model.total:
            return self.top()
        sql = f"SELECT SQL_CALC_FOUND_ROWS {self.number(model)} FROM {self.q(model)}"
        return [
            self.step(
                "calc",
                ORDERED,
                sql,
                self.where(model),
                f" ORDER BY {self.total(model)} LIMIT {self.rng.choice((0, 1, 3))}",
            ),
            self.step("calc", None, "SELECT FOUND_ROWS()"),
        ]

    def top(self) -> list[Step]:
        model = self.model()
        key = self.number(model)
        aggregate = self.rng.choice(
            (
                "COUNT(*)",
                f"SUM({self.number(model)})",
                f"MAX({self.number(model)})",
                f"AVG({self.number(model)})",
            )
        )
        order = self.rng.choice(
            (f"c DESC, {key}", f"{aggregate}, {key} DESC", "2 DESC, 1", f"-c, {key}", f"c IS NULL, c, {key}")
        )
        return [
            self.step("top", ORDERED, f"SELECT {key}, {aggregate} AS c FROM {self.q(model)}", self.where(model),
                      f" GROUP BY {key}", clause(self.rng.choice((" HAVING c IS NOT NULL", " HAVING COUNT(*) > 1", ""))),
                      f" ORDER BY {order} LIMIT {self.rng.choice((1, 3, 10))}")
        ]  # fmt: skip

    def nested(self) -> list[Step]:
        left, one, right, two = self.pair()
        third, three, fourth, four = self.pair()
        inner = f"SELECT y.{three} FROM {self.q(third)} y WHERE y.{three} IN (SELECT z.{four} FROM {self.q(fourth)} z)"
        forms = (
            f"SELECT x.* FROM {self.q(left)} x WHERE x.{one} IN (SELECT {two} FROM {self.q(right)} WHERE {two} IN ({inner}))",
            f"SELECT COUNT(*) FROM {self.q(left)} x WHERE EXISTS (SELECT * FROM {self.q(right)} w WHERE w.{two} = x.{one} AND EXISTS (SELECT 1 FROM {self.q(third)} y WHERE y.{three} = w.{two} OR y.{three} = x.{one}))",
            f"SELECT x.{one} FROM {self.q(left)} x WHERE NOT EXISTS (SELECT 1 FROM {self.q(right)} w WHERE w.{two} = x.{one} AND w.{two} NOT IN ({inner}))",
            f"SELECT (SELECT MAX(w.{two}) FROM {self.q(right)} w WHERE w.{two} = x.{one} AND w.{two} IN ({inner})) AS m, x.{one} FROM {self.q(left)} x",
        )
        return [self.step("nested", None, self.rng.choice(forms))]

    def limited_union(self) -> list[Step]:
        parts = []
        for _ in range(self.rng.choice((2, 3))):
            model = self.model()
            tail = f" ORDER BY {self.total(model)} LIMIT {self.rng.choice((1, 3, 5))}" if model.total else ""
            parts.append(
                fixed(f"(SELECT {self.number(model)} AS v FROM {self.q(model)}", self.where(model), tail, ")")
            )
        operator = self.rng.choice((" UNION ALL ", " UNION "))
        tree: list[str | Node] = [parts[0]]
        for part in parts[1:]:
            tree += [operator, part]
        tail = self.rng.choice(
            (" ORDER BY v", " ORDER BY 1 DESC LIMIT 4", " ORDER BY v + 0 DESC", " LIMIT 100")
        )
        return [self.step("union", Form(order=None if "LIMIT 100" in tail else ()), *tree, tail)]

    def having(self) -> list[Step]:
        model = self.model()
        one, two = self.number(model), self.number(model)
        forms = (
            f"SELECT {one} AS x, {two} FROM {self.q(model)} HAVING x > 1",
            f"SELECT {one} + 1 AS x FROM {self.q(model)} HAVING x IS NOT NULL AND x < 100",
            f"SELECT {one} AS x, COUNT(*) FROM {self.q(model)} GROUP BY x HAVING x > 0 AND COUNT(*) < 20",
            f"SELECT COUNT(*) AS c FROM {self.q(model)} HAVING c > 0",
            f"SELECT COUNT(*) AS c FROM {self.q(model)} HAVING c < 0",
            f"SELECT MAX({one}) FROM {self.q(model)} HAVING MIN({one}) IS NULL",
            f"SELECT 1 FROM {self.q(model)} HAVING COUNT(*) > 2",
            f"SELECT {one} % 3 AS g, SUM({two}) AS s FROM {self.q(model)} GROUP BY g HAVING s IS NOT NULL OR g = 1",
        )
        return [self.step("having", None, self.rng.choice(forms))]

    def ansi(self) -> list[Step]:
        model = self.model()
        key = self.key(model).strip("`")
        sql = f'SELECT "{key}", t."{model.columns[-1].name}" FROM "{model.name}" AS t WHERE t."{key}" = {self.value(model)}'.replace(
            '""', '"'
        )
        return [Step(fixed("SET sql_mode = 'ANSI_QUOTES'"), "set"), self.step("ansi", None, sql)]

    def rank(self) -> list[Step]:
        model = self.model()
        key = self.number(model)
        forms = (
            f"SELECT {key}, COUNT(*) AS c, RANK() OVER (ORDER BY COUNT(*), {key}) FROM {self.q(model)} GROUP BY {key}",
            f"SELECT {key}, SUM(COUNT(*)) OVER () FROM {self.q(model)} GROUP BY {key}",
            f"SELECT DISTINCT {key}, COUNT(*) OVER (PARTITION BY {key}) FROM {self.q(model)}",
            f"SELECT * FROM (SELECT {key} AS k, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {self.total(model) or key}) AS n FROM {self.q(model)}) d WHERE n = 1",
        )
        return [self.step("rank", None, self.rng.choice(forms))]

    def json_table(self) -> list[Step]:
        found = [
            one
            for one in self.world.models.values()
            if any(two.name == "data" and two.family == "j" for two in one.columns)
        ]
        if not found:
            return self.rank()
        model = self.rng.choice(found)
        columns = "x VARCHAR(20) PATH '$.name', k VARCHAR(5) PATH '$.in.k'"
        return [
            self.step("json_table", None, f"SELECT u.id, j.x, j.k FROM {self.q(model)} u, JSON_TABLE(u.data, '$' COLUMNS ({columns})) AS j", self.where(model, "u"))
        ]  # fmt: skip

    def values(self) -> list[Step]:
        model = self.model()
        key, total = self.key(model), self.total(model) or self.key(model)
        forms = [
            f"SELECT x.a, t.{key} FROM (SELECT 1 AS a UNION ALL SELECT 2) x JOIN {self.q(model)} t ON t.{key} IS NOT NULL",
            f"SELECT * FROM (SELECT {self.value(model)} AS v) d JOIN {self.q(model)} t ON t.{key} = d.v",
        ]
        if self.mysql:
            forms += [
                f"TABLE {self.q(model)} ORDER BY {total} LIMIT 3",
                f"TABLE {self.q(model)}",
                f"SELECT v.column_0, t.{key} FROM (VALUES ROW(1), ROW(2)) v JOIN {self.q(model)} t ON t.{key} IS NOT NULL",
                f"SELECT {key} FROM {self.q(model)} WHERE {key} IN (TABLE {self.q(model)})"
                if len(model.columns) == 1
                else f"TABLE {self.q(model)}",
            ]
        return [self.step("values", None, self.rng.choice(forms))]

    def self_join(self) -> list[Step]:
        model = self.model()
        one, key = self.number(model), self.key(model)
        forms = (
            f"SELECT a.{key}, b.{key} FROM {self.q(model)} a JOIN {self.q(model)} b ON a.{one} = b.{one} AND a.{key} < b.{key}",
            f"SELECT a.{key} FROM {self.q(model)} a LEFT JOIN {self.q(model)} b ON b.{one} > a.{one} WHERE b.{key} IS NULL",
            f"SELECT COUNT(*) FROM {self.q(model)} a JOIN {self.q(model)} b USING ({one})",
            f"SELECT a.* FROM {self.q(model)} a NATURAL JOIN {self.q(model)} b",
        )
        return [self.step("self join", None, self.rng.choice(forms))]

    def derived_groups(self) -> list[Step]:
        left, one, right, two = self.pair()
        a = f"SELECT {one} AS k, COUNT(*) AS n FROM {self.q(left)} GROUP BY {one}"
        b = f"SELECT {two} AS k, MAX({self.number(right)}) AS m FROM {self.q(right)} GROUP BY {two}"
        kind = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN"))
        forms = (
            f"SELECT * FROM ({a}) a {kind} ({b}) b ON a.k = b.k",
            f"SELECT COUNT(*), SUM(n), MIN(m) FROM ({a}) a {kind} ({b}) b USING (k)",
            f"WITH a AS ({a}), b AS ({b}) SELECT a.k, a.n, b.m FROM a {kind} b ON a.k = b.k",
            f"WITH a (x, y) AS ({a}) SELECT y, COUNT(*) FROM a GROUP BY y",
            f"SELECT d.n, COUNT(*) FROM ({a}) d GROUP BY d.n ORDER BY d.n",
        )
        return [self.step("derived groups", None, self.rng.choice(forms))]

    def distinct_top(self) -> list[Step]:
        model = self.model()
        one, two = self.number(model), self.number(model)
        order = f"{one}, {two}" if self.rng.random() < 0.5 else f"{one} DESC, 2"
        return [
            self.step(
                "distinct",
                ORDERED,
                f"SELECT DISTINCT {one}, {two} FROM {self.q(model)}",
                self.where(model),
                f" ORDER BY {order} LIMIT {self.rng.choice((1, 4, 50))}",
            )
        ]

    def chain(self) -> list[Step]:
        """A mapping with the objects it names, in the mapping's order."""
        model = self.model(Kind.MAPPING)
        ends = [one for one in model.columns if one.refers and one.refers in self.world.models]
        if model.kind is not Kind.MAPPING or not ends:
            return self.self_join()
        target = self.rng.choice(ends)
        other = self.world.models[target.refers]
        kind = self.rng.choice(("JOIN", "LEFT JOIN", "INNER JOIN", "STRAIGHT_JOIN"))
        shown = self.rng.choice(("o.*", "m.*, o.*", f"o.`{other.columns[-1].name}`, m.`{target.name}`", "*"))
        order = ", ".join(f"m.`{one}`{self.rng.choice(('', ' DESC'))}" for one in model.total)
        limit = self.rng.choice(("", " LIMIT 3", " LIMIT 2, 5", " LIMIT 50"))
        return [
            self.step("chain", ORDERED, f"SELECT {shown} FROM {self.q(model)} m {kind} {self.q(other)} o ON o.id = m.`{target.name}`",
                      self.where(model, "m"), f" ORDER BY {order}{limit}")
        ]  # fmt: skip

    def scalar(self) -> list[Step]:
        left, one, right, two = self.pair()
        forms = (
            f"SELECT x.{one}, (SELECT COUNT(*) FROM {self.q(right)} y WHERE y.{two} = x.{one}) AS n FROM {self.q(left)} x HAVING n > 1",
            f"SELECT x.{one} FROM {self.q(left)} x WHERE x.{one} = (SELECT MIN({two}) FROM {self.q(right)})",
            f"SELECT (SELECT COUNT(*) FROM {self.q(left)}) + (SELECT COUNT(*) FROM {self.q(right)})",
            f"SELECT x.{one} FROM {self.q(left)} x WHERE x.{one} > ALL (SELECT {two} FROM {self.q(right)} WHERE {two} IS NULL)",
            f"SELECT x.{one} IN (SELECT {two} FROM {self.q(right)}), COUNT(*) FROM {self.q(left)} x GROUP BY 1",
            f"SELECT x.{one} FROM {self.q(left)} x ORDER BY (SELECT COUNT(*) FROM {self.q(right)} y WHERE y.{two} = x.{one}), x.{one}",
            f"SELECT SUM((SELECT COUNT(*) FROM {self.q(right)} y WHERE y.{two} = x.{one})) FROM {self.q(left)} x",
            f"SELECT x.{one} FROM {self.q(left)} x WHERE (x.{one}, 1) IN (SELECT {two}, 1 FROM {self.q(right)})",
            f"SELECT x.{one} FROM {self.q(left)} x WHERE (SELECT {two} FROM {self.q(right)} WHERE {two} = x.{one}) IS NOT NULL",
        )
        return [self.step("scalar", None, self.rng.choice(forms))]

    def recursive(self) -> list[Step]:
        model = self.model(Kind.MAPPING)
        ends = [one for one in model.columns if one.refers]
        if len(ends) < 2:
            return self.cross()
        one, two = f"`{ends[0].name}`", f"`{ends[1].name}`"
        sql = (
            f"WITH RECURSIVE r AS (SELECT {one} AS a, {two} AS b, 1 AS d FROM {self.q(model)} UNION SELECT r.a, m.{two}, r.d + 1"
            f" FROM r JOIN {self.q(model)} m ON m.{one} = r.b WHERE r.d < 3) SELECT d, COUNT(*) FROM r GROUP BY d"
        )
        return [self.step("recursive", None, sql)]

    def ifs(self) -> list[Step]:
        model = self.model()
        one, key = self.number(model), self.key(model)
        forms = (
            f"SELECT IF({one} > 1, 'big', 'small') AS size, COUNT(*) FROM {self.q(model)} GROUP BY size",
            f"SELECT CASE WHEN {one} IS NULL THEN 'none' WHEN {one} < 3 THEN 'few' ELSE 'many' END c, MIN({key}) FROM {self.q(model)} GROUP BY c",
            f"SELECT COUNT(IF({one} > 1, 1, NULL)), SUM({one} IS NULL), COUNT(DISTINCT {one}, {key}) FROM {self.q(model)}",
            f"SELECT {one}, COUNT(*) FROM {self.q(model)} GROUP BY {one} WITH ROLLUP",
            f"SELECT GROUP_CONCAT({one} ORDER BY {one} DESC, {key} SEPARATOR '|') FROM {self.q(model)}",
            f"SELECT {one}, GROUP_CONCAT(DISTINCT {key} ORDER BY {key}) FROM {self.q(model)} GROUP BY {one}",
            f"SELECT JSON_ARRAYAGG({one}) IS NULL, JSON_LENGTH(JSON_ARRAYAGG({key})) FROM {self.q(model)}",
            f"SELECT BIT_AND({key}), BIT_OR({key}), BIT_XOR({key}) FROM {self.q(model)}",
            f"SELECT {one} DIV 2 AS h, AVG({one}), SUM(DISTINCT {one}) FROM {self.q(model)} GROUP BY h",
        )
        return [self.step("ifs", LOOSE, self.rng.choice(forms))]

    def spaces(self) -> list[Step]:
        model = self.model()
        key, value = self.key(model), self.value(model)
        forms = (
            f"SELECT/**/{key}/**/FROM/**/{self.q(model)}/**/WHERE/**/{key}={value}",
            f"select\n\t{key}\nfrom\t{self.q(model)}\n-- comment ' \" `\nwhere {key}={value} # end '",
            f"SELECT {key} FROM {self.q(model)} WHERE {key}={value} AND 'it''s' <> \"a'b\" AND '/*' = '/*'",
            f"SELECT {self.q(model)}.{key} , {self.q(model)} . {key} FROM `{self.world.database}`.{self.q(model)} WHERE `{self.world.database}`.{self.q(model)}.{key} IN({value})",
            f"/* a */ SELECT /*!50000 {key} */ FROM {self.q(model)} /*! WHERE {key} = {value} */",
            f"(SELECT {key} FROM {self.q(model)} WHERE {key} = {value})",
            f"((SELECT {key} FROM {self.q(model)} WHERE {key} = {value}))",
            f"SELECT {key} FROM ({self.q(model)}) WHERE ({key}) = ({value})",
            f"SELECT {key} AS `id`, 'id' FROM {self.q(model)} AS `from` WHERE `from`.{key} = {value}",
            f"SELECT ALL {key} FROM {self.q(model)} WHERE NOT ({key} <> {value})",
        )
        return [self.step("spaces", None, self.rng.choice(forms))]

    def cross(self) -> list[Step]:
        left, right = self.model(), self.model()
        forms = (
            f"SELECT COUNT(*) FROM {self.q(left)} a, {self.q(right)} b",
            f"SELECT COUNT(*) FROM {self.q(left)} a CROSS JOIN {self.q(right)} b WHERE a.{self.number(left)} = b.{self.number(right)}",
            f"SELECT a.{self.key(left)}, b.{self.key(right)} FROM {self.q(left)} a, {self.q(right)} b WHERE a.{self.key(left)} = {self.value(left)} AND b.{self.key(right)} = {self.value(right)}",
            f"SELECT COUNT(*) FROM ({self.q(left)} a, {self.q(right)} b) LEFT JOIN {self.q(left)} c ON c.{self.key(left)} = a.{self.key(left)}",
        )
        return [self.step("cross", None, self.rng.choice(forms))]

    def lock(self) -> list[Step]:
        model = self.model()
        tail = self.rng.choice((" FOR UPDATE", " LOCK IN SHARE MODE"))
        return [
            self.step(
                "lock",
                None,
                f"SELECT * FROM {self.q(model)} WHERE {self.key(model)} IN ({self.value(model)}, {self.value(model)}){tail}",
            )
        ]

    def mixed_star(self) -> list[Step]:
        left, one, right, two = self.pair()
        forms = (
            f"SELECT *, 1 FROM {self.q(left)}",
            f"SELECT a.*, b.{two}, a.{one} + 0 FROM {self.q(left)} a LEFT JOIN {self.q(right)} b ON a.{one} = b.{two}",
            f"SELECT b.*, a.* FROM {self.q(left)} a JOIN {self.q(right)} b ON a.{one} = b.{two}",
            f"SELECT {self.q(left)}.*, COUNT(*) OVER () FROM {self.q(left)}",
            f"SELECT t.* FROM (SELECT * FROM {self.q(left)}) t",
        )
        return [self.step("stars", None, self.rng.choice(forms))]

    def in_on(self) -> list[Step]:
        left, one, right, two = self.pair()
        forms = (
            f"SELECT a.{one}, b.{two} FROM {self.q(left)} a LEFT JOIN {self.q(right)} b ON a.{one} = b.{two} AND b.{two} IN (SELECT {one} FROM {self.q(left)})",
            f"SELECT a.{one}, b.{two} FROM {self.q(left)} a LEFT JOIN {self.q(right)} b ON a.{one} = b.{two} AND a.{one} = {self.value(left)}",
            f"SELECT a.{one} FROM {self.q(left)} a LEFT JOIN {self.q(right)} b ON a.{one} = b.{two} WHERE b.{two} IS NULL",
            f"SELECT a.{one}, b.{two} FROM {self.q(left)} a RIGHT JOIN {self.q(right)} b ON a.{one} = b.{two} AND b.{self.key(right)} = {self.value(right)}",
            f"SELECT a.{one}, b.{two} FROM {self.q(left)} a LEFT JOIN {self.q(right)} b ON a.{one} = b.{two} WHERE b.{self.key(right)} <=> NULL OR b.{self.key(right)} = {self.value(right)}",
            f"SELECT COUNT(*) FROM {self.q(left)} a LEFT JOIN ({self.q(right)} b JOIN {self.q(left)} c ON c.{one} = b.{two}) ON a.{one} = b.{two}",
        )
        return [self.step("outer", None, self.rng.choice(forms))]

    def full_group(self) -> list[Step]:
        """ONLY_FULL_GROUP_BY: its errors, and what it lets pass."""
        model = self.model()
        one, key = self.number(model), self.key(model)
        forms = (
            f"SELECT {one}, {key}, COUNT(*) FROM {self.q(model)} GROUP BY {one}",
            f"SELECT {key}, COUNT(*) FROM {self.q(model)}",
            f"SELECT {one} FROM {self.q(model)} GROUP BY {one} ORDER BY {key}",
            f"SELECT *, COUNT(*) FROM {self.q(model)} GROUP BY {key}",
        )
        steps = [Step(fixed("SET sql_mode = 'ONLY_FULL_GROUP_BY'"), "set")]
        return [*steps, self.step("full group", Form(counted=True), self.rng.choice(forms))]
