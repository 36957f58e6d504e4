"""Rows of the statement table: transactions, locks, prepared statements, variables, compound statements."""

from __future__ import annotations

from typing import Any, Final

from .forms import Access, FoundRows, Inner, Keeps, Kind, Objects, Opens, Runs, Servers, Session, State
from .forms import StatementForm as Form

MARIADB, MYSQL = Servers.MARIADB, Servers.MYSQL

_TRANSACTION: Final[dict[str, Any]] = {"kind": Kind.TRANSACTION, "access": Access.NONE, "of_server": True}
_POINT: Final[dict[str, Any]] = _TRANSACTION | {"opens": Opens.NEVER, "keeps_warnings": Keeps.YES}
_ENDING: Final[dict[str, Any]] = _TRANSACTION | {"opens": Opens.TABLES, "keeps_warnings": Keeps.TABLELESS}

TRANSACTIONS: Final = (
    Form(words="BEGIN", counter="begin", commits=True, refused_in_xa=True, **_TRANSACTION),
    Form(words="START TRANSACTION", counter="begin", commits=True, refused_in_xa=True, **_TRANSACTION),
    Form(words="COMMIT", counter="commit", refused_in_xa=True, **_ENDING),
    Form(words="ROLLBACK", counter="rollback", refused_in_xa=True, **_ENDING),
    Form(words="ROLLBACK TO", counter="rollback_to_savepoint", **_ENDING),
    Form(words="SAVEPOINT", counter="savepoint", **_POINT),
    Form(words="RELEASE SAVEPOINT", counter="release_savepoint", **_POINT),
)


def _xa(words: str, counter: str, **more: Any) -> Form:
    """A row of a statement of a distributed transaction."""
    fields: dict[str, Any] = {
        "kind": Kind.XA,
        "access": Access.ADMIN,
        "keeps_warnings": Keeps.YES,
        "found_rows": FoundRows.KEEP,
        "counter": counter,
        "of_server": True,
        "uses": (State.XA,),  # all go to the host that has the session's XA transaction
    }
    return Form(words=words, **fields | more)


XA: Final = (
    _xa("XA START", "xa_start", leaves=(State.XA,)),
    _xa("XA BEGIN", "xa_start", leaves=(State.XA,)),
    _xa("XA END", "xa_end"),
    _xa("XA PREPARE", "xa_prepare"),
    _xa("XA COMMIT", "xa_commit", ends=(State.XA,)),
    _xa("XA ROLLBACK", "xa_rollback", ends=(State.XA,)),
    _xa("XA RECOVER", "xa_recover", uses=()),
)

_LOCK: Final[dict[str, Any]] = {"kind": Kind.LOCK, "access": Access.WRITE}
_INSTANCE: Final[dict[str, Any]] = {"kind": Kind.LOCK, "access": Access.ADMIN, "of_server": True}

LOCKS: Final = (
    Form(
        words="LOCK TABLES",
        counter="lock_tables",
        objects=Objects.TABLES,
        commits=True,
        leaves=(State.TABLES,),
        behind_set_statement=True,
        **_LOCK,
    ),
    Form(
        words="LOCK TABLE",
        counter="lock_tables",
        objects=Objects.TABLES,
        commits=True,
        leaves=(State.TABLES,),
        behind_set_statement=True,
        **_LOCK,
    ),
    Form(
        words="UNLOCK TABLES",
        counter="unlock_tables",
        opens=Opens.NEVER,
        keeps_warnings=Keeps.YES,
        ends=(State.TABLES, State.FLUSH),
        **_LOCK | {"access": Access.NONE},
    ),
    Form(
        words="UNLOCK TABLE",
        counter="unlock_tables",
        opens=Opens.NEVER,
        keeps_warnings=Keeps.YES,
        ends=(State.TABLES, State.FLUSH),
        **_LOCK | {"access": Access.NONE},
    ),
    Form(words="LOCK INSTANCE", counter="lock_instance", servers=MYSQL, leaves=(State.BACKUP,), **_INSTANCE),
    Form(
        words="UNLOCK INSTANCE", counter="unlock_instance", servers=MYSQL, ends=(State.BACKUP,), **_INSTANCE
    ),
    Form(words="BACKUP LOCK", counter="backup_lock", servers=MARIADB, leaves=(State.BACKUP,), **_INSTANCE),
    Form(
        words="BACKUP STAGE",
        counter="backup",
        servers=MARIADB,
        leaves=(State.BACKUP,),
        commits=True,
        **_INSTANCE,
    ),
    Form(words="BACKUP UNLOCK", counter="backup_lock", servers=MARIADB, ends=(State.BACKUP,), **_INSTANCE),
)

_ANYTHING: Final[dict[str, Any]] = {
    "runs": Runs.ANYTHING,
    "session": Session.ANYTHING,
    "found_rows": FoundRows.PRIMED,
    "behind_set_statement": True,
}
_PREPARED: Final[dict[str, Any]] = {"kind": Kind.PREPARED, "access": Access.READ, "objects": Objects.PREPARED}

