"""Whether the second reader can be used: the very version that its dialect was made for, in the build that
can be extended, reading a few statements as it should. If not, everything is as it would be without it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final, NamedTuple

from rewriter.env import Env
from rewriter.text.facts import Block
from rewriter.text.parse import Parser
from rewriter.text.parse_write import WriteParser
from rewriter.text.tokens import Source, read

if TYPE_CHECKING:
    from .tree import Tree

VERSION: Final = "30.30.0"
"""Of sqlglot. Others read other statements, and some cannot be extended in this way."""

_EXPECTED: Final = (
    (b"SELECT * FROM t WHERE a = 5 < b", "<(=(column, number), column)"),
    (b"SELECT * FROM t WHERE NOT a = 5 AND b", "and(not(=(column, number)), column)"),
    (b"SELECT * FROM t WHERE a OR b XOR c AND d", "or(column, xor(column, and(column, column)))"),
    (b"SELECT * FROM t WHERE a BETWEEN 1 AND b = 5", "=(between(column, number, column), number)"),
    (b"SELECT * FROM t WHERE (a, b) IN ((1, 2)) LIMIT 2", "in(tuple(column, column), tuple(number, number))"),
    (b"SELECT * FROM t JOIN u ON t.a = u.a WHERE t.a + 1 <=> -5", "<=>(+(column, number), negative(number))"),
    (b"UPDATE IGNORE t SET a = 1 WHERE a IS NULL OR offset < 5", "or(is null(column), <(column, number))"),
    (b"DELETE FROM t WHERE a IS TRUE ORDER BY IF(b, 1, 0)", "is true(column)"),
    (b"SELECT b FROM t WHERE a = CAST('5' AS UNSIGNED)", "=(column, integer(other))"),
)


class Loaded(NamedTuple):
    """`read` makes trees; None when it cannot be used, for the reason `why_not`."""

    read: Callable[[Source, Env], Tree] | None
    why_not: str = ""


@cache
def load() -> Loaded:
    """Import sqlglot, which takes a fifth of a second and 17 MB, and try it. Never raises."""
    try:
        found = version("sqlglot")
    except PackageNotFoundError:
        return Loaded(None, "sqlglot is not installed")
    if found != VERSION:
        return Loaded(None, f"sqlglot is of version {found}, not {VERSION}")
    try:
        from .tree import Tree

        wrong = _wrong(Tree)
    except Exception as error:  # the compiled build cannot be extended, and says so in many ways
        return Loaded(None, f"sqlglot cannot be extended here: {type(error).__name__}: {error}")
    return Loaded(None, f"sqlglot reads {wrong}") if wrong else Loaded(Tree)


def _wrong(tree: Callable[[Source, Env], Tree]) -> str:
    """The first statement that is not read as it should be, and how it is; "" when all are."""
    env = Env(database="")
    for sql, expected in _EXPECTED:
        source = read(sql, tuple(one for _, one in env.findall(sql + b"\0")), env)
        block = _block(source)
        made = tree(source, env)
        found = made.condition(block.where, block) if block.where is not None else None
        if str(found) != expected or not made.agrees(block):
            return f"{sql.decode()} as {found}"
    return ""


def _block(source: Source) -> Block:
    if not source.is_word(0, "SELECT"):
        return WriteParser(source).change().block
    block = Parser(source).query(None).terms[0]
    assert isinstance(block, Block)
    return block
