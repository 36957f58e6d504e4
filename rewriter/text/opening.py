"""A statement's text as nobody can read it in two ways: executable comments opened, odd bytes outside of
quotes made plain or refused.

What a server would decide from its version (`/*!80000 … */`), or from the character set (0xA0 is white space
in latin1), is decided here, and the server gets the result. So it decides nothing and reads what was planned.
"""

from __future__ import annotations

import re
from typing import Final

from rewriter.env import Env

from .characters import CHARACTERS, SPACES, UTF8, WORD_BYTES
from .tokens import Unreadable

_ODD: Final = re.compile(rb"/\*M?!|[\x01-\x08\x0e-\x1f\x7f-\xff]")
"""What may be read in several ways, outside of quotes. A text without it is as it is."""


def _scanner(charset: str, ansi_quotes: bool, no_backslash_escapes: bool) -> re.Pattern[bytes]:
    """Steps over what is read in one way only, and finds the rest. What is not closed goes to the end, so
    that nothing is tried twice.
    """
    wide = CHARACTERS.get(charset)
    character, inside = (wide + b"|", rb"\x80-\xff") if wide else (b"", b"")
    alone = rb"|[\x80-\xff]" if wide else b""  # a byte that is no character with those behind it
    raw = rb"'(?:" + character + rb"[^'" + inside + rb"]++|''" + alone + rb")*(?:'|\Z)"
    escaped = rb"'(?:" + character + rb"[^'\\" + inside + rb"]++|\\.|''" + alone + rb")*(?:'|\\?\Z)"
    single = raw if no_backslash_escapes else escaped
    double = (raw if ansi_quotes else single).replace(b"'", b'"')
    comment = rb"/\*(?!M?!)(?:[^*]++|\*(?!/))*(?:\*/|\Z)|--(?=[\x00-\x20]|\Z)[^\n]*+|\#[^\n]*+"
    groups = (
        rb"(?P<quoted>" + b"|".join((single, double, raw.replace(b"'", b"`"))) + rb")",
        rb"(?P<comment>" + comment + rb")",
        rb"(?P<open>/\*M?!)",
        rb"(?P<close>\*/)",
        rb"(?P<high>(?:" + character + rb"[\x80-\xff])+)",
        rb"(?P<control>[\x00-\x08\x0e-\x1f\x7f])",
    )
    return re.compile(b"|".join(groups), re.DOTALL)


_scanners: Final[dict[tuple[str, bool, bool], re.Pattern[bytes]]] = {}


def scanner(charset: str, ansi_quotes: bool, no_backslash_escapes: bool) -> re.Pattern[bytes]:
    """What finds in a text that is not masked, one after another, what is `quoted`, a `comment`, the `open`
    and `close` of executable comments, runs of `high` bytes and `control` bytes.
    """
    key = (charset if charset in CHARACTERS else "", ansi_quotes, no_backslash_escapes)
    found = _scanners.get(key)
    if found is None:
        found = _scanners[key] = _scanner(*key)
    return found


def opened(sql: bytes, env: Env) -> bytes:
    """The statement with its executable comments opened, as the server of `env` would, and odd white space
    made plain; `sql` itself when there is none. In place of what goes there are blanks.

    Raises Unreadable for what cannot be sent so that there is one way to read it.
    """
    return _Opening(sql, env).text() if _ODD.search(sql) is not None else sql


