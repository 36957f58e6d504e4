"""Statements that stand for many: one for a fingerprint, one for a digest of a server's own. No literal of a
client's is in either.
"""

from __future__ import annotations

import re
from typing import Final

from rewriter.plan import Plan


def dear(plan: Plan) -> bool:
    """Whether a statement with this plan does not go to one shard, or few: there may be advice."""
    return plan.is_expensive


_AFTER: Final = {b"'": b"11'", b'"': b'11"', b"x": b"1", b"*": b" */"}


def filled(fingerprint: bytes) -> bytes:
    """A statement of this fingerprint: every literal is 1, or a text or number that begins so.

    >>> filled(b"SELECT '\\x00, 0x\\x00, \\x00 /*\\x00\\x00")
    b"SELECT '11', 0x1, 1 /* */"
    """
    texts = fingerprint.removesuffix(b"\0").split(b"\0")
    last = texts.pop()
    return b"".join([text + _literal(text) for text in texts]) + last


def _literal(before: bytes) -> bytes:
    """What stands behind this text."""
    if before.endswith((b"'", b'"', b"0x", b"/*")):
        return _AFTER[before[-1:]]
    return b"1"


_ROWS: Final = re.compile(rb"/\* , \.\.\. \*/")
# Each takes a name as a whole, so that none is tried from its middle on: logs may have names of a megabyte.
_DOTS: Final = re.compile(rb"(`(?:[^`]|``)*+`|(?<!\w)[A-Za-z_]\w*+)( ?\. ?(?=[`*A-Za-z_]))?")
_CALL: Final = re.compile(rb"((?<!\S)\S++\s++)?`(\w+)` (?=\()")
_NO_CALL: Final = frozenset(
    b"INTO TABLE FROM JOIN UPDATE EXISTS AS KEY INDEX CALL WITH RECURSIVE ON REFERENCES UNIQUE".split()
)
_UNIT: Final = re.compile(rb"\bSQL_TSI_(?=[A-Z]+\b)")
_VARIABLE: Final = re.compile(rb"@ ?\?")
_NOTHING: Final = re.compile(rb"\(\s+\)")
_LIST: Final = re.compile(rb"\(\s*\.\.\.\s*\)")
_INSERT: Final = re.compile(rb"\s*(?:INSERT|REPLACE)\b[^()?]*", re.IGNORECASE)
_ROW: Final = re.compile(rb"\(([^()]*)\) VALUES? *(\(\.\.\.\))", re.IGNORECASE)
_WITHOUT: Final = re.compile(rb"(`(?:[^`]|``)*`|\w+) VALUES? *\Z", re.IGNORECASE)
_NAME: Final = 600
"""Bytes at the end of an INSERT's first words in which its table's name is looked for."""


class Cut(Exception):
    """The server has kept only the beginning of the statement."""


def of_digest(text: bytes, width: int = 0) -> bytes:
    """A statement with parameters for the text of a server's digest (DIGEST_TEXT), in which every list is
    `(...)` and names of functions may be quoted. Raises Cut. `width`: so many columns has the table of an
    INSERT that names none.

    >>> of_digest(b"INSERT INTO `t` ( `a` , `b` ) VALUES (...) /* , ... */")
    b'INSERT INTO `t` ( `a` , `b` ) VALUES (?, ?)'
    >>> of_digest(b"SELECT `ifnull` ( `t` . `a` , ? ) FROM `t` WHERE `b` IN (...)")
    b'SELECT ifnull( `t`.`a` , ? ) FROM `t` WHERE `b` IN (?, ?)'
    """
    if text.rstrip().endswith(b"...") and not text.rstrip().endswith(b"(...)"):
        raise Cut
    text = _VARIABLE.sub(b"@v", _UNIT.sub(b"", _ROWS.sub(b"", text).rstrip()))
    text = _DOTS.sub(lambda found: found[1] + (b"." if found[2] else b""), text)
    head = _INSERT.match(text)
    if head is not None:
        found = _ROW.match(text, head.end())
        start = found.start(2) if found is not None else head.end()
        width = found[1].count(b",") + 1 if found is not None else max(width, 1)
        if text.startswith(b"(...)", start):
            text = text[:start] + b"(" + b", ".join([b"?"] * width) + b")" + text[start + 5 :]
    text = _LIST.sub(b"(?, ?)", _NOTHING.sub(b"()", text))
    return _CALL.sub(_called, text)


def into_of(text: bytes) -> bytes:
    """The table of an INSERT whose digest names no columns; b"" for another."""
    head = _INSERT.match(text)
    found = None if head is None else _WITHOUT.search(head[0][-_NAME:])
    return b"" if found is None else found[1].strip(b"`")


def _called(found: re.Match[bytes]) -> bytes:
    before = (found[1] or b"").strip().upper()
    return found[0] if not before or before in _NO_CALL else (found[1] or b"") + found[2]
