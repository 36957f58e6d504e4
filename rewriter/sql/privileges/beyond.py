"""Statements that reach beyond a list of databases, judged by their words.

An administrator with a list of databases defines objects within them. Statements that act on a whole server
(accounts, global variables, files, replication), and those that run a text that the proxy does not judge, are
found here. What is not known to stay within databases counts as reaching beyond them.
"""

from __future__ import annotations

import re
from typing import Final

from config.flavour import Flavour
from rewriter.sql.privileges.variables import ENGINES, PRIVILEGED
from rewriter.sql.statements.forms import Inner, Kind, Objects, Runs, StatementForm
from rewriter.sql.statements.table import Recognized, form_of, name_of, recognize
from rewriter.text.tokens import HINT, STRING, SYSTEM, WORD, Source

EVERY_DATABASE: Final = "*"
"""Stands among the databases of a statement that shows what is in any of them, or acts on a whole server."""

_ENGINES: Final = frozenset(
    {"INNODB", "MYISAM", "ARIA", "MEMORY", "HEAP", "CSV", "ARCHIVE", "BLACKHOLE", "MERGE", "MRG_MYISAM"}
    | {"ROCKSDB", "PARTITION"}
)
"""Engines whose tables have no rows but their own, or those of tables that the statement names."""
_BEFORE_COLUMN: Final = ("ADD", "COLUMN", "CHANGE", "MODIFY", "DROP", "AFTER", "RENAME", "TO", "EXISTS", "BY")


def stays_within(source: Source, first: int) -> bool:
    """Whether a statement for administrators, at `first`, acts on objects in databases alone."""
    form, end = recognize(source, first)
    if _names_definer(source, first):
        return False
    if form.objects is Objects.FUNCTION and _is_of_servers_function(source, form, end):
        return False
    shaped = form.objects in (Objects.TABLE, Objects.SEQUENCE) and form.kind is Kind.DEFINITION
    if shaped and not form.ends:
        return form.words != "CREATE EXTERNAL TABLE" and not _reads_elsewhere(source, end)
    return form.kind in (Kind.DEFINITION, Kind.MAINTENANCE, Kind.DIAGNOSTICS)


def hidden_text(source: Source, first: int) -> str:
    """The text that a statement for administrators, at `first`, has a server run though the proxy has not
    judged it, in words; "" when there is none. A body may hold anything, prepared texts among it.
    """
    form = form_of(source, first)
    if form.inner is Inner.TEXT:
        return "a prepared text that is not written out"
    if form.defines and form.inner is Inner.BODY:
        return f"the body of {form.objects.name}"
    if form.verb == "ALTER" and form.objects.is_routine:  # another SQL SECURITY, for instance
        return f"the body of {form.objects.name}"
    if form.kind is Kind.UNKNOWN:
        return "a statement that the proxy does not know"
    return "a compound statement" if form.runs is Runs.ANYTHING else ""


def named_as_database(source: Source) -> str:
    """The database that a statement names where only a database's name may stand: USE, and definitions of
    databases. "" for none: ALTER DATABASE may be of the current one.
    """
    recognized = recognize(source)
    form = recognized.form
    if form.objects is not Objects.DATABASE or not (form.defines or form.kind is Kind.USE):
        return ""
    at = name_of(source, recognized)
    word, behind = source.at(at), source.at(at + 1)
    is_option = form.verb == "ALTER" and word.kind == WORD and word.text in _OPTIONS
    if is_option and word.text in _NAMES and behind.kind == WORD and behind.text in _OPTIONS:
        is_option = False
    return "" if is_option else word.name


_OPTIONS: Final = frozenset({"CHARACTER", "CHARSET", "COLLATE", "COMMENT", "DEFAULT", "ENCRYPTION", "READ"})
"""Words that may stand behind ALTER DATABASE in the place of a name."""
_NAMES: Final = frozenset({"CHARSET", "COMMENT", "ENCRYPTION"})
"""Those of them that may be a name, when another option follows."""


