"""Which databases a statement reaches that is not read clause by clause: judged by its tokens, and rather too
many than too few, since a user's list of databases hangs on it.

A qualifier (`x` in `x.y`) is a database's name where a table's name is expected, in `x.y.z`, and before a
function's parenthesis. Elsewhere it is a table's or an alias, in queries and changes of rows. Other
statements have too many forms for that: there it is a database's, but for the rows NEW and OLD of a trigger.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rewriter.route.scope import INFORMATION_SCHEMA
from rewriter.sql.statements.forms import Objects
from rewriter.sql.statements.table import form_of
from rewriter.sql.statements.table_places import is_of_rows, tables_expected
from rewriter.text.tokens import Source

from .tables_read import tables_read

_TELLING: Final = frozenset(
    {
        "FILES",
        "TABLESPACES",
        "TABLESPACES_EXTENSIONS",
    }
    | {"USER_ATTRIBUTES", "USER_STATISTICS", "CLIENT_STATISTICS", "INDEX_STATISTICS"}
    | {"TABLE_STATISTICS", "USER_VARIABLES", "OPTIMIZER_TRACE", "PROFILING", "APPLICABLE_ROLES"}
    | {"ADMINISTRABLE_ROLE_AUTHORIZATIONS", "ROLE_TABLE_GRANTS", "ROLE_COLUMN_GRANTS", "ROLE_ROUTINE_GRANTS"}
)
_FOR_ALL: Final = frozenset(
    {"SCHEMATA", "SCHEMATA_EXTENSIONS", "TABLES", "TABLES_EXTENSIONS", "COLUMNS", "COLUMNS_EXTENSIONS"}
    | {"COLUMN_STATISTICS", "STATISTICS", "PARTITIONS", "KEY_COLUMN_USAGE", "TABLE_CONSTRAINTS"}
    | {"TABLE_CONSTRAINTS_EXTENSIONS", "REFERENTIAL_CONSTRAINTS", "CHECK_CONSTRAINTS", "ST_GEOMETRY_COLUMNS"}
    | {
        "GEOMETRY_COLUMNS",
        "PROCESSLIST",
        "VIEWS",
        "VIEW_TABLE_USAGE",
        "VIEW_ROUTINE_USAGE",
        "TRIGGERS",
        "EVENTS",
    }
    | {"ROUTINES", "PARAMETERS", "LIBRARIES", "ROUTINE_LIBRARIES", "JSON_DUALITY_VIEWS"}
    | {"JSON_DUALITY_VIEW_COLUMNS", "JSON_DUALITY_VIEW_LINKS", "JSON_DUALITY_VIEW_TABLES", "CHARACTER_SETS"}
    | {"COLLATIONS", "COLLATION_CHARACTER_SET_APPLICABILITY", "ENGINES", "PLUGINS", "ALL_PLUGINS", "KEYWORDS"}
    | {"SQL_FUNCTIONS", "SYSTEM_VARIABLES", "GLOBAL_VARIABLES", "SESSION_VARIABLES", "GLOBAL_STATUS"}
    | {
        "SESSION_STATUS",
        "SPATIAL_REF_SYS",
        "ST_SPATIAL_REFERENCE_SYSTEMS",
        "ST_UNITS_OF_MEASURE",
        "KEY_CACHES",
    }
    | {"ENABLED_ROLES", "LOCALES", "PERIODS", "KEY_PERIOD_USAGE"}
    | {"USER_PRIVILEGES", "SCHEMA_PRIVILEGES", "TABLE_PRIVILEGES", "COLUMN_PRIVILEGES"}
)


def tells_of_others(view: str) -> bool:
    """Whether a view of information_schema shows what belongs to any database or user, or what another
    session did on the same connection. The views that show the databases themselves are the proxy's own.
    """
    return view.upper().startswith(("INNODB_", "THREAD_POOL_", "WSREP_")) or view.upper() in _TELLING


def is_view_for_all(view: str) -> bool:
    """Whether a view of information_schema is known to tell nobody more than he may see."""
    return view.upper() in _FOR_ALL


def reached(source: Source) -> tuple[str, ...]:
    """The databases that the statement names, or may name; information_schema only for the views that tell of
    others. Names are as written.
    """
    found: dict[str, None] = dict.fromkeys(_shown(source))
    by_rows, places = is_of_rows(source), tables_expected(source)
    trigger = form_of(source).objects is Objects.TRIGGER
    clauses = tables_read(source)
    found |= dict.fromkeys(clauses.databases)
    for at, token in enumerate(source.tokens):
        if not source.is_name(at) or not source.is_op(at + 1, ".") or source.is_op(at - 1, "."):
            continue
        qualified = at in places and source.is_name(at + 2)
        whole = source.is_op(at + 3, ".", "(") and source.is_name(at + 2)
        excused = by_rows or (trigger and source.is_word(at, "NEW", "OLD"))
        outside = clauses.misses(at) or not (excused or clauses.covers(at))
        if not (qualified or whole or outside):
            continue
        if token.name.lower() != INFORMATION_SCHEMA or not is_view_for_all(source.at(at + 2).name):
            found[token.name] = None
    return tuple(found)


def shown_at(source: Source) -> int:
    """Where SHOW says what it shows."""
    at = 1
    while source.is_word(at, "FULL", "EXTENDED"):
        at += 1
    return at


def _shown(source: Source) -> Iterator[str]:
    """Databases that SHOW names behind FROM or IN, or behind CREATE DATABASE."""
    if not source.is_word(0, "SHOW"):
        return
    at = shown_at(source)
    of_table = source.is_word(at, "COLUMNS", "FIELDS", "INDEX", "INDEXES", "KEYS")
    if source.is_word(1, "CREATE") and source.is_word(2, "DATABASE", "SCHEMA"):
        at = 3
        while source.is_word(at, "IF", "NOT", "EXISTS"):
            at += 1
        yield source.at(at).name
        return
    while at < len(source.tokens):
        if source.is_word(at, "FROM", "IN") and source.is_name(at + 1) and not source.is_op(at + 2, "."):
            if not of_table and source.at(at + 1).name.lower() != INFORMATION_SCHEMA:
                yield source.at(at + 1).name
            of_table = False
        elif source.is_word(at, "FROM", "IN"):
            if source.is_name(at + 1) and not source.is_op(at + 3, "(") and source.is_name(at + 3):
                yield source.at(at + 1).name
            of_table = False
        at += 1


def functions(source: Source) -> tuple[str, ...]:
    """The databases of the stored functions that are called by their whole names (`x.y(`)."""
    return tuple(
        dict.fromkeys(
            token.name
            for at, token in enumerate(source.tokens)
            if source.is_op(at + 1, ".") and source.is_name(at) and not source.is_op(at - 1, ".")
            if source.is_name(at + 2) and source.is_op(at + 3, "(")
        )
    )


def qualifiers(source: Source) -> tuple[str, ...]:
    """All names in front of a point: the databases of a statement that nests too deep to be read."""
    return tuple(
        dict.fromkeys(
            token.name
            for at, token in enumerate(source.tokens)
            if source.is_name(at) and source.is_op(at + 1, ".") and not source.is_op(at - 1, ".")
        )
    )


def reads_files(source: Source) -> bool:
    """Whether LOAD_FILE() is called: it reads a file of the server's."""
    return any(
        source.is_name(at) and token.name.upper() == "LOAD_FILE" and source.is_op(at + 1, "(")
        for at, token in enumerate(source.tokens)
    )
