"""Prepared statements with very many `?`: a shorter text with the same plan.

    INSERT INTO t VALUES (?, ?, ?), (?, ?, ?), … 10,000 rows   →   INSERT INTO t VALUES (?,?),(?,?)

What a server alone reads need not be read here for each parameter. A plan that sends a statement unchanged to
one host does not depend on how many there are; for any other the whole text is planned.
"""

from __future__ import annotations

import re
from typing import Final

from rewriter.env import Env

MANY: Final = 200
"""So many marks are worth it."""

_LIST: Final = re.compile(rb"\(\s*\?(?:\s*,\s*\?){2,}\s*\)")
_ROWS: Final = re.compile(rb"(\(\s*\?(?:\s*,\s*\?)*\s*\))(?:\s*,\s*\1){2,}")
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
    begin = before.rfind(b"(")
    if begin < 0 or sql[begin + 1 : first].strip():
        begin = first
    marks = _LIST.sub(b"(?,?)", sql[begin:])
    short = sql[:begin] + _ROWS.sub(rb"\1,\1", marks)
    return short if len(short) < len(sql) else None