def sets_for_all(source: Source, *, flavour: Flavour) -> bool:
    """Whether SET, which stands in a prepared text, sets more than the session's own variables."""
    form = form_of(source)
    if form.kind is not Kind.SET:
        return False
    if form.of_server:
        return True
    for at, token in enumerate(source.tokens):
        name = token.name.lower()
        if token.kind == SYSTEM and name.lstrip("@").startswith(("global", "persist")):
            return True
        if source.is_word(at, "GLOBAL", "PERSIST", "PERSIST_ONLY"):
            return True
        if name.rpartition(".")[2].lstrip("@") in PRIVILEGED[flavour.name]:
            return True
    return False


def sets_other_engine(source: Source) -> tuple[bool, tuple[int, ...]]:
    """Whether SET or SET STATEMENT sets an engine that is not in `_ENGINES`, and the literals on which the
    result depends.
    """
    form = form_of(source)
    if form.kind is not Kind.SET:
        return False, ()
    judged: list[int] = []
    for at, token in enumerate(source.tokens):
        variable = token.name.lower().lstrip("@").rpartition(".")[2]
        if variable not in ENGINES or not source.is_op(at + 1, "=", ":="):
            continue
        value, ends = source.at(at + 2), at + 3 >= len(source.tokens) or source.is_op(at + 3, ",")
        engine = value.name.upper()
        if value.kind == STRING and value.literal >= 0:
            judged.append(value.literal)
            engine = source.literals[value.literal][:-1].decode("latin-1").upper()  # behind the first quote
        ends = ends or (form.words == "SET STATEMENT" and source.is_word(at + 3, "FOR"))
        if not ends or engine not in _ENGINES | {"DEFAULT"}:
            return True, tuple(judged)
    return False, tuple(judged)


def sets_privileged(source: Source, end: int, *, flavour: Flavour) -> bool:
    """Whether SET STATEMENT, whose statement begins at `end`, sets a variable that needs a privilege."""
    names = PRIVILEGED[flavour.name]
    return any(source.is_name(at) and source.at(at).name.lower() in names for at in range(2, end))


_ENGINE_HINT: Final = re.compile(
    r"\bset_var\s*\(\s*[`\"]?(?:default_(?:tmp_)?)?storage_engine\b", re.IGNORECASE
)


def hints_engine(source: Source) -> bool:
    """Whether a hint says which engine a table has."""
    return any(token.kind == HINT and _ENGINE_HINT.search(token.text) for token in source.tokens)


def _names_definer(source: Source, first: int) -> bool:
    """Whether a definition has a DEFINER other than the current user."""
    places = range(first, len(source.tokens))
    at = next((one for one in places if source.is_word(one, "DEFINER") and source.is_op(one + 1, "=")), -1)
    return at >= 0 and not source.is_word(at + 2, "CURRENT_USER", "CURRENT_ROLE")


def _is_of_servers_function(source: Source, form: StatementForm, end: int) -> bool:
    """Whether CREATE or DROP FUNCTION may be of a loadable function, which is in no database."""
    if form.verb == "CREATE":
        return any(source.is_word(at, "SONAME") for at in range(end, len(source.tokens)))
    return form.verb == "DROP" and not source.is_op(name_of(source, Recognized(form, end)) + 1, ".")


def _reads_elsewhere(source: Source, at: int) -> bool:
    """Whether options of a table, from `at` on, give it rows of files or of other servers, or set the place
    of its file.
    """
    for one in range(at + 1, len(source.tokens)):
        if source.is_op(one - 1, "."):
            continue
        if source.is_word(one, "DIRECTORY") and source.is_word(one - 1, "DATA", "INDEX"):
            return True
        if source.is_word(one, "TABLESPACE") and not _is_column(source, one):
            return True
        if not source.is_word(one, "ENGINE", "TYPE"):
            continue
        given = source.is_op(one + 1, "=")
        if not given and (source.is_word(one, "TYPE") or _is_column(source, one)):
            continue
        value = source.at(one + 1 + given)
        if value.name.strip("'\"").upper() not in _ENGINES:
            return True
    return False


def _is_column(source: Source, at: int) -> bool:
    """Whether the word at `at`, without `=` behind it, is the name of a column."""
    if source.is_op(at - 1, ","):
        return any(opened < at < close for opened, close in source.closing.items())
    return source.is_word(at - 1, *_BEFORE_COLUMN) or source.is_op(at - 1, "(")
