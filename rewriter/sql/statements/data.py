"""Rows of the statement table: queries, changes of rows, and what reads or explains them."""

from __future__ import annotations

from typing import Any, Final

from .forms import Access, FoundRows, Inner, Keeps, Kind, Objects, Opens, Runs, Servers, Session, State
from .forms import StatementForm as Form

_QUERY: Final[dict[str, Any]] = {
    "kind": Kind.QUERY,
    "access": Access.READ,
    "objects": Objects.ROWS,
    "runs": Runs.FUNCTIONS,
    "session": Session.USER_VARIABLES,
    "opens": Opens.TABLES,
    "keeps_warnings": Keeps.TABLELESS,
    "found_rows": FoundRows.QUERY,
    "behind_set_statement": True,
    "repeatable": True,
    "filters": True,
}
_CHANGE: Final[dict[str, Any]] = {
    "kind": Kind.CHANGE,
    "access": Access.WRITE,
    "objects": Objects.ROWS,
    "runs": Runs.FUNCTIONS,
    "session": Session.USER_VARIABLES,
    "behind_set_statement": True,
    "writes_rows": True,
}
_EXPLAIN: Final[dict[str, Any]] = {
    "kind": Kind.EXPLAIN,
    "access": Access.READ,
    "objects": Objects.ROWS,
    "session": Session.USER_VARIABLES,
    "found_rows": FoundRows.EXPLAIN,
    "inner": Inner.BEHIND,
    "keeps_warnings": Keeps.EXPLAIN,
    "behind_set_statement": True,
    "repeatable": True,
}
_HANDLER: Final[dict[str, Any]] = {
    "kind": Kind.HANDLER,
    "access": Access.READ,
    "objects": Objects.TABLE,
    "opens": Opens.NEVER,
    "found_rows": FoundRows.KEEP,
    "runs": Runs.FUNCTIONS,
    "behind_set_statement": True,
}
_LOAD: Final[dict[str, Any]] = {
    "kind": Kind.LOAD,
    "objects": Objects.TABLE,
    "counter": "load",
    "runs": Runs.FUNCTIONS,
    "session": Session.USER_VARIABLES,
    "behind_set_statement": True,
    "writes_rows": True,
}

QUERIES: Final = (
    Form(words="SELECT", counter="select", **_QUERY),
    Form(words="WITH", counter="select", **_QUERY),
    Form(words="VALUES", counter="select", **_QUERY | {"found_rows": FoundRows.SELECTS, "filters": False}),
    Form(
        words="TABLE",
        counter="select",
        servers=Servers.MYSQL,
        **_QUERY
        | {"opens": Opens.ALWAYS, "keeps_warnings": Keeps.NO, "found_rows": FoundRows.ROWS, "filters": False},
    ),
    Form(words="(", counter="select", named="SELECT", **_QUERY),
)
"""A query that begins with a parenthesis has the row `(`."""

CHANGES: Final = (
    Form(words="INSERT", counter="insert", found_rows=FoundRows.INSERT, **_CHANGE),
    Form(words="REPLACE", counter="replace", found_rows=FoundRows.INSERT, **_CHANGE),
    Form(words="UPDATE", counter="update", found_rows=FoundRows.UPDATE, filters=True, **_CHANGE),
    Form(words="DELETE", counter="delete", found_rows=FoundRows.DELETE, filters=True, **_CHANGE),
)

OTHERS: Final = (
    Form(words="LOAD DATA", access=Access.ADMIN, **_LOAD),
    Form(words="LOAD DATA LOCAL", access=Access.WRITE, **_LOAD),
    Form(words="LOAD XML", access=Access.ADMIN, **_LOAD),
    Form(words="LOAD XML LOCAL", access=Access.WRITE, **_LOAD),
    Form(
        words="CALL",
        kind=Kind.CALL,
        access=Access.WRITE,
        objects=Objects.PROCEDURE,
        counter="call_procedure",
        runs=Runs.ANYTHING,
        session=Session.ANYTHING,
        found_rows=FoundRows.PRIMED,
        behind_set_statement=True,
    ),
    Form(
        words="DO",
        kind=Kind.DO,
        access=Access.READ,
        objects=Objects.ROWS,
        counter="do",
        runs=Runs.FUNCTIONS,
        session=Session.USER_VARIABLES,
        opens=Opens.TABLES,
        keeps_warnings=Keeps.TABLELESS,
        found_rows=FoundRows.DO,
        behind_set_statement=True,
    ),
    Form(words="HANDLER", counter="ha_read", **_HANDLER),
    Form(words="HANDLER OPEN", counter="ha_open", leaves=(State.HANDLER,), **_HANDLER),
    Form(
        words="HANDLER READ",
        counter="ha_read",
        uses=(State.HANDLER,),
        of_server=True,
        **_HANDLER | {"opens": Opens.ALWAYS},
    ),
    Form(
        words="HANDLER CLOSE",
        counter="ha_close",
        ends=(State.HANDLER,),
        uses=(State.HANDLER,),
        of_server=True,
        **_HANDLER,
    ),
    Form(
        words="IMPORT TABLE",
        kind=Kind.SERVER,
        access=Access.ADMIN,
        servers=Servers.MYSQL,
        counter="import",
        commits=True,
    ),
)

EXPLAINS: Final = (
    Form(words="EXPLAIN", counter="select", **_EXPLAIN),
    Form(words="EXPLAIN FOR CONNECTION", counter="explain_other", **_EXPLAIN | {"access": Access.ADMIN}),
    Form(
        words="DESCRIBE",
        counter="show_fields",
        **_EXPLAIN | {"opens": Opens.DICTIONARY, "keeps_warnings": Keeps.NO, "inner": Inner.NONE},
    ),
    Form(words="ANALYZE", counter="select", servers=Servers.MARIADB, **_EXPLAIN | {"runs": Runs.FUNCTIONS}),
    Form(
        words="HELP",
        kind=Kind.HELP,
        access=Access.READ,
        counter="help",
        opens=Opens.NEVER,
        keeps_warnings=Keeps.YES,
        found_rows=FoundRows.KEEP,
        of_server=True,
        repeatable=True,
    ),
)

ROWS: Final = (*QUERIES, *CHANGES, *OTHERS, *EXPLAINS)
