"""Statements in parts that can be taken away one by one, while a difference is being made small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tests.differential.catalog import Family

T = TypeVar("T")

NONE: frozenset[str] = frozenset()
ID = "\0id\0"


@dataclass(frozen=True)
class Expr:
    """An expression: texts and inner expressions, in the order in which they are written.

    `features`: what it uses beyond the plainest (see refusals.py).
    """

    parts: tuple[str | Expr, ...]
    family: Family
    own: frozenset[str] = NONE

    @property
    def sql(self) -> str:
        return "".join(one if isinstance(one, str) else one.sql for one in self.parts)

    @property
    def features(self) -> frozenset[str]:
        return self.own.union(*(one.features for one in self.parts if isinstance(one, Expr)))

    def smaller(self) -> Iterator[Expr]:
        """Simpler expressions: one of those inside, or this with one inside made simpler."""
        inner = [(index, one) for index, one in enumerate(self.parts) if isinstance(one, Expr)]
        for _, one in inner:
            yield one
        for index, one in inner:
            for simpler in one.smaller():
                yield replace(self, parts=(*self.parts[:index], simpler, *self.parts[index + 1 :]))


def leaf(text: str, family: Family, *features: str) -> Expr:
    """An expression without others inside."""
    return Expr((text,), family, frozenset(features))


@dataclass(frozen=True)
class Item:
    """One of the select list; `alias` is written as it is, with AS or without."""

    expression: Expr
    alias: str = ""

    @property
    def sql(self) -> str:
        return self.expression.sql + self.alias


@dataclass(frozen=True)
class Key:
    """A sort key: what it means, how it is written if not so (a number, an alias), and its direction."""

    expression: Expr
    written: str | None = None
    direction: str = ""

    @property
    def sql(self) -> str:
        return (self.expression.sql if self.written is None else self.written) + self.direction

    @property
    def meaning(self) -> str:
        return self.expression.sql + self.direction


@dataclass(frozen=True)
class Select:
    """A SELECT. `where` are conditions joined by AND; `own` are features of the whole."""

    source: str
    items: tuple[Item, ...]
    where: tuple[Expr, ...] = ()
    group: tuple[Expr, ...] = ()
    having: Expr | None = None
    order: tuple[Key, ...] = ()
    limit: int | None = None
    offset: int | None = None
    comma: bool = False
    head: str = "SELECT "
    tail: str = ""
    own: frozenset[str] = NONE

    @property
    def texts(self) -> list[int]:
        """Columns that show one of several equal texts: MIN of 'a' and 'A' may be either."""
        return [
            index
            for index, one in enumerate(self.items)
            if one.expression.family is Family.TEXT and one.expression.parts[0] in ("MIN(", "MAX(")
        ]

    @property
    def sql(self) -> str:
        return self._core(self.head, ", ".join(one.sql for one in self.items)) + self._end() + self.tail

    def _core(self, head: str, items: str) -> str:
        text = f"{head}{items} FROM {self.source}"
        if self.where:
            text += " WHERE " + " AND ".join(one.sql for one in self.where)
        if self.group:
            text += " GROUP BY " + ", ".join(one.sql for one in self.group)
        return text + (f" HAVING {self.having.sql}" if self.having else "")

    def _end(self) -> str:
        text = " ORDER BY " + ", ".join(one.sql for one in self.order) if self.order else ""
        if self.limit is None:
            return text
        if self.offset is None:
            return f"{text} LIMIT {self.limit}"
        both = f"{self.offset}, {self.limit}" if self.comma else f"{self.limit} OFFSET {self.offset}"
        return f"{text} LIMIT {both}"

    @property
    def ordered(self) -> bool:
        """Whether the order or the choice of rows matters."""
        return bool(self.order) or self.limit is not None

    def ranked(self) -> str:
        """All rows, before LIMIT, with one more column: their class in the order; equal ones are ties."""
        keys = ", ".join(one.meaning for one in self.order)
        rank = f"DENSE_RANK() OVER (ORDER BY {keys})" if keys else "1"
        head = "SELECT DISTINCT " if "DISTINCT" in self.head else "SELECT "
        return self._core(head, ", ".join(one.sql for one in self.items) + f", {rank} AS sg_class")

    @property
    def features(self) -> frozenset[str]:
        inner = [*(one.expression for one in self.items), *(one.expression for one in self.order)]
        inner += [*self.where, *self.group]
        inner += [self.having] if self.having else []
        return self.own.union(*(one.features for one in inner))

    def smaller(self) -> Iterator[Select]:
        """Simpler SELECTs, the largest steps first."""
        if self.limit is not None:
            yield replace(self, limit=None, offset=None)
            if self.offset is not None:
                yield replace(self, offset=None)
        if self.order:
            yield replace(self, order=())
        yield from self._fewer()
        for index, key in enumerate(self.order):
            if key.written is not None:
                plain = replace(key, written=None)
                yield replace(self, order=(*self.order[:index], plain, *self.order[index + 1 :]))
        if self.head != "SELECT ":
            yield replace(self, head="SELECT ")
        if self.tail:
            yield replace(self, tail="")
        yield from self._simpler()

    def _fewer(self) -> Iterator[Select]:
        """Without one condition, sort key or result column."""
        if self.having:
            yield replace(self, having=None)
        for index in range(len(self.where)):
            yield replace(self, where=_without(self.where, index))
        for index in range(len(self.order)):
            if len(self.order) > 1:
                yield replace(self, order=_without(self.order, index))
        if len(self.items) > 1 and not any(one.written for one in self.order):
            for index in range(len(self.items)):
                yield replace(self, items=_without(self.items, index))

    def _simpler(self) -> Iterator[Select]:
        """With one expression simpler."""
        for index, condition in enumerate(self.where):
            for simpler in condition.smaller():
                yield replace(self, where=(*self.where[:index], simpler, *self.where[index + 1 :]))
        if any(one.written for one in self.order):
            return
        for index, item in enumerate(self.items):
            for simpler in item.expression.smaller():
                less = replace(item, expression=simpler)
                yield replace(self, items=(*self.items[:index], less, *self.items[index + 1 :]))
        for index, key in enumerate(self.order):
            for simpler in key.expression.smaller():
                keys = (*self.order[:index], replace(key, expression=simpler), *self.order[index + 1 :])
                yield replace(self, order=keys)


def _without(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return items[:index] + items[index + 1 :]


@dataclass(frozen=True)
class Statement:
    """One statement for both sides.

    `twin`: what the plain server gets instead, ID standing for the insert id that the proxy reported; "":
    nothing, as the proxy must refuse it. `near`: the ID whose shard a new object must share; `made`: the
    table of that object. `tables`: those it may change. `exact_warnings`: the number of warnings must be the
    same, not only whether there are some. `extra_warnings`: not even that. `total`: its ORDER BY says the
    place of every row.
    """

    sql: str
    kind: str
    features: frozenset[str] = NONE
    select: Select | None = None
    twin: str | None = None
    made: str | None = None
    near: int | None = None
    tables: frozenset[str] = NONE
    exact_warnings: bool = False
    extra_warnings: bool = False
    total: bool = False


@dataclass(frozen=True)
class Case:
    """Statements that belong together, and are run one after another on the same rows as every other case."""

    number: int
    kind: str
    statements: tuple[Statement, ...]
    tables: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        tables = NONE.union(*(one.tables for one in self.statements))
        object.__setattr__(self, "tables", tables)

    def smaller(self) -> Iterator[Case]:
        """Simpler cases: without one statement, or with one SELECT made simpler."""
        for index in reversed(range(len(self.statements))):
            if len(self.statements) > 1:
                yield replace(self, statements=_without(self.statements, index))
        for index, statement in enumerate(self.statements):
            if statement.select is None:
                continue
            for simpler in statement.select.smaller():
                less = replace(statement, select=simpler, sql=simpler.sql, features=simpler.features)
                yield replace(
                    self, statements=(*self.statements[:index], less, *self.statements[index + 1 :])
                )
