"""The SQL in a schema document, cut into tokens: column definitions and indexes.

    VARCHAR(255) NOT NULL DEFAULT 'a'   ->  word ( number ) word word word string

Both servers' executable comments are opened (`/*!80017 COLLATE x */`): what either server reads is there.
Whoever has a statement's tokens from elsewhere makes the same ones of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple


class SqlToken(NamedTuple):
    """`kind`: "word" (a keyword or a bare name), "name" (in backticks), "string", "number", "op".

    `text` is as written, without the quotes of a name; it stands from `start` to `end`, where that is known.
    """

    kind: str
    text: str
    start: int = -1
    end: int = -1

    @property
    def word(self) -> str:
        """The keyword that it may be, in upper case; "" for anything but a word."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def is_name(self) -> bool:
        """Whether it can name a column, table or index."""
        return self.kind in ("word", "name")

    def is_op(self, *operators: str) -> bool:
        """Whether it is one of these operators."""
        return self.kind == "op" and self.text in operators


Tokens = Sequence[SqlToken]

END: Final = SqlToken("op", "")


class SqlError(ValueError):
    """No server would read the text; the message says why."""


_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|/\*(?!M?!)(?:[^*]|\*(?!/))*\*/|--(?=\s|\Z)[^\n]*|\#[^\n]*)
    |(?P<open>/\*M?!(?:[0-9]{5,6})?)
    |(?P<close>\*/)
    |(?P<string>[nNxXbB]?'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<name>`(?:[^`]|``)+`)
    |(?P<number>0[xX][0-9a-fA-F]+\b|0b[01]+\b|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w$]))
    |(?P<word>[\w$]+)
    |(?P<op><=>|->>|->|<<|>>|<=|>=|<>|!=|:=|\|\||&&|[-+*/%^~&|!=<>(),.;:?@{}])""",
    re.VERBOSE | re.DOTALL,
)


def tokens_of(text: str) -> list[SqlToken]:
    """The tokens of `text`. Raises SqlError for a quote or parenthesis that is open, or an odd character."""
    found: list[SqlToken] = []
    at, comments, depth = 0, 0, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SqlError(f"cannot be read from {text[at : at + 20]!r} on")
        at = match.end()
        kind, part = match.lastgroup or "", match[0]
        if kind in ("open", "close"):
            comments += 1 if kind == "open" else -1
            if comments < 0:
                raise SqlError("has '*/' without a comment")
        elif kind != "skip":
            depth += {"(": 1, ")": -1}.get(part, 0) if kind == "op" else 0
            if depth < 0:
                raise SqlError("has a ')' too many")
            found.append(
                SqlToken(kind, part[1:-1].replace("``", "`") if kind == "name" else part, match.start(), at)
            )
    if comments:
        raise SqlError("has a comment that is not closed")
    if depth:
        raise SqlError("has a '(' that is not closed")
    return found


def closing(tokens: Tokens, at: int) -> int:
    """The index of the parenthesis that closes the one at `at`; the end when none does."""
    depth = 0
    for index in range(at, len(tokens)):
        depth += tokens[index].is_op("(") - tokens[index].is_op(")")
        if depth == 0:
            return index
    return len(tokens)


def by_commas(tokens: Tokens) -> list[list[SqlToken]]:
    """The parts between the commas that stand in no parentheses; none of nothing."""
    parts: list[list[SqlToken]] = [[]]
    depth = 0
    for token in tokens:
        depth += token.is_op("(") - token.is_op(")")
        if depth == 0 and token.is_op(","):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if tokens else []
