"""Prepared statements with very many `?`: a shorter text with the same plan.

    INSERT INTO t VALUES (?, ?, ?), (?, ?, ?), … 10,000 rows   →   INSERT INTO t VALUES (?,?),(?,?)

A plan that sends a statement unchanged to one host does not depend on the number of its parameters. For any
other plan the whole text is planned. Arguments of functions are not shortened: on MariaDB POINT(?, ?, ?) is a
stored function, and POINT(?, ?) is not.
"""

from __future__ import annotations

import re
from typing import Final

from rewriter.env import Env

MANY: Final = 200
"""The least number of marks for which a shorter text is worth making."""

_LIST: Final = re.compile(
    rb"((?:(?<![.\w$@])(?:IN|VALUES?)|[,(])\s*+)\(\s*\?(?:\s*,\s*\?){2,}\s*\)", re.IGNORECASE
)
"""A list of marks behind IN or VALUES, or within another list."""
_ROWS: Final = re.compile(
    rb"((?<![.\w$@])(?:VALUES?\s*+|IN\s*+\(\s*+))(\(\s*\?(?:\s*,\s*\?)*\s*\))(?:\s*,\s*\2){2,}", re.IGNORECASE
)
"""Rows of marks, all alike, behind VALUES or in the list of IN."""
_NOT_PLAIN: Final = re.compile(rb"['\"`\\#;@]|--|/\*")
_LINE_COMMENT: Final = re.compile(rb"--|#")


def with_fewer_marks(sql: bytes, env: Env) -> bytes | None:
    """The shorter text; None if it is not certain that all the marks are parameters, or there are few."""
    if sql.count(b"?") < MANY:
        return None
    first, last = sql.index(b"?"), sql.rindex(b"?")
    if _NOT_PLAIN.search(sql, first, last) or _LINE_COMMENT.search(sql, 0, first):
        return None
    before = sql[:first] + b"\0"
    cut = env.findall(before)
    if b"".join(map(b"".join, cut)) != before or cut[-1][1]:
        return None  # a string, a name or a comment is open
    short = _ROWS.sub(rb"\1\2,\2", _LIST.sub(rb"\1(?,?)", sql))
    return short if len(short) < len(sql) else None