class _Opening:
    def __init__(self, sql: bytes, env: Env) -> None:
        self.sql = sql
        self.env = env
        self.pieces: list[bytes] = []
        self.done = 0
        self.open = -1  # where the executable comment begins that is open

    def text(self) -> bytes:
        sql, env, at = self.sql, self.env, 0
        scan = scanner(env.charset, env.ansi_quotes, env.no_backslash_escapes).search
        while (found := scan(sql, at)) is not None:
            kind, at = found.lastgroup, found.end()
            if kind == "open":
                at = self._open(found)
            elif kind == "close" and self.open < 0:  # a star, and perhaps a comment behind it
                at = found.start() + 1
            elif kind == "close":
                self._blank(found.start(), at)
                self.open = -1
            elif kind == "high":
                self._high(found[0], found.start())
            elif kind == "control" and not (found[0] == b"\0" and at == len(sql)):
                raise Unreadable(f"unexpected byte {found[0]!r} at offset {found.start()}")
        if self.open >= 0:
            raise Unreadable(f"the comment at offset {self.open} is not closed")
        if not self.pieces:
            return sql
        return b"".join([*self.pieces, sql[self.done :]])

    def _open(self, found: re.Match[bytes]) -> int:
        start, (version, at) = found.start(), version_at(self.sql, found.end(), self.env)
        if opens(found[0], version, self.env):
            self._blank(start, at)
            if self.open < 0:  # one inside of another ends with the first end
                self.open = start
            return at
        # MySQL knows no /*M!: that is a plain comment, which ends with the first end
        plain = found[0] == b"/*M!" and not self.env.flavour.marked_comments
        at = self.sql.find(b"*/", found.end()) + 2 if plain else end_of_comment(self.sql, at)
        if not self.sql.endswith(b"*/", start + 3, at):
            raise Unreadable(f"the comment at offset {start} is not closed")
        self._blank(start, at)
        return at

    def _blank(self, start: int, end: int) -> None:
        """Blanks and the ends of lines in place of this."""
        if self.sql[start - 2 : start] == b"--":  # with a blank behind it, it would begin a comment
            raise Unreadable(f"`--` before a comment at offset {start}: write blanks around each minus")
        self.pieces += [self.sql[self.done : start], re.sub(rb"[^\n]", b" ", self.sql[start:end])]
        self.done = end

    def _high(self, run: bytes, start: int) -> None:
        """Bytes above 0x7F, outside of quotes and comments."""
        charset = self.env.charset
        words = WORD_BYTES.get(charset)
        if words is None:  # characters of several bytes, which all belong to names
            if not _is_text(run, charset):
                raise Unreadable(f"bytes at offset {start} are no characters of {charset}")
            return
        spaces = SPACES[charset]
        for at, byte in enumerate(run, start):
            if byte in spaces:
                self.pieces += [self.sql[self.done : at], b" "]
                self.done = at + 1
            elif byte not in words:
                raise Unreadable(f"byte {bytes((byte,))!r} at offset {at} belongs to no name in {charset}")


def _is_text(run: bytes, charset: str) -> bool:
    if charset in UTF8:
        try:
            text = run.decode()
        except UnicodeDecodeError:
            return False
        return charset == "utf8mb4" or max(text) <= "\uffff"
    pattern = CHARACTERS.get(charset)
    return pattern is not None and re.fullmatch(rb"(?:" + pattern + rb")*", run, re.DOTALL) is not None


_FIVE: Final = re.compile(rb"[0-9]{5}")


def version_at(sql: bytes, at: int, env: Env) -> tuple[int | None, int]:
    """The version number behind `/*!`, and where the content begins. It has five digits or six; six on MySQL
    only with white space behind them.
    """
    if _FIVE.match(sql, at) is None:
        return None, at
    six = sql[at + 5 : at + 6].isdigit() and (
        env.flavour.six_digit_comments or sql[at + 6 : at + 7].isspace()
    )
    end = at + 6 if six else at + 5
    return int(sql[at:end]), end


def opens(mark: bytes, version: int | None, env: Env) -> bool:
    """Whether the server of `env` runs what is in an executable comment that begins with `mark` (`/*!` or
    `/*M!`) and this version number.
    """
    if mark == b"/*M!" and not env.flavour.marked_comments:
        return False
    if version is None:
        return True
    if env.flavour.skips_newer_comments and mark == b"/*!" and 50700 <= version <= 99999:
        return False  # MariaDB leaves what is meant for later MySQLs alone
    return version <= env.server_version


def end_of_comment(sql: bytes, at: int) -> int:
    """The end of a comment that is not opened, from inside of it; comments in it nest one level."""
    while True:
        end, inner = sql.find(b"*/", at), sql.find(b"/*", at)
        if end < 0:
            return len(sql)
        if inner < 0 or end <= inner:
            return end + 2
        end = sql.find(b"*/", inner + 2)
        if end < 0:
            return len(sql)
        at = end + 2
