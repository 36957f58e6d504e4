"""The rows of the statement table by the words that statements begin with.

    >>> form_of(source)          # of CREATE OR REPLACE DEFINER = u@h VIEW v AS SELECT 1
    <CREATE VIEW>

Between the words of a row a statement may have options, such as OR REPLACE; `_OPTIONS` has them. The longest
row that fits is the statement's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rewriter.text.tokens import VARIABLE, WORD, Source

from . import administration, data, definitions, sessions, shows
from .forms import Access, Kind, Runs, Session, StatementForm

UNKNOWN: Final = StatementForm(
    words="<unknown>",
    kind=Kind.UNKNOWN,
    access=Access.ADMIN,
    runs=Runs.ANYTHING,
    session=Session.ANYTHING,
    named="OTHER",
)
"""The row of a statement that no reference manual has: it may do anything."""

FORMS: Final = {
    form.words: form
    for form in (
        *data.ROWS,
        *definitions.ROWS,
        *sessions.ROWS,
        *administration.ROWS,
        *shows.ROWS,
        UNKNOWN,
    )
}
"""All rows, by their words."""

_QUERY_IN_PARENTHESES: Final = FORMS["("]
_LABELLED: Final = FORMS["<label>"]
_EXPLAIN: Final = FORMS["EXPLAIN"]
_DESCRIBE: Final = FORMS["DESCRIBE"]

_OPTIONS: Final[dict[str, frozenset[str]]] = {
    "CREATE": frozenset(
        {"OR", "REPLACE", "DEFINER", "ALGORITHM", "SQL", "SECURITY", "AGGREGATE", "UNIQUE", "FULLTEXT"}
        | {"VECTOR", "ONLINE", "OFFLINE", "RELATIONAL", "SPATIAL"}
    ),
    "ALTER": frozenset(
        {"DEFINER", "ALGORITHM", "SQL", "SECURITY", "ONLINE", "OFFLINE", "IGNORE", "RELATIONAL"}
    ),
    "LOAD": frozenset({"LOW_PRIORITY", "CONCURRENT"}),
    "ANALYZE": frozenset({"LOCAL", "NO_WRITE_TO_BINLOG"}),
    "CHECK": frozenset({"LOCAL", "NO_WRITE_TO_BINLOG"}),
    "OPTIMIZE": frozenset({"LOCAL", "NO_WRITE_TO_BINLOG"}),
    "REPAIR": frozenset({"LOCAL", "NO_WRITE_TO_BINLOG"}),
    "FLUSH": frozenset({"LOCAL", "NO_WRITE_TO_BINLOG"}),
    "SHOW": frozenset({"FULL", "EXTENDED", "GLOBAL", "SESSION", "LOCAL"}),
    "SET": frozenset({"GLOBAL", "SESSION", "LOCAL"}),
    "ROLLBACK": frozenset({"WORK"}),
    "GET": frozenset({"CURRENT", "STACKED"}),
}
"""Words that may stand between the words of a row, by its first word."""
_VALUED: Final = frozenset({"DEFINER", "ALGORITHM", "SECURITY"})
"""Options with a value behind them."""

_Tree = dict[str, tuple[StatementForm | None, "_Tree"]]


def _tree() -> _Tree:
    tree: _Tree = {}
    for words, form in FORMS.items():
        branch = tree
        *before, last = words.split(" ")
        for word in before:
            branch = branch.setdefault(word, (None, {}))[1]
        branch[last] = (form, branch.get(last, (None, {}))[1])
    return tree


_TREE: Final = _tree()


class Recognized(NamedTuple):
    """A statement's row, and the place behind the words that it begins with."""

    form: StatementForm
    end: int


def form_of(source: Source, first: int = 0) -> StatementForm:
    """The row of the statement that begins at the token `first`; UNKNOWN for none."""
    return recognize(source, first).form


def recognize(source: Source, first: int = 0) -> Recognized:
    """The row of the statement that begins at the token `first`, with the place behind its words."""
    token = source.at(first)
    if token.kind != WORD:
        if source.is_op(first, "("):
            return Recognized(_QUERY_IN_PARENTHESES, first)
        labelled = source.is_name(first) and source.is_op(first + 1, ":")
        return Recognized(_LABELLED if labelled else UNKNOWN, first)
    if source.is_op(first + 1, ":"):
        return Recognized(_LABELLED, first)
    found, end = _longest(source, first)
    special = _SPECIAL.get(token.text)
    form = special(source, first, end, found) if special is not None else found
    return Recognized(form or UNKNOWN, end)


