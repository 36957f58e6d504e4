"""Rows of the statement table: accounts, and the whole server."""

from __future__ import annotations

from typing import Any, Final

from .forms import Access, Keeps, Kind, Objects, Servers, State
from .forms import StatementForm as Form

MARIADB, MYSQL = Servers.MARIADB, Servers.MYSQL


def _account(words: str, counter: str = "", **more: Any) -> Form:
    """A row of a statement about accounts, roles and privileges."""
    fields: dict[str, Any] = {
        "kind": Kind.ACCOUNT,
        "access": Access.ADMIN,
        "objects": Objects.ACCOUNT,
        "commits": True,
        "keeps_warnings": Keeps.YES,
        "counter": counter or words.lower().replace(" ", "_"),
        "words_in_label": len(words.split(" ")),
        "of_server": True,
        "behind_set_statement": not words.startswith(("GRANT", "REVOKE")),
    }
    return Form(words=words, **fields | more)


ACCOUNTS: Final = (
    _account("CREATE USER"),
    _account("ALTER USER"),
    _account("DROP USER"),
    _account("RENAME USER"),
    _account("CREATE ROLE"),
    _account("DROP ROLE"),
    _account("GRANT", of_server=False),
    _account("REVOKE", of_server=False),
)


def _server(words: str, counter: str = "", **more: Any) -> Form:
    """A row of a statement about the whole server."""
    verb = words.partition(" ")[0]
    defines = verb in _DEFINING
    fields: dict[str, Any] = {
        "kind": Kind.SERVER,
        "access": Access.ADMIN,
        "objects": Objects.SERVER,
        "commits": True,
        "counter": counter or words.lower().replace(" ", "_"),
        "words_in_label": 2 if defines else 1,
        "behind_set_statement": defines,
        "of_server": True,
    }
    return Form(words=words, **fields | more)


_DEFINING: Final = ("CREATE", "ALTER", "DROP")
_RESET: Final[dict[str, Any]] = {"keeps_warnings": Keeps.YES}

OBJECTS: Final = (
    *(_server(f"{verb} SERVER") for verb in _DEFINING),
    *(_server(f"{verb} TABLESPACE", "alter_tablespace", servers=MYSQL) for verb in _DEFINING),
    *(_server(f"{verb} UNDO TABLESPACE", "alter_tablespace", servers=MYSQL) for verb in _DEFINING),
    *(_server(f"{verb} LOGFILE GROUP", "alter_tablespace", servers=MYSQL) for verb in _DEFINING),
    *(_server(f"{verb} RESOURCE GROUP", servers=MYSQL) for verb in _DEFINING),
    *(
        _server(f"{verb} SPATIAL REFERENCE SYSTEM", servers=MYSQL, of_server=False)
        for verb in _DEFINING
        if verb != "ALTER"
    ),
    *(
        _server(f"{verb} MASKING POLICY", servers=MYSQL, of_server=False)
        for verb in _DEFINING
        if verb != "ALTER"
    ),
    _server("ALTER INSTANCE", servers=MYSQL),
)

PLUGINS: Final = (
    _server("INSTALL COMPONENT", servers=MYSQL),
    _server("INSTALL PLUGIN"),
    _server("INSTALL SONAME", "install_plugin", servers=MARIADB),
    _server("UNINSTALL COMPONENT", servers=MYSQL),
    _server("UNINSTALL PLUGIN"),
    _server("UNINSTALL SONAME", "uninstall_plugin", servers=MARIADB),
    _server("CLONE", servers=MYSQL, of_server=False),
)

REPLICATION: Final = (
    _server("CHANGE MASTER", "change_master", commits=False, servers=MARIADB),
    _server("CHANGE REPLICATION FILTER", "change_repl_filter", servers=MYSQL),
    _server("CHANGE REPLICATION SOURCE", "change_replication_source", servers=MYSQL),
    _server("START REPLICA", "replica_start", commits_on=MYSQL),
    _server("START SLAVE", commits=False, servers=MARIADB),
    _server("START ALL", "start_all_slaves", commits=False, servers=MARIADB),
    _server("START GROUP_REPLICATION", "group_replication_start", servers=MYSQL),
    _server("STOP REPLICA", "replica_stop", commits_on=MYSQL),
    _server("STOP SLAVE", commits=False, servers=MARIADB),
    _server("STOP ALL", "stop_all_slaves", commits=False, servers=MARIADB),
    _server("STOP GROUP_REPLICATION", "group_replication_stop", servers=MYSQL),
    _server("PURGE", "purge", commits=False),
    _server("BINLOG", commits=False),
)

UPKEEP: Final = (
    _server("FLUSH", keeps_warnings=Keeps.YES, behind_set_statement=True),
    _server(
        "FLUSH TABLES",
        "flush",
        objects=Objects.TABLES,
        keeps_warnings=Keeps.ALONE,
        behind_set_statement=True,
        of_server=False,
    ),
    _server(
        "FLUSH TABLES WITH READ LOCK",
        "flush",
        objects=Objects.TABLES,
        leaves=(State.FLUSH,),
        behind_set_statement=True,
        of_server=False,
    ),
    _server("RESET", **_RESET),
    _server("RESTART", commits=False, servers=MYSQL, of_server=False),
    _server("SHUTDOWN", commits=False, of_server=False),
)

ROWS: Final = (*ACCOUNTS, *OBJECTS, *PLUGINS, *REPLICATION, *UPKEEP)