PREPARED: Final = (
    Form(
        words="PREPARE",
        counter="prepare_sql",
        leaves=(State.PREPARE,),
        inner=Inner.TEXT,
        behind_set_statement=True,
        **_PREPARED,
    ),
    Form(
        words="EXECUTE",
        counter="execute_sql",
        of_server=True,
        uses=(State.PREPARE,),
        **_PREPARED,
        **_ANYTHING,
    ),
    Form(
        words="EXECUTE IMMEDIATE",
        counter="execute_immediate",
        servers=MARIADB,
        inner=Inner.TEXT,
        **_PREPARED,
        **_ANYTHING,
    ),
    Form(
        words="DEALLOCATE PREPARE",
        counter="dealloc_sql",
        opens=Opens.NEVER,
        keeps_warnings=Keeps.YES,
        ends=(State.PREPARE,),
        uses=(State.PREPARE,),
        of_server=True,
        behind_set_statement=True,
        **_PREPARED,
    ),
    Form(
        words="DROP PREPARE",
        counter="dealloc_sql",
        opens=Opens.NEVER,
        keeps_warnings=Keeps.YES,
        ends=(State.PREPARE,),
        uses=(State.PREPARE,),
        of_server=True,
        behind_set_statement=True,
        words_in_label=2,
        **_PREPARED,
    ),
)

_COMPOUND: Final[dict[str, Any]] = {
    "kind": Kind.COMPOUND,
    "access": Access.ADMIN,
    "servers": MARIADB,
    "inner": Inner.BODY,
    "counter": "compound_sql",
    **_ANYTHING,
    "behind_set_statement": False,
}

COMPOUND: Final = (
    Form(words="BEGIN NOT ATOMIC", **_COMPOUND),
    *(
        Form(words=word, **_COMPOUND | {"found_rows": FoundRows.ROWS})
        for word in ("IF", "CASE", "LOOP", "REPEAT", "WHILE", "FOR")
    ),
    Form(words="<label>", named="COMPOUND", **_COMPOUND | {"found_rows": FoundRows.ROWS}),
)
"""A compound statement that a label precedes has the row `<label>`."""

_SET: Final[dict[str, Any]] = {
    "kind": Kind.SET,
    "access": Access.NONE,
    "counter": "set_option",
    "opens": Opens.TABLES,
    "keeps_warnings": Keeps.TABLELESS,
    "runs": Runs.FUNCTIONS,
    "session": Session.USER_VARIABLES | Session.SYSTEM_VARIABLES,
}

VARIABLES: Final = (
    Form(words="SET", **_SET),
    Form(words="SET NAMES", **_SET),
    Form(words="SET CHARACTER SET", **_SET),
    Form(words="SET CHARSET", **_SET),
    Form(words="SET TRANSACTION", **_SET),
    Form(words="SET STATEMENT", servers=MARIADB, inner=Inner.BEHIND, **_SET),
    Form(
        words="SET PASSWORD",
        commits=True,
        of_server=True,
        **_SET | {"access": Access.ADMIN, "counter": "set_password"},
    ),
    Form(
        words="SET ROLE",
        of_server=True,
        **_SET | {"opens": Opens.NEVER, "counter": "set_role", "session": Session.ROLE},
    ),
    Form(
        words="SET DEFAULT ROLE",
        commits=True,
        of_server=True,
        **_SET | {"counter": "alter_user_default_role"},
    ),
    Form(
        words="SET RESOURCE GROUP",
        servers=MYSQL,
        of_server=True,
        **_SET | {"access": Access.ADMIN, "counter": "set_resource_group"},
    ),
    Form(
        words="USE",
        kind=Kind.USE,
        access=Access.NONE,
        objects=Objects.DATABASE,
        counter="change_db",
        session=Session.DATABASE,
    ),
)

_DIAGNOSTICS: Final[dict[str, Any]] = {
    "kind": Kind.DIAGNOSTICS,
    "access": Access.READ,
    "opens": Opens.NEVER,
}

OTHERS: Final = (
    Form(
        words="GET DIAGNOSTICS",
        counter="get_diagnostics",
        keeps_warnings=Keeps.YES,
        keeps_row_count=True,
        session=Session.USER_VARIABLES,
        **_DIAGNOSTICS,
    ),
    Form(words="SIGNAL", counter="signal", of_server=True, **_DIAGNOSTICS | {"access": Access.ADMIN}),
    Form(words="RESIGNAL", counter="resignal", of_server=True, **_DIAGNOSTICS | {"access": Access.ADMIN}),
    Form(words="KILL", kind=Kind.KILL, access=Access.NONE, counter="kill", of_server=True),
)

ROWS: Final = (*TRANSACTIONS, *XA, *LOCKS, *PREPARED, *COMPOUND, *VARIABLES, *OTHERS)
