"""How tables and columns are called that do not exist yet, after those that do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_PLURALS: Final = (("ies", "y"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("ss", "ss"))
_FEW: Final = re.compile(r"(?:bool|boolean|tinyint|enum|set|bit)\b", re.IGNORECASE)
_FEW_NAMES: Final = re.compile(
    r"(?:is_|has_).*|.*(?:state|status|type|kind|role|gender|sex|level|lang|language|locale|country|currency)"
    r"|active|enabled|deleted|visible|public|category|priority",
    re.IGNORECASE,
)
_TEXT: Final = re.compile(r"(?:var)?(char|binary)\s*\(\s*(\d+)\s*\)", re.IGNORECASE)


def singular(name: str) -> str:
    """One of a table's things.

    >>> [singular(one) for one in ("users", "categories", "boxes", "address", "status_news")]
    ['user', 'category', 'box', 'address', 'status_new']
    """
    for ending, one in _PLURALS:
        if name.lower().endswith(ending):
            return name[: -len(ending)] + one
    return name[:-1] if name.lower().endswith("s") else name


def id_of(table: str) -> str:
    """What a column with an ID of a table's row is called."""
    return f"{singular(table)}_id"


def is_id(column: str) -> bool:
    """Whether a column is called as one with an ID is."""
    return column.lower().endswith("_id")


def table_of_id(column: str, tables: Iterable[str]) -> str | None:
    """The table whose IDs such a column holds, by its name.

    >>> table_of_id("user_id", ["pins", "users"])
    'users'
    """
    return next((one for one in tables if id_of(one).lower() == column.lower()), None)


def has_few_values(name: str, definition: str) -> bool:
    """Whether a column has, by its name or its definition, so few values that a table by them would be on few
    shards.
    """
    return _FEW.match(definition) is not None or _FEW_NAMES.fullmatch(name) is not None


def key_definition(definition: str, integer: bool) -> str:
    """The definition of the key of a hashed table, for the values of a column with this one ("" if it is not
    known).
    """
    if integer:
        return "BIGINT UNSIGNED"
    found = _TEXT.match(definition)
    if found is None:
        return "VARCHAR(255)"
    return f"VARBINARY({found[2]})" if found[1].lower() == "binary" else f"VARCHAR({found[2]})"