def name_of(source: Source, recognized: Recognized) -> int:
    """The place of the name behind the words of a definition."""
    at = recognized.end
    while source.is_word(at, "IF", "NOT", "EXISTS"):
        at += 1
    return at


def _longest(source: Source, first: int) -> tuple[StatementForm | None, int]:
    """The longest row that fits, and the place behind its words."""
    form, branch = _TREE.get(source.at(first).text, (None, {}))
    options = _OPTIONS.get(source.at(first).text, frozenset())
    at = end = first + 1
    while branch and source.at(at).kind == WORD:
        word = source.at(at).text
        if word in branch and not (word in options and not _goes_on(source, at, branch[word][1])):
            longer, branch = branch[word]
            at += 1
            if longer is not None:
                form, end = longer, at
        elif word in options:
            at = _behind_option(source, at)
        else:
            break
    return form, end


def _goes_on(source: Source, at: int, branch: _Tree) -> bool:
    """Whether the row of a word that may be an option, too, fits what follows: SPATIAL REFERENCE SYSTEM."""
    return source.at(at + 1).text in branch


def _behind_option(source: Source, at: int) -> int:
    """The place behind the option at `at`, with its value."""
    if source.at(at).text not in _VALUED:
        return at + 1
    at += 1
    if source.is_op(at, "="):
        at += 1
    at += 1  # the value, or an account's user
    if source.is_op(at, "(") and source.closing.get(at) == at + 1:
        return at + 2  # CURRENT_USER()
    return at + 1 if source.at(at).kind == VARIABLE else at  # 'user'@'host'


# -- statements that more than their first words tell apart


def _set(source: Source, first: int, end: int, found: StatementForm | None) -> StatementForm | None:
    """SET of a variable that is called as a statement begins, such as `SET names = 1`."""
    if found is not None and found.words not in ("SET", "SET PASSWORD") and source.is_op(end, "=", ":="):
        return FORMS["SET"]
    return found


def _handler(source: Source, first: int, end: int, found: StatementForm | None) -> StatementForm | None:
    """The word behind the table's name says what HANDLER does."""
    at = first + 4 if source.is_op(first + 2, ".") else first + 2
    return FORMS.get(f"HANDLER {source.at(at).text}", found)


def _flush(source: Source, first: int, end: int, found: StatementForm | None) -> StatementForm | None:
    """FLUSH of tables that takes locks, or not."""
    at = first + 1
    while source.is_word(at, *_OPTIONS["FLUSH"]):
        at += 1
    if not source.is_word(at, "TABLE", "TABLES"):
        return found
    locks = any(source.is_word(place, "LOCK", "EXPORT") for place in range(at + 1, len(source.tokens)))
    return FORMS["FLUSH TABLES WITH READ LOCK" if locks else "FLUSH TABLES"]


def _explain(source: Source, first: int, end: int, found: StatementForm | None) -> StatementForm | None:
    """EXPLAIN and DESCRIBE are the same word: of a statement, or of a table's columns."""
    if found is not None and found.words.startswith("ANALYZE "):
        return found
    if found is not None and found.words == "EXPLAIN FOR CONNECTION":
        return found
    for at in range(first + 1, min(first + 8, len(source.tokens))):
        if source.is_word(at, "FOR") and source.is_word(at + 1, "CONNECTION"):
            return FORMS["EXPLAIN FOR CONNECTION"]
    behind = source.at(first + 1)
    names_table = source.is_name(first + 1) and (behind.kind != WORD or behind.text not in _EXPLAINED)
    if names_table and not source.is_word(first, "ANALYZE"):
        return _DESCRIBE
    return FORMS["ANALYZE"] if source.is_word(first, "ANALYZE") else _EXPLAIN


_SPECIAL: Final = {
    "SET": _set,
    "HANDLER": _handler,
    "FLUSH": _flush,
    "EXPLAIN": _explain,
    "DESCRIBE": _explain,
    "DESC": _explain,
    "ANALYZE": _explain,
}


def verbs_of(*kinds: Kind) -> frozenset[str]:
    """The first words of the statements of these kinds."""
    return frozenset(form.verb for form in FORMS.values() if form.kind in kinds)


_EXPLAINED: Final = verbs_of(Kind.QUERY, Kind.CHANGE) | {
    "FORMAT",
    "EXTENDED",
    "PARTITIONS",
    "ANALYZE",
    "INTO",
    "FOR",
    "ROUTE",
}
"""Words behind EXPLAIN that are no table's name."""
