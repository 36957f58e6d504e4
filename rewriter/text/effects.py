"""What a statement leaves behind on the connection that ran it, besides its rows: read off its words.

The executor asks for it while the connection is still the session's, so that it can be told, and put on
another connection, later. Only statements that are not for shards can have such effects.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from config.flavour import Flavour

from .found_rows import Found, found_rows_of
from .natives import foreign_calls
from .prefixes import behind_set_statement, tail
from .tokens import STRING, VARIABLE, WORD, Source

Pin = tuple[str, str | int]
"""What keeps a session on its connection: a kind ("lock", "table", "prepare", "handler", "tables", "flush",
"xa") and a name, or the index of the literal that holds it. The name "" is unknown: it stays until the
session ends."""


class Effects(NamedTuple):
    """`pins` and `unpins`: what begins and ends to keep the session on the connection; an unpin without a
    name ends all of its kind. `variables`: user variables that it may assign. `routine`: it may assign any.
    `found_rows`: how FOUND_ROWS() is known (see found_rows.py). `insert_id`: "compare": the reply's insert id
    is the server's own, unless it is the value of one of the literals; "ask": only the server knows.
    `database`: the one that is dropped, or "*" when one's defaults change: connections choose theirs anew.
    `transaction` is set by the executor: the statement is the one that SET TRANSACTION was meant for.
    `defines`: it changes which triggers, functions, procedures or views there are. `locks`: it takes, ends or
    asks for locks of GET_LOCK, which all must be on one host. `keeps_row_count`: ROW_COUNT() stays. `tables`:
    it defines tables that the schema's databases may have. `calls`: functions that are none of the servers'
    own, by their last names in lower case. `reads`: the server may tell of a change in its next reply only.
    `changed` is set by the executor: the server has told of one.
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


