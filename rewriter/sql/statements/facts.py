"""Facts of one statement: its row in the statement table, and what the tokens add to it.

Only the words of the statement itself count: quoted names and comments do not.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from config.flavour import Flavour
from rewriter.text.tokens import WORD, Source

from .calls import sequences
from .effects import assigned_in_conditions
from .forms import Keeps, Kind, Opens, Runs, State, StatementForm
from .functions import foreign_calls
from .inner import behind_explain, behind_set_statement, tail
from .table import FORMS, UNKNOWN, form_of
from .table_places import tables_expected


class StatementFacts(NamedTuple):
    """`opens`: the statement may open a transaction where autocommit is off, and may use up SET TRANSACTION,
    as any does that touches a table. A statement without tables does so if code that it runs touches one;
    `opens_itself`: it does so whatever code that it runs does.
    `keeps_warnings`: on MariaDB SHOW WARNINGS shows the warnings from before, if the statement gives none.
    `touches`: what it does to tables, if it gives no rows: "W" for a write, "RW" for one with a query.
    `commits`: a server commits an open transaction before it. `assigns`: user variables that a server
    may assign when it prepares the statement.
    """

    form: StatementForm = UNKNOWN
    opens: bool = True
    opens_itself: bool = True
    keeps_warnings: bool = False
    touches: str = ""
    commits: bool = False
    assigns: tuple[str, ...] = ()

    @property
    def prepare_keeps_warnings(self) -> bool:
        """`keeps_warnings` for preparing the statement, which does not run the code that it calls."""
        return self.keeps_warnings or self.form.runs is Runs.ANYTHING


UNREAD: Final = StatementFacts()
"""The facts of a statement that the rewriter has not read."""

_NAMING: Final = frozenset({"FROM", "INTO", "TABLE", "OUTFILE", "DUMPFILE"})
_DUAL: Final = "DUAL"
"""The table that is none."""


def facts_of(source: Source, *, flavour: Flavour, prepared: Source | None = None) -> StatementFacts:
    """The facts of a statement that has tokens.

    Args:
        source: The statement.
        flavour: The kind of its server.
        prepared: The text behind PREPARE or EXECUTE IMMEDIATE, where it is written out. A text that is not
            known is taken for one without tables.
    """
    form = form_of(source)
    if form.words == "SET STATEMENT":
        at = behind_set_statement(source)
        inner = facts_of(tail(source, at), flavour=flavour) if at < len(source.tokens) else UNREAD
        return inner._replace(form=form)
    if form.words == "PREPARE":
        return _of_prepare(form, prepared)
    named = {token.text for token in source.tokens if token.kind == WORD and token.text in _NAMING}
    opens = _opens(form, source, flavour=flavour)
    names_tables = form.opens is Opens.ALWAYS or may_name_tables(source, flavour=flavour)
    temporary = State.TABLE in form.leaves or State.TABLE in form.ends
    return StatementFacts(
        form,
        opens,
        opens and names_tables and not temporary and form.runs is not Runs.ANYTHING,
        _keeps_warnings(form, source, named, flavour=flavour),
        _touched(form, source),
        commits_before(form, prepared, flavour=flavour),
        assigned_in_conditions(source),
    )


def commits_before(form: StatementForm, prepared: Source | None = None, *, flavour: Flavour) -> bool:
    """Whether a server commits an open transaction before a statement with this row."""
    if form.words == "EXECUTE IMMEDIATE" and prepared is not None:
        return form_of(prepared).commits_before(flavour)
    return form.commits_before(flavour)


def _of_prepare(form: StatementForm, text: Source | None) -> StatementFacts:
    """PREPARE opens the tables of its text, and on MariaDB clears the warnings if the text reads rows."""
    if text is None:
        return StatementFacts(form, opens=False, opens_itself=False, keeps_warnings=True)
    kind = form_of(text).kind
    reads = kind is Kind.CHANGE or any(text.is_word(at, "FROM") for at in range(len(text.tokens)))
    clears = reads or kind is Kind.SHOW
    opens = reads or kind is Kind.CALL
    return StatementFacts(form, opens=opens, opens_itself=False, keeps_warnings=not clears)


def may_touch_tables(source: Source, *, flavour: Flavour) -> bool:
    """Whether the statement names a table or a sequence, or runs code of its own that may touch one."""
    return may_name_tables(source, flavour=flavour) or bool(foreign_calls(source, flavour=flavour))


def may_name_tables(source: Source, *, flavour: Flavour) -> bool:
    """Whether the statement names a table or a sequence, as far as its tokens tell."""
    places = (source.at(at) for at in tables_expected(source))
    if any(token.kind != WORD or token.text != _DUAL for token in places):
        return True
    return flavour.sequences and bool(sequences(source))


def _opens(form: StatementForm, source: Source, *, flavour: Flavour) -> bool:
    if form.commits_before(flavour):  # which uses up what is set for the next transaction
        return True
    match form.opens:
        case Opens.ALWAYS:
            return True
        case Opens.NEVER:
            return False
        case Opens.TABLES:
            return may_touch_tables(source, flavour=flavour)
        case Opens.DICTIONARY:
            return not flavour.looks_open_nothing


def _keeps_warnings(form: StatementForm, source: Source, named: set[str], *, flavour: Flavour) -> bool:
    match form.keeps_warnings:
        case Keeps.NO:
            return False
        case Keeps.YES:
            return True
        case Keeps.TABLELESS:
            return not (_derives(source) or may_name_tables(source, flavour=flavour))
        case Keeps.EXPLAIN:
            explained = form_of(source, behind_explain(source, 0).at)
            return explained is FORMS["SELECT"] and "FROM" not in named
        case Keeps.ALONE:
            return source.is_word(len(source.tokens) - 1, "TABLE", "TABLES")


def _derives(source: Source) -> bool:
    """Whether a derived table may be in the statement."""
    return any(source.is_op(at, "(") and source.is_word(at - 1, "FROM") for at in range(len(source.tokens)))


def _touched(form: StatementForm, source: Source) -> str:
    if not form.writes_rows:
        return ""
    return "RW" if any(source.is_word(at, "SELECT") for at in range(len(source.tokens))) else "W"
