"""What decides, besides a statement's text, how it is cut into tokens: sql_mode and character_set_client.

The proxy must read a statement as its server will, so it never guesses them: every session has an sql_mode
of its own (the servers' default at its log-in), which each of its connections is told, and a value that is
not understood is refused before it is in force.
"""

from __future__ import annotations

import re

from proxy.errors import ProxyError
from rewriter.text.characters import READABLE

#: The variables by which a server reads statements.
READING = ("sql_mode", "character_set_client")

#: Every mode of MySQL 9.7 and MariaDB 10.11 that leaves the grammar as it is, or that the rewriter knows of.
#: ORACLE has another grammar, and MSSQL quotes names in brackets.
_KNOWN = frozenset(
    {
        "ALLOW_INVALID_DATES", "ANSI", "ANSI_QUOTES", "DB2", "EMPTY_STRING_IS_NULL",
        "ERROR_FOR_DIVISION_BY_ZERO", "HIGH_NOT_PRECEDENCE", "IGNORE_BAD_TABLE_OPTIONS", "IGNORE_SPACE",
        "MAXDB", "MYSQL323", "MYSQL40", "NO_AUTO_CREATE_USER", "NO_AUTO_VALUE_ON_ZERO",
        "NO_BACKSLASH_ESCAPES", "NO_DIR_IN_CREATE", "NO_ENGINE_SUBSTITUTION", "NO_FIELD_OPTIONS",
        "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "NO_UNSIGNED_SUBTRACTION", "NO_ZERO_DATE", "NO_ZERO_IN_DATE",
        "ONLY_FULL_GROUP_BY", "PAD_CHAR_TO_FULL_LENGTH", "PIPES_AS_CONCAT", "POSTGRESQL", "REAL_AS_FLOAT",
        "SIMULTANEOUS_ASSIGNMENT", "STRICT_ALL_TABLES", "STRICT_TRANS_TABLES", "TIME_ROUND_FRACTIONAL",
        "TIME_TRUNCATE_FRACTIONAL", "TRADITIONAL",
    }
)  # fmt: skip
_MODE = re.compile(rb"'([A-Za-z0-9_, ]*)'")
_CHARSET = re.compile(rb"'?([a-z0-9]+)'?")


def sql_modes(value: bytes) -> frozenset[str]:
    """The modes that an sql_mode, an SQL literal as a server has told it, names. Raises ProxyError for one
    with which the proxy cannot read statements.
    """
    found = _MODE.fullmatch(value)
    names = found[1].decode().upper().split(",") if found is not None else ["(unknown)"]
    modes = frozenset(name.strip() for name in names) - {""}
    if not modes <= _KNOWN:
        what = value.decode("latin-1").strip("'")
        raise ProxyError("reading_refused", variable="sql_mode", value=what)
    return modes | {"ANSI_QUOTES", "PIPES_AS_CONCAT", "IGNORE_SPACE"} if "ANSI" in modes else modes


def charset_of(value: bytes, variable: str = "character_set_client") -> str:
    """The character set that a `character_set_client`, an SQL literal or a bare name, names. Raises
    ProxyError.
    """
    found = _CHARSET.fullmatch(value)
    if found is None or found[1].decode() not in READABLE:
        what = value.decode("latin-1").strip("'")
        raise ProxyError("reading_refused", variable=variable, value=what)
    return found[1].decode()


def connection_of(value: bytes) -> str:
    """The same of a `character_set_connection`, to which texts are converted, keys and what is prepared among
    them: ASCII must stay what it is.
    """
    return "binary" if value.strip(b"'") == b"binary" else charset_of(value, "character_set_connection")
