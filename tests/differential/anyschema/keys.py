"""Random conditions on routing columns: what decides which shards a statement goes to."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from config.schema import Kind
from tests.differential.anyschema.places import AnyWorld, Column, Model
from tests.differential.anyschema.tree import Node, expr, items
from tests.differential.catalog import literal


class Keys:
    """Values for columns that hold IDs or are hashed, and conditions with them."""

    def __init__(self, rng: random.Random, world: AnyWorld) -> None:
        self.rng = rng
        self.world = world

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def id_of(self, name: str) -> int:
        """An ID of a table, most often one that exists."""
        model = self.world.models[name]
        known = int(str(self.rng.choice(model.keys))) if model.keys else 1
        if self.chance(0.85) or model.kind is Kind.TIMED:
            return known
        bits = self.world.layouts[model.keyspace]
        shift, number = bits["shard"][0], bits["type"][0]
        shards = self.world.shards[model.keyspace]
        local = self.rng.choice((1, 2, known & bits["local"][1], bits["local"][1]))
        odd = self.rng.choice((
            known + 1, known - 1, self.rng.choice(shards) << shift | model.number << number | local,
            self.rng.choice(shards) << shift | (model.number % 15 + 1) << number | local,
            (shards[-1] + 1) << shift | model.number << number | local,
            known | 1 << 63, -known, known + (1 << 64), 0, 1, -1, 1 << 63, (1 << 64) - 1, known & bits["local"][1],
        ))  # fmt: skip
        return odd

    def written(self, value: Any) -> str:
        """A routing value, in one of the ways to write it."""
        rng = self.rng
        if isinstance(value, int):
            forms: list[Callable[[], str]] = [
                lambda: str(value), lambda: str(value), lambda: str(value), lambda: str(value), lambda: f"'{value}'",
                lambda: hex(value) if value >= 0 else str(value), lambda: f"({value})", lambda: f"+{value}",
                lambda: f"{value - 1} + 1", lambda: f"{value}.0", lambda: f"' {value}'", lambda: f"'{value} '",
                lambda: f"'0{value}'", lambda: f'"{value}"', lambda: f"CAST({value} AS UNSIGNED)",
                lambda: f"({value // 2} * 2 + {value % 2})", lambda: f"'{value}.0'",
                lambda: f"IF(1, {value}, 0)", lambda: f"- - {value}",
                lambda: f"{value} | 0", lambda: f"GREATEST({value}, 1)", lambda: f"/* c */ {value}", lambda: f"N'{value}'",
            ]  # fmt: skip
            return rng.choice(forms)()
        if isinstance(value, bytes):
            text = literal(value)
            return rng.choice(
                (text, text, f"CONCAT({text})", f"_binary {text}", "0x" + value.hex() if value else text)
            )
        text = literal(value)
        return rng.choice((
            text, text, text, text, f"_utf8mb4{text}", f"CONCAT({text}, '')", f"N{text}", f"x'{str(value).encode().hex()}'",
            f"LOWER({text})", f"'' {text}", f"{text} COLLATE utf8mb4_bin", f"{text} COLLATE utf8mb4_general_ci", "0", "1",
        ))  # fmt: skip

    def value(self, model: Model, column: Column) -> str:
        """A value for this column."""
        if self.chance(0.02):
            return "NULL"
        if column.refers:
            return self.written(self.id_of(column.refers))
        if column.name == model.routing:
            known = self.rng.choice(model.keys) if model.keys else 0
            if isinstance(known, int) and self.chance(0.1):
                known += self.rng.choice((1, -1, 1 << 32))
            if isinstance(known, str) and self.chance(0.15):
                known = self.rng.choice((known.upper(), known + " ", known.strip(), "nobody"))
            return self.written(known)
        return literal(self.rng.choice(list(column.type.values) or [0]))

    def columns(self, model: Model) -> list[Column]:
        """Those that route, or hold IDs."""
        found = [one for one in model.columns if one.name in (model.routing, model.shard_key)] * 4
        return found + [one for one in model.columns if one.refers]

    def condition(self, model: Model, written: Callable[[Column], str]) -> Node | None:
        """A condition on a column that routes; `written` says how a column is written."""
        choices = self.columns(model)
        if not choices:
            return None
        column = self.rng.choice(choices)
        name = written(column)

        def one() -> Node:
            return expr(self.value(model, column))

        def listed() -> Node:
            """Texts among numbers are compared as doubles, or not, according to whether the server uses an index:
            numbers only."""
            if column.refers:
                return expr(str(self.id_of(column.refers)))
            return one()

        match self.rng.choice(
            ("=",) * 6 + ("in",) * 6 + ("null", "between", "or", "and", "<=>", "flip", "row", "<", "not")
        ):
            case "=":
                return expr(name, self.rng.choice((" = ", "=", " =  ")), one())
            case "in":
                values: list[str | Node] = [listed() for _ in range(self.rng.choice((1, 2, 3, 3, 5, 12)))]
                if self.chance(0.1):
                    values.append(values[0])
                return expr(name, " IN (", items(values), ")")
            case "null":
                return expr(name, self.rng.choice((" IS NULL", " IS NOT NULL", " <=> NULL", " = NULL")))
            case "between":
                return expr("(", name, " BETWEEN ", one(), " AND ", one(), ")")
            case "or":
                return expr("(", expr(name, " = ", one()), " OR ", expr(name, " = ", one()), ")")
            case "and":
                return expr(
                    "(",
                    expr(name, " IN (", items([one(), one(), one()]), ")"),
                    " AND ",
                    expr(name, " = ", one()),
                    ")",
                )
            case "<=>":
                return expr(name, " <=> ", one())
            case "flip":
                return expr("(", one(), " = ", name, ")")
            case "row":
                other = self.rng.choice(model.columns)
                value = self.value(model, other) if other.family != "j" else "1"
                return expr(
                    f"({name}, {written(other)}) IN ((", one(), f", {value}), (", one(), f", {value}))"
                )
            case "<":
                return expr("(", name, self.rng.choice((" < ", " >= ", " > ", " <> ")), one(), ")")
            case _:
                return expr("NOT (", name, self.rng.choice((" <> ", " = ", " IN (1) OR 1 = ")), one(), ")")
