"""Rows of the statement table: definitions of databases and of what is in them, and upkeep of tables."""

from __future__ import annotations

from typing import Any, Final

from .forms import Access, FoundRows, Inner, Keeps, Kind, Objects, Runs, Servers, State
from .forms import StatementForm as Form

MARIADB, MYSQL = Servers.MARIADB, Servers.MYSQL

_QUIET: Final = frozenset({Objects.PROCEDURE, Objects.FUNCTION, Objects.DATABASE})
"""MariaDB counts definitions of these as statements without tables, which keep the warnings before them."""
_COUNTED: Final = {Objects.DATABASE: "db"}


def _define(words: str, objects: Objects, **more: Any) -> Form:
    """A row of a statement that creates, alters, drops or renames `objects`."""
    verb = words.partition(" ")[0]
    fields: dict[str, Any] = {
        "kind": Kind.DEFINITION,
        "access": Access.ADMIN,
        "objects": objects,
        "commits": True,
        "keeps_warnings": Keeps.YES if objects in _QUIET else Keeps.NO,
        "counter": f"{verb.lower()}_{_COUNTED.get(objects, objects.name.lower())}",
        "words_in_label": 2,
        "behind_set_statement": True,
        "inner": Inner.BODY if objects.is_routine and verb == "CREATE" else Inner.NONE,
    }
    return Form(words=words, **fields | more)


_TEMPORARY: Final[dict[str, Any]] = {"commits": False, "words_in_label": 3}

DATABASES: Final = (
    _define("CREATE DATABASE", Objects.DATABASE),
    _define("CREATE SCHEMA", Objects.DATABASE),
    _define("ALTER DATABASE", Objects.DATABASE),
    _define("ALTER SCHEMA", Objects.DATABASE),
    _define("DROP DATABASE", Objects.DATABASE),
    _define("DROP SCHEMA", Objects.DATABASE),
)

TABLES: Final = (
    _define("CREATE TABLE", Objects.TABLE, found_rows=FoundRows.CREATE, runs=Runs.FUNCTIONS),
    _define(
        "CREATE TEMPORARY TABLE",
        Objects.TABLE,
        access=Access.WRITE,
        found_rows=FoundRows.CREATE,
        runs=Runs.FUNCTIONS,
        leaves=(State.TABLE,),
        **_TEMPORARY,
    ),
    _define("CREATE EXTERNAL TABLE", Objects.TABLE, servers=MYSQL),
    _define("ALTER TABLE", Objects.TABLE),
    _define("DROP TABLE", Objects.TABLES, ends=(State.TABLE,)),
    _define("DROP TABLES", Objects.TABLES, ends=(State.TABLE,), counter="drop_table"),
    _define(
        "DROP TEMPORARY TABLE",
        Objects.TABLES,
        access=Access.WRITE,
        ends=(State.TABLE,),
        counter="drop_table",
        **_TEMPORARY,
    ),
    _define(
        "DROP TEMPORARY TABLES",
        Objects.TABLES,
        access=Access.WRITE,
        ends=(State.TABLE,),
        counter="drop_table",
        **_TEMPORARY,
    ),
    _define("RENAME TABLE", Objects.TABLES, counter="rename_table"),
    _define("RENAME TABLES", Objects.TABLES, counter="rename_table"),
    _define("TRUNCATE", Objects.TABLE, counter="truncate", words_in_label=1, repeatable=True),
    _define("TRUNCATE TABLE", Objects.TABLE, counter="truncate", words_in_label=1, repeatable=True),
    _define("CREATE INDEX", Objects.INDEX),
    _define("DROP INDEX", Objects.INDEX),
    _define("CREATE SEQUENCE", Objects.SEQUENCE, servers=MARIADB),
    _define(
        "CREATE TEMPORARY SEQUENCE",
        Objects.SEQUENCE,
        servers=MARIADB,
        leaves=(State.TABLE,),
        **_TEMPORARY | {"commits": True},
    ),
    _define("ALTER SEQUENCE", Objects.SEQUENCE, servers=MARIADB),
    _define("DROP SEQUENCE", Objects.SEQUENCE, servers=MARIADB, ends=(State.TABLE,)),
    _define("DROP TEMPORARY SEQUENCE", Objects.SEQUENCE, servers=MARIADB, ends=(State.TABLE,), **_TEMPORARY),
)

