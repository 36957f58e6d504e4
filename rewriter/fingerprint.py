r"""One pass over a statement: the literals out, the fingerprint left.

Two statements of one fingerprint differ in their literals only, so that they share a plan. `lift` cuts a
statement into texts and literals, alternating:

    SELECT * FROM pins WHERE id IN (1, 2) AND name = 'it''s'
    [SELECT * FROM pins WHERE id IN (][1, 2][) AND name = '][it''s'][]

Joined again they are the statement's very bytes. Rules:

- A literal is an unsigned integer, the digits of a hexadecimal number, the inside of a quoted string
  with its closing quote, or the inside of a comment with its end. What marks its type (the opening
  quote, `0x`, `/*`) stays in the text, so that types differ in fingerprint.
- The two halves of a decimal number are two literals with "." between. Numbers with an exponent, bit
  literals and whatever else is not plain stay in the text: to lift less is always safe.
- `IN (1, 2, 3)` and `IN ('a', 'b')` are one literal, so that lists of all lengths share a fingerprint.
- Digits in a name (`db03429`, `1a`, `a$5`, `t.1`, `@a1`), names in backticks, comments to the end
  of a line and optimizer hints are text.
- Executable comments (`/*!`, `/*M!`) are not read here, statement.py opens them first: a statement
  that has one, or an open quote or a NUL byte outside of a literal, has no fingerprint.

Time is linear in the statement's length, whatever it holds: what follows a repeated group always matches, if
only at the end, so that nothing is tried twice. A quote that is never closed is one literal to the end (and
the statement has no fingerprint). Repeated groups are not possessive, because up to 3.11.4 Python's re loses
capturing groups around possessive ones; but then every repetition is remembered, some hundred bytes for each.
So long statements are cut piece by piece, each piece forgotten once it is matched.

>>> lift(b"SELECT 'a', 5")
(b"SELECT '\x00, \x00\x00", (b"a'", b'5', b''))
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final

Findall = Callable[[bytes], list[tuple[bytes, bytes]]]

_NAME: Final = rb"\w$\x80-\xff"  # the bytes of an unquoted name, for use in a character class

_TEXT: Final = (
    rb"[^0-9'\"`#/\-\0*]++",
    # a star, which behind a comment looks like the beginning of one; where it stands before one that begins
    # with a digit, that is text too: see _NUMBERS
    rb"\*(?!/\*[0-9])",
    rb"\*/\*(?=[0-9])(?:[^*\0]++|\*(?!/))*(?:\*/|\0\Z)",
    # digits that go on with what stands before them
    rb"(?<=[" + _NAME + rb"@.'\"`])[0-9]++",
    # digits that begin something other than an integer, half a decimal or a hexadecimal number
    rb"(?!0x[0-9a-fA-F]++(?![" + _NAME + rb".]))"
    rb"[0-9]++(?=[A-Za-z_$\x80-\xff]|\.(?![0-9]++(?![" + _NAME + rb".])))[" + _NAME + rb".]*+",
    rb"`[^`\0]*+`",
    rb"-(?!-[\0-\x20])",
    rb"/(?!\*)",
    rb"/\*\+(?:[^*\0]++|\*(?!/))*(?:\*/|\0\Z)",
    rb"--(?:[\x01-\x09\x0b-\x20][^\n\0]*+|\n|(?=\0))",
    rb"#[^\n\0]*+",
)
"""What is text, after which a literal may begin."""

_INTEGERS: Final = rb"[0-9]++(?:\s*+,\s*+-?[0-9]++)*"


def _in_list(before: bytes) -> bytes:
    """An assertion: `IN (` and `before` stand to the left."""
    forms = (rb"\(", rb" \(", rb" \( ")
    return b"(?:%b)" % b"|".join(rb"(?<=[^" + _NAME + rb".@][iI][nN]" + one + before + b")" for one in forms)


_HALVES: Final = rb"(?<=[0-9])\.(?=[0-9])"
"""Between the two halves of a decimal number."""

_NUMBERS: Final = (
    rb"(?<!['\"xX\0])(?:(?<!/\*)|(?<=\*/\*))(?:"
    + _in_list(b"")
    + _INTEGERS
    + rb"(?=\s*+\))|[0-9]++)|(?<=0x)[0-9a-fA-F]++"
)

_LONG: Final = 1 << 15
"""Statements of more bytes are cut piece by piece."""


def _reading(ansi_quotes: bool, no_backslash_escapes: bool) -> tuple[bytes, bytes, bytes]:
    """For one way of reading quotes: a piece of text, what stands before a literal, a piece of a string.

    Executable comments and NUL bytes are followed by no literal: that is how they are told.
    """
    text, opening = list(_TEXT), [rb"'", rb"0x(?=[0-9a-fA-F])", rb"/\*", rb"\0"]
    escape = b"" if no_backslash_escapes else rb"\\[^\0]|"
    named = (
        rb"(?<=@)'(?:[^'\0" + (b"" if no_backslash_escapes else rb"\\") + rb"]++|" + escape + rb"'')*'(?!')"
    )
    text.append(named)
    if ansi_quotes:
        text.append(rb'"[^"\0]*+"')
    else:
        text.append(named.replace(b"'", b'"'))
        opening.append(rb'"')
    inside = rb"[^']++|''" if no_backslash_escapes else rb"[^'\\]++|\\.|''"
    return b"|".join(text), b"|".join(opening), inside


@cache
def _whole(ansi_quotes: bool, no_backslash_escapes: bool) -> Findall:
    """A cutter that reads in one go."""
    text, opening, piece = _reading(ansi_quotes, no_backslash_escapes)
    string = rb"(?:" + piece + rb")*(?:'|\Z)"
    literals = [
        _NUMBERS,
        _in_list(rb"'") + string + rb"(?:\s*+,\s*+'" + string + rb")*(?=\s*+\))",
        rb"(?<=')" + string,
        rb"(?<=/\*)(?!!|M!)(?:[^*]++|\*(?!/))*(?:\*/|\Z)",
    ]
    if not ansi_quotes:
        literals.append(rb'(?<=")' + string.replace(b"'", b'"'))
    before = _HALVES + rb"|(?:" + text + rb")*(?:" + opening + rb")?"
    return re.compile(rb"(?!\Z)(" + before + rb")(" + b"|".join(literals) + rb"|)", re.DOTALL).findall


def _cutter(ansi_quotes: bool, no_backslash_escapes: bool) -> Findall:
    findall, plainly = _whole(ansi_quotes, no_backslash_escapes), _whole(ansi_quotes, True)
    cut_long = _long_cutter(*_reading(ansi_quotes, no_backslash_escapes))

    def cut(sql: bytes) -> list[tuple[bytes, bytes]]:
        if len(sql) > _LONG:
            return cut_long(sql)
        # where nothing is escaped, a string is over at the next quote: re finds one byte in a quarter of the
        # time that it needs for the first of two
        return findall(sql) if b"\\" in sql else plainly(sql)

    return cut


def _long_cutter(text: bytes, opening: bytes, piece: bytes) -> Findall:
    """A cutter that forgets what it has passed."""
    halves = re.compile(_HALVES).match
    some_text = re.compile(rb"(?:" + text + rb"){1,1000}", re.DOTALL).match
    opens = re.compile(opening, re.DOTALL).match
    number = re.compile(_NUMBERS).match
    begins_list = re.compile(_in_list(b"'")).match
    next_string = re.compile(rb"\s*+,\s*+'").match
    ends_list = re.compile(rb"\s*+\)").match
    pieces = {
        quote: re.compile(rb"(?:" + piece.replace(b"'", quote) + rb"){1,1000}", re.DOTALL).match
        for quote in (b"'", b'"')
    }

    def string(sql: bytes, start: int, quote: bytes) -> int:
        while found := pieces[quote](sql, start):
            start = found.end()
        return min(start + 1, len(sql))

    def strings(sql: bytes, end: int) -> int:
        """Where the list ends whose first string ends at `end`; 0 when it is no list of strings."""
        while found := next_string(sql, end):
            end = string(sql, found.end(), b"'")
        return end if ends_list(sql, end) else 0

    def literal(sql: bytes, start: int, opened: bytes) -> int:
        """Where the literal that begins at `start` ends; `start` when there is none."""
        if opened in pieces:
            end = string(sql, start, opened)
            return strings(sql, end) or end if opened == b"'" and begins_list(sql, start) else end
        if opened == b"\0" or (opened == b"/*" and sql.startswith((b"!", b"M!"), start)):
            return start
        if opened == b"/*":
            close = sql.find(b"*/", start)
            return len(sql) if close < 0 else close + 2
        found = number(sql, start)
        return found.end() if found else start

    def cut(sql: bytes) -> list[tuple[bytes, bytes]]:
        pairs: list[tuple[bytes, bytes]] = []
        start, end = 0, len(sql)
        while start < end:
            middle, opened = start, b""
            if found := halves(sql, start):
                middle = found.end()
            else:
                while found := some_text(sql, middle):
                    middle = found.end()
                if found := opens(sql, middle):
                    middle, opened = found.end(), found.group()
            stop = literal(sql, middle, opened)
            if stop == start:
                break  # neither text nor literal: what follows is missing, so there is no fingerprint
            pairs.append((sql[start:middle], sql[middle:stop]))
            start = stop
        return pairs if start == end else [(b"", b"?")]

    return cut


_FINDALL: Final = {(ansi, raw): _cutter(ansi, raw) for ansi in (False, True) for raw in (False, True)}


IN_INTEGERS: Final = re.compile(_in_list(b""))
IN_STRINGS: Final = re.compile(_in_list(b"'"))
LIST_END: Final = re.compile(rb"\s*+\)")
"""A literal after one of the first two (matched at its start) and before the third is a whole list."""


def findall(ansi_quotes: bool, no_backslash_escapes: bool) -> Findall:
    """The function that cuts a statement ending in a NUL byte into (text, literal) pairs."""
    return _FINDALL[ansi_quotes, no_backslash_escapes]


def lift(sql: bytes, cut: Findall = _FINDALL[False, False]) -> tuple[bytes, tuple[bytes, ...]]:
    """The fingerprint and the literals of `sql`.

    The literals end in one empty one, for the text behind the last. The fingerprint is the texts, joined by
    NUL bytes, with a NUL byte at the end. A fingerprint that is empty means that there is none.
    """
    texts, literals = zip(*cut(sql + b"\0"), strict=True)
    if literals[-1] or literals.count(b"") != 1:
        return b"", ()
    return b"\0".join(texts), literals


_LINES: Final = re.compile(rb"(`[^`]*`)|(?:--(?![^\0-\x20])|#)[^\n]*")
"""Comments to the end of a line, but for such as are within a name."""


def _without(found: re.Match[bytes]) -> bytes:
    return found[1] or b""


_LONGEST_NAME: Final = 300
"""Bytes of a name in quotes, and more."""

_FIRST: Final = re.compile(rb"(?:\s|\(|/\*.*?\*/)*+([A-Za-z]{1,20})", re.DOTALL)
_LOOK: Final = 2048
"""Bytes of a statement in which its first word is looked for."""

_VALUES: Final = re.compile(
    rb"(`[^`]*`|\"[^\"]*\"|@'[^']*')"
    rb"|'[^']*'"
    rb"|(?<![" + _NAME + rb"@`.])(?:"
    rb"\.?[0-9][0-9.]*[eE][-+]?(?:[0-9]+|\?)"  # what stands behind a float need not be apart from it
    rb"|(?:0[xX][0-9a-fA-F]++|0[bB][01]++|\.[0-9]++|[0-9][0-9.]*+)(?![" + _NAME + rb"]))"
)
"""Values that stay in a fingerprint, not lifted: 1.5e0, .5, 0b11, texts in hints; and names."""


def first_word(sql: bytes) -> str:
    """The word that a statement begins with, behind comments and in capitals; "" when there is none."""
    found = _FIRST.match(sql, 0, _LOOK)
    return found[1].decode().upper() if found is not None else ""


def digest(
    sql: bytes, cut: Findall = _FINDALL[False, False], limit: int = 500, most: int | None = None
) -> str:
    """`sql` for people, without its literals and comments: `SELECT * FROM pins WHERE id = ?`, at most `limit`
    characters. `most`: of a longer one only so many bytes are looked at, and "…" ends it.

    A statement that has no fingerprint gives only its first word.
    """
    if most is not None and len(sql) > most:
        return _of_beginning(sql[:most], cut, limit)
    fingerprint = lift(sql, cut)[0]
    return digest_of(fingerprint, limit) if fingerprint else first_word(sql)


def _of_beginning(sql: bytes, cut: Findall, limit: int) -> str:
    """The digest of a statement that begins so. A literal that is cut through has no end; a name that is
    stands behind the last blank, and is left out.
    """
    blank = sql.rfind(b" ", -_LONGEST_NAME)
    pairs = cut((sql if blank < 0 else sql[: blank + 1]) + b"\0")
    texts = [text for text, _ in pairs]
    if not all(literal for _, literal in pairs[:-1]):
        return first_word(sql)
    if pairs[-1][1]:
        texts.append(b"")
    texts[-1] = texts[-1].removesuffix(b"\0")
    return _told(texts, limit - 2) + " …"


def digest_of(fingerprint: bytes, limit: int = 500) -> str:
    """What `digest` gives for statements of this fingerprint, which is not empty.

    No more of a long one is read than is told: the costliest statements may have ten thousand rows in VALUES.
    """
    return _kept_digest(fingerprint, limit) if len(fingerprint) <= _KEPT else _digest_of(fingerprint, limit)


def _digest_of(fingerprint: bytes, limit: int) -> str:
    most = limit // 2 + 1
    while fingerprint.count(b"\0") > most:
        *texts, _ = fingerprint.split(b"\0", most)
        told = _told([*texts, b""], limit)
        if len(told) == limit:
            return told
        most *= 8
    return _told(fingerprint[:-1].split(b"\0"), limit)


_KEPT: Final = 1024
"""Digests of fingerprints up to so many bytes are kept: each look at the costliest statements needs the same
ones, and so do traces and the slow log.
"""
_kept_digest: Final = lru_cache(maxsize=1000)(_digest_of)


def _told(texts: list[bytes], limit: int) -> str:
    """These texts, with a literal between each two."""
    *texts, last = [_LINES.sub(_without, text) for text in texts]
    parts: list[bytes] = []
    for text in texts:
        if text == b"." and parts:
            continue  # within a decimal number
        if text.endswith(b"/*"):
            parts += text[:-2], b" "  # a comment stands where white space may
        elif text.endswith((b"'", b'"')):
            parts += text[:-1], b"?"  # without the quote that opens the literal
        else:
            parts += text, b"?"
    told = _VALUES.sub(lambda found: found[1] or b"?", b"".join((*parts, last)))
    return " ".join(told.decode("utf-8", "replace").split())[:limit] or "/* */"
