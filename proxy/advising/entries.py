"""What every format of log gives: statements, one after another, and what of the log cannot be used."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

from rewriter.sql.statements.forms import Kind
from rewriter.sql.statements.table import verbs_of

MAX_STATEMENT: Final = 1 << 20
"""Bytes of the longest statement that is looked at."""

UNREADABLE: Final = "lines that are none of this format's"
TOO_LONG: Final = f"statements longer than {MAX_STATEMENT >> 20} MB"
CUT_SHORT: Final = "statements of which the server has kept only the beginning"
PREPARING: Final = "PREPARE, EXECUTE and DEALLOCATE by SQL"
CUT_OFF: Final = "a statement that is not finished at the end"

_WORDS: Final = "|".join([*sorted(verbs_of(Kind.PREPARED) - {"DROP"}), r"DROP\s+PREPARE"])
_PREPARED: Final = re.compile(rb"\s*(?:%s)\b" % _WORDS.encode(), re.IGNORECASE)


def is_of_prepared(sql: bytes) -> bool:
    """Whether a log's statement prepares, executes or drops a statement by SQL. What a server runs by that
    has entries of its own.
    """
    return _PREPARED.match(sql) is not None


class Entry(NamedTuple):
    """A statement of a log. `database`: the current one, None where the log does not tell. It was run `times`
    times, in `seconds` in all, and the server has looked at `examined` rows and sent `sent`; None where the
    log does not tell. `parameters`: `?` in it stands for values that are not known. `digest`: it is a
    server's, whose lists are `(...)`.
    """

    sql: bytes
    database: str | None = None
    times: int = 1
    seconds: float | None = None
    examined: int | None = None
    sent: int | None = None
    parameters: bool = False
    digest: bool = False


class Notes:
    """What a reader has found out about its log besides. `skipped`: what was not used, and how often.
    `version`: the server's, "" where the log does not tell.
    """

    def __init__(self) -> None:
        self.skipped: Counter[str] = Counter()
        self.version = ""


def name_of(raw: bytes) -> str:
    """A database's name."""
    name = raw.strip()
    if name.startswith(b"`"):
        name = name.strip(b"`").replace(b"``", b"`")
    return name.decode("utf-8", "surrogateescape")
