"""Cases that another judge of the proxy found to matter: numbers for columns, constants, digits, and what an error
leaves behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.differential.anyschema.steps import Step
from tests.differential.anyschema.tree import Form, fixed

if TYPE_CHECKING:
    from tests.differential.anyschema.more import More

ORDERED = Form(order=())


def numbers(more: More) -> list[Step]:
    """Columns named by their number, in GROUP BY beside what follows from a primary key, and in parentheses."""
    model = more.model()
    total = more.total(model) or more.key(model)
    other = f"`{more.rng.choice(model.columns).name}`"
    texts = [
        f"SELECT {total}, {other}, COUNT(*) FROM {more.q(model)} GROUP BY {', '.join(_places(total))}",
        f"SELECT * FROM {more.q(model)} GROUP BY {total}",
        f"SELECT {more.number(model)}, {total} FROM {more.q(model)} ORDER BY (1), {total}",
        f"SELECT {more.number(model)}, {total} FROM {more.q(model)} ORDER BY 'a' + 0, NULL, CONCAT('b', 1), 1 DESC, {total}",
    ]
    at = more.rng.randrange(len(texts))
    return [more.step("numbers", ORDERED if at > 1 and model.total else None, texts[at])]


def digits(more: More) -> list[Step]:
    """Values that a UNION would change."""
    model = more.model()
    number, total = more.number(model), more.total(model)
    value = more.rng.choice(("1.5", "2", "'ab'", "0.25e0", "NULL + 0.5"))
    shown = more.rng.choice(
        (
            "@d, @d + 1, (@d), IFNULL(@d, 0.125)",
            f"REPLACE('ab', 'a', 'abc'), REPLACE({number}, 1, 'one')",
            f"IF({number} > 2, 1.5, 2), CASE WHEN {number} > 2 THEN 0.125 END, NULLIF(1.50, {number})",
            f"IF({number} > 2, @d, 2), COALESCE(@d, {number})",
        )
    )
    sql = f"SELECT {shown} FROM {more.q(model)}"
    order = f" ORDER BY {total}" if total and more.rng.random() < 0.5 else ""
    return [
        Step(fixed(f"SET @d = {value}"), "set"),
        more.step("digits", ORDERED if order else None, sql, more.where(model), order),
    ]


def leftover(more: More) -> list[Step]:
    """A statement that fails while rows are gathered, under a sql_mode; then others without it."""
    model, other = more.model(), more.model()
    key = more.key(model)
    mode = more.rng.choice(("ANSI_QUOTES", "IGNORE_SPACE", "ANSI", "NO_BACKSLASH_ESCAPES"))
    fails = f"SELECT a.{key} FROM {more.q(model)} a JOIN {more.q(other)} b ON 1 WHERE 18446744073709551615 + (a.{key} IS NOT NULL) > 5"
    return [
        Step(fixed(f"SET sql_mode = '{mode}'"), "set"),
        more.step("fails", None, fails),
        Step(fixed("SET sql_mode = DEFAULT"), "set"),
        more.step("leftover", None, f'SELECT COUNT(DISTINCT {key}, "a") FROM {more.q(model)}'),
    ]


def _places(total: str) -> list[str]:
    return [str(place + 1) for place in range(total.count(",") + 1)]


FURTHER = (numbers, digits, leftover)
