"""Functions that are called by another spelling of their names: `GET_LOCK`(…) with a quoted name, and
MariaDB's oracle_schema.get_lock(…). What the rest of the rewriter looks for is the plain word.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from config.flavour import Flavour
from rewriter.text.tokens import NAME, WORD, Source

from .function_names import CALLABLE_QUOTED

NATIVE_SCHEMAS: Final = frozenset({"mariadb_schema", "oracle_schema", "maxdb_schema"})
"""What MariaDB takes for the home of its own functions."""

_OF_SESSION: Final = frozenset(
    {"GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "IS_FREE_LOCK", "IS_USED_LOCK", "LAST_INSERT_ID"}
    | {
        "FOUND_ROWS",
        "ROW_COUNT",
        "CONNECTION_ID",
        "DATABASE",
        "SCHEMA",
        "USER",
        "CURRENT_USER",
        "SESSION_USER",
    }
    | {"SYSTEM_USER", "LOAD_FILE"}
)
_NO_CALL_BEHIND: Final = (
    "INTO",
    "TABLE",
    "INSERT",
    "REPLACE",
    "IGNORE",
    "DELAYED",
    "KEY",
    "INDEX",
    "UNIQUE",
    "AS",
    "WITH",
    "RECURSIVE",
)


def with_plain_calls(source: Source, *, flavour: Flavour) -> Source:
    """The source with words in the place of the quoted names that call functions of the server's own."""
    callable_ = CALLABLE_QUOTED[flavour.name]
    changed = {}
    for at, token in enumerate(source.tokens):
        if token.kind != NAME or not source.is_op(at + 1, "(") or source.is_op(at - 1, ".", ")"):
            continue
        name = token.name.upper()
        if name in callable_ and not source.is_word(at - 1, *_NO_CALL_BEHIND):
            changed[at] = token._replace(kind=WORD, text=name)
    if not changed:
        return source
    return replace(source, tokens=tuple(changed.get(at, token) for at, token in enumerate(source.tokens)))


_SEQUENCES: Final = ("NEXTVAL", "SETVAL", "LASTVAL")


def sequences(source: Source) -> list[int]:
    """Where MariaDB's sequences are named: in NEXTVAL(…) and its kin, and behind NEXT VALUE FOR."""
    return [
        at
        for at in range(2, len(source.tokens))
        if source.is_name(at)
        and (
            (source.is_op(at - 1, "(") and source.is_word(at - 2, *_SEQUENCES))
            or (source.is_word(at - 1, "FOR") and source.is_word(at - 2, "VALUE"))
        )
    ]


def previous_value(source: Source) -> str:
    """The call that asks for the number which the connection has taken last of a sequence: LASTVAL(…) or
    PREVIOUS VALUE FOR …; "" for none. (Oracle's dialect, which has CURRVAL, is refused.)
    """
    for at in range(len(source.tokens)):
        if source.is_word(at, "LASTVAL") and source.is_op(at + 1, "(") and not source.is_op(at - 1, "."):
            return "LASTVAL()"
        if (
            source.is_word(at, "PREVIOUS")
            and source.is_word(at + 1, "VALUE")
            and source.is_word(at + 2, "FOR")
        ):
            return "PREVIOUS VALUE FOR"
    return ""


def hidden_call(source: Source) -> str:
    """A function of the session's that is called by a schema's name, which would hide it; "" for none."""
    for at, token in enumerate(source.tokens):
        qualified = source.is_op(at - 1, ".") and source.is_op(at + 1, "(") and at > 1
        if qualified and token.name.upper() in _OF_SESSION:
            schema = source.tokens[at - 2].name
            if schema.lower() in NATIVE_SCHEMAS:
                return f"{schema}.{token.name}()"
    return ""
