"""State that a statement leaves on the connection that runs it, besides its rows: read off its tokens.

The executor reads the state back while the connection still belongs to the session, and puts it on another
connection later. A plan says which kinds of state its way of running reads back (`Plan.captures`);
`rewriter/connection_state.py` refuses a statement that would leave more.
"""

from __future__ import annotations

from enum import Flag, auto
from typing import Final, NamedTuple

from config.flavour import Flavour
from rewriter.text.tokens import STRING, VARIABLE, WORD, Source

from .forms import FoundRows, Kind, Objects, Runs, State, StatementForm
from .found_rows import Found, found_rows_of
from .functions import foreign_calls
from .inner import behind_set_statement, tail
from .table import form_of, name_of, recognize

ASSIGNED: Final = "assigned"
"""Effects.insert_id of a statement that has LAST_INSERT_ID(value) in it: only the server knows whether it has
evaluated that."""

ROWS: Final = "rows"
"""Effects.insert_id of an INSERT of several rows: as "compare", but if it fails behind the first row, only
the server knows whether it has made a number for that."""

Pin = tuple[str, str | int]
"""What keeps a session on its connection: a kind ("lock", "table", "prepare", "handler", "tables", "flush",
"xa") and a name, or the index of the literal that holds it. The name "" is unknown: it stays until the
session ends."""


class ConnectionState(Flag):
    """Kinds of state that a statement may leave on a connection, where the next session would find it."""

    NONE = 0
    VARIABLES = auto()
    """User variables that the statement assigns."""
    LOCKS = auto()
    """Named locks: the statement calls GET_LOCK or one of its counterparts."""
    PINS = auto()
    """Temporary tables, table locks, handlers, SQL-level prepared statements, XA."""
    ALL = VARIABLES | LOCKS | PINS


class Effects(NamedTuple):
    """`pins` and `unpins`: what begins and ends to keep the session on the connection; an unpin without a
    name ends all of its kind. `variables`: user variables that it may assign. `routine`: it may assign any.
    `found_rows`: how FOUND_ROWS() is known (see found_rows.py). `insert_id`: "compare", as with ROWS: the
    reply's insert id is the server's own, unless it is the value of one of the literals; "ask", as with
    ASSIGNED: only the server knows; "given": the client gave it, so LAST_INSERT_ID() stays.
    `database`: the one that is dropped, or "*" when one's defaults change: connections choose theirs anew.
    `transaction` is set by the executor: the statement is the one that SET TRANSACTION was meant for.
    `defines`: it changes which triggers, functions, procedures or views there are. `locks`: it takes, ends or
    asks for locks of GET_LOCK, which all must be on one host. `keeps_row_count`: ROW_COUNT() stays. `tables`:
    it defines tables that the schema's databases may have. `calls`: functions that are none of the servers'
    own, by their last names in lower case. `reads`: the server may tell of a change in its next reply only.
    `changed` is set by the executor: the server has told of one. `procedure`: the one that CALL names, by its
    last name as written. `executes`: it runs a prepared text, which may hold anything. `uses`: what the
    session has opened under a name of its own and the statement means; one of its connections holds it.
    """

    pins: tuple[Pin, ...] = ()
    unpins: tuple[Pin, ...] = ()
    variables: tuple[str, ...] = ()
    routine: bool = False
    found_rows: Found = ""
    insert_id: str = ""
    transaction: bool = False
    database: str = ""
    defines: bool = False
    locks: bool = False
    keeps_row_count: bool = False
    tables: bool = False
    calls: tuple[str, ...] = ()
    reads: bool = False
    changed: bool = False
    procedure: str = ""
    executes: bool = False
    uses: Pin | None = None

    @property
    def state(self) -> ConnectionState:
        """The kinds of state that another session must not find on the connection."""
        found = ConnectionState.NONE
        if self.variables:
            found |= ConnectionState.VARIABLES
        if self.locks:
            found |= ConnectionState.LOCKS
        if any(kind != "lock" for kind, _ in self.pins):
            found |= ConnectionState.PINS
        return found

    def of_one_shard(self) -> Effects | None:
        """The effects that are read back behind a write on one shard. The OK packet tells the rest."""
        found = Effects(variables=self.variables, insert_id=ASSIGNED if self.insert_id == ASSIGNED else "")
        return found if found != _NONE else None

    def of_insert(self, *, composed: bool) -> Effects:
        """The same for an INSERT. `composed`: a server knows LAST_INSERT_ID() as a local ID only, which the
        OK packet tells, too.
        """
        if composed and self.insert_id in (ASSIGNED, ROWS):
            return self._replace(insert_id="" if self.insert_id == ASSIGNED else "compare")
        return self

    def of_rows(self) -> Effects:
        """The effects of an INSERT with several rows in the place of one."""
        return self._replace(insert_id=ROWS) if self.insert_id == "compare" else self

    @property
    def compares_insert_id(self) -> bool:
        """Whether the literals tell if the insert id of the reply is the server's own."""
        return self.insert_id in ("compare", ROWS)

    @property
    def only_compares_insert_id(self) -> bool:
        """Whether it is an INSERT of one row that leaves nothing else."""
        return self == _INSERT

    @property
    def may_ask_insert_id(self) -> bool:
        """Whether the server may have to be asked for LAST_INSERT_ID(), if only behind an error."""
        return self.asks_insert_id or self.insert_id == ROWS

    @property
    def asks_insert_id(self) -> bool:
        """Whether only the server knows LAST_INSERT_ID() behind the statement, failed or not."""
        return self.insert_id in ("ask", ASSIGNED)


