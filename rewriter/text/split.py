"""Where one statement of a text ends and the next begins, as the server's own parser would see it.

A `;` in a string, a name or a comment ends nothing, nor does one in the body of a routine, trigger or event
(`CREATE PROCEDURE … BEGIN …; … END`). How strings and executable comments read follows from the session's
sql_mode and the server's version, so a text is cut statement by statement, each when its turn comes: the one
before may have changed the sql_mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from rewriter.env import Env

from .opening import end_of_comment, opens, version_at

_BLANKS: Final = b" \t\n\v\f\r"
_SPACE: Final = re.compile(rb"\s*+")

NEAR: Final = 1 << 14
"""A statement that ends within so many bytes is cut off in a moment."""

_AHEAD: Final = 256
"""So many bytes behind a statement may be looked at."""


class Piece(NamedTuple):
    """One statement of a text: its bytes are `sql[start:end]`, the next begins at `following`; None: it is
    the last.
    """

    start: int
    end: int
    following: int | None


def trim(sql: bytes) -> bytes:
    """The text without blanks around it and without semicolons at its end, as servers take it."""
    return sql.lstrip(_BLANKS).rstrip(_BLANKS + b";")


def cut(sql: bytes, start: int, env: Env) -> Piece:
    """The statement of the trimmed text `sql` that begins at `start`."""
    end = _end(sql, start, env)
    if end == len(sql):
        return Piece(start, end, None)
    blanks = _SPACE.match(sql, end + 1)
    assert blanks is not None
    return Piece(start, end, blanks.end())


def cut_near(sql: bytes, start: int, env: Env) -> Piece | None:
    """As `cut`, for a statement that ends before long; None for one that does not."""
    near = sql[start : start + NEAR]
    if len(near) < NEAR:
        return cut(sql, start, env)
    end = _end(near, 0, env)
    if end > NEAR - _AHEAD:
        return None  # perhaps it is read otherwise with what follows
    blanks = _SPACE.match(sql, start + end + 1)
    assert blanks is not None
    return Piece(start, start + end, blanks.end())


def first_of(sql: bytes, env: Env) -> bytes:
    """The text's first statement."""
    text = trim(sql)
    return text[: cut(text, 0, env).end]


#: Nothing but blanks, semicolons and plain comments.
_NOTHING: Final = re.compile(
    rb"(?:[\s;]++|/\*(?!M?!)(?:[^*]++|\*(?!/))*\*/|--(?=[\x00-\x20]|\Z)[^\n]*+|\#[^\n]*+)*", re.DOTALL
)


def only_first(sql: bytes, env: Env) -> bool:
    """Whether only comments stand behind the text's first statement, which is not empty."""
    text = trim(sql)
    end = cut(text, 0, env).end
    return _nothing(text, end, len(text)) and not _nothing(text, 0, end)


def _nothing(text: bytes, start: int, end: int) -> bool:
    found = _NOTHING.match(text, start, end)
    return found is not None and found.end() == end


def has_many_statements(sql: bytes, env: Env) -> bool:
    """Whether the text is more than one statement; comments behind a `;` are one."""
    text = trim(sql)
    return b";" in text and _end(text, 0, env) < len(text)


# -- tokens
# ------------------------------------------------------------------------------------------------------


def _scanner(ansi_quotes: bool, no_backslash_escapes: bool, *, words: bool) -> re.Pattern[bytes]:
    """Steps from one token to the next. What is not closed goes to the end."""
    raw, escaped = rb"'(?:[^']++|'')*(?:'|\Z)", rb"'(?:[^'\\]++|\\.|'')*(?:'|\\?\Z)"
    single = raw if no_backslash_escapes else escaped
    double = (raw if no_backslash_escapes or ansi_quotes else escaped).replace(b"'", b'"')
    comment = rb"/\*(?!M?!)(?:[^*]++|\*(?!/))*(?:\*/|\Z)|--(?=[\s\x00-\x20]|\Z)[^\n]*+|#[^\n]*+"
    groups = [
        rb"(?P<skip>" + comment + rb")",
        rb"(?P<open>/\*M?!)",
        rb"(?P<close>\*/)",
        rb"(?P<text>" + b"|".join((single, double, rb"`[^`]*+(?:`|\Z)")) + b")",
    ]
    if words:
        groups.append(rb"(?P<word>@*[\w$\x80-\xff]++|[^\s\w])")
    else:
        groups.append(rb"(?P<word>;)")
    return re.compile(b"|".join(groups), re.DOTALL)


