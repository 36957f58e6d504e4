"""Where a statement may name tables, told by its words alone: for what is not read clause by clause."""

from __future__ import annotations

from typing import Final

from rewriter.text.tokens import Source

from .forms import Kind
from .inner import behind_set_statement
from .table import form_of

_LISTS: Final = frozenset({"FROM", "JOIN", "STRAIGHT_JOIN", "INTO", "UPDATE", "TABLE", "USING", "DELETE"})
_MORE: Final = _LISTS | {"TABLES", "VIEW", "TO"}
_NAMES: Final = frozenset({"TABLES", "VIEW", "HANDLER"})
"""Of these, those that may be names."""
_FIRST: Final = frozenset({"INSERT", "REPLACE", "DELETE", "EXPLAIN", "DESCRIBE", "DESC"})
_BETWEEN: Final = frozenset(
    {"IGNORE", "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "ONLY", "OJ", "LATERAL"}
)
_ENDS: Final = frozenset(
    {"SELECT", "SET", "WHERE", "VALUES", "VALUE", "GROUP", "ORDER", "HAVING", "LIMIT", "WINDOW", "FOR"}
    | {"UNION", "EXCEPT", "INTERSECT", "RETURNING", "PARTITION"}
)
_BEHIND_ALIAS: Final = (
    *("JOIN", "INNER", "CROSS", "STRAIGHT_JOIN", "NATURAL", "ON", "USING", "USE", "FORCE", "IGNORE", "SET"),
    *("WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "FOR", "UNION", "WINDOW"),
)
_LOCKING: Final = frozenset(
    {"OF", "NOWAIT", "SKIP", "WAIT", "UNION", "EXCEPT", "INTERSECT", "INTO", "LIMIT", ""}
)


def is_of_rows(source: Source) -> bool:
    """Whether the statement is a query or a change of rows, or explains one, also behind SET STATEMENT."""
    form = form_of(source)
    if form.words == "SET STATEMENT":
        form = form_of(source, behind_set_statement(source))
    return form.kind in (Kind.QUERY, Kind.CHANGE, Kind.EXPLAIN, Kind.DO)


def tables_expected(source: Source, *, certain: bool = False) -> set[int]:
    """The places where a table's name is expected; `certain`: where nothing else may stand. Words that are no
    reserved ones may be names in a query, and what is behind them no table then.
    """
    lists = (_LISTS if is_of_rows(source) else _MORE) | {"INSERT", "REPLACE", "CALL", "HANDLER"}
    found: set[int] = set()
    state, awaits, clauses = "", False, True  # "": an expression; "list" of tables; "on": a join's condition
    outer: list[tuple[str, bool, bool]] = []
    for at, token in enumerate(source.tokens):
        if source.is_op(at, "(", "{"):
            outer.append((state, False, clauses))
            if not awaits:
                state, clauses = "", source.is_word(at + 1, "SELECT", "WITH", "VALUES", "TABLE")
        elif source.is_op(at, ")", "}"):
            state, awaits, clauses = outer.pop() if outer else ("", False, True)
        elif source.is_op(at, ","):
            awaits = state != ""
            state = "list" if awaits else ""
        elif not source.is_name(at) or source.is_op(at - 1, "."):
            continue
        elif awaits and (
            source.is_op(at + 1, ".") or token.kind != "word" or token.text not in _BETWEEN | _ENDS | lists
        ):
            found.add(at)
            awaits = False
        elif token.kind == "word":
            if certain and token.text == "SELECT":
                lists -= _NAMES
            state, awaits, clauses = _next(source, at, lists, state, awaits, clauses)
    return found


def _next(
    source: Source, at: int, lists: frozenset[str], state: str, awaits: bool, clauses: bool
) -> tuple[str, bool, bool]:
    """What is expected behind the word at `at`."""
    word = source.tokens[at].text
    if word in ("SELECT", "UNION", "EXCEPT", "INTERSECT"):
        return "", False, True
    if not clauses:
        return state, awaits, clauses
    if word == "JOIN" and source.is_word(at - 1, "FOR"):  # USE INDEX FOR JOIN (…)
        return state, awaits, clauses
    if word in lists or (word in _FIRST and at == 0):
        assigns = word == "UPDATE" and source.is_word(at - 1, "KEY")
        locks = word == "UPDATE" and source.is_word(at - 1, "FOR") and source.at(at + 1).text in _LOCKING
        modifier = word == "STRAIGHT_JOIN" and not state
        columns = word == "USING" and source.is_op(at + 1, "(")
        function = word in ("INSERT", "REPLACE") and source.is_op(at + 1, "(")
        if modifier or function:
            return state, awaits, clauses
        if columns:
            return "on", False, clauses
        return ("", False, clauses) if assigns or locks else ("list", True, clauses)
    if word == "ON" and state:
        updates = source.is_word(at + 1, "DUPLICATE") and source.is_word(at + 2, "KEY")
        return ("", False, clauses) if updates else ("on", False, clauses)
    if word in _ENDS and _ends(source, at, word):
        return "", False, clauses
    return state, awaits, clauses


def _writes(source: Source, at: int, *verbs: str) -> bool:
    """Whether one of these verbs stands before `at`, and no function of that name."""
    return any(source.is_word(one, *verbs) and not source.is_op(one + 1, "(") for one in range(at))


def _ends(source: Source, at: int, word: str) -> bool:
    """Whether the word at `at`, which may be a name or belong to a table, ends a list of tables."""
    if word in ("ORDER", "GROUP"):  # USE INDEX FOR ORDER BY (…)
        return not source.is_word(at - 1, "FOR")
    if word == "FOR":
        within = source.is_word(at - 1, "INDEX", "KEY", "VALUE")  # USE INDEX FOR …, NEXT VALUE FOR …
        return not within and not source.is_word(at + 1, "SYSTEM_TIME", "PORTION")
    if word == "PARTITION":
        return not source.is_op(at + 1, "(")
    if word == "WINDOW":
        return source.is_word(at + 2, "AS") and source.is_op(at + 3, "(")
    if word in ("VALUE", "VALUES"):  # of INSERT, behind its own table; else it is a function or a name
        return _writes(source, at, "INSERT", "REPLACE") and not any(
            source.is_word(one, "SELECT") for one in range(at)
        )
    if word == "RETURNING":  # of a write, with columns behind it; else it is an alias
        if not _writes(source, at, "INSERT", "REPLACE", "DELETE"):
            return False
        joins = source.is_word(at + 1, "LEFT", "RIGHT") and source.is_word(at + 2, "JOIN", "OUTER")
        return not (joins or source.is_op(at + 1, ",", ")") or source.is_word(at + 1, *_BEHIND_ALIAS))
    return True
