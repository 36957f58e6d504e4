"""The functions that are called, and whether they are the servers' own: what is not may run code that the
proxy has not read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from config.flavour import Flavour
from rewriter.text.parse import MODIFIERS
from rewriter.text.tokens import (
    HEX,
    HINT,
    INTEGER,
    NAME,
    NUMBER,
    PREFIXED,
    STRING,
    SYSTEM,
    VARIABLE,
    WORD,
    Source,
)

from .forms import Kind
from .function_names import NATIVE
from .table import form_of
from .table_places import tables_expected

ID_FUNCTIONS: Final = frozenset({"MAKE_ID", "SHARD_OF", "TYPE_OF", "LOCAL_OF"})
"""The proxy's own, which no server gets to see."""
_FURTHER: Final = {
    "mariadb": frozenset(
        {"VEC_DISTANCE", "VEC_DISTANCE_COSINE", "VEC_DISTANCE_EUCLIDEAN", "VEC_FROMTEXT", "VEC_TOTEXT"}
    ),
    "mysql": frozenset(),
}
"""By the flavour: of MariaDB 11.7 and later."""
DIGESTS: Final = frozenset({"MD5", "SHA", "SHA1"})
"""Functions of every server but MySQL 9.6 and later, which have them with a component."""
_BY_ARGUMENTS: Final = frozenset(
    {"POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"}
)
"""On MariaDB stored functions may have these names, but for as many arguments as the own ones have."""
_SEQUENCES: Final = frozenset({"NEXTVAL", "SETVAL", "LASTVAL"})
_OPERANDS: Final = frozenset({STRING, INTEGER, NUMBER, HEX, PREFIXED, NAME, VARIABLE, SYSTEM})
_NO_CALL_BEHIND: Final = ("AS", "INTO", "TABLE", "WITH", "RECURSIVE", "KEY", "INDEX", "REFERENCES", "EXISTS")
_NO_CALL_IN_TABLES: Final = ("UNIQUE", "CONSTRAINT", "FULLTEXT", "SPATIAL")
"""Among a table's columns; MariaDB takes `SELECT UNIQUE f(1)` for DISTINCT."""
_BEFORE_INDEX: Final = ("OR", "REPLACE", "ONLINE", "OFFLINE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR")
_ROWS: Final = ("SELECT", "VALUES", "VALUE", "WITH")


def is_native(word: str, *, flavour: Flavour) -> bool:
    """Whether an unquoted word (upper case) before a parenthesis is the servers' or the proxy's own."""
    if word in DIGESTS:
        return flavour.digests
    return word in NATIVE[flavour.name] or word in ID_FUNCTIONS or word in _FURTHER[flavour.name]


def is_sequences(word: str, *, flavour: Flavour) -> bool:
    """Whether an unquoted word (upper case) before a parenthesis reads or moves a sequence."""
    return flavour.sequences and word in _SEQUENCES


def foreign_calls(source: Source, *, flavour: Flavour) -> tuple[int, ...]:
    """The places of the names of functions that are called and are none of the servers' own, nor for a
    sequence. Names before a parenthesis that are no calls are left out where that is certain.
    """
    found: list[int] = []
    tables: set[int] | None = None
    for at, token in enumerate(source.tokens):
        if token.kind not in (WORD, NAME) or not source.is_op(at + 1, "("):
            continue
        if token.kind == WORD and not source.is_op(at - 1, "."):
            own = token.text in ID_FUNCTIONS and not _computes(source)
            if not own and (
                is_native(token.text, flavour=flavour) or is_sequences(token.text, flavour=flavour)
            ):
                continue
            if token.text in MODIFIERS and _is_option(source, at):
                continue
            if flavour.natives_by_arguments and token.text in _BY_ARGUMENTS and _fits(source, at):
                continue
        if tables is None:
            tables = tables_expected(source, certain=True)
        if not _is_declared(source, at, tables):
            found.append(at)
    return tuple(found)


def _computes(source: Source) -> bool:
    """Whether the proxy writes its own functions as arithmetic in this statement. Elsewhere a server looks
    for stored functions of these names.
    """
    form = form_of(source)
    return form.kind in _COMPUTED or form.words == "SET STATEMENT"


_COMPUTED: Final = frozenset({Kind.QUERY, Kind.CHANGE, Kind.DO, Kind.EXPLAIN, Kind.CALL, Kind.HANDLER})


def _is_option(source: Source, at: int) -> bool:
    """Whether the word at `at`, such as SQL_CACHE, is an option of SELECT: nothing but options is between."""
    at -= 1
    while source.is_word(at, *MODIFIERS) or source.at(at).kind == HINT:
        at -= 1
    return source.is_word(at, "SELECT")


def as_stored(source: Source) -> Source:
    """A text that servers get as it is: the names of the proxy's own functions are names of stored ones."""
    places = {
        at for at, token in enumerate(source.tokens) if token.kind == WORD and token.text in ID_FUNCTIONS
    }
    if not places:
        return source
    tokens = (
        token._replace(kind=NAME, text=token.name) if at in places else token
        for at, token in enumerate(source.tokens)
    )
    return replace(source, tokens=tuple(tokens))


def own_calls(source: Source) -> tuple[int, ...]:
    """The places of the proxy's own functions that are called; `db.SHARD_OF(…)` is a stored one."""
    found: list[int] = []
    for at, token in enumerate(source.tokens):
        if token.kind != WORD or token.text not in ID_FUNCTIONS or not source.is_op(at + 1, "("):
            continue
        named = source.is_word(at - 1, "FUNCTION", "PROCEDURE") or source.is_op(at - 1, ".")
        if not named and not _is_declared(source, at, tables_expected(source, certain=True)):
            found.append(at)
    return tuple(found)


def _fits(source: Source, at: int) -> bool:
    """Whether a geometry's function has arguments that make it the server's own."""
    inner = range(at + 2, source.closing[at + 1])
    if source.at(at).text != "POINT":
        return len(inner) > 0
    commas, end = 0, -1
    for k in inner:
        if k > end:
            commas += source.is_op(k, ",")
            end = source.closing.get(k, end) if source.is_op(k, "(") else end
    return commas == 1


def _defines_index(source: Source) -> bool:
    """Whether the statement is CREATE INDEX: behind its ON stand a table's name and the columns."""
    at = 1
    while source.is_word(at, *_BEFORE_INDEX):
        at += 1
    return source.is_word(0, "CREATE") and source.is_word(at, "INDEX")


def _is_declared(source: Source, at: int, tables: set[int]) -> bool:
    """Whether a parenthesis behind the name at `at` makes it no call: of columns, of an index, of a view."""
    first = at
    while source.is_op(first - 1, ".") and source.is_name(first - 2):
        first -= 2
    if first in tables or source.is_word(first - 1, *_NO_CALL_BEHIND) or source.is_op(first - 1, ")"):
        return True
    if source.at(first - 1).kind in _OPERANDS:
        return True  # two operands side by side: the second one is no function
    if source.is_word(first - 1, "ON") and _defines_index(source):
        return True
    close = source.closing[at + 1]
    if source.is_word(close + 1, "AS") and source.is_op(close + 2, "("):
        return True  # WITH a (x) AS (…)
    length = close == at + 3 and source.at(at + 2).kind == INTEGER and source.is_word(1, "TEMPORARY")
    if not source.is_word(0, "CREATE", "ALTER") or not (
        length or source.is_word(first - 1, *_NO_CALL_IN_TABLES)
    ):
        return False
    return not any(source.is_word(one, *_ROWS) for one in range(1, at))