_SCANNERS: Final = {
    (ansi, raw, words): _scanner(ansi, raw, words=words)
    for ansi in (False, True)
    for raw in (False, True)
    for words in (False, True)
}


class _Tokens:
    """The tokens of a text from `start` on: words in upper case, single signs, "" for strings and names in
    quotes. `at` is where the last one begins, `opened` how many executable comments are open around it.
    """

    def __init__(self, sql: bytes, start: int, env: Env, *, words: bool) -> None:
        self.sql = sql
        self._env = env
        self._scan = _SCANNERS[env.ansi_quotes, env.no_backslash_escapes, words]
        self._source = self._tokens(start)
        self._ahead: list[tuple[str, int, int]] = []
        self.at = start
        self.opened = 0

    def __iter__(self) -> Iterator[str]:
        while True:
            token = self.next()
            if token is None:
                return
            yield token

    def next(self) -> str | None:
        """The next token; None at the end."""
        found = self._ahead.pop(0) if self._ahead else next(self._source, None)
        if found is None:
            self.at = len(self.sql)
            return None
        text, self.at, self.opened = found
        return text

    def peek(self) -> str | None:
        """The token behind the last one."""
        if not self._ahead:
            found = next(self._source, None)
            if found is None:
                return None
            self._ahead.append(found)
        return self._ahead[0][0]

    def _tokens(self, at: int) -> Iterator[tuple[str, int, int]]:
        sql, opened = self.sql, 0
        while (found := self._scan.search(sql, at)) is not None:
            kind, at = found.lastgroup, found.end()
            if kind == "open":
                version, at = version_at(sql, at, self._env)
                if not opens(found[0], version, self._env):
                    at = end_of_comment(sql, at)
                    continue
                opened = 1  # one inside of another ends with the first end
            elif kind == "close":
                if not opened:  # a star, and perhaps a comment behind it
                    at = found.start() + 1
                opened = 0
            elif kind == "text":
                yield "", found.start(), opened
            elif kind == "word":
                yield found[0].decode("latin-1").upper(), found.start(), opened


def _end(sql: bytes, start: int, env: Env) -> int:
    """The offset of the `;` that ends the statement, or the length of the text."""
    tokens = _Tokens(sql, start, env, words=True)
    first = tokens.next()
    if first in ("CREATE", "ALTER"):
        return _Definition(tokens).end()
    if first == "BEGIN" and tokens.peek() == "NOT":  # MariaDB's block outside of a routine
        return _Body(tokens).end(first)
    compound = env.flavour.compound_statements and (first in _OPENERS or tokens.peek() == ":")
    if compound and first is not None and first != "BEGIN":
        return _Body(tokens).end(first)
    return _plain(_Tokens(sql, start, env, words=False))


def _plain(tokens: _Tokens) -> int:
    """The end of a statement without a body: the first `;`."""
    for token in tokens:
        if token == ";":
            return _at(tokens)
    return tokens.at


def _at(tokens: _Tokens) -> int:
    """The place of a `;` that ends a statement. In an open executable comment, or behind what would be a
    comment without it (`--;`), it ends none: servers refuse the text whole.
    """
    whole = tokens.opened or tokens.sql[tokens.at - 2 : tokens.at] == b"--"
    return len(tokens.sql) if whole else tokens.at


# -- bodies
# ------------------------------------------------------------------------------------------------------

_OPENERS: Final = frozenset({"BEGIN", "IF", "CASE", "LOOP", "REPEAT", "WHILE", "FOR"})
_STARTS: Final = _OPENERS | {
    "RETURN", "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "SET", "CALL", "WITH", "DO", "CREATE",
    "DROP", "ALTER", "TRUNCATE", "SIGNAL", "RESIGNAL", "GET", "PREPARE", "EXECUTE", "START", "COMMIT",
    "ROLLBACK", "SHOW", "VALUES", "TABLE", "LOCK", "FLUSH",
}  # fmt: skip
"""Words with which a body begins."""