VIEWS_AND_ROUTINES: Final = (
    _define("CREATE VIEW", Objects.VIEW),
    _define("ALTER VIEW", Objects.VIEW, counter="create_view"),
    _define("DROP VIEW", Objects.VIEW),
    _define("CREATE JSON DUALITY VIEW", Objects.VIEW, servers=MYSQL),
    _define("ALTER JSON DUALITY VIEW", Objects.VIEW, servers=MYSQL, counter="create_view"),
    _define("CREATE PROCEDURE", Objects.PROCEDURE),
    _define("ALTER PROCEDURE", Objects.PROCEDURE),
    _define("DROP PROCEDURE", Objects.PROCEDURE),
    _define("CREATE FUNCTION", Objects.FUNCTION),
    _define("ALTER FUNCTION", Objects.FUNCTION),
    _define("DROP FUNCTION", Objects.FUNCTION),
    _define("CREATE TRIGGER", Objects.TRIGGER),
    _define("DROP TRIGGER", Objects.TRIGGER),
    _define("CREATE EVENT", Objects.EVENT),
    _define("ALTER EVENT", Objects.EVENT, inner=Inner.BODY),
    _define("DROP EVENT", Objects.EVENT),
    _define("CREATE PACKAGE", Objects.PACKAGE, servers=MARIADB, inner=Inner.BODY),
    _define(
        "CREATE PACKAGE BODY",
        Objects.PACKAGE,
        servers=MARIADB,
        inner=Inner.BODY,
        counter="create_package_body",
    ),
    _define("DROP PACKAGE", Objects.PACKAGE, servers=MARIADB),
    _define("DROP PACKAGE BODY", Objects.PACKAGE, servers=MARIADB, counter="drop_package_body"),
    _define("CREATE LIBRARY", Objects.LIBRARY, servers=MYSQL, inner=Inner.BODY),
    _define("ALTER LIBRARY", Objects.LIBRARY, servers=MYSQL, inner=Inner.BODY),
    _define("DROP LIBRARY", Objects.LIBRARY, servers=MYSQL),
)


def _tend(words: str, counter: str, **more: Any) -> Form:
    """A row of a statement that looks after tables."""
    fields: dict[str, Any] = {
        "kind": Kind.MAINTENANCE,
        "access": Access.ADMIN,
        "objects": Objects.TABLES,
        "commits": True,
        "found_rows": FoundRows.KEEP,
        "counter": counter,
        "behind_set_statement": True,
        "repeatable": True,
    }
    return Form(words=words, **fields | more)


MAINTENANCE: Final = (
    _tend("ANALYZE TABLE", "analyze", words_in_label=2),
    _tend("ANALYZE TABLES", "analyze", words_in_label=2),
    _tend("CHECK TABLE", "check"),
    _tend("CHECK TABLES", "check"),
    _tend("CHECK VIEW", "check", servers=MARIADB),
    _tend("CHECKSUM TABLE", "checksum", access=Access.READ, commits=False),
    _tend("CHECKSUM TABLES", "checksum", access=Access.READ, commits=False),
    _tend("OPTIMIZE TABLE", "optimize"),
    _tend("OPTIMIZE TABLES", "optimize"),
    _tend("REPAIR TABLE", "repair"),
    _tend("REPAIR TABLES", "repair"),
    _tend("REPAIR VIEW", "repair", servers=MARIADB),
    _tend("CACHE INDEX", "assign_to_keycache", kind=Kind.SERVER, found_rows=FoundRows.ROWS, commits_on=MYSQL),
    _tend("LOAD INDEX", "preload_keys", kind=Kind.SERVER, found_rows=FoundRows.ROWS, commits_on=MYSQL),
)

ROWS: Final = (*DATABASES, *TABLES, *VIEWS_AND_ROUTINES, *MAINTENANCE)
