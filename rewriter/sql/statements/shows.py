"""Rows of the statement table: SHOW."""

from __future__ import annotations

from typing import Any, Final

from .forms import Access, FoundRows, Keeps, Kind, Objects, Opens, Servers
from .forms import StatementForm as Form

READ, ADMIN = Access.READ, Access.ADMIN
MARIADB, MYSQL = Servers.MARIADB, Servers.MYSQL


def _show(what: str, access: Access, counter: str = "", **more: Any) -> Form:
    """A row of SHOW `what`."""
    fields: dict[str, Any] = {
        "kind": Kind.SHOW,
        "access": access,
        "opens": Opens.DICTIONARY,
        "counter": counter or f"show_{what.lower().replace(' ', '_')}",
        "words_in_label": 2,
        "repeatable": True,
    }
    return Form(words=f"SHOW {what}".rstrip(), **fields | more)


_QUIET: Final[dict[str, Any]] = {
    "found_rows": FoundRows.KEEP,
    "keeps_warnings": Keeps.YES,
    "opens": Opens.NEVER,
}
"""SHOW of no table: FOUND_ROWS() and, on MariaDB, the warnings before it stay."""


def _create(what: str, counter: str, objects: Objects, **more: Any) -> Form:
    """A row of SHOW CREATE `what`."""
    fields = {"objects": objects, "opens": Opens.NEVER, "found_rows": FoundRows.KEEP}
    access = more.pop("access", READ)
    return _show(f"CREATE {what}", access, f"show_create_{counter}", **fields | more)


DEFINITIONS: Final = (
    _create("DATABASE", "db", Objects.DATABASE, keeps_warnings=Keeps.YES),
    _create("SCHEMA", "db", Objects.DATABASE, keeps_warnings=Keeps.YES),
    _create("EVENT", "event", Objects.EVENT, keeps_warnings=Keeps.YES),
    _create("FUNCTION", "func", Objects.FUNCTION, keeps_warnings=Keeps.YES),
    _create("PROCEDURE", "proc", Objects.PROCEDURE, keeps_warnings=Keeps.YES),
    _create("LIBRARY", "library", Objects.LIBRARY, servers=MYSQL),
    _create("MASKING POLICY", "masking_policy", Objects.SERVER, servers=MYSQL, access=ADMIN),
    _create("PACKAGE", "package", Objects.PACKAGE, servers=MARIADB),
    _create("PACKAGE BODY", "package_body", Objects.PACKAGE, servers=MARIADB),
    _create("SEQUENCE", "table", Objects.SEQUENCE, servers=MARIADB),
    _create("SERVER", "server", Objects.SERVER, servers=MARIADB, access=ADMIN),
    _create("TABLE", "table", Objects.TABLE),
    _create("TRIGGER", "trigger", Objects.TRIGGER),
    _create("USER", "user", Objects.ACCOUNT, access=ADMIN, opens=Opens.DICTIONARY, keeps_warnings=Keeps.YES),
    _create("VIEW", "table", Objects.VIEW),
)

OF_DATABASES: Final = (
    _show("DATABASES", READ, of_everybody=True),
    _show("SCHEMAS", READ, "show_databases", of_everybody=True),
    _show("TABLES", READ, objects=Objects.DATABASE),
    _show("OPEN TABLES", READ, opens=Opens.NEVER, of_everybody=True),
    _show("TABLE STATUS", READ, objects=Objects.DATABASE),
    _show("COLUMNS", READ, "show_fields", objects=Objects.TABLE),
    _show("FIELDS", READ, objects=Objects.TABLE),
    _show("INDEX", READ, "show_keys", objects=Objects.TABLE),
    _show("INDEXES", READ, "show_keys", objects=Objects.TABLE),
    _show("KEYS", READ, objects=Objects.TABLE),
    _show("TRIGGERS", READ, objects=Objects.DATABASE),
    _show("EVENTS", READ, objects=Objects.DATABASE),
    _show("PROCEDURE STATUS", READ, of_everybody=True),
    _show("FUNCTION STATUS", READ, of_everybody=True),
    _show("PACKAGE STATUS", READ, of_everybody=True, servers=MARIADB),
    _show("PACKAGE BODY STATUS", READ, of_everybody=True, servers=MARIADB),
    _show("LIBRARY STATUS", READ, of_everybody=True, servers=MYSQL),
    _show("PROCEDURE CODE", ADMIN, of_everybody=True),
    _show("FUNCTION CODE", ADMIN, of_everybody=True),
)