_NONE: Final = Effects()
_INSERT: Final = Effects(insert_id="compare")
_PLAIN_VALUES: Final = frozenset({"NULL", "DEFAULT", "FALSE"})
LOCKING: Final = frozenset({"GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "IS_FREE_LOCK", "IS_USED_LOCK"})
"""The functions of named locks."""


def effects_of(source: Source, *, flavour: Flavour) -> Effects | None:
    """The effects of a statement; None for none, as nearly all have."""
    form = form_of(source)
    if form.words == "SET STATEMENT":
        at = behind_set_statement(source)
        return effects_of(tail(source, at), flavour=flavour) if at < len(source.tokens) else None
    if form.defines and not _makes_of_rows(source, form):
        found = _definition(source, form, found_rows_of(source, form, flavour=flavour))
    else:
        pins, unpins = _pins(source, form)
        anything = form.runs is Runs.ANYTHING
        found = Effects(
            pins,
            unpins,
            _assigned(source, form),
            anything,
            found_rows_of(source, form, flavour=flavour),
            _insert_id(source, form),
            keeps_row_count=form.keeps_row_count,
            locks=any(_calls(source, at, LOCKING) for at in range(len(source.tokens))),
            calls=_called(source, flavour=flavour),
            procedure=_last_name(source, 1) if form.kind is Kind.CALL else "",
            executes=anything and any(source.is_word(at, "EXECUTE") for at in range(len(source.tokens))),
            uses=next(((state.value, _own_name(source, form)) for state in form.uses), None),
        )
    return found if found != _NONE else None


def _called(source: Source, *, flavour: Flavour) -> tuple[str, ...]:
    places = foreign_calls(source, flavour=flavour)
    return tuple(dict.fromkeys(source.at(at).name.lower() for at in places))


_READING: Final = frozenset({Kind.QUERY, Kind.SHOW, Kind.HANDLER, Kind.EXPLAIN, Kind.MAINTENANCE})


def may_read_views(source: Source) -> bool:
    """Whether the statement gives rows of what may be a view."""
    reads = form_of(source).kind in _READING
    return reads and any(source.is_word(at, "FROM", "TABLE") for at in range(len(source.tokens)))


def runs_anything(source: Source, first: int = 0) -> bool:
    """Whether the statement at `first` may run any other, as CALL, EXECUTE and MariaDB's compound statements
    do. So may a statement that is not known.
    """
    return form_of(source, first).runs is Runs.ANYTHING


def _calls(source: Source, at: int, functions: frozenset[str]) -> bool:
    token = source.tokens[at]
    return token.kind == WORD and token.text in functions and source.is_op(at + 1, "(")


def _makes_of_rows(source: Source, form: StatementForm) -> bool:
    """Whether the statement is CREATE TABLE … SELECT, of a table that stays."""
    selects = (source.is_word(at, "SELECT", "VALUES") for at in range(1, len(source.tokens)))
    return form.words == "CREATE TABLE" and any(selects)


def _definition(source: Source, form: StatementForm, counted: Found) -> Effects:
    """Effects of a definition. Bodies of routines are not looked into."""
    at = name_of(source, recognize(source))
    if form.objects is Objects.DATABASE:
        if form.verb == "CREATE":
            return Effects(database=source.at(at).name if source.is_word(1, "OR") else "")
        return Effects(database=source.at(at).name if form.verb == "DROP" else "*")
    if form.objects.has_code or _renames(source, form):
        return Effects(defines=True)
    pins = tuple((state.value, _qualified(source, at)) for state in form.leaves)
    unpins = _tables(source, at) if form.ends else ()
    return Effects(pins, unpins, _assigned(source, form), found_rows=counted)


def defines_routine(source: Source) -> bool:
    """Whether the statement has a body that runs another time, with the values of that time. LOAD assigns
    its user variables by itself.
    """
    form = form_of(source)
    return (form.objects.is_routine and form.defines) or form.kind in (Kind.COMPOUND, Kind.LOAD)


def _renames(source: Source, form: StatementForm) -> bool:
    """Whether a table, and so what has triggers, gets another name."""
    alters = form.words == "ALTER TABLE"
    return form.verb == "RENAME" or (
        alters and any(source.is_word(at, "RENAME") for at in range(1, len(source.tokens)))
    )


def _last_name(source: Source, at: int) -> str:
    """`database.name` or `name` at a place, without the database."""
    while source.is_name(at) and source.is_op(at + 1, "."):
        at += 2
    return source.at(at).name


def _qualified(source: Source, at: int) -> str:
    """`database.name` or `name` at a place, with a NUL byte in place of the dot, which names may have."""
    parts = [source.at(at).name]
    while source.is_name(at) and source.is_op(at + 1, "."):
        at += 2
        parts.append(source.at(at).name)
    return "\0".join(parts)


def _tables(source: Source, at: int) -> tuple[Pin, ...]:
    """The tables that DROP names, each as often as it may have been made."""
    found: list[Pin] = []
    while source.is_name(at):
        found.append(("table", _qualified(source, at)))
        while at < len(source.tokens) and not source.is_op(at, ","):
            at += 1
        at += 1
    return tuple(found)


def _pins(source: Source, form: StatementForm) -> tuple[tuple[Pin, ...], tuple[Pin, ...]]:
    """The connection state that the statement leaves and ends. State has a name if the statement names it."""
    if not (form.leaves or form.ends):
        return _locks(source, form)
    name = _own_name(source, form)
    pins, unpins = ([(state.value, name) for state in states] for states in (form.leaves, form.ends))
    return tuple(pins), tuple(unpins)


def _own_name(source: Source, form: StatementForm) -> str:
    """The name of a prepared statement or a handler in a statement about these; "" for any other statement.
    Servers compare these names without regard to case.
    """
    if form.objects is Objects.PREPARED:
        return source.at(recognize(source).end).name.lower()
    if form.kind is not Kind.HANDLER:
        return ""
    table = 3 if source.is_op(2, ".") else 1
    alias = table + 3 if source.is_word(table + 2, "AS") else table + 2
    opens = State.HANDLER in form.leaves
    return source.at(alias if opens and source.is_name(alias) else table).name.lower()


def _locks(source: Source, form: StatementForm) -> tuple[tuple[Pin, ...], tuple[Pin, ...]]:
    """GET_LOCK and its counterparts. A lock whose name is not written out stays to the session's end, as one
    that may be taken several times. A call that a server may leave out releases nothing here.
    """
    pins: list[Pin] = []
    unpins: list[Pin] = []
    changes = form.kind is Kind.CHANGE
    reads = any(source.is_word(at, "FROM") for at in range(len(source.tokens)))
    by_row = reads or (changes and form.found_rows is not FoundRows.INSERT)
    certain = not (reads or changes) and not any(
        source.is_word(at, "WHERE", "HAVING", "LIMIT") for at in range(len(source.tokens))
    )
    for at, token in enumerate(source.tokens):
        if token.kind != WORD or not source.is_op(at + 1, "("):
            continue
        argument = source.at(at + 2)
        written = argument.kind == STRING and argument.literal >= 0
        if token.text == "GET_LOCK":
            named = written and source.is_op(at + 3, ",") and not by_row
            pins.append(("lock", argument.literal if named else ""))
        elif token.text == "RELEASE_LOCK" and written and certain and _is_whole(source, form, at):
            unpins.append(("lock", argument.literal))
        elif token.text == "RELEASE_ALL_LOCKS" and certain and _is_whole(source, form, at):
            unpins.append(("lock", ""))
    return tuple(pins), tuple(unpins)


def _is_whole(source: Source, form: StatementForm, at: int) -> bool:
    """Whether the call at a place is a whole expression of a select list, of DO or of SET."""
    begins = at == 1 or source.is_op(at - 1, ",") or source.is_word(at - 1, "SELECT")
    if form.kind is Kind.SET:
        begins = source.is_op(at - 1, "=", ":=")
    end = source.closing[at + 1] + 1
    ends = end >= len(source.tokens) or source.is_op(end, ",", ";") or source.is_word(end, "AS", "UNION")
    return begins and ends and not any(opened < at < closed for opened, closed in source.closing.items())


def _assigned(source: Source, form: StatementForm) -> tuple[str, ...]:
    """The user variables that a statement may assign."""
    found: dict[str, None] = {}
    everything = form.kind in (Kind.LOAD, Kind.DIAGNOSTICS, Kind.CALL)
    into = False
    for at, token in enumerate(source.tokens):
        if token.kind != VARIABLE or not token.text:
            into = (into and token.text == ",") or (token.kind == WORD and token.text == "INTO")
            continue
        if everything or into or source.is_op(at + 1, ":="):
            found[token.text] = None
    return tuple(found)


def assigned_in_conditions(source: Source) -> tuple[str, ...]:
    """The user variables that expressions assign by `:=`, which servers do at PREPARE in a condition."""
    places = (at for at, token in enumerate(source.tokens) if token.kind == VARIABLE and token.text)
    return tuple(dict.fromkeys(source.at(at).text for at in places if source.is_op(at + 1, ":=")))


def assigns_insert_id(source: Source, first: int = 0, end: int | None = None) -> bool:
    """Whether LAST_INSERT_ID(value) stands in a statement, or from one of its tokens to before another."""
    return any(
        source.is_word(at, "LAST_INSERT_ID") and source.is_op(at + 1, "(") and not source.is_op(at + 2, ")")
        for at in range(first, len(source.tokens) if end is None else end)
    )


def _insert_id(source: Source, form: StatementForm) -> str:
    """How to know whether the reply's insert id is LAST_INSERT_ID()'s."""
    if assigns_insert_id(source):
        return ASSIGNED
    if form.words == "WITH":
        words = [
            at for at, token in enumerate(source.tokens) if token.kind == WORD and token.text == "INSERT"
        ]
        return "ask" if any(not source.is_op(at + 1, "(") for at in words) else ""
    if form.kind is Kind.LOAD or form.runs is Runs.ANYTHING:
        return "ask"
    if form.found_rows is not FoundRows.INSERT:
        return ""
    at = next((at for at in range(len(source.tokens)) if source.is_word(at, "VALUES", "VALUE")), -1)
    if at < 0:
        return "ask"
    rows = 0
    for place, token in enumerate(source.tokens[at + 1 :], at + 1):
        value = token.literal >= 0 or place in source.marks or token.text in _PLAIN_VALUES
        if not (value or token.text in ("(", ")", ",")):
            return "ask"
        rows += token.text == "("
    return "compare" if rows == 1 else ROWS
