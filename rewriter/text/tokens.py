"""A statement's tokens, with their places, as MySQL's own lexer would cut them.

Only read on a cache miss. A `Token` knows which lifted literal it is, if it is one, so that a plan can
refer to its value: a whole IN-list that was lifted as one literal is one token of kind LIST.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rewriter.env import Env
from rewriter.fingerprint import IN_INTEGERS, IN_STRINGS, LIST_END

from .names_apart import NAMES_APART
from .written import decoded, encoded

WORD: Final = "word"  # unquoted name or keyword; `text` in upper case, `name` as written
NAME: Final = "name"  # quoted name; `text` and `name` without quotes
STRING: Final = "string"  # '…' or "…"; `text` raw with quotes
INTEGER: Final = "integer"
HEX: Final = "hex"  # 0x1F
NUMBER: Final = "number"  # any other number: decimal, float, bits
PREFIXED: Final = "prefixed"  # x'1F', b'01', n'…'
LIST: Final = "list"  # the inside of an IN-list of integers or of strings, lifted as one literal
VARIABLE: Final = "variable"  # @name; `text` is the name in lower case without @ and quotes
SYSTEM: Final = "system"  # @@name, @@session.name; `text` in lower case, with @@, without backticks
OPERATOR: Final = "operator"
HINT: Final = "hint"  # an optimizer hint, /*+ … */


class Token(NamedTuple):
    """One token: kind, normalized text, byte span, index of its literal (-1: it was not lifted).

    `name` is the text with its case, without quotes: what the token means as a name.
    """

    kind: str
    text: str
    name: str
    start: int
    end: int
    literal: int = -1


END: Final = Token(OPERATOR, "", "", -1, -1)
"""Stands behind the last token."""

_PADDING: Final = (END,) * 16


class Unreadable(Exception):
    """The text is no statement: a quote, comment or parenthesis is open, or a byte has no meaning."""


@dataclass(frozen=True, slots=True)
class Source:
    """A statement as bytes, cut into texts and literals, and its tokens.

    `pieces` are (start, end, literal index or -1), without gaps. `closing` gives for the index of each
    opening parenthesis (round or curly) in `tokens` the index of the closing one.
    """

    sql: bytes
    literals: tuple[bytes, ...]
    pieces: tuple[tuple[int, int, int], ...]
    tokens: tuple[Token, ...]
    closing: dict[int, int]
    depth: int = 0
    """How deep parentheses nest."""
    marks: dict[int, int] = field(default_factory=dict)
    """The parameters of a prepared statement: for the index of each `?` token its number."""
    _padded: tuple[Token, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_padded", self.tokens + _PADDING)

    def at(self, index: int) -> Token:
        """The token at `index`; END up to some steps behind the last, and before the first."""
        return self._padded[index]

    def is_word(self, index: int, *words: str) -> bool:
        """Whether an unquoted word stands there that is one of `words` (upper case)."""
        token = self._padded[index]
        return token.kind == WORD and token.text in words

    def is_op(self, index: int, *operators: str) -> bool:
        """Whether one of these operators stands there."""
        token = self._padded[index]
        return token.kind == OPERATOR and token.text in operators

    def is_name(self, index: int) -> bool:
        """Whether a word or a quoted name stands there."""
        return self._padded[index].kind in (WORD, NAME)

    def text(self, first: int, end: int) -> bytes:
        """The bytes of the tokens from `first` to `end` - 1, with what is between them."""
        return self.sql[self.tokens[first].start : self.tokens[end - 1].end]


_WORD: Final = rb"[0-9A-Za-z_$\x80-\xff]"


def _token_pattern(env: Env) -> re.Pattern[bytes]:
    raw = rb"(?:[^']++|'')*'"
    inside = raw if env.no_backslash_escapes else rb"(?:[^'\\]++|\\.|'')*'"
    single = b"'" + inside
    double = b'"' + (raw if env.ansi_quotes else inside).replace(b"'", b'"')
    groups = [
        rb"(?P<hint>/\*\+(?:[^*]++|\*(?!/))*\*/)",
        rb"(?P<skip>\s++|\#[^\n]*+|--(?=[\s\x00-\x20]|\Z)[^\n]*+|/\*(?:[^*]++|\*(?!/))*\*/)",
        rb"(?P<prefixed>(?:[xX]'[0-9a-fA-F]*+'(?!')|[bB]'[01]*+'(?!')|[nN]'" + inside + rb"))",
        rb"(?P<string>" + single + (b"" if env.ansi_quotes else b"|" + double) + b")",
        rb"(?P<name>(?:`[^`]*+`)+" + (rb'|"(?:[^"]++|"")*"' if env.ansi_quotes else b"") + b")",
        rb"(?P<system>@@(?:`[^`]*+`|[\w$.\x80-\xff])+)",
        rb"(?P<variable>@(?:(?:`[^`]*+`)+|" + single + b"|" + double + rb"|[\w$.\x80-\xff]*+))",
        rb"(?P<hex>0x[0-9a-fA-F]++(?!" + _WORD + rb"))",  # 0X1F is a name
        # what stands behind a decimal number or a float need not be apart from it: 1.5FROM, 1e5FROM
        rb"(?P<number>0b[01]++(?!" + _WORD + rb")"
        rb"|(?:[0-9]++\.[0-9]*+|(?<![\w$`\x80-\xff])\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
        rb"|[0-9]++[eE][-+]?[0-9]++|\\N(?!" + _WORD + rb"))",  # \N: MariaDB's other NULL
        rb"(?P<integer>[0-9]++(?!" + _WORD + rb"))",
        rb"(?P<word>" + _WORD + rb"++)",
        rb"(?P<operator><=>|->>|->|<<|>>|<=|>=|<>|!=|:=|\|\||&&|[-+*/%^~&|!=<>(),.;:?{}\[\]])",
    ]
    return re.compile(b"|".join(groups), re.DOTALL)


_NO_NAME: Final = frozenset(b".\\")
_DOLLAR: Final = ord("$")
_PATTERNS: Final[dict[tuple[bool, bool], re.Pattern[bytes]]] = {}


def _pattern(env: Env) -> re.Pattern[bytes]:
    mode = (env.ansi_quotes, env.no_backslash_escapes)
    if mode not in _PATTERNS:
        _PATTERNS[mode] = _token_pattern(env)
    return _PATTERNS[mode]


def read(sql: bytes, literals: tuple[bytes, ...], env: Env) -> Source:
    """The tokens of a statement that has a fingerprint; `literals` are those that were lifted from it.

    Raises Unreadable.
    """
    pieces = _pieces(sql, env)
    lifted = {start: (end, index) for start, end, index in pieces if index >= 0}
    pattern = _pattern(env)
    quotes = b"'" if env.ansi_quotes else b"'\""
    tokens: list[Token] = []
    at = 0
    after_dot = False
    while at < len(sql):
        inside = lifted.get(at + 1) if sql[at] in quotes else None
        if inside is not None:  # a string, whose end is known
            token = _token(sql, STRING, at, inside[0], lifted, env)
            after_dot = False
            tokens.append(token)
            at = token.end
            continue
        found = pattern.match(sql, at)
        if found is None or found.lastgroup is None:
            raise Unreadable(f"unexpected byte {sql[at : at + 1]!r} at offset {at}")
        kind, end = found.lastgroup, found.end()
        if kind == "skip" or (kind == HINT and not _takes_hints(tokens)):
            at = end
            continue
        if after_dot and kind in (INTEGER, NUMBER, HEX, WORD) and sql[at] not in _NO_NAME:
            kind, end = NAME, _word_end(sql, at)  # t.1e5, t.end: behind a dot stands a name
        elif kind == WORD and _QUALIFIES.match(sql, end) and sql[at:end].upper() not in _ROWS:
            kind = NAME  # value.t, select.t: right before a dot and a name, too
        _check_read_alike(sql, kind, at, end, env)
        token = _token(sql, kind, at, end, lifted, env)
        after_dot = token.text == "." and kind == OPERATOR
        if token.text == "(" and tokens and tokens[-1].kind == HINT:
            _of_function(tokens)
        if token.text == "(" and tokens and _is_apart(tokens[-1], sql[tokens[-1].end : at], env):
            tokens[-1] = tokens[-1]._replace(kind=NAME, text=tokens[-1].name)
        tokens.append(token)
        at = token.end
    closing, depth = _parentheses(tokens)
    marks: dict[int, int] = {}
    if env.parameters:
        places = [index for index, token in enumerate(tokens) if token.text == "?" and token.kind == OPERATOR]
        marks = {index: number for number, index in enumerate(places)}
    return Source(sql, literals, pieces, tuple(tokens), closing, depth, marks)


_QUALIFIES: Final = re.compile(rb"\." + _WORD)
_ROWS: Final = frozenset({b"NEW", b"OLD"})
"""Words that mean the rows of a trigger, which others look for."""
_HINTED: Final = frozenset({"SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE"})
"""Words that hints stand behind. Elsewhere servers take them for comments; so does whoever looks at a token's
neighbours for what it may name or call.
"""


def _takes_hints(tokens: list[Token]) -> bool:
    """Whether a hint may stand behind these tokens."""
    last = next((at for at in range(len(tokens) - 1, -1, -1) if tokens[at].kind != HINT), -1)
    if last < 0 or tokens[last].kind != WORD or tokens[last].text not in _HINTED:
        return False
    before = tokens[last - 1].text if last else ""
    return tokens[last].text != "UPDATE" or before not in ("FOR", "KEY")


def _of_function(tokens: list[Token]) -> None:
    """Forget the hints at the end if they stand behind the name of a function, INSERT or REPLACE."""
    last = next(at for at in range(len(tokens) - 1, -1, -1) if tokens[at].kind != HINT)
    if tokens[last].text in ("INSERT", "REPLACE"):
        del tokens[last + 1 :]


def _is_apart(token: Token, between: bytes, env: Env) -> bool:
    """Whether a word is a name, and no function of the server, since something is `between` it and its
    parenthesis. IGNORE_SPACE lets it be blanks, but no comment.
    """
    if token.kind != WORD or token.text not in NAMES_APART[env.flavour.name]:
        return False
    return bool(between.strip() if env.ignore_space else between)


def _check_read_alike(sql: bytes, kind: str, at: int, end: int, env: Env) -> None:
    """Raise Unreadable for what servers read in their own ways: the `1.e` of `1.e(2)` is nothing to MySQL,
    and `$a$ … $a$` a string.
    """
    if kind == NUMBER and sql[end : end + 1] in (b"e", b"E") and not {*sql[at:end]} & {*b"eEN"}:
        raise Unreadable(f"the number at offset {at} has no exponent behind its e")
    if kind == VARIABLE and sql[at + 1 : at + 2] in (b"'", b'"') and {*b"\\'\""} & {*sql[at + 2 : end - 1]}:
        raise Unreadable(
            f"the variable at offset {at} has a quote or a backslash in its name: write it in backticks"
        )
    if kind == WORD and sql[at] == _DOLLAR and env.flavour.dollar_quotes and sql.find(b"$", at + 1, end) > 0:
        raise Unreadable(
            f"the name at offset {at} begins as a dollar-quoted text does: write it in backticks"
        )


def _pieces(sql: bytes, env: Env) -> tuple[tuple[int, int, int], ...]:
    pieces: list[tuple[int, int, int]] = []
    at = 0
    for index, (text, literal) in enumerate(env.findall(sql + b"\0")):
        end = min(at + len(text), len(sql))
        pieces.append((at, end, -1))
        at = end + len(literal)
        if literal:
            pieces.append((end, at, index))
    return tuple(pieces)


def _word_end(sql: bytes, at: int) -> int:
    found = re.compile(_WORD + b"*+").match(sql, at)
    return found.end() if found else at


def _token(sql: bytes, kind: str, at: int, end: int, lifted: dict[int, tuple[int, int]], env: Env) -> Token:
    """The token; a longer one when it begins a list that was lifted whole."""
    literal = -1
    if kind in (STRING, INTEGER, HEX, PREFIXED):
        begin = at + {STRING: 1, INTEGER: 0}.get(kind, 2)
        stop, index = lifted.get(begin, (0, -1))
        if index >= 0 and _is_list(sql, kind, begin, stop):
            return Token(LIST, kind, kind, at, stop, index)
        if stop == end:
            literal = index
    name = _text(sql[at:end], kind, env)
    return Token(kind, name.upper() if kind == WORD else name, name, at, end, literal)


def _is_list(sql: bytes, kind: str, begin: int, stop: int) -> bool:
    """Whether the literal was lifted as a list: also one of a single element."""
    before = IN_STRINGS if kind == STRING else IN_INTEGERS if kind == INTEGER else None
    return before is not None and bool(before.match(sql, begin)) and bool(LIST_END.match(sql, stop))


def _text(raw: bytes, kind: str, env: Env) -> str:
    text = decoded(raw, env)
    if kind == NAME and text[0] in '`"':
        return text[1:-1].replace(text[0] * 2, text[0])
    if kind == VARIABLE:
        text = text[1:]
        return (text[1:-1].replace("``", "`") if text[:1] in ("`", "'", '"') else text).lower()
    if kind == SYSTEM:
        return text.replace("`", "").lower()
    return text


def quote_name(name: str) -> bytes:
    """An identifier in backticks, with the very bytes it was read from."""
    return b"`" + encoded(name.replace("`", "``")) + b"`"


def _parentheses(tokens: list[Token]) -> tuple[dict[int, int], int]:
    closing: dict[int, int] = {}
    open_: list[int] = []
    depth = 0
    pairs = {")": "(", "}": "{"}
    for index, token in enumerate(tokens):
        if token.kind != OPERATOR:
            continue
        if token.text in "({":
            open_.append(index)
            depth = max(depth, len(open_))
        elif token.text in pairs:
            if not open_ or tokens[open_[-1]].text != pairs[token.text]:
                raise Unreadable(f"{token.text!r} at offset {token.start} closes nothing")
            closing[open_.pop()] = index
    if open_:
        raise Unreadable(f"{tokens[open_[-1]].text!r} at offset {tokens[open_[-1]].start} is not closed")
    return closing, depth