OF_SESSIONS: Final = (
    _show("STATUS", READ, opens=Opens.NEVER),
    _show("VARIABLES", READ, opens=Opens.NEVER),
    _show("WARNINGS", READ, opens=Opens.NEVER, keeps_warnings=Keeps.YES),
    _show("ERRORS", READ, opens=Opens.NEVER, keeps_warnings=Keeps.YES),
    _show("COUNT", READ, "show_warnings", opens=Opens.NEVER, keeps_warnings=Keeps.YES),
    _show("GRANTS", READ, of_everybody=True, **_QUIET),
    _show("PROCESSLIST", READ, of_everybody=True, **_QUIET),
    _show("PROFILE", ADMIN, opens=Opens.NEVER),
    _show("PROFILES", ADMIN, **_QUIET),
)

OF_SERVERS: Final = (
    _show("CHARACTER SET", READ, "show_charsets"),
    _show("CHARSET", READ, "show_charsets"),
    _show("COLLATION", READ, "show_collations"),
    _show("ENGINES", READ, "show_storage_engines", opens=Opens.NEVER),
    _show("STORAGE ENGINES", READ, opens=Opens.NEVER),
    _show("PLUGINS", READ, opens=Opens.NEVER),
    _show("PRIVILEGES", READ, **_QUIET),
    _show("AUTHORS", READ, servers=MARIADB, keeps_warnings=Keeps.YES),
    _show("CONTRIBUTORS", READ, servers=MARIADB, keeps_warnings=Keeps.YES),
    _show("LOCALES", READ, "show_generic", servers=MARIADB),
    _show("ENGINE", ADMIN, "show_engine_status", **_QUIET),
    _show("ANALYZE", ADMIN, servers=MARIADB),
    _show("EXPLAIN", ADMIN, servers=MARIADB),
    _show("PARSE_TREE", ADMIN, servers=MYSQL),
    _show("CLIENT_STATISTICS", ADMIN, "show_generic", servers=MARIADB),
    _show("INDEX_STATISTICS", ADMIN, "show_generic", servers=MARIADB),
    _show("TABLE_STATISTICS", ADMIN, "show_generic", servers=MARIADB),
    _show("USER_STATISTICS", ADMIN, "show_generic", servers=MARIADB),
    _show("USER_VARIABLES", ADMIN, "show_generic", servers=MARIADB),
    _show("QUERY_RESPONSE_TIME", ADMIN, "show_generic", servers=MARIADB),
    _show("WSREP_MEMBERSHIP", ADMIN, "show_generic", servers=MARIADB),
    _show("WSREP_STATUS", ADMIN, "show_generic", servers=MARIADB),
    _show("BINARY LOGS", ADMIN, "show_binlogs", opens=Opens.NEVER, found_rows=FoundRows.KEEP),
    _show("BINARY LOG STATUS", ADMIN, servers=MYSQL, opens=Opens.NEVER, found_rows=FoundRows.KEEP),
    _show("BINLOG STATUS", ADMIN, servers=MARIADB, **_QUIET),
    _show("BINLOG EVENTS", ADMIN, **_QUIET),
    _show("RELAYLOG EVENTS", ADMIN, **_QUIET),
    _show("MASTER STATUS", ADMIN, "show_binlog_status", servers=MARIADB, **_QUIET),
    _show("MASTER LOGS", ADMIN, "show_binlogs", servers=MARIADB, **_QUIET),
    _show("REPLICAS", ADMIN, servers=MYSQL, **_QUIET),
    _show("REPLICA STATUS", ADMIN, **_QUIET),
    _show("REPLICA HOSTS", ADMIN, "show_slave_hosts", servers=MARIADB, **_QUIET),
    _show("SLAVE STATUS", ADMIN, servers=MARIADB, **_QUIET),
    _show("SLAVE HOSTS", ADMIN, servers=MARIADB, **_QUIET),
    _show("ALL SLAVES", ADMIN, "show_slave_status", servers=MARIADB, keeps_warnings=Keeps.YES),
    _show("ALL REPLICAS", ADMIN, "show_slave_status", servers=MARIADB, keeps_warnings=Keeps.YES),
)

ANY: Final = Form(
    words="SHOW",
    kind=Kind.SHOW,
    access=ADMIN,
    counter="show_generic",
    opens=Opens.DICTIONARY,
    words_in_label=2,
    repeatable=True,
)
"""SHOW of what no other row has."""

OF_THE_PROXY: Final = (
    _show("SHARDS", READ, "-"),
    _show("HOT SHARDS", READ, "-"),
    _show("TOPOLOGY", READ, "-"),
    _show("POOLS", READ, "-"),
    _show("PROXY", READ, "-"),
    _show("PROXY QUERIES", ADMIN, "-"),
    _show("PROXY ADVICE", ADMIN, "-"),
)
"""Statements that the proxy answers itself; no server counts them."""

ROWS: Final = (ANY, *DEFINITIONS, *OF_DATABASES, *OF_SESSIONS, *OF_SERVERS, *OF_THE_PROXY)
