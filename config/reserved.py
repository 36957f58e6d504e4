"""Databases on the servers that hold no tables of users: those of the servers themselves, and those that the
proxy and the tools keep for themselves, where they make, empty and drop tables by themselves.
"""

from __future__ import annotations

from typing import Final

from config import xa

SERVERS: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys"})

OWN: Final = frozenset({xa.DATABASE, "shardgate_scratch", "shardgate_ddl"})
"""The decisions of distributed transactions, the rows that statements gather, and copies of tables whose
definitions are tried. The last two are named in `rewriter.plans.gather` and `fleet.altering`, too.
"""


def reserved(database: str) -> str | None:
    """Whose database of this name is, for messages; None when it may be anybody's. Servers that keep names in
    lower case take `MySQL` for `mysql`.
    """
    if database.lower() in SERVERS:
        return "one of the servers' own databases"
    return "a database that shardgate keeps for itself" if database.lower() in OWN else None