_VERBS: Final = """
    ALTER ANALYZE BACKUP BINLOG CACHE CHANGE CHECK CHECKSUM CLONE COMMIT CREATE DEALLOCATE DELETE DESC
    DESCRIBE DO DROP EXPLAIN FLUSH GET GRANT HANDLER HELP IMPORT INSERT INSTALL KILL LOAD LOCK OPTIMIZE
    PREPARE PURGE RELEASE RENAME REPAIR REPLACE RESET RESIGNAL RESTART REVOKE ROLLBACK SAVEPOINT SELECT SET
    SHOW SHUTDOWN SIGNAL START STOP TABLE TRUNCATE UNINSTALL UNLOCK UPDATE USE VALUES WITH XA
"""
_PLAIN_VERBS: Final = frozenset(_VERBS.split())
"""What begins a statement that runs no procedure, prepared text or compound statement by itself."""
_NONE: Final = Effects()
_PLAIN_VALUES: Final = frozenset({"NULL", "DEFAULT", "TRUE", "FALSE"})
_READING: Final = frozenset(
    {"SELECT", "WITH", "TABLE", "VALUES", "SHOW", "CHECKSUM", "HANDLER", "EXPLAIN", ""}
)
_LOCKING: Final = frozenset({"GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "IS_FREE_LOCK", "IS_USED_LOCK"})


def effects_of(source: Source, *, flavour: Flavour) -> Effects | None:
    """The effects of a statement; None for none, as nearly all have."""
    verb = source.at(0).text if source.at(0).kind == WORD else ""
    if verb == "SET" and source.is_word(1, "STATEMENT"):
        at = behind_set_statement(source)
        return effects_of(tail(source, at), flavour=flavour) if at < len(source.tokens) else None
    if verb in ("CREATE", "ALTER", "DROP", "RENAME") and not _makes_of_rows(source):
        found = _definition(source, verb, found_rows_of(source, verb, flavour=flavour))
    else:
        pins, unpins = _pins(source, verb)
        found = Effects(
            pins,
            unpins,
            _assigned(source, verb),
            _runs_routine(source, verb),
            found_rows_of(source, verb, flavour=flavour),
            _insert_id(source, verb),
            keeps_row_count=verb == "GET",
            locks=any(_calls(source, at, _LOCKING) for at in range(len(source.tokens))),
            calls=_called(source, flavour=flavour),
        )
    return found if found != _NONE else None


def _called(source: Source, *, flavour: Flavour) -> tuple[str, ...]:
    places = foreign_calls(source, flavour=flavour)
    return tuple(dict.fromkeys(source.at(at).name.lower() for at in places))


def may_read_views(source: Source) -> bool:
    """Whether the statement gives rows of what may be a view."""
    verb = source.at(0).text if source.at(0).kind == WORD else ""
    return verb in _READING and any(source.is_word(at, "FROM", "TABLE") for at in range(len(source.tokens)))


def _runs_routine(source: Source, verb: str) -> bool:
    """Whether the statement may run anything: CALL, EXECUTE, and MariaDB's compound statements, with a label
    or without.
    """
    if source.is_op(1, ":"):
        return True
    if verb == "BEGIN":
        return source.is_word(1, "NOT")
    return bool(verb) and verb not in _PLAIN_VERBS


def _calls(source: Source, at: int, functions: frozenset[str]) -> bool:
    token = source.tokens[at]
    return token.kind == WORD and token.text in functions and source.is_op(at + 1, "(")


def _makes_of_rows(source: Source) -> bool:
    """Whether the statement is CREATE TABLE … SELECT, of a table that stays."""
    at = 3 if source.is_word(1, "OR") else 1
    if not source.is_word(0, "CREATE") or not source.is_word(at, "TABLE"):
        return False
    return any(source.is_word(one, "SELECT", "VALUES") for one in range(at, len(source.tokens)))


def _definition(source: Source, verb: str, counted: Found) -> Effects:
    """CREATE, ALTER, DROP and RENAME: temporary tables, databases, routines, whose bodies are not looked
    into.
    """
    if source.is_word(1, "DATABASE", "SCHEMA") and verb != "CREATE":
        at = 4 if source.is_word(2, "IF") else 2
        return Effects(database=source.at(at).name if verb == "DROP" else "*")
    if defines_routine(source) or _renames(source, verb) or _of_view(source):
        return Effects(defines=True)
    if source.is_word(1, "TEMPORARY"):
        at = 2
        while source.is_word(at, "TABLE", "TABLES", "IF", "NOT", "EXISTS", "SEQUENCE"):
            at += 1
        if verb == "CREATE":
            return Effects(pins=(("table", _last_name(source, at)),), found_rows=counted)
        return Effects(unpins=_tables(source, at))
    if verb == "DROP" and source.is_word(1, "TABLE", "TABLES"):
        at = 4 if source.is_word(2, "IF") else 2
        return Effects(unpins=_tables(source, at))
    if verb == "DROP" and source.is_word(1, "PREPARE"):
        return Effects(unpins=(("prepare", source.at(2).name.lower()),))
    if verb == "CREATE" and source.is_word(1, "OR") and source.is_word(3, "TEMPORARY"):
        return Effects(pins=(("table", _last_name(source, 5)),), found_rows=counted)
    return Effects(found_rows=counted)


def defines_routine(source: Source) -> bool:
    """Whether the statement has a body that runs another time, with the values of that time. LOAD assigns
    its user variables by itself.
    """
    if not source.is_word(0, "CREATE", "ALTER", "DROP"):
        return source.is_word(0, "BEGIN", "LOAD")
    at = 1
    while at < len(source.tokens) and not source.is_word(at, "TABLE", "VIEW", "DATABASE", "INDEX", "USER"):
        if source.is_word(at, "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"):
            return True
        at += 1
    return False


def _renames(source: Source, verb: str) -> bool:
    """Whether a table, and so what has triggers, gets another name."""
    words = range(1, len(source.tokens)) if verb == "ALTER" else ()
    return verb == "RENAME" or any(source.is_word(at, "RENAME") for at in words)


def _of_view(source: Source) -> bool:
    at = 1
    while at < len(source.tokens) and not source.is_word(at, "TABLE", "TABLES", "VIEW"):
        at += 1
    return source.is_word(at, "VIEW")


def _last_name(source: Source, at: int) -> str:
    """`database.name` or `name` at a place, without the database."""
    while source.is_name(at) and source.is_op(at + 1, "."):
        at += 2
    return source.at(at).name


def _tables(source: Source, at: int) -> tuple[Pin, ...]:
    """The tables that DROP names, each as often as it may have been made."""
    found: list[Pin] = []
    while source.is_name(at):
        found.append(("table", _last_name(source, at)))
        while at < len(source.tokens) and not source.is_op(at, ","):
            at += 1
        at += 1
    return tuple(found)


def _pins(source: Source, verb: str) -> tuple[tuple[Pin, ...], tuple[Pin, ...]]:
    second = source.at(1).text
    name = source.at(1).name.lower()
    if verb == "LOCK":
        return (("tables", ""),), ()
    if verb == "FLUSH" and any(token.text in ("LOCK", "EXPORT") for token in source.tokens):
        return (("flush", ""),), ()
    if verb == "UNLOCK":
        return (), (("tables", ""), ("flush", ""))
    if verb == "PREPARE":
        return (("prepare", name),), ()
    if verb == "DEALLOCATE":
        return (), (("prepare", source.at(2).name.lower()),)
    if verb == "HANDLER":
        if any(token.text == "OPEN" for token in source.tokens):
            return (("handler", ""),), ()
        return (), ()
    if verb == "XA" and second in ("START", "BEGIN"):
        return (("xa", ""),), ()
    if verb == "XA" and second in ("COMMIT", "ROLLBACK"):
        return (), (("xa", ""),)
    return _locks(source)


def _locks(source: Source) -> tuple[tuple[Pin, ...], tuple[Pin, ...]]:
    """GET_LOCK and its counterparts. A lock whose name is not written out stays to the session's end."""
    pins: list[Pin] = []
    unpins: list[Pin] = []
    tables = any(token.kind == WORD and token.text == "FROM" for token in source.tokens)
    for at, token in enumerate(source.tokens):
        if token.kind != WORD or not source.is_op(at + 1, "("):
            continue
        if token.text == "GET_LOCK":
            argument = source.at(at + 2)
            written = argument.kind == STRING and source.is_op(at + 3, ",") and not tables
            pins.append(("lock", argument.literal if written and argument.literal >= 0 else ""))
        elif token.text == "RELEASE_LOCK":
            argument = source.at(at + 2)
            if argument.kind == STRING and source.is_op(at + 3, ")") and argument.literal >= 0 and not tables:
                unpins.append(("lock", argument.literal))
        elif token.text == "RELEASE_ALL_LOCKS":
            unpins.append(("lock", ""))
    return tuple(pins), tuple(unpins)


def _assigned(source: Source, verb: str) -> tuple[str, ...]:
    """The user variables that a statement may assign."""
    found: dict[str, None] = {}
    everything = verb in ("LOAD", "GET", "CALL")
    into = False
    for at, token in enumerate(source.tokens):
        if token.kind != VARIABLE or not token.text:
            into = (into and token.text == ",") or (token.kind == WORD and token.text == "INTO")
            continue
        if everything or into or source.is_op(at + 1, ":="):
            found[token.text] = None
    return tuple(found)


def assigns_insert_id(source: Source, first: int = 0, end: int | None = None) -> bool:
    """Whether LAST_INSERT_ID(value) stands in a statement, or from one of its tokens to before another."""
    return any(
        source.is_word(at, "LAST_INSERT_ID") and source.is_op(at + 1, "(") and not source.is_op(at + 2, ")")
        for at in range(first, len(source.tokens) if end is None else end)
    )


def _insert_id(source: Source, verb: str) -> str:
    """How to know whether the reply's insert id is LAST_INSERT_ID()'s."""
    if assigns_insert_id(source):
        return "ask"
    if verb == "WITH":
        words = [
            at for at, token in enumerate(source.tokens) if token.kind == WORD and token.text == "INSERT"
        ]
        return "ask" if any(not source.is_op(at + 1, "(") for at in words) else ""
    if verb in ("LOAD", "CALL", "EXECUTE"):
        return "ask"
    if verb not in ("INSERT", "REPLACE"):
        return ""
    at = next((at for at in range(len(source.tokens)) if source.is_word(at, "VALUES", "VALUE")), -1)
    if at < 0:
        return "ask"
    for token in source.tokens[at + 1 :]:
        plain = token.literal >= 0 or token.text in _PLAIN_VALUES or token.text in ("(", ")", ",")
        if not plain:
            return "ask"
    return "compare"