class _Definition:
    """CREATE or ALTER of anything; only routines, triggers and events have bodies."""

    def __init__(self, tokens: _Tokens) -> None:
        self.tokens = tokens

    def end(self) -> int:
        for token in self.tokens:
            if token == ";":
                return _at(self.tokens)
            if token in ("PROCEDURE", "FUNCTION"):
                return self._routine()
            if token == "TRIGGER":
                return self._trigger()
            if token == "EVENT":
                return self._event()
            if token in ("TABLE", "VIEW", "DATABASE", "SCHEMA", "INDEX", "USER", "ROLE", "SERVER"):
                break
        return _plain(self.tokens)

    def _routine(self) -> int:
        """The body begins behind the parameters, with the first word that begins a statement."""
        depth, before, parameters = 0, "", False
        for token in self.tokens:
            if token == ";":
                return _at(self.tokens)
            if token == "(":
                depth += 1
                parameters = True
            elif token == ")":
                depth -= 1
            elif parameters and not depth:
                label = self.tokens.peek() == ":" and token not in _STARTS
                if label or (token in _STARTS and before not in ("CHARACTER", "CHAR")):
                    return _Body(self.tokens).end(token)
            before = token
        return self.tokens.at

    def _trigger(self) -> int:
        before = ""
        for token in self.tokens:
            if token == ";":
                return _at(self.tokens)
            if token == "ROW" and before == "EACH":
                if self.tokens.peek() in ("FOLLOWS", "PRECEDES"):
                    self.tokens.next()
                    self.tokens.next()
                return _Body(self.tokens).end(self.tokens.next())
            before = token
        return self.tokens.at

    def _event(self) -> int:
        for token in self.tokens:
            if token == ";":
                return _at(self.tokens)
            if token == "DO":
                return _Body(self.tokens).end(self.tokens.next())
        return self.tokens.at


class _Body:
    """A statement of a stored program. Blocks nest; words open them only where a statement begins, because
    they are also functions (IF, REPEAT), operators (CASE) and allowed as names (BEGIN, END).
    """

    def __init__(self, tokens: _Tokens) -> None:
        self.tokens = tokens
        self.blocks: list[str] = []
        self.verb = ""  # the first word of the statement at hand
        self.cases = 0  # CASE operators open in it
        self.fresh = True  # a statement begins here
        self.handler = False  # DECLARE … HANDLER, with a statement behind the conditions

    def end(self, token: str | None) -> int:
        """The end of the statement that begins with `token`."""
        while token is not None:
            if token == ";":
                if not self.blocks:
                    return _at(self.tokens)
                self.fresh = True
            elif self.fresh:
                self._begin(token)
            else:
                self._inside(token)
            token = self.tokens.next()
        return self.tokens.at

    def _begin(self, token: str) -> None:
        if self.tokens.peek() == ":":
            self.tokens.next()  # a label
            return
        self.verb, self.cases, self.fresh, self.handler = token, 0, False, False
        if token in _OPENERS:
            self._open(token)
        elif token == "END" and self.blocks:
            self.blocks.pop()
        elif token == "ELSE":
            self.fresh = True

    def _open(self, token: str) -> None:
        self.blocks.append(token)
        self.verb = token
        self.cases = 0
        self.handler = False
        self.fresh = token in ("BEGIN", "LOOP", "REPEAT")
        if token == "BEGIN" and self.tokens.peek() == "NOT":
            self.tokens.next()
            self.tokens.next()  # NOT ATOMIC

    def _inside(self, token: str) -> None:
        if self.verb == "END":
            return  # END CASE, END label
        if self.handler and token in _OPENERS:
            self._open(token)
        elif token == "CASE":
            self.cases += 1
        elif token == "END" and self.cases:
            self.cases -= 1
        elif token == "END" and self.verb == "UNTIL":
            self.blocks.pop()
            self.verb = "END"
        elif token == "HANDLER" and self.verb == "DECLARE":
            self.tokens.next()  # FOR
            self.handler = True
        elif (token == "THEN" and not self.cases and self.verb in ("IF", "ELSEIF", "CASE", "WHEN")) or (
            token == "DO" and self.verb in ("WHILE", "FOR")
        ):
            self.fresh = True
